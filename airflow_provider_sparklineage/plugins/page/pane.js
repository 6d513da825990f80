// One of the two lists of columns. What the column that was chosen in the other list is made of, or
// what is made of it, comes first, below a heading that says so; the rest follows in its usual order.

import { counted, make, name } from "./dom.js";
import { Fold } from "./fold.js";
import { WindowedList } from "./windowed.js";

const SIDES = {
  from: { done: "read", datasets: "sources", lit: "Sources of", faint: "Influence every row of" },
  to: { done: "written", datasets: "outputs", lit: "Made of", faint: "" },
};
// Transformations of one column that its row names.
const MARKS = 3;

export class Pane {
  // choose: called with { side, dataset, column }. leave: to choose none.
  // press: (key, side), of a key that means nothing to a list.
  constructor(model, side, { choose, leave, press }) {
    this.words = SIDES[side];
    this.side = side;
    this.edges = model.edges;
    this.datasets = model[this.words.datasets].filter((dataset) => dataset.columns.length);
    this.marks = null; // while a column of the other list is chosen: dataset -> column -> mark
    this.list = new WindowedList({
      id: `sparklineage-${side}`,
      label: `Columns ${this.words.done}`,
      draw: (column, { dataset }) => this.#row(dataset, column),
      choose: (column, { dataset }) => choose({ side, dataset, column }),
      press: (key) => press(key, side),
    });
    this.fold = new Fold("dataset", () => this.#fill());
    this.back = make("button.back", { type: "button", onclick: leave }, "Back to the usual order");
    this.none = make("p.none");
    const head = make("div.head", {}, this.#title(), this.back);
    this.element = make("div.pane", {}, head, this.none, this.list.element, this.fold.button);
  }

  get count() {
    return this.datasets.reduce((sum, { columns }) => sum + columns.length, 0);
  }

  #title() {
    const many = `${counted(this.count, "column")} of ${counted(this.datasets.length, "dataset")}`;
    return make("h4", {}, `Columns ${this.words.done}`, make("span.count", {}, this.count ? many : ""));
  }

  // A column of this pane by its names, if it has it.
  columnOf({ dataset: key, column: wanted }) {
    const dataset = this.datasets.find((d) => d.key === key);
    const column = dataset?.columns.find((c) => c.name === wanted);
    return column ? { side: this.side, dataset, column } : null;
  }

  get state() {
    return { all: this.fold.all, scrolled: this.list.scrolled, usual: this.usual };
  }

  restore({ all, scrolled, usual }) {
    this.fold.all = all;
    this.#fill();
    this.list.scrolled = scrolled;
    this.usual = usual;
  }

  // search: what is looked for. chosen: the column that is chosen, in this pane or the other, or null;
  // edges and influences: of it.
  show({ search, chosen, edges, influences }) {
    const wasUsual = this.marks === null;
    if (wasUsual) this.usual = this.list.scrolled;
    const isOther = chosen !== null && chosen.side !== this.side;
    this.marks = isOther ? this.#marksOf(edges, influences) : null;
    this.element.classList.toggle("dimmed", isOther);
    if (search.text !== this.search?.text) this.usual = 0;
    Object.assign(this, { search, chosen });
    this.#fill();
    // What comes first is seen at once, and afterwards what was there before.
    this.list.scrolled = this.marks?.size ? 0 : this.usual;
    if (chosen?.side === this.side && search.isEmpty) this.list.reveal(chosen.column);
  }

  #marksOf(edges, influences) {
    const marks = new Map();
    const mark = (look) => (edge) => {
      const [dataset, column] =
        this.side === "from" ? [edge.dataset, edge.column] : [edge.target, edge.targetColumn];
      if (!marks.has(dataset)) marks.set(dataset, new Map());
      const columns = marks.get(dataset);
      if (!columns.has(column)) columns.set(column, { look, edges: [] });
      columns.get(column).edges.push(edge);
    };
    edges.forEach(mark("lit"));
    influences.forEach(mark("faint"));
    return marks;
  }

  #markOf(dataset, column) {
    return this.marks?.get(dataset.key)?.get(column.name);
  }

  #fill() {
    const { search, chosen, fold, list, none, count } = this;
    const first = [...this.#marked("lit"), ...this.#marked("faint")];
    const rest = groupsOf(this.datasets, (dataset) =>
      search.columnsOf(dataset).filter((column) => !this.#markOf(dataset, column))
    );
    const isKept = ({ dataset }) => dataset === chosen?.dataset;
    const shown = search.isEmpty ? fold.of(rest, isKept) : rest;
    fold.button.hidden ||= !search.isEmpty;
    const others = first.length && rest.length ? [divider("Other columns")] : [];
    list.element.hidden = !first.length && !rest.length;
    list.show([...first, ...others, ...shown], first.length > 0);
    this.back.hidden = !first.length;
    none.hidden = this.datasets.some((dataset) => search.columnsOf(dataset).length);
    none.textContent = count ? search.nothing(this.words.done) : "No columns are known.";
  }

  // The columns that are marked in one way, below a heading of their own.
  #marked(look) {
    const marked = this.datasets.filter(({ key }) => this.marks?.has(key));
    const groups = groupsOf(marked, (dataset) =>
      dataset.columns.filter((column) => this.#markOf(dataset, column)?.look === look)
    );
    const { dataset, column } = this.chosen ?? {};
    const of = look === "lit" ? column?.name : dataset?.label;
    const section = `${this.words[look]} ${of}`;
    return groups.length ? [divider(section), ...groups.map((group) => ({ ...group, section }))] : [];
  }

  #row(dataset, column) {
    const { look = "plain", edges = [] } = this.#markOf(dataset, column) ?? {};
    const isBare = this.side === "to" && !this.edges.sourcesOf(dataset.key, column.name).length;
    const isChosen = column === this.chosen?.column;
    return make(
      `div.row.${look}${isBare ? ".bare" : ""}${isChosen ? ".chosen" : ""}`,
      { role: "option", "aria-selected": String(isChosen) },
      name(column.name, "bdi.column"),
      make("span.type", { title: column.comment || column.type }, column.type),
      make("span.kinds", {}, ...edges.flatMap(kindsOf).slice(0, MARKS))
    );
  }
}

const divider = (label) => ({ label, note: "", look: "divider", items: [] });

// Groups of the datasets that have such columns.
function groupsOf(datasets, columnsOf) {
  return datasets
    .map((dataset) => groupOf(dataset, columnsOf(dataset)))
    .filter(({ items }) => items.length);
}

function groupOf(dataset, items) {
  const all = dataset.columns.length;
  const note = items.length < all ? `${items.length} of ${counted(all, "column")}` : counted(all, "column");
  return { dataset, label: dataset.label, note, title: `${dataset.namespace} ${dataset.name}`, items };
}

function kindsOf(edge) {
  return edge.kinds.map((kind) => {
    const word = (kind.subtype || kind.type || "unknown").toLowerCase().replaceAll("_", " ");
    const what = `span.kind.${kind.type === "INDIRECT" ? "indirect" : "direct"}`;
    return make(what, { title: kind.description }, kind.masking ? `${word}, masked` : word);
  });
}
