// Values of partitions on the calendar: of which unit they are, and which step of it. Pure.

export type Unit = "year" | "month" | "day" | "hour";
export type Partition = Record<string, string>; // values by dimension

export interface Step {
  unit: Unit;
  step: number;
  labels: string[]; // the dimensions that have the date
  isTime: boolean; // whether it is written as a time, which may be midnight for a day
}

// Names of dimensions that are a part of a date: year, order_month, dd.
const YEAR = /(^|_)(year|yr|y{1,4})$/i;
const MONTH = /(^|_)(month|mon|mm?)$/i;
const DAY = /(^|_)(day|dd?)$/i;
const HOUR = /(^|_)(hour|hr|hh?)$/i;
// What is beyond is no date: 9999-12-31 stands for "for ever".
const [FIRST_YEAR, LAST_YEAR] = [1900, 2199] as const;
const HOUR_MS = 3600 * 1000;

const ANY = /^/;
// How a date is written, in dimensions of which names; what is a date for sure comes first.
const FORMS: [RegExp, RegExp[]][] = [
  [
    ANY,
    [
      /^(\d{4})-(\d\d)$/,
      /^(\d{4})[-/.](\d\d)[-/.](\d\d)$/,
      /^(\d{4})-(\d\d)-(\d\d)[-_T ](\d\d)(?::00(?::00(?:\.0+)?)?)?(?:Z|\+00:00)?$/,
    ],
  ],
  [YEAR, [/^(\d{4})$/]],
  // These may also be the number of a customer.
  [ANY, [/^(\d{4})(\d\d)$/, /^(\d{4})(\d\d)(\d\d)$/, /^(\d{4})(\d\d)(\d\d)T?(\d\d)$/]],
];

// The step that a partition is on, or null if it has no date; a date may be in one of its dimensions,
// or in several (year/month/day).
export function stepOf(partition: Partition): Step | null {
  const entries = Object.entries(partition);
  for (const [names, forms] of FORMS) {
    for (const [label, value] of entries.filter(([label]) => names.test(label))) {
      const form = forms.map((known) => known.exec(value)).find(Boolean);
      const found = form && joined(form.slice(1).map(Number), [label], entries, value.includes(":"));
      if (found) return found;
    }
  }
  return null;
}

// Add to a date the smaller parts that have columns of their own.
function joined(parts: number[], labels: string[], entries: [string, string][], isTime: boolean): Step | null {
  for (const part of [null, MONTH, DAY, HOUR].slice(parts.length)) {
    const found = entries.find(([label, value]) => part?.test(label) && /^\d{1,2}$/.test(value));
    if (!found) break;
    labels.push(found[0]);
    parts.push(Number(found[1]));
  }
  const [year = 0, month = 1, day = 1, hour = 0] = parts;
  const time = new Date(Date.UTC(year, month - 1, day, hour));
  const isDate = time.getUTCMonth() === month - 1 && time.getUTCDate() === day && hour < 24;
  if (!isDate || year < FIRST_YEAR || year > LAST_YEAR) return null;
  const unit = (["year", "month", "day", "hour"] as const)[parts.length - 1] as Unit;
  const hours = time.getTime() / HOUR_MS;
  const steps = { year, month: year * 12 + month - 1, day: hours / 24, hour: hours };
  return { unit, step: steps[unit], labels, isTime };
}

// A step as a text.
export function textOf(unit: Unit, step: number): string {
  if (unit === "year") return String(step);
  if (unit === "month") return `${Math.floor(step / 12)}-${String((step % 12) + 1).padStart(2, "0")}`;
  const text = new Date(step * HOUR_MS * (unit === "day" ? 24 : 1)).toISOString();
  return unit === "day" ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 13)}:00`;
}

// Steps as a text, neighbours as one span: "2024-05-01 to 2024-05-06, 2024-05-08".
export function spansOf(unit: Unit, steps: number[]): string {
  const spans: [number, number][] = [];
  for (const step of steps) {
    const last = spans.at(-1);
    if (last?.[1] === step - 1) last[1] = step;
    else spans.push([step, step]);
  }
  const text = ([from, to]: [number, number]) =>
    from === to ? textOf(unit, from) : `${textOf(unit, from)} to ${textOf(unit, to)}`;
  return spans.map(text).join(", ");
}
