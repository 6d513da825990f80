// The page as one file: the events are in it, the last of each job.

import { make } from "./dom.js";
import { draw, showText } from "./view.js";

const OLD = "This browser is too old for this page: it has no DecompressionStream. Any of 2023 or later has.";

const root = document.querySelector("main.sparklineage");
const body = make("div");
root.append(body);

if ("DecompressionStream" in globalThis) {
  const events = await unpacked(document.getElementById("events").textContent);
  if (events.length > 1) body.before(make("nav.tries", {}, make("label", {}, "Task ", choice(events))));
  if (events.length) show(events[0]);
  else showText(body, "There is no lineage in this file.");
} else {
  showText(body, OLD);
}

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function choice(events) {
  const options = events.map((event, n) => make("option", { value: n }, String(event.job.name)));
  const select = make("select", {}, ...options);
  select.addEventListener("change", () => show(events[select.value]));
  return select;
}

function show(event) {
  try {
    draw(body, event);
  } catch (error) {
    showText(body, `The lineage cannot be shown (${error.message}).`);
  }
}
