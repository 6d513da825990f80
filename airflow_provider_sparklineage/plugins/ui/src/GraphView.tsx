// The graph of a partition, and what is in the box that is chosen.

import { Background, Controls, Handle, type Edge, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import { useMemo, useState } from "react";

import type { Graph, Place } from "./api";
import { drawnOf, type Box, type Job, type Part, placesOf, SIZE } from "./graph";
import { howOf } from "./HopTable";
import { List } from "./shared/List";
import { counted, nameOf, shown } from "./shared/names";
import { RunLink } from "./RunLink";

// More boxes than these are no picture any more.
const MOST = 300;

type Drawn = Node<{ box: Box }>;

export function GraphView({ graph, place, go }: { graph: Graph; place: Place; go: (change: Partial<Place>) => void }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const drawn = useMemo(() => drawnOf(graph, place), [graph, place.partition]);
  const isMany = drawn.boxes.size > MOST;
  const { nodes, edges, height } = useMemo(() => (isMany ? NOTHING : laidOut(drawn)), [drawn]);
  if (isMany) return <p className="sentence">{counted(drawn.boxes.size, "box")}es are too many to draw; choose fewer steps, or the table.</p>;
  const box = chosen === null ? undefined : drawn.boxes.get(chosen);
  return (
    <div className="graph">
      <div className="picture" style={{ height }}>
        <ReactFlow nodes={nodes.map((node) => ({ ...node, selected: node.id === chosen }))} edges={edges} nodeTypes={TYPES}
          onNodeClick={(_, node) => setChosen(node.id)}
          onNodesChange={(changes) => changes.forEach((one) => one.type === "select" && one.selected && setChosen(one.id))}
          nodesDraggable={false} nodesConnectable={false} edgesFocusable={false} fitView fitViewOptions={{ maxZoom: 1, padding: 0.04 }} minZoom={0.1}
          aria-label="What it was made from, and what was made of it">
          <Background />
          <Controls showInteractive={false} position="top-right" orientation="horizontal" />
        </ReactFlow>
      </div>
      {box ? <Details box={box} go={go} /> : <p className="facts">Choose a box to see its partitions, columns and runs.</p>}
    </div>
  );
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
    id: box.id, type: box.kind, data: { box }, position: places.get(box.id) ?? { x: 0, y: 0 }, ...SIZE[box.kind],
    ariaLabel: box.kind === "job" ? `Task ${shown(box.title)}` : `Dataset ${nameOf(box)}, ${partsOf(box)}`,
  }));
  const edges = [...drawn.lines.values()].map((line): Edge => ({ ...line, focusable: false }));
  const bottom = Math.max(0, ...nodes.map((node) => node.position.y + (node.height ?? 0)));
  return { nodes, edges, height: Math.min(Math.max(bottom + MARGIN, LOWEST), HIGHEST) };
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
      <bdi className="name" title={shown(`${box.namespace} ${box.name}`)}>{nameOf(box)}</bdi>
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
      <bdi className="name">{taskOf(box)}</bdi>
      <span className="facts">{counted(box.runs.size, "run")}{dagOf(box)}</span>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

const anyRun = (box: Job) => box.runs.values().next().value;

// A task by its own name, which is what differs in a DAG; other jobs by all of theirs.
const taskOf = (box: Job): string => shown((anyRun(box)?.dag_id && anyRun(box)?.task_id) || box.title);

function dagOf(box: Job): string {
  const dag = anyRun(box)?.task_id && anyRun(box)?.dag_id;
  return dag ? ` of ${shown(dag)}` : "";
}

const TYPES = { part: PartBox, job: JobBox };

function Details({ box, go }: { box: Box; go: (change: Partial<Place>) => void }) {
  if (box.kind === "job") {
    const runs = [...box.runs.values()];
    return (
      <section className="details" aria-label="Chosen">
        <h4><bdi>{shown(box.title)}</bdi></h4>
        <ul>{runs.slice(0, 50).map((run) => <li key={run.run_id}><RunLink run={run} /></li>)}</ul>
        {runs.length > 50 && <p className="facts">and {runs.length - 50} more: see the table</p>}
      </section>
    );
  }
  const names = partitionsOf(box);
  const edges = box.hops.filter(({ column }) => column);
  return (
    <section className="details" aria-label="Chosen">
      <h4><bdi>{shown(`${box.namespace} ${box.name}`)}</bdi></h4>
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
