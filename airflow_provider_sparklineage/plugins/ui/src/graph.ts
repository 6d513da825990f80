// Hops as a graph that can be read: what the same task wrote of a dataset is one box, however many
// partitions that are. Pure.

import dagre from "@dagrejs/dagre";

import type { Graph, Hop, Place, Run } from "./api";
import { nameOf, shown } from "./shared/names";

export interface Part {
  kind: "part";
  id: string;
  namespace: string;
  name: string;
  short?: string; // as in a dataset of an answer
  hops: Hop[];
  isChosen: boolean;
}

export interface Job {
  kind: "job";
  id: string;
  title: string;
  runs: Map<string, Run>;
}

export type Box = Part | Job;

export interface Line {
  id: string;
  source: string;
  target: string;
}

export interface Drawn {
  boxes: Map<string, Box>;
  lines: Map<string, Line>;
}

// Of a box whose name needs one line, and how much a second line adds.
const SIZE = { part: { width: 220, height: 74 }, job: { width: 200, height: 50 } };
const [LINE, LETTERS] = [20, 24]; // pixels; the letters of a name that one line has room for

export function sizeOf(box: Box): { width: number; height: number } {
  const { width, height } = SIZE[box.kind];
  return { width, height: titleOf(box).length > LETTERS ? height + LINE : height };
}

// The name that a box shows.
export function titleOf(box: Box): string {
  if (box.kind === "part") return nameOf(box);
  const run = box.runs.values().next().value;
  return run?.dag_id && run.task_id ? shown(run.task_id) : shown(box.title);
}

export function drawnOf(graph: Graph, place: Place): Drawn {
  const drawn: Drawn = { boxes: new Map(), lines: new Map() };
  const runs = new Map([...graph.upstream.hops, ...graph.downstream.hops].flatMap(({ run }) => (run ? [[run.run_id, run]] : [])));
  const center = part(drawn, "chosen", { namespace: place.namespace, name: place.name }, true);
  graph.upstream.hops.forEach((hop) => {
    const made = hop.depth === 0 ? center : part(drawn, idOf("up", hop), hop.dataset);
    made.hops.push(hop);
    made.short ??= hop.dataset.short;
    if (hop.run) line(drawn, job(drawn, "up", hop.run).id, made.id);
    readersOf(hop, runs).forEach((run) => line(drawn, made.id, job(drawn, "up", run).id));
  });
  graph.downstream.hops.forEach((hop) => {
    const made = part(drawn, idOf("down", hop), hop.dataset);
    made.hops.push(hop);
    made.short ??= hop.dataset.short;
    if (!hop.run) return;
    const by = job(drawn, "down", hop.run);
    line(drawn, by.id, made.id);
    const before = graph.downstream.hops.filter(({ run }) => run && hop.via.includes(run.run_id));
    (before.length ? before.map((one) => idOf("down", one)) : [center.id]).forEach((id) => line(drawn, id, by.id));
  });
  return drawn;
}

const idOf = (side: string, { dataset, run, is_hidden }: Hop): string =>
  JSON.stringify([side, dataset.namespace, dataset.name, run?.namespace, run?.job ?? is_hidden]);

const readersOf = ({ via }: Hop, runs: Map<string, Run>): Run[] => via.flatMap((id) => runs.get(id) ?? []);

function part(drawn: Drawn, id: string, { namespace, name }: { namespace: string; name: string }, isChosen = false): Part {
  const made = (drawn.boxes.get(id) as Part | undefined) ?? { kind: "part", id, namespace, name, hops: [], isChosen };
  drawn.boxes.set(id, made);
  return made;
}

function job(drawn: Drawn, side: string, run: Run): Job {
  const title = run.job ?? run.run_id;
  const id = JSON.stringify([side, "job", run.namespace, title]);
  const made = (drawn.boxes.get(id) as Job | undefined) ?? { kind: "job", id, title, runs: new Map() };
  made.runs.set(run.run_id, run);
  drawn.boxes.set(id, made);
  return made;
}

function line(drawn: Drawn, source: string, target: string): void {
  const id = `${source}\n${target}`;
  drawn.lines.set(id, { id, source, target });
}

// The left upper corner of each box, data flowing from left to right.
export function placesOf({ boxes, lines }: Drawn): Map<string, { x: number; y: number }> {
  const layout = new dagre.graphlib.Graph().setGraph({ rankdir: "LR", ranksep: 40, nodesep: 18 }).setDefaultEdgeLabel(() => ({}));
  boxes.forEach((box) => layout.setNode(box.id, sizeOf(box)));
  lines.forEach(({ source, target }) => layout.setEdge(source, target));
  dagre.layout(layout);
  return new Map(
    layout.nodes().map((id) => {
      const { x, y, width, height } = layout.node(id) as { x: number; y: number; width: number; height: number };
      return [id, { x: x - width / 2, y: y - height / 2 }];
    })
  );
}
