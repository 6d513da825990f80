// The columns: those of the inputs on the left, those of the outputs on the right. Choosing one
// highlights what it is made of, or what is made of it, and how.

import { make, name } from "./dom.js";
import { columnKey } from "./model.js";

// With more columns than this, choosing one hides those that have nothing to do with it.
const MANY = 60;

export class ColumnView {
  constructor(model, onChosen) {
    this.model = model;
    this.onChosen = onChosen;
    this.rows = new Map(); // side and column -> row
    this.datasets = new Map([...model.sources, ...model.outputs].map((d) => [d.key, d]));
    this.chosen = null;
    this.lit = [];
    this.details = make("div.details", { "aria-live": "polite" });
    this.panes = { from: this.#pane("from"), to: this.#pane("to") };
    this.element = this.#build();
    this.#explain(null);
  }

  get count() {
    return this.rows.size;
  }

  // What a person has made of it, to be restored in another view of the same task.
  get state() {
    const { side, key } = this.chosen?.column ?? {};
    return {
      chosen: this.chosen && `${side} ${key}`,
      filter: this.filter.value,
      only: this.only.checked,
      scrolled: Object.values(this.panes).map((pane) => pane.scrollTop),
    };
  }

  restore({ chosen, filter, only, scrolled }) {
    this.filter.value = filter;
    this.#filter(filter);
    this.only.checked = only;
    const row = this.rows.get(chosen);
    if (row) this.choose(row);
    Object.values(this.panes).forEach((pane, n) => (pane.scrollTop = scrolled[n]));
  }

  #build() {
    this.filter = make("input.filter", {
      type: "search",
      placeholder: "Find a column",
      "aria-label": "Find a column",
      oninput: (event) => this.#filter(event.target.value),
    });
    this.only = make("input", { type: "checkbox", onchange: () => this.#narrow() });
    this.only.checked = this.count > MANY;
    const only = make("label.only", {}, this.only, "only what the chosen column has to do with");
    return make(
      "section.columns",
      { "aria-label": "Columns" },
      make("h3", {}, "Columns"),
      make("div.tools", {}, this.filter, only),
      this.details,
      make("div.panes", {}, this.panes.from, this.panes.to)
    );
  }

  #pane(side) {
    const datasets = (side === "from" ? this.model.sources : this.model.outputs).filter(
      (dataset) => dataset.columns.length
    );
    const title = side === "from" ? "Columns read" : "Columns written";
    const pane = make("div.pane", {
      role: "listbox",
      "aria-label": title,
      tabindex: "-1",
      onclick: (event) => this.#clicked(event),
      onkeydown: (event) => this.#pressed(event, side),
    });
    datasets.forEach((dataset) => pane.append(this.#group(dataset, side)));
    if (!datasets.length) pane.append(make("p.none", {}, "No columns are known."));
    const first = pane.querySelector(".row");
    if (first) first.tabIndex = 0;
    return pane;
  }

  #group(dataset, side) {
    const heading = make(
      "h4",
      { title: `${dataset.namespace} ${dataset.name}` },
      name(dataset.label),
      make("span.count", {}, String(dataset.columns.length))
    );
    const group = make("div.group", { role: "group", "aria-label": dataset.label }, heading);
    // Groups out of sight cost nothing to lay out, if their height is known about.
    group.style.containIntrinsicSize = `auto ${32 + 26 * dataset.columns.length}px`;
    dataset.columns.forEach((column) => {
      const key = columnKey(dataset.key, column.name);
      const bare = side === "to" && !this.model.edges.sourcesOf.has(key);
      const row = make(
        bare ? "div.row.bare" : "div.row",
        { role: "option", "aria-selected": "false", tabindex: "-1" },
        name(column.name, "bdi.column"),
        make("span.type", { title: column.comment || column.type }, column.type),
        make("span.kinds")
      );
      row.column = { side, dataset, column, key };
      this.rows.set(`${side} ${key}`, row);
      group.append(row);
    });
    return group;
  }

  // --- choosing ----------------------------------------------------------------------------------

  choose(row) {
    performance.mark("sparklineage:choose");
    this.lit.forEach((other) => this.#unlight(other));
    this.lit = [];
    this.chosen?.classList.remove("chosen");
    this.chosen?.setAttribute("aria-selected", "false");
    this.chosen = row === this.chosen ? null : row;
    const edges = this.chosen ? this.#edges(this.chosen.column) : [];
    if (this.chosen) {
      this.chosen.classList.add("chosen");
      this.chosen.setAttribute("aria-selected", "true");
      const { side, dataset } = this.chosen.column;
      const other = side === "to" ? "from" : "to";
      edges.forEach((edge) => this.#light(other, edge, "lit"));
      if (side === "to") {
        const influences = this.model.edges.influences.get(dataset.key) ?? [];
        influences.forEach((edge) => this.#light(other, edge, "faint"));
      }
    }
    this.#narrow();
    this.#explain(this.chosen, edges);
    this.#reveal(edges);
    this.onChosen(this.#involved(edges));
    performance.measure("sparklineage:choose", "sparklineage:choose");
  }

  // Show the first of what was highlighted, without moving the page around it.
  #reveal(edges) {
    if (!edges.length) return;
    const side = this.chosen.column.side === "to" ? "from" : "to";
    const row = this.#rowOf(side, edges[0]);
    const pane = this.panes[side];
    if (!row) return;
    const scroll = () => {
      const [top, position] = [pane.getBoundingClientRect(), row.getBoundingClientRect()];
      // Only the upper half is sure to be on the screen, where the page is in a frame of its own.
      if (position.top < top.top + 40 || position.bottom > top.top + top.height / 2) {
        pane.scrollTop += position.top - top.top - 48;
      }
    };
    scroll();
    // Groups that come into sight get their real height only then.
    requestAnimationFrame(scroll);
  }

  #edges({ side, key }) {
    const { sourcesOf, targetsOf } = this.model.edges;
    return (side === "to" ? sourcesOf : targetsOf).get(key) ?? [];
  }

  #involved(edges) {
    if (!this.chosen) return null;
    const keys = edges.flatMap((edge) => [edge.dataset, edge.target]);
    return new Set([this.chosen.column.dataset.key, ...keys]);
  }

  #rowOf(side, edge) {
    return this.rows.get(`${side} ${side === "from" ? edge.from : edge.to}`);
  }

  #light(side, edge, how) {
    const row = this.#rowOf(side, edge);
    if (!row) return;
    if (!row.classList.contains("lit")) row.classList.add(how);
    row.lastElementChild.append(...kindsOf(edge));
    this.lit.push(row);
  }

  #unlight(row) {
    row.classList.remove("lit", "faint");
    row.lastElementChild.replaceChildren();
  }

