// The page as one file: the events are in it, the last of each job.

import { make } from "./dom.js";
import { draw, showText } from "./view.js";

const root = document.querySelector("main.sparklineage");
const events = JSON.parse(document.getElementById("events").textContent);
const body = make("div");

if (events.length > 1) {
  const options = events.map((event, n) => make("option", { value: n }, String(event.job.name)));
  const select = make("select", {}, ...options);
  select.addEventListener("change", () => show(events[select.value]));
  root.append(make("nav.tries", {}, make("label", {}, "Task ", select)));
}
root.append(body);
if (events.length) show(events[0]);
else showText(body, "There is no lineage in this file.");

function show(event) {
  try {
    draw(body, event);
  } catch (error) {
    showText(body, `The lineage cannot be shown (${error.message}).`);
  }
}
