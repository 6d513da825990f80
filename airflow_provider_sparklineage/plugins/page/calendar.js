// Values of partitions on the calendar: of which unit they are, and which step of it. Pure.

// Names of dimensions that are a part of a date: year, order_month, dd.
const YEAR = /(^|_)(year|yr|y{1,4})$/i;
const MONTH = /(^|_)(month|mon|mm?)$/i;
const DAY = /(^|_)(day|dd?)$/i;
const HOUR = /(^|_)(hour|hr|hh?)$/i;
// What is beyond is no date: 9999-12-31 stands for "for ever".
const [FIRST_YEAR, LAST_YEAR] = [1900, 2199];
const HOUR_MS = 3600 * 1000;

const ANY = /^/;
// How a date is written, in dimensions of which names; what is a date for sure comes first.
const FORMS = [
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

// The step that a partition is on: { unit, step, labels, isTime }, or null if it has no date.
// isTime: whether it is written as a time, which may be midnight for a day.
// partition: values by dimension; a date may be in one of them, or in several (year/month/day).
export function stepOf(partition) {
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
function joined(parts, labels, entries, isTime) {
  for (const part of [null, MONTH, DAY, HOUR].slice(parts.length)) {
    const found = entries.find(([label, value]) => part.test(label) && /^\d{1,2}$/.test(value));
    if (!found) break;
    labels.push(found[0]);
    parts.push(Number(found[1]));
  }
  const [year, month = 1, day = 1, hour = 0] = parts;
  const time = new Date(Date.UTC(year, month - 1, day, hour));
  const isDate = time.getUTCMonth() === month - 1 && time.getUTCDate() === day && hour < 24;
  if (!isDate || year < FIRST_YEAR || year > LAST_YEAR) return null;
  const unit = ["year", "month", "day", "hour"][parts.length - 1];
  const steps = { year, month: year * 12 + month - 1, day: time / HOUR_MS / 24, hour: time / HOUR_MS };
  return { unit, step: steps[unit], labels, isTime };
}

// A step as a text.
export function textOf(unit, step) {
  if (unit === "year") return String(step);
  if (unit === "month") return `${Math.floor(step / 12)}-${String((step % 12) + 1).padStart(2, "0")}`;
  const text = new Date(step * HOUR_MS * (unit === "day" ? 24 : 1)).toISOString();
  return unit === "day" ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 13)}:00`;
}

// Steps as a text, neighbours as one span: "2024-05-01 to 2024-05-06, 2024-05-08".
export function spansOf(unit, steps) {
  const spans = [];
  for (const step of steps) {
    if (spans.length && spans.at(-1)[1] === step - 1) spans.at(-1)[1] = step;
    else spans.push([step, step]);
  }
  const text = ([from, to]) =>
    from === to ? textOf(unit, from) : `${textOf(unit, from)} to ${textOf(unit, to)}`;
  return spans.map(text).join(", ");
}
