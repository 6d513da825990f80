// Partitions: expected, observed, and where an expected value comes from.

import { make, name } from "./dom.js";
import { FIRST } from "./fold.js";
import { valueOf } from "./model.js";
import { foldedTable } from "./table.js";

// Sources of expected values of one dataset that are named.
const SOURCES = 24;

const STATUS = new Map([
  ["matched", "as expected"],
  ["unexpected", "unexpected"],
  ["missing", "missing"],
  ["unobserved", "not observed"],
  ["undeclared", "nothing expected"],
  ["expected", "expected"],
  ["inferred", "inferred"],
]);

export function badge(status) {
  return make(`span.badge.${STATUS.has(status) ? status : "other"}`, {}, STATUS.get(status) ?? status);
}

export function partitions(model) {
  const checks = [...model.inputs, ...model.outputs].flatMap((dataset) =>
    dataset.checks
      .filter((check) => check.expected || check.observed || check.removed || check.from.length)
      .map((check) => ({ dataset, check }))
  );
  // Of many those first that need a person.
  if (checks.length > FIRST) checks.sort((one, other) => needOf(other.check) - needOf(one.check));
  const rows = checks.map(({ dataset, check }) => () => [
    name(dataset.label),
    how(check, dataset.side),
    badge(check.status),
    [values(check.expected), check.isInferred ? make("span.facts", {}, " inferred") : ""],
    observed(check, dataset.part),
    origins(check.from),
  ]);
  const titles = ["Dataset", "", "Status", "Expected", "Observed", "Expected because of"];
  return rows.length ? section("Partitions, expected and observed", titles, rows) : "";
}

const needOf = ({ status }) => ["missing", "unexpected"].indexOf(status);

// What is expected of a try whose job still runs, as model.expectedOf() gives it.
export function pending(entries, unlisted) {
  const rows = entries.map(({ dataset, side, check }) => () => [
    dataset ? name(dataset) : make("span.facts", {}, UNNAMED.get(check.status) ?? ""),
    check.status === "inferred" ? "" : PENDING.get(side) ?? side,
    badge(check.status),
    values(check.expected),
    origins(check.from),
  ]);
  if (!rows.length) return "";
  const titles = ["Dataset", "", "Status", "Expected", "Expected because of"];
  const made = section("Partitions that are expected", titles, rows);
  if (unlisted) made.append(make("p.facts", {}, `${unlisted} more are not listed.`));
  return made;
}

const PENDING = new Map([
  ["read", "to be read"],
  ["write", "to be written"],
  ["either", "to be read or written"],
]);
const UNNAMED = new Map([
  ["expected", "any output"],
  ["inferred", "dates among the arguments"],
]);

const section = (title, titles, rows) =>
  make(
    "section.partitions",
    { "aria-label": "Partitions" },
    make("h3", {}, title),
    ...foldedTable("dataset", titles, rows)
  );

// A summary of partitions, which breaks between two values and not in one.
function values(summary) {
  const parts = summary.split(" … ");
  return make(
    "span.values",
    { title: summary },
    ...parts.flatMap((part, n) => [n ? " … " : "", make("bdi", { dir: "auto" }, part)])
  );
}

function how(check, side) {
  if (check.failed) return "was to be written";
  return check.unreported ? `${check.unreported.replaceAll("_", " ")} to be ${side}` : side;
}

function observed(check, part) {
  const seen = check.removed ? check.observed : check.observed || part;
  const cell = make("div", {}, values(check.status === "unobserved" ? check.observed : seen));
  if (check.removed) cell.append(make("div.facts", {}, "removed: ", values(check.removed)));
  if (check.planned) cell.append(make("div.facts", {}, "only planned: ", values(check.planned)));
  if (check.unexpected) cell.append(make("div.unexpected", {}, "not expected: ", values(check.unexpected)));
  if (check.missing) cell.append(make("div.missing", {}, "missing: ", values(check.missing)));
  return cell;
}

function origins(sources) {
  const shown = sources.slice(0, SOURCES).map(origin);
  const more = sources.length - shown.length;
  return more > 0 ? [...shown, make("div.facts", {}, `and ${more} more`)] : shown;
}

function origin(source) {
  const made = source.expressions.map((e) => `{{ ${e} }}`).join(" ") || "literal";
  return make(
    "div.origin",
    { title: source.template },
    name(valueOf(source)),
    " ← ",
    make("code", {}, name(made)),
    make("span.facts", {}, ` ${source.field}, ${source.kind}`)
  );
}
