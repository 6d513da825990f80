// A table whose first rows are shown until somebody asks for all, and then those that are in view.

import { make } from "./dom.js";
import { FIRST, Fold } from "./fold.js";

// How near to what is in view a row is drawn.
const MARGIN = "600px";

// The elements of a table. what: one of its rows is. rows: functions that give the cells of each.
export function foldedTable(what, titles, rows) {
  const observer = new IntersectionObserver(
    (seen) => seen.forEach(({ target, isIntersecting }) => draw(target, isIntersecting)),
    { rootMargin: MARGIN, scrollMargin: MARGIN }
  );
  const cellsOf = new Map(rows.map((cells) => [make("tr"), cells]));
  const draw = (row, isNear) => {
    if (isNear === row.childElementCount > 0) return;
    // An empty row is as high as it was, or what is below it would move.
    row.style.height = isNear ? "" : `${row.offsetHeight}px`;
    const cells = isNear ? cellsOf.get(row)() : [];
    row.replaceChildren(...cells.map((cell) => make("td", {}, ...[cell].flat())));
  };
  const body = make("tbody");
  const show = () => {
    const shown = fold.of([...cellsOf.keys()]);
    observer.disconnect();
    body.replaceChildren(...shown);
    if (shown.length > FIRST) shown.forEach((row) => observer.observe(row));
    else shown.forEach((row) => draw(row, true));
  };
  const fold = new Fold(what, show);
  show();
  const head = make("thead", {}, make("tr", {}, ...titles.map((text) => make("th", {}, text))));
  return [make("table", {}, head, body), fold.button];
}
