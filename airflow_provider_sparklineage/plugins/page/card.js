// The card of one dataset. Where there are many, those far from what is in view have only their names,
// as a card may have dozens of elements.

import { counted, link, make, name } from "./dom.js";
import { badge } from "./partitions.js";

// Partitions that are links; of more of them there is a summary.
const LINKED = 24;
// What Hive escapes in the name of a folder.
const ESCAPED = /[\u0000-\u001f\u007f"#%'*/:=?\\{[\]^]/g;

export class Card {
  // url: its page in the lineage backend, if it has one. extras: an element or "", made for it anew
  // each time that the card is drawn in full. history: URL of the page of many runs, in Airflow.
  constructor(dataset, url, extras, history = "") {
    this.dataset = dataset;
    this.history = history;
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
      dataset.part ? make("div.part", {}, ...this.#parts()) : "",
      make("div.facts", {}, facts.join(" · ")),
      ...dataset.checks.map((check) => badge(check.status)),
      extras(dataset)
    );
  }

  // Its partitions, each linked to its history.
  #parts() {
    const { dataset, history } = this;
    if (!history || !dataset.partitions.length || dataset.partitions.length > LINKED) {
      return [name(dataset.part)];
    }
    return dataset.partitions.flatMap((partition, n) => {
      const text = Object.entries(partition).map((entry) => entry.map(escaped).join("=")).join("/");
      const { namespace, name } = dataset;
      const linked = link(text, `${history}?${new URLSearchParams({ namespace, name, partition: text })}`);
      return [n ? ", " : "", linked ?? text];
    });
  }
}

const escaped = (text) =>
  text.replace(ESCAPED, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
