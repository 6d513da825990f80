// The card of one dataset. Where there are many, those far from what is in view have only their names,
// as a card may have dozens of elements.

import { counted, link, make, name } from "./dom.js";
import { badge } from "./partitions.js";

export class Card {
  // url: its page in the lineage backend, if it has one. extras: an element or "", made for it anew
  // each time that the card is drawn in full.
  constructor(dataset, url, extras) {
    this.dataset = dataset;
    this.extras = extras;
    this.rest = null;
    this.element = make(
      "article.card",
      {},
      make("div.label", {}, name(dataset.label), url ? link("open", url) : "")
    );
  }

  set isFull(wanted) {
    this.rest?.remove();
    this.rest = wanted ? this.#rest() : null;
    if (this.rest) this.element.append(this.rest);
  }

  #rest() {
    const { dataset, extras } = this;
    const facts = [...dataset.facts];
    if (dataset.columns.length) facts.push(counted(dataset.columns.length, "column"));
    return make(
      "div.rest",
      {},
      make("div.full", {}, name(`${dataset.namespace} ${dataset.name}`)),
      dataset.part ? make("div.part", {}, name(dataset.part)) : "",
      make("div.facts", {}, facts.join(" · ")),
      ...dataset.checks.map((check) => badge(check.status)),
      extras(dataset)
    );
  }
}