  #narrow() {
    const panes = Object.entries(this.panes);
    panes.forEach(([side, pane]) => {
      const narrowed = this.chosen && this.chosen.column.side !== side;
      pane.classList.toggle("narrowed", Boolean(narrowed && this.only.checked));
      pane.classList.toggle("dimmed", Boolean(narrowed));
      pane.querySelectorAll(".group").forEach((group) => {
        const empty = narrowed && !group.querySelector(".lit, .faint");
        group.classList.toggle("unconcerned", Boolean(empty));
      });
    });
  }

  #filter(wanted) {
    const words = wanted.trim().toLowerCase();
    this.rows.forEach((row) => {
      row.hidden = !row.column.column.name.toLowerCase().includes(words);
    });
  }

  // --- the explanation --------------------------------------------------------------------------------

  #explain(row, edges = []) {
    const chosen = row?.column;
    if (!chosen) {
      const hint = "Choose a column to see what it is made of, or what is made of it.";
      this.details.replaceChildren(make("p.hint", {}, hint));
      return;
    }
    const title = make(
      "p.title",
      {},
      name(chosen.dataset.label),
      ".",
      name(chosen.column.name, "bdi.column"),
      make("span.type", {}, chosen.column.type)
    );
    const parts = [title];
    const to = chosen.side === "to";
    if (edges.length) {
      parts.push(this.#table(edges, to ? "Made of" : "Goes into", to));
    } else {
      const none = to
        ? "Its sources are not known. If something kept them from being known, it is summary below."
        : "No column that was written is made of it.";
      parts.push(make("p.hint", {}, none));
    }
    const influences = to ? this.model.edges.influences.get(chosen.dataset.key) ?? [] : [];
    if (influences.length) {
      const summary = `${influences.length} column(s) influence every row (filters, joins, groupings)`;
      const table = this.#table(influences, "By", true);
      parts.push(make("details", {}, make("summary", {}, summary), table));
    }
    this.details.replaceChildren(...parts);
  }

  #table(edges, title, ofSource) {
    const head = [title, "Type", "Subtype", "Masking", "How"].map((t) => make("th", {}, t));
    const body = make("tbody");
    edges.forEach((edge) => {
      const dataset = this.datasets.get(ofSource ? edge.dataset : edge.target);
      const column = ofSource ? edge.column : edge.targetColumn;
      const kinds = edge.kinds.length ? edge.kinds : [{ type: "", subtype: "", description: "" }];
      kinds.forEach((kind, n) => {
        const where = make("td", {}, name(dataset?.label ?? ""), ".", name(column, "bdi.column"));
        body.append(
          make(
            "tr",
            {},
            n ? make("td") : where,
            make("td", {}, kind.type || "unknown"),
            make("td", {}, kind.subtype),
            make("td", {}, kind.masking ? "masked" : ""),
            make("td.how", {}, kind.description)
          )
        );
      });
    });
    return make("table", {}, make("thead", {}, make("tr", {}, ...head)), body);
  }

  // --- mouse and keys ------------------------------------------------------------------------------

  #clicked(event) {
    const row = event.target.closest(".row");
    if (!row) return;
    this.#focus(row);
    this.choose(row);
  }

  #focus(row) {
    row.closest(".pane").querySelectorAll('.row[tabindex="0"]').forEach((r) => (r.tabIndex = -1));
    row.tabIndex = 0;
    row.focus({ preventScroll: false });
  }

  #pressed(event, side) {
    const row = event.target.closest(".row");
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const moves = {
      ArrowDown: () => this.#step(row, 1),
      ArrowUp: () => this.#step(row, -1),
      Home: () => this.#step(row, -Infinity),
      End: () => this.#step(row, Infinity),
      ArrowLeft: () => side === "to" && this.#cross("from"),
      ArrowRight: () => side === "from" && this.#cross("to"),
      Enter: () => this.choose(row),
      " ": () => this.choose(row),
      Escape: () => this.chosen && this.choose(this.chosen),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  #visible(pane) {
    return [...pane.querySelectorAll(".row")].filter((row) => row.checkVisibility());
  }

  #step(row, by) {
    const rows = this.#visible(row.closest(".pane"));
    const position = rows.indexOf(row) + by;
    this.#focus(rows[Math.min(Math.max(position, 0), rows.length - 1)]);
  }

  #cross(side) {
    const rows = this.#visible(this.panes[side]);
    const row = rows.find((r) => r.classList.contains("lit")) ?? rows[0];
    if (row) this.#focus(row);
  }
}

function kindsOf(edge) {
  const labels = edge.kinds.map((kind) => {
    const word = (kind.subtype || kind.type || "unknown").toLowerCase().replaceAll("_", " ");
    const what = `span.kind.${kind.type === "INDIRECT" ? "indirect" : "direct"}`;
    return make(what, { title: kind.description }, kind.masking ? `${word}, masked` : word);
  });
  return labels.slice(0, 3);
}
