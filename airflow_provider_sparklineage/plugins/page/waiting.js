// A try that has no lineage (yet): what is expected of it, and below the last run's lineage, greyed.

import { make } from "./dom.js";
import { expectedOf } from "./model.js";
import { pending } from "./partitions.js";
import { draw } from "./view.js";

// Draw what an answer has instead of an event; gives the view of the last run's lineage, or null.
// task: as Airflow names the instance, with its mapIndex as a number
export function drawWaiting(root, answer, task, state) {
  const { expected, last } = answer;
  const place = make("div.greyed");
  const title = last ? titleOf(last, answer, task) : "";
  root.replaceChildren(
    make("p.sentence", { role: "status" }, answer.message),
    expected ? pending(expectedOf(expected), expected.unlisted) : "",
    last ? make("section.last", { "aria-label": title }, make("h3", {}, title), place) : ""
  );
  return last ? draw(place, last.event, last.links, state) : null;
}

function titleOf(last, answer, task) {
  const until = answer.has_ended ? "" : ", until this one has ended";
  if (last.run_id !== task.runId) return `Last run: ${dateOf(last.date) || last.run_id}${until}`;
  if (last.map_index !== task.mapIndex) return `Mapped instance ${last.map_index} of this run${until}`;
  return `Try ${last.try_number} of this run${until}`;
}

function dateOf(time) {
  if (!time) return "";
  const text = new Date(time).toISOString();
  return text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : `${text.slice(0, 16).replace("T", " ")} UTC`;
}
