// Partitions: expected, observed, and where an expected value comes from.

import { make, name } from "./dom.js";
import { valueOf } from "./model.js";

// Sources of expected values of one dataset that are named.
const SOURCES = 24;

const STATUS = new Map([
  ["matched", "as expected"],
  ["unexpected", "unexpected"],
  ["missing", "missing"],
  ["unobserved", "not observed"],
  ["undeclared", "nothing expected"],
]);

export function badge(status) {
  return make(`span.badge.${STATUS.has(status) ? status : "other"}`, {}, STATUS.get(status) ?? status);
}

export function partitions(model) {
  const rows = [...model.inputs, ...model.outputs].flatMap((dataset) =>
    dataset.checks
      .filter((check) => check.expected || check.observed || check.from.length)
      .map((check) =>
        make(
          "tr",
          {},
          make("td", {}, name(dataset.label)),
          make("td", {}, how(check, dataset.side)),
          make("td", {}, badge(check.status)),
          make("td", {}, name(check.expected), check.isInferred ? make("span.facts", {}, " inferred") : ""),
          make("td", {}, observed(check, dataset.part)),
          make("td", {}, ...origins(check.from))
        )
      )
  );
  if (!rows.length) return "";
  const titles = ["Dataset", "", "Status", "Expected", "Observed", "Expected because of"];
  return make(
    "section.partitions",
    { "aria-label": "Partitions" },
    make("h3", {}, "Partitions, expected and observed"),
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ...titles.map((title) => make("th", {}, title)))),
      make("tbody", {}, ...rows)
    )
  );
}

function how(check, side) {
  if (check.failed) return "was to be written";
  return check.unreported ? `${check.unreported.replaceAll("_", " ")} to be ${side}` : side;
}

function observed(check, part) {
  const cell = make("div", {}, name(check.observed || (check.status === "unobserved" ? "" : part)));
  if (check.planned) cell.append(make("div.facts", {}, `only planned: ${check.planned}`));
  if (check.unexpected) cell.append(make("div.unexpected", {}, `not expected: ${check.unexpected}`));
  if (check.missing) cell.append(make("div.missing", {}, `missing: ${check.missing}`));
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
