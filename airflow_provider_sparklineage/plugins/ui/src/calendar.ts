// Partitions on a calendar: which rows it has, and what is on each step of a row. Pure.

import { stepOf, textOf, type Unit } from "./shared/dates";
import { valuesOf } from "./shared/names";
import { rankOf } from "./states";

export interface Calendar {
  unit: Unit;
  first: number; // the first step that a partition is on
  last: number;
  steps: Map<number, number[]>; // step -> indexes of partitions
  undated: number; // partitions without a date
}

export interface Row {
  label: string;
  steps: number[];
  offset: number; // empty places before the first step
}

const PER_ROW: Record<Unit, number> = { year: 10, month: 12, day: 31, hour: 24 };

export function calendarOf(names: string[]): Calendar | null {
  const found = names.map((name) => stepOf(valuesOf(name)));
  const dated = found.filter((at) => at !== null);
  const unit = dated[0]?.unit;
  if (!unit) return null;
  // Midnights are days: of a column that is a timestamp.
  const areDays = unit === "hour" && dated.every(({ isTime, step }) => isTime && step % 24 === 0);
  const steps = new Map<number, number[]>();
  found.forEach((at, n) => {
    if (at?.unit !== unit) return;
    const step = areDays ? at.step / 24 : at.step;
    const there = steps.get(step);
    if (there) there.push(n);
    else steps.set(step, [n]);
  });
  const [first, last] = endsOf(steps.keys());
  const undated = names.length - [...steps.values()].reduce((sum, on) => sum + on.length, 0);
  return { unit: areDays ? "day" : unit, first, last, steps, undated };
}

function endsOf(steps: Iterable<number>): [number, number] {
  let [first, last] = [Infinity, -Infinity];
  for (const step of steps) {
    first = Math.min(first, step);
    last = Math.max(last, step);
  }
  return [first, last];
}

// Which row a step is in; rows are numbered by the calendar, not by the data.
export function rowOf(unit: Unit, step: number): number {
  if (unit !== "day") return Math.floor(step / PER_ROW[unit]);
  const day = new Date(step * 86_400_000);
  return day.getUTCFullYear() * 12 + day.getUTCMonth();
}

export function row(unit: Unit, number: number): Row {
  const size = PER_ROW[unit];
  if (unit !== "day") {
    const first = number * size;
    const label = unit === "year" ? `${first}s` : textOf(unit, first).slice(0, unit === "month" ? 4 : 10);
    return { label, offset: 0, steps: Array.from({ length: size }, (_, n) => first + n) };
  }
  const [year, month] = [Math.floor(number / 12), number % 12];
  const first = Date.UTC(year, month, 1) / 86_400_000;
  const days = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return { label: textOf("month", number), offset: 0, steps: Array.from({ length: days }, (_, n) => first + n) };
}

export const columnsOf = (unit: Unit): number => PER_ROW[unit];

// What stands above a column: the day of the month, the hour, the month.
export function headOf(unit: Unit, n: number): string {
  return unit === "day" || unit === "month" ? String(n + 1) : String(n);
}

export const labelOf = (unit: Unit, step: number): string => textOf(unit, step);

// The state that is shown of several partitions on one step.
export function worstOf(indexes: number[], states: string): string {
  return indexes.map((n) => states[n] ?? "f").reduce((one, other) => (rankOf(other) < rankOf(one) ? other : one));
}
