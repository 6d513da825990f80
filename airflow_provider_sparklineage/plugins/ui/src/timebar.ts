// All time of a dataset as a bar: the worst state of each span of it, and the years or months below.
// And a range of it: what a list, a calendar and a plan are limited to. Pure.

import type { Calendar } from "./calendar";
import { textOf, type Unit } from "./shared/dates";
import { rankOf, STATES } from "./states";

export interface Range {
  first: number; // steps of the calendar, both of them in it
  last: number;
}

const MOST_BINS = 300;
const MOST_TICKS = 8;
const LABEL = 0.08; // of the bar, which the text of a tick needs
const HEIGHT = STATES.length; // of the worst state

// For each state the spans of which it is the worst, as a path. The bar is as wide as there are spans,
// and as high as there are states: what is worse is higher, so that not the colour alone tells it.
export function pathsOf({ first, last, steps }: Calendar, states: string, filter: ReadonlySet<string>): { width: number; paths: Map<string, string> } {
  const size = last - first + 1;
  const width = Math.min(size, MOST_BINS);
  const worst: string[] = Array.from({ length: width }, () => "");
  steps.forEach((on, step) => {
    const bin = Math.floor(((step - first) * width) / size);
    for (const n of on) {
      const letter = states[n] ?? "f";
      if (filter.size && !filter.has(letter)) continue;
      if (!worst[bin] || rankOf(letter) < rankOf(worst[bin])) worst[bin] = letter;
    }
  });
  const paths = new Map<string, string>();
  for (let from = 0; from < width; ) {
    const letter = worst[from] as string;
    let to = from + 1;
    while (to < width && worst[to] === letter) to += 1;
    if (letter) paths.set(letter, `${paths.get(letter) ?? ""}M${from},${HEIGHT}V${rankOf(letter)}H${to}V${HEIGHT}z`);
    from = to;
  }
  return { width, paths };
}

export const heightOfBar = HEIGHT;

// Months from one tick to the next.
const GAPS = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600];

// Where the bar has which text below it; the ends where it is too short for months.
export function ticksOf({ unit, first, last }: Calendar): { step: number; text: string }[] {
  const [from, to] = [monthOf(unit, first), monthOf(unit, last)];
  const starts = (gap: number) => {
    const begin = Math.ceil(from / gap);
    return Array.from({ length: Math.max(0, Math.floor(to / gap) - begin + 1) }, (_, n) => (begin + n) * gap);
  };
  const gaps = unit === "year" ? GAPS.filter((one) => one >= 12) : GAPS;
  const gap = gaps.find((one) => starts(one).length <= MOST_TICKS) ?? 1200;
  const ticks = starts(gap)
    .map((month) => ({ step: startOf(unit, month), text: gap < 12 ? textOf("month", month) : textOf("year", month / 12) }))
    .filter(({ step }) => step >= first && step <= last - (last - first) * LABEL);
  if (ticks.length > 1) return ticks;
  return [...new Set([first, last])].map((step) => ({ step, text: textOf(unit, step) }));
}

function monthOf(unit: Unit, step: number): number {
  if (unit === "year") return step * 12;
  if (unit === "month") return step;
  const day = new Date(step * (unit === "day" ? 86_400_000 : 3_600_000));
  return day.getUTCFullYear() * 12 + day.getUTCMonth();
}

function startOf(unit: Unit, month: number): number {
  if (unit === "year") return month / 12;
  if (unit === "month") return month;
  return Date.UTC(Math.floor(month / 12), month % 12, 1) / (unit === "day" ? 86_400_000 : 3_600_000);
}

// The range of an address; null for all time.
export function rangeOf({ first, last }: Calendar, from: string, to: string): Range | null {
  if (!from && !to) return null;
  const [one, other] = [from ? Number(from) : first, to ? Number(to) : last];
  const range = { first: Math.max(first, one), last: Math.min(last, other) };
  return range.first <= range.last ? range : null; // NaN, too, is no range
}

export function limitedTo(calendar: Calendar, range: Range): Calendar {
  const steps = new Map([...calendar.steps].filter(([step]) => step >= range.first && step <= range.last));
  return { ...calendar, ...range, steps, undated: 0 };
}

// The stale partitions that are wanted, as spans of the sorted names of those that are stale: of
// dt=…/region=… all of a range are one span, of region=…/dt=… those of each region.
export function spansOfStale(names: string[], states: string, isWanted: (n: number) => boolean): [string, string][] {
  const spans: [string, string][] = [];
  let isOpen = false;
  for (let n = 0; n < names.length; n += 1) {
    if (states[n] !== "s") continue;
    const name = names[n] as string;
    if (!isWanted(n)) isOpen = false;
    else if (isOpen) (spans.at(-1) as [string, string])[1] = name;
    else {
      spans.push([name, name]);
      isOpen = true;
    }
  }
  return spans;
}
