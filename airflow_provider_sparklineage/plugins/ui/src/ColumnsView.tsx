// The columns of a dataset over all tables: what one was made of, and what was made of it.

import { Background, Controls, Handle, type Edge, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import { useEffect, useMemo, useState } from "react";

import type { Api, ColumnEdge, ColumnGraph, Run } from "./api";
import { type ColumnBox, drawnOf, GAP, heightOf, howOf, isCondition, partOf, placesOf, ROW, tasksOf, textsOf, WIDTH } from "./columnGraph";
import type { Address, Go } from "./place";
import { RunLink } from "./RunLink";
import { useAnswer } from "./shared/asked";
import { StateLink } from "./StateLink";
import { List } from "./shared/List";
import { Parted } from "./shared/Name";
import { counted, lastOf, nameOf, shown } from "./shared/names";
import { type Row, Table } from "./shared/Table";

interface Props {
  api: Api;
  place: Address;
  go: Go;
  version: number; // changes when the history has changed
}

const DEPTHS = [1, 2, 3, 5, 10];
const FIRST = 3; // steps
const [MOST, LARGEST] = [150, 40]; // lines, and columns of one box, that can be drawn and read
// Of more elements than these, those in view are drawn.
const [ELEMENTS, OF_BOX, OF_COLUMN, OF_LINE] = [400, 9, 6, 3];
const SMALLEST = 0.8; // of the size in which the picture begins: its names are 24 pixels apart

export function ColumnsView({ api, place, go, version }: Props) {
  const depth = DEPTHS.find((one) => String(one) === place.depth) ?? FIRST;
  const { namespace, name, partition, column } = place;
  const { value, problem, isAsked } = useAnswer(
    async (signal) => ({ graph: await api.columnGraph(place, depth, signal), of: { namespace, name, partition, column } }),
    [namespace, name, partition, column, depth, version], true);
  const graph = useOpened(api, value?.graph ?? null, place);
  // While another column is asked for, the one before is shown, as itself.
  const drawn = useMemo(() => ({ ...place, ...value?.of }), [place, value]);
  if (problem) return <p className="sentence" role="status">{problem}</p>;
  if (!graph) return <p className="sentence" role="status">Loading the columns …</p>;
  const conditions = graph.edges.filter(isCondition).length;
  return (
    <article className="dataset" aria-label="Columns" aria-busy={isAsked}>
      <h2>
        <bdi title={shown(`${drawn.namespace} ${drawn.name}`)}>{graph.short ? shown(graph.short) : lastOf(drawn.name)}</bdi>
        {drawn.column && <bdi>{shown(drawn.column)}</bdi>}
        {drawn.partition && <bdi className="facts">of {shown(drawn.partition)}</bdi>}
      </h2>
      <div className="tools">
        <button type="button" onClick={() => go({ view: "", column: "", depth: "", open: "" })}>Partitions</button>
        <label>
          Column{" "}
          <select value={place.column} onChange={(event) => go({ column: event.target.value, open: "" })}>
            <option value="">choose one</option>
            {[...new Set([...graph.columns, place.column])].filter(Boolean).map((column) => (
              <option key={column} value={column}>{shown(column)}</option>
            ))}
          </select>
        </label>
        <label>
          Steps{" "}
          <select value={depth} onChange={(event) => go({ depth: event.target.value })}>
            {DEPTHS.map((n) => <option key={n} value={n}>{n}</option>)}
          </select>
        </label>
        <label>
          <input type="checkbox" checked={Boolean(place.conditions)} disabled={!conditions}
            onChange={(event) => go({ conditions: event.target.checked ? "1" : "" })} />{" "}
          Conditions ({conditions.toLocaleString("en")})
        </label>
      </div>
      {drawn.column ? <Found graph={graph} place={drawn} go={go} /> : <Choice graph={graph} go={go} />}
    </article>
  );
}

// What was asked for further columns, one after the other, is added to the graph.
function useOpened(api: Api, graph: ColumnGraph | null, place: Address): ColumnGraph | null {
  const [added, setAdded] = useState<Record<string, ColumnGraph>>({});
  const opened = useMemo(() => (place.open ? place.open.split("\n") : []), [place.open]);
  useEffect(() => {
    const ending = new AbortController();
    for (const one of opened) {
      if (added[one]) continue;
      const [side, namespace = "", name = "", column = "", partition = ""] = JSON.parse(one) as string[];
      api.columnGraph({ namespace, name, column, partition }, 1, ending.signal).then(
        (found) => {
          const edges = found.edges.filter((edge) => edge.side === side);
          const further = found.further.filter((end) => end.side === side);
          setAdded((before) => ({ ...before, [one]: { ...found, edges, further } }));
        },
        () => undefined // the button stays
      );
    }
    return () => ending.abort();
  }, [opened]);
  return useMemo(() => {
    const more = opened.flatMap((one) => added[one] ?? []);
    if (!graph || !more.length) return graph;
    const keyed = new Map([graph, ...more].flatMap(({ edges }) => edges).map((edge) => [JSON.stringify(edge), edge]));
    return {
      ...graph,
      edges: [...keyed.values()],
      runs: Object.assign({}, graph.runs, ...more.map(({ runs }) => runs)),
      parts: [graph, ...more].flatMap(({ parts }) => parts),
      further: [graph, ...more].flatMap(({ further }) => further),
    };
  }, [graph, added, opened]);
}

function Choice({ graph, go }: { graph: ColumnGraph; go: Go }) {
  if (!graph.columns.length) return <p className="sentence">No run names a column of it.</p>;
  return (
    <>
      <p className="facts">Choose a column to see what it was made of, and what was made of it.</p>
      <List label="Columns" count={graph.columns.length} chosen={-1} height={30} choose={(n) => go({ column: graph.columns[n] ?? "" })}
        entry={(n) => <bdi className="name">{shown(graph.columns[n] ?? "")}</bdi>} />
    </>
  );
}

type Drawn = Node<{ box: ColumnBox; place: Address; go: Go; tasks: string[]; part: string; ends: Set<string>; texts: Map<string, string> }>;

const isAsked = ({ data }: Drawn): boolean => data.box.side === "here";

function Found({ graph, place, go }: { graph: ColumnGraph; place: Address; go: Go }) {
  const drawing = useMemo(() => drawnOf(graph, place, Boolean(place.conditions)), [graph, place]);
  const largest = Math.max(...[...drawing.boxes.values()].map(({ columns }) => columns.length));
  const isMany = drawing.lines.length > MOST || largest > LARGEST;
  const direct = graph.edges.filter((edge) => !isCondition(edge));
  const { nodes, edges, height, isLarge } = useMemo(() => {
    if (isMany) return { nodes: [], edges: [], height: 0, isLarge: false };
    const places = placesOf(drawing);
    const further = new Set(graph.further.map(({ side, namespace, name, column }) => JSON.stringify([side, namespace, name, column])));
    const nodes = [...drawing.boxes.values()].map((box): Drawn => ({
      id: box.id, type: "columns", position: places.get(box.id) ?? { x: 0, y: 0 }, width: WIDTH, height: heightOf(box),
      ariaLabel: `${nameOf(box)}: ${box.columns.map(shown).join(", ")}`,
      data: {
        box, place, go, tasks: tasksOf(box, graph.runs), part: partOf(box, graph.parts), texts: textsOf(box, drawing.lines),
        ends: new Set(box.columns.filter((one) => further.has(JSON.stringify([box.side, box.namespace, box.name, one])))),
      },
    }));
    const edges = drawing.lines.map((line): Edge => ({
      id: line.id, source: line.source, target: line.target, sourceHandle: line.from, targetHandle: line.to ?? "",
      focusable: false, interactionWidth: 0, className: line.isCondition ? "condition" : "",
    }));
    const bottom = Math.max(0, ...nodes.map((node) => node.position.y + (node.height ?? 0)));
    const columns = nodes.reduce((count, { data }) => count + data.box.columns.length, 0);
    const isLarge = nodes.length * OF_BOX + columns * OF_COLUMN + edges.length * OF_LINE > ELEMENTS;
    return { nodes, edges, height: Math.min(Math.max(bottom + 90, 240), 620), isLarge };
  }, [drawing]);
  return (
    <>
      {!graph.edges.length && <p className="sentence">Nothing is known that it was made of, or that was made of it.</p>}
      {isMany && (
        <p className="sentence">
          {largest > LARGEST ? `${counted(largest, "column")} of one table` : counted(drawing.lines.length, "line")} are too many to draw; choose fewer steps, or see the list.
        </p>
      )}
      {nodes.length > 0 && graph.edges.length > 0 && (
        <div className="picture columnpicture" style={{ height }}>
          <ReactFlow key={place.column + place.name} nodes={nodes} edges={edges} nodeTypes={TYPES} nodesDraggable={false} nodesConnectable={false} edgesFocusable={false}
            nodesFocusable={false} onlyRenderVisibleElements={isLarge} minZoom={isLarge ? SMALLEST : 0.1}
            fitView fitViewOptions={{ maxZoom: 1, minZoom: SMALLEST, padding: 0.04, nodes: isLarge ? nodes.filter(isAsked) : nodes }}
            aria-label="Columns, and lines between those that are made of each other">
            <Background />
            <Controls showInteractive={false} position="top-right" orientation="horizontal" />
          </ReactFlow>
        </div>
      )}
      {graph.is_cut && <p className="facts" role="status">There are more: choose fewer steps, or a column nearer to them.</p>}
      {graph.hidden > 0 && <p className="facts">{counted(graph.hidden, "run")} of DAGs that you may not see ended the search there.</p>}
      <Edges title="Made of" edges={direct.filter(({ side }) => side === "upstream")} runs={graph.runs} go={go} />
      <Edges title="Used for" edges={direct.filter(({ side }) => side === "downstream")} runs={graph.runs} go={go} />
      {place.conditions && <Edges title="Conditions" edges={graph.edges.filter(isCondition)} runs={graph.runs} go={go} />}
    </>
  );
}

const TYPES = { columns: Box };

function Box({ data }: NodeProps<Drawn>) {
  const { box, place, go, tasks, part, ends, texts } = data;
  return (
    <div className={box.side === "here" ? "box table chosen" : "box table"}>
      <div className="head">
        <Handle id="" type="target" position={Position.Left} isConnectable={false} />
        <bdi className="name" title={shown(`${box.namespace} ${box.name}`)}>{nameOf(box)}</bdi>
        {part && <bdi className="value">{shown(part)}</bdi>}
        {tasks.length > 0 && <bdi className="facts" title={shown(tasks.join(", "))}>by {shown(tasks.join(", "))}</bdi>}
      </div>
      <How text={texts.get("")} />
      {box.columns.map((column) => (
        <div key={column} className="column" style={{ height: ROW }}>
          <Handle id={column} type="target" position={Position.Left} isConnectable={false} />
          <How text={texts.get(column)} />
          {ends.has(column) && box.side === "upstream" && <Open box={box} column={column} place={place} go={go} />}
          <button type="button" className="link nodrag nopan" title={shown(column)}
            onClick={() => go({ namespace: box.namespace, name: box.name, column, view: "Columns", partition: box.side === "here" ? place.partition : "" })}>
            <bdi>{shown(column)}</bdi>
          </button>
          {ends.has(column) && box.side === "downstream" && <Open box={box} column={column} place={place} go={go} />}
          <Handle id={column} type="source" position={Position.Right} isConnectable={false} />
        </div>
      ))}
    </div>
  );
}

// What happens to a column on the lines that end here.
function How({ text }: { text: string | undefined }) {
  return text ? <span className="how" title={shown(text)} style={{ maxWidth: GAP - 20 }}>{shown(text)}</span> : null;
}

// The button at the end of the graph that goes one step further.
function Open({ box, column, place, go }: { box: ColumnBox; column: string; place: Address; go: Go }) {
  const one = JSON.stringify([box.side, box.namespace, box.name, column]);
  if (place.open.split("\n").includes(one)) return null;
  const what = box.side === "upstream" ? "was made of" : "is used for";
  return (
    <button type="button" className="open nodrag nopan" aria-label={`Show what ${shown(column)} of ${nameOf(box)} ${what}`}
      onClick={() => go({ open: [place.open, one].filter(Boolean).join("\n") })}>+</button>
  );
}

const TITLES = ["Column", "Made of", "How", "By"];
const WIDTHS = "1fr 1fr 2fr 1fr";

// The same as the picture, as a table: with the expressions, and links to the runs.
function Edges({ title, edges, runs, go }: { title: string; edges: ColumnEdge[]; runs: Record<string, Run>; go: Go }) {
  if (!edges.length) return null;
  const end = ({ namespace, name, short, column }: ColumnEdge["source"]) => {
    const to = { namespace, name, column: column ?? "", view: "Columns" };
    return (
      <StateLink to={to} go={go} change={{ ...to, partition: "", open: "" }} title={shown(`${namespace} ${name}`)}>
        <Parted text={`${nameOf({ short, name })}.${column ?? "*"}`} />
      </StateLink>
    );
  };
  const rows = edges.map((edge, n): Row => ({
    key: String(n),
    cells: () => [
      end(edge.target),
      end(edge.source),
      <>{howOf(edge) || "copy"}{edge.description && <> <code>{shown(edge.description)}</code></>}</>,
      runs[edge.run] && <RunLink run={runs[edge.run] as Run} />,
    ],
  }));
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <Table label={title} titles={TITLES} widths={WIDTHS} rows={rows} />
    </section>
  );
}
