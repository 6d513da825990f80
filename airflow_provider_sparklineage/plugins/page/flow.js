// Datasets in, the task, datasets out, with lines between them.

import { Card } from "./card.js";
import { counted, make, name } from "./dom.js";
import { FIRST, Fold } from "./fold.js";
import { Near } from "./near.js";
import { Search } from "./search.js";

export const SVG = "http://www.w3.org/2000/svg";

export class Flow {
  // pages: dataset's key -> URL of its page in the lineage backend.
  // extras: dataset -> an element that its card ends with, or "".
  // history: URL of the page of many runs, in Airflow.
  constructor(model, pages, extras = () => "", history = "") {
    this.lines = document.createElementNS(SVG, "svg");
    this.lines.setAttribute("aria-hidden", "true");
    this.task = make("div.task", {}, name(model.job.split(".").at(-1) || model.job));
    const cards = (datasets) => datasets.map((d) => new Card(d, pages.get(d.key), extras, history));
    const turned = () => this.#show();
    this.sides = [
      new Side("read", cards(model.inputs), turned),
      new Side("written", cards(model.outputs), turned),
    ];
    const [read, written] = this.sides;
    this.element = make(
      "section.flow",
      { "aria-label": "Datasets" },
      this.lines,
      read.element,
      make("div.middle", {}, this.task),
      written.element
    );
    this.search = new Search("");
    this.chosen = null;
    this.#show();
    new ResizeObserver(() => this.connect()).observe(this.element);
  }

  get state() {
    return this.sides.map((side) => side.fold.all);
  }

  restore(state) {
    this.sides.forEach((side, n) => (side.fold.all = state[n]));
    this.#show();
  }

  find(search) {
    this.search = search;
    this.#show();
  }

  // Highlight these datasets, by their keys; none if null.
  highlight(keys) {
    this.chosen = keys;
    this.#show();
  }

  #show() {
    this.element.classList.toggle("choosing", this.chosen !== null);
    this.sides.forEach((side) => side.show(this.search, this.chosen ?? new Set()));
    this.connect();
  }

  // Lines from card to task to card, where the cards are now.
  connect() {
    const frame = this.element.getBoundingClientRect();
    const task = this.task.getBoundingClientRect();
    const middle = task.top + task.height / 2 - frame.top;
    const lines = this.sides.flatMap(({ side, shown }) => {
      const isRead = side === "read";
      // Lines of a hundred cards would be one grey area.
      const isLit = ({ element }) => element.classList.contains("lit");
      const joined = shown.length > FIRST ? shown.filter(isLit) : shown;
      const boxes = joined.map(({ element }) => element.getBoundingClientRect());
      return joined.map((card, n) => {
        const y = boxes[n].top + boxes[n].height / 2 - frame.top;
        const [x1, x2] = isRead
          ? [boxes[n].right - frame.left, task.left - frame.left]
          : [task.right - frame.left, boxes[n].left - frame.left];
        const [y1, y2] = isRead ? [y, middle] : [middle, y];
        const bend = (x1 + x2) / 2;
        const line = document.createElementNS(SVG, "path");
        line.setAttribute("d", `M${x1},${y1} C${bend},${y1} ${bend},${y2} ${x2},${y2}`);
        line.classList.toggle("lit", isLit(card));
        return line;
      });
    });
    this.lines.replaceChildren(...lines);
  }
}

class Side {
  // side: "read" or "written". turned: called when all cards are asked for, or only the first.
  constructor(side, cards, turned) {
    this.side = side;
    this.cards = cards;
    this.shown = [];
    this.fold = new Fold("dataset", turned);
    this.list = make("div.cards");
    this.none = make("p.none");
    const title = side === "read" ? "Read" : "Written";
    const count = make("span.count", {}, cards.length ? counted(cards.length, "dataset") : "");
    this.element = make("div.side", {}, make("h3", {}, title, count), this.none, this.list, this.fold.button);
    const byElement = new Map(cards.map((card) => [card.element, card]));
    this.near = new Near((element, isNear) => (byElement.get(element).isFull = isNear));
  }

  // Show the datasets that are looked for, and those that are highlighted; of many these come first.
  show(search, lit) {
    const isLit = ({ dataset }) => lit.has(dataset.key);
    this.cards.forEach((card) => card.element.classList.toggle("lit", isLit(card)));
    const found = this.cards.filter((card) => isLit(card) || search.has(card.dataset));
    const isMany = found.length > FIRST;
    if (isMany) found.sort((one, other) => isLit(other) - isLit(one));
    this.shown = this.fold.of(found, isLit);
    this.none.hidden = found.length > 0;
    this.none.textContent = this.cards.length ? search.nothing(this.side) : `Nothing was ${this.side}.`;
    this.#draw();
  }

  #draw() {
    const elements = this.shown.map(({ element }) => element);
    this.near.show(elements);
    const isSame = elements.every((element, n) => element === this.list.children[n]);
    if (!isSame || elements.length !== this.list.children.length) this.list.replaceChildren(...elements);
  }
}
