// The partition strip: the last dates of a dataset as small squares, so that gaps show.

import { type PointerEvent, type ReactNode, useMemo, useRef } from "react";

import { type Partition, spansOf, textOf } from "../shared/dates";
import { shown } from "../shared/names";
import { box, crossed, dash, diamond, SIZE } from "../shared/squares";
import type { Dataset } from "./model";
import { type Kind, marksOf, SQUARES, type Squares, stripOf } from "./squares";

const PITCH = 13; // from one square to the next, in pixels

// What is drawn of each kind of square, and what the legend says.
const KINDS: [Kind, (x: number) => string, string][] = [
  ["own", (x) => box(x, 10), "read or written"],
  ["unexpected", diamond, "though not expected"],
  ["missing", crossed, "expected, but neither read nor written"],
  ["removed", dash, "removed by this run"],
  ["other", (x) => box(x, 6), "by another run of this task"],
  ["none", (x) => box(x, 9), "not known to be read or written"],
];

// What other runs of the task accessed: side and key of a dataset -> partitions.
export type OtherRuns = ReadonlyMap<string, Partition[]>;

export const keyOfSide = (side: string, key: string): string => JSON.stringify([side, key]);

export const hasStrip = (dataset: Dataset): boolean => stripOf(dataset) !== null;

// The strip of a dataset; nothing for one without dates.
export function Strip({ dataset, others }: { dataset: Dataset; others: OtherRuns }) {
  const { side } = dataset;
  const place = useRef<HTMLDivElement>(null);
  const strip = useMemo(() => stripOf(dataset, others.get(keyOfSide(side, dataset.key))), [dataset, others]);
  if (strip === null) return null;
  if (typeof strip === "string") return <div className="strip"><span className="facts">{strip}</span></div>;
  const places = placesOf(strip);
  const text = (step: number) => textOf(strip.unit, step);
  const point = (event: PointerEvent<SVGSVGElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const square = Math.floor(((event.clientX - left) / width) * SQUARES);
    const step = strip.first + Math.min(Math.max(square, 0), SQUARES - 1);
    if (place.current) place.current.title = shown(`${text(step)}: ${sentenceOf(strip, step, side)}`);
  };
  return (
    <div ref={place} className="strip">
      <Drawing places={SQUARES} label={describe(strip, places, side)} point={point}>
        {KINDS.map(([kind]) => <Path key={kind} kind={kind} places={(places.get(kind) ?? []).map((step) => step - strip.first)} />)}
      </Drawing>
      <span className="facts" aria-hidden="true">
        {shown(`${strip.labels.join("/")}, ${text(strip.first)} to ${text(strip.last)}`)}
      </span>
    </div>
  );
}

// The steps of each kind.
function placesOf(strip: Squares): Map<Kind, number[]> {
  const places = new Map<Kind, number[]>();
  for (let step = strip.first; step <= strip.last; step++) {
    marksOf(strip, step).forEach((kind) => places.set(kind, [...(places.get(kind) ?? []), step]));
  }
  return places;
}

function sentenceOf(strip: Squares, step: number, side: string): string {
  const count = strip.counts.get(step) ?? 0;
  const how: Record<Kind, string> = {
    own: `${count === 1 ? "" : `${count} partitions `}${side}`,
    unexpected: `${side}, which was not expected`,
    missing: `expected, and not ${side}`,
    removed: "removed",
    other: `${side} by another run`,
    none: `not ${side}`,
  };
  return marksOf(strip, step).map((kind) => how[kind]).join("; ");
}

// The whole strip in words.
function describe(strip: Squares, places: Map<Kind, number[]>, side: string): string {
  const words: [Kind, string][] = [
    ["own", side],
    ["unexpected", `${side}, but not expected`],
    ["missing", `expected, but not ${side}`],
    ["removed", "removed"],
    ["other", `${side} by other runs`],
  ];
  const parts = words.flatMap(([kind, word]) => {
    const steps = places.get(kind);
    const others = strip.partial.has(kind) ? ", among others" : "";
    return steps ? [`${word}: ${spansOf(strip.unit, steps)}${others}`] : [];
  });
  const [from, to] = [strip.first, strip.last].map((step) => textOf(strip.unit, step));
  return `${strip.labels.join("/")} from ${from} to ${to}. ${parts.join("; ")}.`;
}

interface DrawingProps {
  places: number;
  label?: string;
  point?: (event: PointerEvent<SVGSVGElement>) => void;
  children: ReactNode;
}

function Drawing({ places, label, point, children }: DrawingProps) {
  const described = label === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": shown(label) };
  return (
    <svg width={places * PITCH} height={SIZE} viewBox={`0 0 ${places * PITCH} ${SIZE}`} onPointerMove={point} {...described}>
      {children}
    </svg>
  );
}

function Path({ kind, places }: { kind: Kind; places: number[] }) {
  const form = KINDS.find(([one]) => one === kind)?.[1];
  if (!form || !places.length) return null;
  return <path className={kind} d={places.map((place) => form(place * PITCH + PITCH / 2)).join("")} />;
}

// What squares stand for; other runs come last, once they are known.
export function Legend({ removes, hasOthers, note }: { removes: boolean; hasOthers: boolean; note: string }) {
  const kinds = KINDS.filter(([kind]) => kind !== "other" && (kind !== "removed" || removes));
  const others = KINDS.filter(([kind]) => kind === "other" && hasOthers);
  return (
    <p className="legend facts">
      {[...kinds, ...others].map(([kind, , words]) => (
        <span key={kind} className="strip">
          <Drawing places={1}><Path kind={kind} places={[0]} /></Drawing>
          {words}
        </span>
      ))}
      <span className="note" role="status">{shown(note)}</span>
    </p>
  );
}
