// Of many things the first ones, until somebody asks for all.

import { counted, make } from "./dom.js";

export const FIRST = 10;

export class Fold {
  // what: one of them is. changed: called when all are asked for, or only the first.
  constructor(what, changed) {
    this.what = what;
    this.all = false;
    this.button = make("button.fold", { type: "button", onclick: () => this.#turn(changed) });
  }

  // What is shown of some things: those that are kept are, wherever they stand.
  of(things, isKept = () => false) {
    this.button.hidden = things.length <= FIRST;
    const [first, all] = [FIRST, things.length].map((number) => counted(number, this.what));
    this.button.textContent = this.all ? `Show the first ${first}` : `Show all ${all}`;
    return this.all ? things : things.filter((thing, n) => n < FIRST || isKept(thing));
  }

  #turn(changed) {
    this.all = !this.all;
    changed();
  }
}
