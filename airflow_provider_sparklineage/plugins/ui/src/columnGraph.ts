// Columns that are made of each other, as boxes of datasets with rows of columns, and lines between rows. Pure.

import dagre from "@dagrejs/dagre";

import type { ColumnEdge, ColumnEnd, ColumnGraph, ColumnPart, Place, Run } from "./api";

export interface ColumnBox {
  id: string;
  side: Side; // of the column that the question is about
  namespace: string;
  name: string;
  short?: string;
  columns: string[];
  runs: Set<string>; // that wrote it
}

export interface ColumnLine {
  id: string;
  source: string; // a box
  target: string;
  from: string; // a column
  to: string | null; // null for all rows of the target
  hows: Set<string>; // what happens to the column on the way
  isCondition: boolean;
}

export interface Drawing {
  boxes: Map<string, ColumnBox>;
  lines: ColumnLine[];
}

type Side = "upstream" | "here" | "downstream";

export const [ROW, HEAD, WIDTH, GAP] = [30, 70, 250, 160]; // pixels; the gap has room for a text next to a box

export const isCondition = ({ type }: ColumnEdge): boolean => type !== "DIRECT";

const keyOf = ({ namespace, name }: { namespace: string; name: string }): string => JSON.stringify([namespace, name]);

export function drawnOf(graph: ColumnGraph, place: Place, withConditions: boolean): Drawing {
  const drawing: Drawing = { boxes: new Map(), lines: [] };
  boxOf(drawing, "here", { namespace: place.namespace, name: place.name, short: graph.short, column: place.column }, place);
  const lines = new Map<string, ColumnLine>();
  for (const edge of graph.edges) {
    if (isCondition(edge) && !withConditions) continue;
    const [source, target] = [boxOf(drawing, edge.side, edge.source, place), boxOf(drawing, edge.side, edge.target, place)];
    target.runs.add(edge.run);
    const id = JSON.stringify([source.id, edge.source.column, target.id, edge.target.column, isCondition(edge)]);
    const line = lines.get(id) ?? {
      id, source: source.id, target: target.id, from: edge.source.column ?? "", to: edge.target.column,
      hows: new Set<string>(), isCondition: isCondition(edge),
    };
    line.hows.add(howOf(edge));
    lines.set(id, line);
  }
  drawing.lines = [...lines.values()];
  return drawing;
}

// What happens to a column on an edge, in a word or two; nothing for a copy.
export function howOf({ type, subtype, masking }: ColumnEdge): string {
  const kind = (subtype || type || "").toLowerCase().replaceAll("_", " ");
  return [kind === "identity" ? "" : kind, masking ? "masked" : ""].filter(Boolean).join(", ");
}

// A dataset has one box on each side; the one of the question has its own, where its column is met.
function boxOf(drawing: Drawing, side: Side, end: ColumnEnd, place: Place): ColumnBox {
  const isHere = keyOf(end) === keyOf(place) && (end.column === null || end.column === place.column);
  const id = JSON.stringify([isHere ? "here" : side, end.namespace, end.name]);
  const box = drawing.boxes.get(id) ?? {
    id, side: isHere ? "here" : side, namespace: end.namespace, name: end.name, short: end.short, columns: [], runs: new Set<string>(),
  };
  if (end.column && !box.columns.includes(end.column)) box.columns.push(end.column);
  drawing.boxes.set(id, box);
  return box;
}

// The texts of the lines that end at a box, by the column where they end; "" for its head. Lines may cross
// and lie close together, but each row has room for one text before it.
export function textsOf(box: ColumnBox, lines: ColumnLine[]): Map<string, string> {
  const ending = Map.groupBy(lines.filter(({ target }) => target === box.id), ({ to }) => to ?? "");
  return new Map([...ending].map(([column, of]) => [column, [...new Set(of.flatMap(({ hows }) => [...hows]))].filter(Boolean).join(", ")]));
}

export const heightOf = (box: ColumnBox): number => HEAD + ROW * Math.max(1, box.columns.length) + 6;

// The left upper corner of each box, data flowing from left to right.
export function placesOf({ boxes, lines }: Drawing): Map<string, { x: number; y: number }> {
  const layout = new dagre.graphlib.Graph().setGraph({ rankdir: "LR", ranksep: GAP, nodesep: 20 }).setDefaultEdgeLabel(() => ({}));
  boxes.forEach((box) => layout.setNode(box.id, { width: WIDTH, height: heightOf(box) }));
  lines.forEach(({ source, target }) => source !== target && layout.setEdge(source, target));
  dagre.layout(layout);
  return new Map(
    layout.nodes().map((id) => {
      const { x, y, width, height } = layout.node(id) as { x: number; y: number; width: number; height: number };
      return [id, { x: x - width / 2, y: y - height / 2 }];
    })
  );
}

// The tasks by which a box's data was made.
export function tasksOf(box: ColumnBox, runs: Record<string, Run>): string[] {
  return [...new Set([...box.runs].map((id) => runs[id]?.task_id || runs[id]?.job || id))];
}

// The part of a dataset that the runs of a box wrote, as far as it is known.
export function partOf(box: ColumnBox, parts: ColumnPart[]): string {
  const of = parts.filter(({ run, namespace, name }) => box.runs.has(run) && namespace === box.namespace && name === box.name);
  const counts = new Set(of.map(({ partitions, partition }) => (partitions === 1 ? (partition ?? "") : `${partitions} partitions`)));
  return counts.size === 1 && !counts.has("0 partitions") ? ([...counts][0] ?? "") : "";
}
