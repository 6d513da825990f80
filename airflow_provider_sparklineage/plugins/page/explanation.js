// What the chosen column is made of, or what is made of it, and how.

import { counted, make, name } from "./dom.js";

// Columns that a table names; all of them are first in the list of columns.
const NAMED = 50;

export class Explanation {
  constructor(model) {
    this.labels = new Map([...model.sources, ...model.outputs].map((d) => [d.key, d.label]));
    this.element = make("div.details", { "aria-live": "polite" });
    this.show(null);
  }

  // chosen: { side, dataset, column } or null; edges to or from it; influences on all rows with it.
  show(chosen, edges = [], influences = []) {
    if (!chosen) {
      const hint = "Choose a column to see what it is made of, or what is made of it.";
      this.element.replaceChildren(make("p.hint", {}, hint));
      return;
    }
    const isWritten = chosen.side === "to";
    const parts = [
      make(
        "p.title",
        {},
        name(chosen.dataset.label),
        ".",
        name(chosen.column.name, "bdi.column"),
        make("span.type", {}, chosen.column.type)
      ),
    ];
    if (edges.length) {
      parts.push(...this.#table(edges, isWritten ? "Made of" : "Goes into", isWritten));
    } else {
      const none = isWritten
        ? "Its sources are not known. What kept them from being known is below, under “Missing or assumed”."
        : "No column that was written is made of it.";
      parts.push(make("p.hint", {}, none));
    }
    if (influences.length) {
      const verb = influences.length === 1 ? "influences" : "influence";
      const many = `${counted(influences.length, "column")} ${verb} every row (filters, joins, groupings)`;
      parts.push(make("details", {}, make("summary", {}, many), ...this.#table(influences, "By", true)));
    }
    this.element.replaceChildren(...parts);
  }

  #table(edges, title, isOfSource) {
    const head = [title, "Type", "Subtype", "Masking", "How"].map((t) => make("th", {}, t));
    const rows = edges.slice(0, NAMED).flatMap((edge) => this.#rows(edge, isOfSource));
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
    const more = edges.length - NAMED;
    return more > 0 ? [table, make("p.hint", {}, `and ${counted(more, "other")}`)] : [table];
  }

  #rows(edge, isOfSource) {
    const label = this.labels.get(isOfSource ? edge.dataset : edge.target) ?? "";
    const column = isOfSource ? edge.column : edge.targetColumn;
    const kinds = edge.kinds.length ? edge.kinds : [{ type: "", subtype: "", description: "" }];
    return kinds.map((kind, n) =>
      make(
        "tr",
        {},
        n ? make("td") : make("td", {}, name(label), ".", name(column, "bdi.column")),
        make("td", {}, kind.type || "unknown"),
        make("td", {}, kind.subtype),
        make("td", {}, kind.masking ? "masked" : ""),
        make("td.how", {}, kind.description)
      )
    );
  }
}
