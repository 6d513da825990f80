// The columns: those of the inputs on the left, those of the outputs on the right. Choosing one
// brings what it is made of, or what is made of it, into view, and explains it.

import { make } from "./dom.js";
import { Explanation } from "./explanation.js";
import { Pane } from "./pane.js";
import { Search } from "./search.js";

export class ColumnView {
  // highlight: called with the keys of the datasets that the chosen column has to do with, or null.
  constructor(model, highlight) {
    this.edges = model.edges;
    this.highlight = highlight;
    this.search = new Search("");
    const does = {
      choose: (column) => this.choose(column),
      leave: () => this.#leave(),
      press: (key, side) => this.#press(key, side),
    };
    this.panes = { from: new Pane(model, "from", does), to: new Pane(model, "to", does) };
    this.explanation = new Explanation(model);
    this.element = make(
      "section.columns",
      { "aria-label": "Columns" },
      make("h3", {}, "Columns"),
      this.explanation.element,
      make("div.panes", {}, this.panes.from.element, this.panes.to.element)
    );
    this.#set(null);
  }

  get count() {
    return this.panes.from.count + this.panes.to.count;
  }

  // What a person has made of it, to be restored in another view of the same task.
  get state() {
    const { side, dataset, column } = this.chosen ?? {};
    return {
      chosen: this.chosen && { side, dataset: dataset.key, column: column.name },
      panes: { from: this.panes.from.state, to: this.panes.to.state },
    };
  }

  restore({ chosen, panes }) {
    const column = chosen && this.panes[chosen.side].columnOf(chosen);
    if (column) this.choose(column);
    Object.entries(panes).forEach(([side, state]) => this.panes[side].restore(state));
  }

  // Draw what is in view, now that it is in the document.
  refresh() {
    Object.values(this.panes).forEach((pane) => pane.list.refresh());
  }

  find(search) {
    this.search = search;
    this.#fill();
  }

  // Choose a column, or none by choosing the same again.
  choose(column) {
    performance.mark("sparklineage:choose");
    this.#set(column.column === this.chosen?.column ? null : column);
    if (this.chosen) this.panes[this.chosen.side].list.scrollToCurrent();
    performance.measure("sparklineage:choose", "sparklineage:choose");
  }

  #leave() {
    if (this.chosen) this.choose(this.chosen);
  }

  // chosen: { side, dataset, column } or null.
  #set(chosen) {
    this.chosen = chosen;
    [this.made, this.influences] = chosen ? this.#edges(chosen) : [[], []];
    this.explanation.show(chosen, this.made, this.influences);
    this.#fill();
    const datasets = this.made.flatMap((edge) => [edge.dataset, edge.target]);
    this.highlight(chosen && new Set([chosen.dataset.key, ...datasets]));
  }

  #fill() {
    const { search, chosen, made: edges, influences } = this;
    Object.values(this.panes).forEach((pane) => pane.show({ search, chosen, edges, influences }));
  }

  // What the chosen column is made of, or what is made of it; and what influences all rows with it.
  #edges({ side, dataset, column }) {
    return side === "to"
      ? [this.edges.sourcesOf(dataset.key, column.name), this.edges.influencesOn(dataset.key)]
      : [this.edges.targetsOf(dataset, column.name), []];
  }

  #press(key, side) {
    const other = { ArrowLeft: "from", ArrowRight: "to" }[key];
    if (key === "Escape" && this.chosen) this.#leave();
    else if (other && other !== side) this.panes[other].list.focus();
    else return false;
    return true;
  }
}
