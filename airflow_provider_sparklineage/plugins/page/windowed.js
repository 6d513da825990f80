// A list of any length of which only what is in view is in the document: rows of one height, in
// groups whose headings stay in view. The focus is on the list itself, so that no scrolling loses it;
// aria-activedescendant says which row the keys are at.

import { make, name, shown } from "./dom.js";

const ROW_PX = 26;
const HEADING_PX = 32;
// Drawn above and below of what is in view.
const MARGIN_PX = 260;

export class WindowedList {
  // id: unique in the document. label: how a screen reader calls the list.
  // draw: (item, group) -> the row's element. choose: (item, group), by a click or by Enter.
  // press: a key that means nothing here -> whether it means something there.
  constructor({ id, label, draw, choose, press }) {
    Object.assign(this, { id, draw, choose, press });
    this.items = [];
    this.position = 0; // of the row that the keys are at
    this.content = make("div.content", { role: "presentation" });
    this.element = make(
      "div.list",
      {
        role: "listbox",
        "aria-label": label,
        tabindex: "0",
        onscroll: () => this.refresh(),
        onclick: (event) => this.#clicked(event),
        onkeydown: (event) => this.#pressed(event),
      },
      this.content
    );
    new ResizeObserver(() => this.refresh()).observe(this.element);
    this.show([]);
  }

  // Show groups, { section, label, note, title, look, items }, instead of those before. A group without
  // items is a heading for the groups below it, their section. The keys stay where they are, or begin
  // anew.
  show(groups, isNew = false) {
    const current = isNew ? null : this.items[this.position];
    let [top, first] = [0, 0];
    this.groups = groups.map((group) => {
      const bottom = top + HEADING_PX + ROW_PX * group.items.length;
      const placed = { ...group, top, bottom, first };
      [top, first] = [bottom, first + group.items.length];
      return placed;
    });
    this.items = groups.flatMap(({ items }) => items);
    this.position = Math.max(0, this.items.indexOf(current));
    this.drawn = new Map(); // a group, or the position of a row -> its element
    this.content.replaceChildren();
    this.content.style.height = `${top}px`;
    this.refresh();
  }

  get scrolled() {
    return this.element.scrollTop;
  }

  set scrolled(top) {
    this.element.scrollTop = top;
    this.refresh();
  }

  // Go to the row that the keys were at, which is the first after a new order.
  focus() {
    this.element.focus({ preventScroll: true });
    this.scrollToCurrent();
  }

  // Draw what has come into view, and remove what has left it.
  refresh() {
    const { scrollTop, clientHeight } = this.element;
    const view = { from: scrollTop - MARGIN_PX, to: scrollTop + clientHeight + MARGIN_PX };
    const before = this.drawn;
    this.drawn = new Map();
    let last = null;
    for (const group of this.groups) {
      if (group.bottom < view.from || group.top > view.to) continue;
      const element = before.get(group) ?? this.#group(group);
      this.drawn.set(group, element);
      if (!element.isConnected) last ? last.after(element) : this.content.prepend(element);
      last = element;
      this.#rows(group, element, view, before);
    }
    before.forEach((element, key) => this.drawn.has(key) || element.remove());
    this.#mark();
  }

  #rows(group, element, { from, to }, before) {
    const start = group.top + HEADING_PX;
    const begin = Math.max(0, Math.floor((from - start) / ROW_PX));
    const end = Math.min(group.items.length, Math.ceil((to - start) / ROW_PX));
    let last = element.firstElementChild;
    for (let n = begin; n < end; n++) {
      const position = group.first + n;
      const row = before.get(position) ?? this.#row(group, n);
      this.drawn.set(position, row);
      if (!row.isConnected) last.after(row);
      last = row;
    }
  }

  #group({ section, label, note, title, look, items, top, bottom }) {
    // A list may own nothing but options, so the headings are in the labels of the groups.
    const heading = make(
      `div.heading.${look ?? "plain"}`,
      { "aria-hidden": "true", title },
      name(label),
      make("span.count", {}, note)
    );
    const words = [section, label, note].filter(Boolean).map(shown).join(", ");
    const labelled = { role: "group", "aria-label": words };
    const element = make("div.group", items.length ? labelled : { role: "presentation" }, heading);
    element.style.top = `${top}px`;
    element.style.height = `${bottom - top}px`;
    return element;
  }

  #row(group, n) {
    const row = this.draw(group.items[n], group);
    row.position = group.first + n;
    row.id = `${this.id}-${row.position}`;
    row.setAttribute("aria-setsize", this.items.length);
    row.setAttribute("aria-posinset", row.position + 1);
    row.style.top = `${HEADING_PX + n * ROW_PX}px`;
    row.style.height = `${ROW_PX}px`;
    return row;
  }

  // Where the keys are, if it is drawn.
  #mark() {
    this.content.querySelector(".current")?.classList.remove("current");
    const row = this.drawn.get(this.position);
    row?.classList.add("current");
    if (row) this.element.setAttribute("aria-activedescendant", row.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  // --- mouse and keys ------------------------------------------------------------------------------

  #clicked(event) {
    const row = event.target.closest(".row");
    if (!row) return;
    this.position = row.position;
    this.#chooseCurrent();
  }

  #chooseCurrent() {
    if (this.items.length) this.choose(this.items[this.position], this.#groupOf(this.position));
  }

  #pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_PX) - 2);
    const moves = {
      ArrowDown: () => this.#moveTo(this.position + 1),
      ArrowUp: () => this.#moveTo(this.position - 1),
      PageDown: () => this.#moveTo(this.position + page),
      PageUp: () => this.#moveTo(this.position - page),
      Home: () => this.#moveTo(0),
      End: () => this.#moveTo(this.items.length - 1),
      Enter: () => this.#chooseCurrent(),
      " ": () => this.#chooseCurrent(),
    };
    if (!moves[event.key] && !this.press(event.key)) return;
    event.preventDefault();
    if (!moves[event.key]) return;
    moves[event.key]();
    this.scrollToCurrent();
  }

  // Bring an item into view of the list, as the one that the keys are at.
  reveal(item) {
    const position = this.items.indexOf(item);
    if (position >= 0) this.#moveTo(position);
  }

  // Bring it into view of what the list is in, as well.
  scrollToCurrent() {
    this.#moveTo(this.position);
    this.drawn.get(this.position)?.scrollIntoView({ block: "nearest" });
  }

  #moveTo(position) {
    if (!this.items.length) return;
    this.position = Math.min(Math.max(position, 0), this.items.length - 1);
    const group = this.#groupOf(this.position);
    const top = group.top + HEADING_PX + (this.position - group.first) * ROW_PX;
    const { scrollTop, clientHeight } = this.element;
    // The heading of its group covers the upper end of the list.
    if (top - HEADING_PX < scrollTop) this.scrolled = top - HEADING_PX;
    else if (top + ROW_PX > scrollTop + clientHeight) this.scrolled = top + ROW_PX - clientHeight;
    else this.refresh();
  }

  #groupOf(position) {
    return this.groups.findLast(({ first, items }) => items.length && first <= position);
  }
}
