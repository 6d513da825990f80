// The partition strip: the last dates of a dataset as small squares, so that gaps show.

import { spansOf, textOf } from "./calendar.js";
import { make, shown } from "./dom.js";
import { SVG } from "./flow.js";
import { marksOf, SQUARES, stripOf } from "./squares.js";

const PITCH = 13; // from one square to the next, in pixels

// What a square can be: what is drawn, and what the legend says. Form and colour, not colour alone.
const box = (x, size) => `M${x - size / 2},${6 - size / 2}h${size}v${size}h${-size}z`;
const KINDS = new Map([
  ["own", [(x) => box(x, 10), "read or written"]],
  ["unexpected", [(x) => `M${x},0.5l5.5,5.5l-5.5,5.5l-5.5,-5.5z`, "though not expected"]],
  ["missing", [(x) => `${box(x, 9)}m0,0l9,9m0,-9l-9,9`, "expected, but neither read nor written"]],
  ["removed", [(x) => `M${x - 4.5},6h9`, "removed by this run"]],
  ["other", [(x) => box(x, 6), "by another run of this task"]],
  ["none", [(x) => box(x, 9), "not known to be read or written"]],
]);

// The strips of a page. They can be drawn again when it is known what other runs accessed.
export class Strips {
  constructor(model) {
    this.drawn = new Map(); // side and key of a dataset -> { dataset, place }
    this.others = new Map();
    this.note = make("span.note", { role: "status" });
    const has = (dataset) => stripOf(dataset) !== null;
    this.isNeeded = [...model.inputs, ...model.outputs].some(has);
    const removes = model.outputs.some(({ removed }) => removed.length);
    this.legend = this.isNeeded ? legend(this.note, removes ? ["other"] : ["other", "removed"]) : "";
  }

  // The place of a dataset's strip, or "" for one without dates.
  of(dataset) {
    const strip = this.#strip(dataset);
    if (!strip) return "";
    const place = make("div.strip");
    place.append(...stripElements(strip, dataset.side));
    this.drawn.set(keyOfSide(dataset.side, dataset.key), { dataset, place });
    return place;
  }

  // Add what other runs of the task accessed: [{ side, namespace, name, partitions }].
  add(datasets, note) {
    for (const { side, namespace, name, partitions } of datasets) {
      this.others.set(keyOfSide(side, JSON.stringify([namespace, name])), partitions);
    }
    this.note.textContent = note;
    if (datasets.length) this.note.before(entryOf("other"));
    this.drawn.forEach(({ dataset, place }) =>
      place.replaceChildren(...stripElements(this.#strip(dataset), dataset.side))
    );
  }

  #strip(dataset) {
    return stripOf(dataset, this.others.get(keyOfSide(dataset.side, dataset.key)));
  }
}

const keyOfSide = (side, key) => JSON.stringify([side, key]);

function stripElements(strip, side) {
  if (strip.text) return [make("span.facts", {}, strip.text)];
  const steps = Array.from({ length: SQUARES }, (_, n) => strip.first + n);
  const text = (step) => textOf(strip.unit, step);
  const places = new Map([...KINDS.keys()].map((kind) => [kind, []]));
  steps.forEach((step) => marksOf(strip, step).forEach((kind) => places.get(kind).push(step)));
  const squares = drawing(SQUARES, { role: "img", "aria-label": shown(describe(strip, places, side)) });
  places.forEach((found, kind) => {
    if (found.length) squares.append(path(kind, found.map((step) => step - strip.first)));
  });
  squares.addEventListener("pointermove", (event) => {
    const { left, width } = squares.getBoundingClientRect();
    const place = Math.floor(((event.clientX - left) / width) * SQUARES);
    const step = strip.first + Math.min(Math.max(place, 0), SQUARES - 1);
    squares.parentElement.title = `${text(step)}: ${sentenceOf(strip, step, side)}`;
  });
  const caption = `${strip.labels.join("/")}, ${text(strip.first)} to ${text(strip.last)}`;
  return [squares, make("span.facts", { "aria-hidden": "true" }, caption)];
}

function sentenceOf(strip, step, side) {
  const count = strip.counts.get(step) ?? 0;
  const how = new Map([
    ["own", `${count === 1 ? "" : `${count} partitions `}${side}`],
    ["unexpected", `${side}, which was not expected`],
    ["missing", `expected, and not ${side}`],
    ["removed", "removed"],
    ["other", `${side} by another run`],
    ["none", `not ${side}`],
  ]);
  return marksOf(strip, step).map((kind) => how.get(kind)).join("; ");
}

// The whole strip in words.
function describe(strip, places, side) {
  const words = new Map([
    ["own", side],
    ["unexpected", `${side}, but not expected`],
    ["missing", `expected, but not ${side}`],
    ["removed", "removed"],
    ["other", `${side} by other runs`],
  ]);
  const parts = [...words]
    .filter(([kind]) => places.get(kind).length)
    .map(([kind, word]) => {
      const others = strip.partial.has(kind) ? ", among others" : "";
      return `${word}: ${spansOf(strip.unit, places.get(kind))}${others}`;
    });
  const [from, to] = [strip.first, strip.last].map((step) => textOf(strip.unit, step));
  return `${strip.labels.join("/")} from ${from} to ${to}. ${parts.join("; ")}.`;
}

function drawing(places, attributes) {
  const squares = document.createElementNS(SVG, "svg");
  const size = { width: places * PITCH, height: 12, viewBox: `0 0 ${places * PITCH} 12` };
  Object.entries({ ...size, ...attributes }).forEach(([key, value]) => squares.setAttribute(key, value));
  return squares;
}

function path(kind, places) {
  const shape = document.createElementNS(SVG, "path");
  const [form] = KINDS.get(kind);
  shape.setAttribute("class", kind);
  shape.setAttribute("d", places.map((place) => form(place * PITCH + PITCH / 2)).join(""));
  return shape;
}

// What squares stand for; without other runs, until they are known.
function legend(note, without) {
  const kinds = [...KINDS.keys()].filter((kind) => !without.includes(kind));
  return make("p.legend.facts", {}, ...kinds.map(entryOf), note);
}

function entryOf(kind) {
  const example = drawing(1, { "aria-hidden": "true" });
  example.append(path(kind, [0]));
  return make("span.strip", {}, example, KINDS.get(kind)[1]);
}
