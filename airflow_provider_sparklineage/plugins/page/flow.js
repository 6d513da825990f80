// Datasets in, the task, datasets out, with lines between them.

import { link, make, name } from "./dom.js";
import { badge } from "./partitions.js";

// Datasets of one side that are drawn at once.
const FOLD = 24;
export const SVG = "http://www.w3.org/2000/svg";

export class Flow {
  // pages: dataset's key -> URL of its page in the lineage backend.
  // extras: dataset -> an element that its card ends with, or "".
  constructor(model, pages, extras = () => "") {
    this.extras = extras;
    this.cards = new Map();
    this.lines = document.createElementNS(SVG, "svg");
    this.lines.setAttribute("aria-hidden", "true");
    this.task = make("div.task", {}, name(model.job.split(".").at(-1) || model.job));
    const side = (title, datasets, none) => this.#side(title, datasets, none, pages);
    this.element = make(
      "section.flow",
      { "aria-label": "Datasets" },
      this.lines,
      side("Read", model.inputs, "Nothing was read."),
      make("div.middle", {}, this.task),
      side("Written", model.outputs, "Nothing was written.")
    );
    new ResizeObserver(() => this.connect()).observe(this.element);
  }

  #side(title, datasets, none, pages) {
    const side = make("div.side", {}, make("h3", {}, title));
    const cards = datasets.map((dataset) => this.#card(dataset, pages.get(dataset.key)));
    cards.slice(FOLD).forEach((card) => (card.hidden = true));
    side.append(...cards);
    if (!cards.length) side.append(make("p.none", {}, none));
    if (cards.length > FOLD) {
      const more = make("button", { type: "button" }, `Show all ${cards.length}`);
      more.addEventListener("click", () => {
        cards.forEach((card) => (card.hidden = false));
        more.remove();
        this.connect();
      });
      side.append(more);
    }
    return side;
  }

  #card(dataset, url) {
    const facts = [...dataset.facts];
    if (dataset.columns.length) facts.push(`${dataset.columns.length} columns`);
    const card = make(
      "article.card",
      {},
      make("div.label", {}, name(dataset.label), url ? link("open", url) : ""),
      make("div.full", {}, name(`${dataset.namespace} ${dataset.name}`)),
      dataset.part ? make("div.part", {}, name(dataset.part)) : "",
      make("div.facts", {}, facts.join(" · ")),
      ...dataset.checks.map((check) => badge(check.status)),
      this.extras(dataset)
    );
    this.cards.set(`${dataset.side} ${dataset.key}`, { card, dataset });
    return card;
  }

  // Lines from card to task to card, where the cards are now.
  connect() {
    const frame = this.element.getBoundingClientRect();
    const task = this.task.getBoundingClientRect();
    const visible = [...this.cards.values()].filter(({ card }) => !card.hidden);
    const boxes = visible.map(({ card }) => card.getBoundingClientRect());
    this.lines.replaceChildren(
      ...visible.map(({ card, dataset }, n) => {
        const read = dataset.side === "read";
        const y = boxes[n].top + boxes[n].height / 2 - frame.top;
        const middle = task.top + task.height / 2 - frame.top;
        const [x1, x2] = read
          ? [boxes[n].right - frame.left, task.left - frame.left]
          : [task.right - frame.left, boxes[n].left - frame.left];
        const [y1, y2] = read ? [y, middle] : [middle, y];
        const bend = (x1 + x2) / 2;
        const line = document.createElementNS(SVG, "path");
        line.setAttribute("d", `M${x1},${y1} C${bend},${y1} ${bend},${y2} ${x2},${y2}`);
        line.classList.toggle("lit", card.classList.contains("lit"));
        return line;
      })
    );
  }

  // Highlight these datasets; none if null.
  highlight(keys) {
    this.element.classList.toggle("choosing", keys !== null);
    this.cards.forEach(({ card, dataset }) =>
      card.classList.toggle("lit", keys !== null && keys.has(dataset.key))
    );
    const visible = [...this.cards.values()].filter(({ card }) => !card.hidden);
    [...this.lines.children].forEach((line, n) =>
      line.classList.toggle("lit", visible[n].card.classList.contains("lit"))
    );
  }
}
