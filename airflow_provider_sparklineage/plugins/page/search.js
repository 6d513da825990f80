// The search for datasets and columns: each word has to be in their names.

import { counted, make } from "./dom.js";

export class Search {
  constructor(text) {
    this.text = text.trim();
    this.words = this.text.toLowerCase().split(/\s+/).filter(Boolean);
    this.found = new Map(); // cards, lists and counts ask for the same datasets
  }

  get isEmpty() {
    return !this.words.length;
  }

  // The columns of a dataset that are looked for: those with the words in their own names; without
  // such a column all of them where the dataset is looked for; else those that share the words with it.
  columnsOf(dataset) {
    if (this.isEmpty) return dataset.columns;
    if (!this.found.has(dataset)) this.found.set(dataset, this.#find(dataset));
    return this.found.get(dataset);
  }

  #find({ name, label, columns }) {
    const having = (prefix) =>
      columns.filter((column) => this.#isIn(`${prefix}${column.name.toLowerCase()}`));
    const own = having("");
    const dataset = `${name} ${label}`.toLowerCase();
    if (own.length) return own;
    return this.#isIn(dataset) ? columns : having(`${dataset}.`);
  }

  has(dataset) {
    return this.#isIn(`${dataset.name} ${dataset.label}`.toLowerCase()) || this.columnsOf(dataset).length > 0;
  }

  #isIn(text) {
    return this.words.every((word) => text.includes(word));
  }

  // What there is to say where nothing was found; side: "read" or "written".
  nothing(side) {
    return `Nothing that was ${side} has “${this.text}” in its name.`;
  }
}

// The field, and how much was found.
export class SearchField {
  // changed: called with each new search.
  constructor(model, changed) {
    this.datasets = [...new Map([...model.sources, ...model.outputs].map((d) => [d.key, d])).values()];
    this.changed = changed;
    this.field = make("input", {
      type: "search",
      placeholder: "Find datasets and columns",
      "aria-label": "Find datasets and columns",
      oninput: () => this.find(this.field.value),
    });
    this.found = make("span.found", { role: "status" });
    this.element = make("div.search", { role: "search" }, this.field, this.found);
  }

  get state() {
    return this.field.value;
  }

  restore(text) {
    if (text) this.find(text);
  }

  find(text) {
    this.field.value = text;
    const search = new Search(text);
    this.found.textContent = search.isEmpty ? "" : this.#count(search);
    this.changed(search);
  }

  #count(search) {
    const datasets = this.datasets.filter((dataset) => search.has(dataset));
    const columns = datasets.reduce((sum, dataset) => sum + search.columnsOf(dataset).length, 0);
    if (!datasets.length) return `No dataset and no column has “${search.text}” in its name.`;
    return `${counted(datasets.length, "dataset")}, ${counted(columns, "column")}`;
  }
}
