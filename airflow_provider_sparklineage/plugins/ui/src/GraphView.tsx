// The graph of a partition, and what is in the box that is chosen.

import {
  Background, Controls, Handle, type Edge, type Node, type NodeProps, Position, ReactFlow, useReactFlow, useStore,
} from "@xyflow/react";
import { useEffect, useMemo, useState } from "react";

import type { Graph, Place } from "./api";
import { drawnOf, type Box, type Job, type Part, placesOf, sizeOf, titleOf } from "./graph";
import { howOf } from "./HopTable";
import { List } from "./shared/List";
import { Parted } from "./shared/Name";
import { counted, nameOf, shown } from "./shared/names";
import { RunLink } from "./RunLink";

// More boxes than these are no picture any more.
const MOST = 300;
// Of more elements than these, those in view are drawn, at a size at which few are: all views together
// have a thousand.
const [ELEMENTS, OF_BOX, OF_LINE] = [400, 9, 3];
// Below the first size names cannot be read; the second is that of a part of a picture.
const [READABLE, OF_PART] = [0.6, 0.8];

type Drawn = Node<{ box: Box }>;

export function GraphView({ graph, place, go }: { graph: Graph; place: Place; go: (change: Partial<Place>) => void }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const drawn = useMemo(() => drawnOf(graph, place), [graph, place.partition]);
  const isMany = drawn.boxes.size > MOST;
  const { nodes, edges, height } = useMemo(() => (isMany ? NOTHING : laidOut(drawn)), [drawn]);
  if (isMany) return <p className="sentence">{counted(drawn.boxes.size, "box")}es are too many to draw; choose fewer steps, or the table.</p>;
  const isLarge = drawn.boxes.size * OF_BOX + drawn.lines.size * OF_LINE > ELEMENTS;
  const box = chosen === null ? undefined : drawn.boxes.get(chosen);
  return (
    <div className="graph">
      <div className="picture" style={{ height }}>
        <ReactFlow nodes={nodes.map((node) => ({ ...node, selected: node.id === chosen }))} edges={edges} nodeTypes={TYPES}
          onNodeClick={(_, node) => setChosen(node.id)}
          onNodesChange={(changes) => changes.forEach((one) => one.type === "select" && one.selected && setChosen(one.id))}
          nodesDraggable={false} nodesConnectable={false} edgesFocusable={false} defaultEdgeOptions={PLAIN} minZoom={isLarge ? OF_PART : 0.1} fitViewOptions={FIT}
          onlyRenderVisibleElements={isLarge}
          aria-label="What it was made from, and what was made of it">
          <Background />
          <Controls showInteractive={false} position="top-right" orientation="horizontal" />
          <Begin nodes={nodes} />
          <InView id={chosen} />
        </ReactFlow>
      </div>
      {box ? <Details box={box} go={go} /> : <p className="facts">Choose a box to see its partitions, columns and runs.</p>}
    </div>
  );
}

const FIT = { maxZoom: 1, padding: 0.04 };

// Shows all boxes at first, or what is around the box of the question if all would be too small to read.
function Begin({ nodes }: { nodes: Drawn[] }) {
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const { fitView, setCenter } = useReactFlow();
  useEffect(() => {
    if (!width || !height) return;
    const [right, bottom] = [endOf(nodes, "x", "width"), endOf(nodes, "y", "height")];
    const asked = nodes.find(({ data: { box } }) => box.kind === "part" && box.isChosen);
    if (!asked || Math.min(width / right, height / bottom) >= READABLE) {
      void fitView(FIT);
      return;
    }
    const { position: { x, y }, width: wide = 0, height: high = 0 } = asked;
    void setCenter(x + wide / 2, y + high / 2, { zoom: OF_PART });
  }, [width > 0 && height > 0, nodes]);
  return null;
}

const endOf = (nodes: Drawn[], at: "x" | "y", size: "width" | "height"): number =>
  Math.max(1, ...nodes.map((node) => node.position[at] + (node[size] ?? 0)));

const MARGIN_IN_VIEW = 8; // pixels around a box

// Brings the chosen box back into the picture, which is narrower next to the box's details. The picture
// stays as it is if the box is in it.
function InView({ id }: { id: string | null }) {
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const { getNode, getViewport, setViewport } = useReactFlow();
  useEffect(() => {
    const node = id === null ? undefined : getNode(id);
    if (!node) return;
    const { x, y, zoom } = getViewport();
    const by = {
      x: outside(node.position.x * zoom + x, (node.width ?? 0) * zoom, width),
      y: outside(node.position.y * zoom + y, (node.height ?? 0) * zoom, height),
    };
    const isStill = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (by.x || by.y) void setViewport({ x: x - by.x, y: y - by.y, zoom }, { duration: isStill ? 0 : 200 });
  }, [id, width, height]);
  return null;
}

