// Which squares a dataset's partition strip has: the last dates on the calendar of its unit, and what
// this run, and others, did with each. Pure.

import { type Partition, stepOf, textOf, type Unit } from "../shared/dates";
import type { Dataset, Extent } from "./model";

// What a square can be, in the order of the legend.
export type Kind = "own" | "unexpected" | "missing" | "removed" | "other" | "none";

export interface Squares {
  unit: Unit;
  labels: string[];
  first: number;
  last: number;
  sets: Record<Exclude<Kind, "none">, Set<number>>; // steps
  counts: Map<number, number>; // partitions on a step
  partial: Set<Kind>; // kinds of which the event does not name all
}

interface Axis {
  unit: Unit;
  labels: string[];
  on: (partition: Partition) => number | null;
  steps: (several: Partition[]) => number[];
}

export const SQUARES = 30;
// So many later dates are drawn, where other runs had later ones.
const LATER = 10;
// Steps of an extent that are looked at.
const MOST = 1000;

// The strip of a dataset; a text where the event does not name what was accessed; null without dates.
// others: partitions that other runs of the task accessed.
export function stripOf(dataset: Dataset, others: Partition[] = []): Squares | string | null {
  const { extents, from = [] } = dataset.checks[0] ?? {};
  const { expected: due, observed, missing, unexpected } = extents ?? NO_EXTENTS;
  const { removed } = dataset;
  const axis = axisOf([...dataset.partitions, ...removed, observed.last, missing.last, due.last]);
  if (!axis) return null;
  const counts = countsOf(axis, dataset.partitions);
  if (!dataset.partitions.length && observed.count) {
    const filled = filledBy(axis, observed);
    if (!filled) return unnamed(axis, observed);
    filled.forEach((step) => counts.set(step, 1));
  }
  const declared = from.filter(({ kind }) => kind !== "inferred");
  const expected = new Set([
    ...axis.steps(declared.map(({ dimension, value }) => ({ [dimension]: value }))),
    ...(filledBy(axis, due) ?? []),
  ]);
  const lacks = [...expected].filter((step) => !counts.has(step));
  const partial = new Set<Kind>();
  const steps = (kind: Kind, extent: Extent, candidates: number[]) => {
    const found = within(axis, extent, candidates);
    if (!found) partial.add(kind);
    return new Set(found ?? axis.steps([extent.first, extent.last]));
  };
  const sets = {
    own: new Set(counts.keys()),
    unexpected: steps("unexpected", unexpected, extra(axis, unexpected, dataset.partitions, expected)),
    missing: steps("missing", missing, lacks),
    removed: new Set(axis.steps(removed)),
    other: new Set(axis.steps(others)),
  };
  const latest = latestOf([...sets.own, ...sets.missing, ...sets.unexpected, ...sets.removed]);
  if (latest === -Infinity) return null;
  const last = Math.min(latestOf([latest, ...sets.other]), latest + LATER);
  return { ...axis, first: last - SQUARES + 1, last, sets, counts, partial };
}

const NOTHING: Extent = { count: 0, first: {}, last: {} };
const NO_EXTENTS = { expected: NOTHING, observed: NOTHING, missing: NOTHING, unexpected: NOTHING };

const latestOf = (steps: number[]) => steps.reduce((one, other) => Math.max(one, other), -Infinity);

// The unit of the first partition that has a date, and how steps of that unit are found.
function axisOf(partitions: Partition[]): Axis | null {
  const found = partitions.map(stepOf).filter((at) => at !== null);
  if (!found[0]) return null;
  const { unit, labels } = found[0];
  // Midnights are days: of a column that is a timestamp.
  const areDays = found.every(({ isTime, step }) => isTime && step % 24 === 0);
  const size = areDays ? 24 : 1;
  const on = (partition: Partition) => {
    const at = stepOf(partition);
    return at?.unit === unit && at.step % size === 0 ? at.step / size : null;
  };
  const steps = (several: Partition[]) => several.map(on).filter((step) => step !== null);
  return { unit: areDays ? "day" : unit, labels, on, steps };
}

function countsOf(axis: Axis, partitions: Partition[]): Map<number, number> {
  const counts = new Map<number, number>();
  axis.steps(partitions).forEach((step) => counts.set(step, (counts.get(step) ?? 0) + 1));
  return counts;
}

// The last steps of an extent, if it has no gap: as many partitions as steps, which differ in nothing
// else.
function filledBy(axis: Axis, { count, first, last }: Extent): number[] | null {
  const [from, to] = [axis.on(first), axis.on(last)] as const;
  const rest = (partition: Partition) =>
    JSON.stringify(Object.entries(partition).filter(([label]) => !axis.labels.includes(label)));
  if (!count || from === null || to === null || rest(first) !== rest(last)) return null;
  if (to - from + 1 !== count) return null;
  return Array.from({ length: Math.min(count, MOST) }, (_, n) => to - n);
}

// The steps of an extent: its ends, candidates if they are as many, those between its ends without a
// gap; null if it is not known which.
function within(axis: Axis, extent: Extent, candidates: number[]): number[] | null {
  if (extent.count <= 2) return axis.steps(extent.count ? [extent.first, extent.last] : []);
  return candidates.length === extent.count ? candidates : filledBy(axis, extent);
}

// The steps of partitions that may be the unexpected ones.
function extra(axis: Axis, { count, first, last }: Extent, partitions: Partition[], expected: Set<number>): number[] {
  const outside = axis.steps(partitions).filter((step) => !expected.has(step));
  if (outside.length === count) return outside;
  const names = partitions.map((partition) => JSON.stringify(partition));
  const [from = -1, to = -1] = [first, last].map((end) => names.indexOf(JSON.stringify(end)));
  const between = from < 0 ? [] : axis.steps(partitions.slice(from, to + 1));
  return between.length === count ? between : [];
}

function unnamed(axis: Axis, { count, first, last }: Extent): string {
  const many = `${count.toLocaleString("en")} partitions`;
  // The first by name is the earliest only where names begin with the date.
  const isInOrder = axis.labels.length === 1 && Object.keys(first)[0] === axis.labels[0];
  const ends = [first, last].map(axis.on).map((step) => (step === null ? "" : textOf(axis.unit, step)));
  const span = isInOrder && ends.every(Boolean) ? ` from ${ends[0]} to ${ends[1]}` : "";
  return `${many}${span}, more than the event names`;
}

// What a square is: the kinds that are drawn in it.
export function marksOf({ sets }: Squares, step: number): Kind[] {
  const kinds: Kind[] = [];
  if (sets.unexpected.has(step)) kinds.push("unexpected");
  else if (sets.own.has(step)) kinds.push("own");
  else if (sets.removed.has(step)) kinds.push("removed");
  if (sets.missing.has(step)) kinds.push("missing");
  if (!kinds.length) kinds.push(sets.other.has(step) ? "other" : "none");
  return kinds;
}
