// A table whose first rows are shown until somebody asks for all, and then those that are in view.

import { make } from "./dom.js";
import { Fold } from "./fold.js";
import { Near } from "./near.js";

// The elements of a table. what: one of its rows is. rows: functions that give the cells of each.
export function foldedTable(what, titles, rows) {
  const cellsOf = new Map(rows.map((cells) => [make("tr"), cells]));
  const near = new Near((row, isNear) => {
    const cells = isNear ? cellsOf.get(row)() : [];
    row.replaceChildren(...cells.map((cell) => make("td", {}, ...[cell].flat())));
  });
  const body = make("tbody");
  const show = () => {
    const shown = fold.of([...cellsOf.keys()]);
    near.show(shown);
    body.replaceChildren(...shown);
  };
  const fold = new Fold(what, show);
  show();
  const head = make("thead", {}, make("tr", {}, ...titles.map((text) => make("th", {}, text))));
  return [make("table", {}, head, body), fold.button];
}