// How far a box begins before a picture of this size, or ends behind it.
function outside(at: number, size: number, room: number): number {
  const behind = at + size + MARGIN_IN_VIEW - room;
  const before = at - MARGIN_IN_VIEW;
  return before < 0 || behind < 0 ? Math.min(before, 0) : Math.min(behind, before);
}

interface Layout {
  nodes: Drawn[];
  edges: Edge[];
  height: number; // of the picture, in pixels
}

const NOTHING: Layout = { nodes: [], edges: [], height: 0 };
const [LOWEST, HIGHEST, MARGIN] = [240, 460, 90];

function laidOut(drawn: ReturnType<typeof drawnOf>): Layout {
  const places = placesOf(drawn);
  const nodes = [...drawn.boxes.values()].map((box): Drawn => ({
    id: box.id, type: box.kind, data: { box }, position: places.get(box.id) ?? { x: 0, y: 0 }, ...sizeOf(box),
    ariaLabel: box.kind === "job" ? `Task ${titleOf(box)}${dagOf(box) && ` of ${dagOf(box)}`}` : `Dataset ${nameOf(box)}, ${partsOf(box)}`,
  }));
  const edges = [...drawn.lines.values()].map((line): Edge => ({ ...line, focusable: false }));
  return { nodes, edges, height: Math.min(Math.max(endOf(nodes, "y", "height") + MARGIN, LOWEST), HIGHEST) };
}

const partitionsOf = (box: Part): string[] => [...new Set(box.hops.map(({ partition }) => partition))];
const columnsOf = (box: Part): string[] => [...new Set(box.hops.flatMap(({ column }) => column ?? []))];

function partsOf(box: Part): string {
  const names = partitionsOf(box);
  if (names.length > 1) return counted(names.length, "partition");
  return names.length ? shown(names[0] ?? "") || "all of it" : "";
}

function PartBox({ data }: NodeProps<Drawn>) {
  const box = data.box as Part;
  const columns = columnsOf(box);
  const isHidden = box.hops.some(({ is_hidden }) => is_hidden);
  return (
    <div className={box.isChosen ? "box part chosen" : "box part"}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Parted className="name" title={shown(`${box.namespace} ${box.name}`)} text={titleOf(box)} />
      <bdi className="value">{partsOf(box)}</bdi>
      <span className="facts">
        {isHidden ? "by a run that you may not see" : columns.length > 3 ? counted(columns.length, "column") : columns.map(shown).join(", ")}
      </span>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

function JobBox({ data }: NodeProps<Drawn>) {
  const box = data.box as Job;
  return (
    <div className="box job">
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Parted className="name" text={titleOf(box)} />
      <span className="facts of">
        {dagOf(box) && <bdi className="dag" title={dagOf(box)}>{dagOf(box)}</bdi>}
        <span>{dagOf(box) && " · "}{counted(box.runs.size, "run")}</span>
      </span>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

const anyRun = (box: Job) => box.runs.values().next().value;

const dagOf = (box: Job): string => shown((anyRun(box)?.task_id && anyRun(box)?.dag_id) || "");

const PLAIN = { interactionWidth: 0 }; // a line cannot be chosen

const TYPES = { part: PartBox, job: JobBox };

function Details({ box, go }: { box: Box; go: (change: Partial<Place>) => void }) {
  if (box.kind === "job") {
    const runs = [...box.runs.values()];
    return (
      <section className="details" aria-label="Chosen">
        <h4><Parted text={titleOf(box)} />{dagOf(box) && <span className="facts"> · <Parted text={dagOf(box)} /></span>}</h4>
        <ul>{runs.slice(0, 50).map((run) => <li key={run.run_id}><RunLink run={run} /></li>)}</ul>
        {runs.length > 50 && <p className="facts">and {runs.length - 50} more: see the table</p>}
      </section>
    );
  }
  const names = partitionsOf(box);
  const edges = box.hops.filter(({ column }) => column);
  return (
    <section className="details" aria-label="Chosen">
      <h4><Parted text={`${box.namespace} ${box.name}`} /></h4>
      {names.length > 0 && (
        <List label="Partitions of the chosen box" count={names.length} chosen={-1} height={28} className="short"
          choose={(n) => go({ namespace: box.namespace, name: box.name, partition: names[n] ?? "", column: "" })}
          entry={(n) => <bdi className="name">{shown(names[n] ?? "") || "all of it"}</bdi>} />
      )}
      <ul>
        {edges.slice(0, 50).map((hop, n) => (
          <li key={n}><bdi>{shown(hop.column ?? "")}</bdi> <span className="facts">{howOf(hop)}</span></li>
        ))}
      </ul>
    </section>
  );
}
