// The page of one task's lineage: what it read, the task, what it wrote; partitions; columns; what
// is missing and why.

import { ColumnView } from "./columns.js";
import { link, make, name } from "./dom.js";
import { Flow } from "./flow.js";
import { modelOf } from "./model.js";
import { partitions } from "./partitions.js";
import { SearchField } from "./search.js";
import { Strips } from "./strip.js";

// Draw an event into an element, instead of what is in it.
// links: { backend, job: url, datasets: [{ namespace, name, url }] }, where the lineage backend
// shows them; and `history`, the URL of the page of many runs.
// state: of an earlier view of the same task, which this one goes on from.
// Gives the view: its `state` is what was chosen, searched and scrolled to; `strips` are its partition
// strips, or null without any.
export function draw(root, event, links = {}, state = null) {
  performance.mark("sparklineage:draw");
  const model = modelOf(event);
  const pages = new Map(
    (links.datasets ?? []).map((d) => [JSON.stringify([d.namespace, d.name]), d.url])
  );
  const strips = new Strips(model);
  const flow = new Flow(model, pages, (dataset) => strips.of(dataset), links.history);
  const columns = new ColumnView(model, (keys) => flow.highlight(keys));
  const field = new SearchField(model, (search) => [flow, columns].forEach((part) => part.find(search)));
  root.replaceChildren(
    header(model, links),
    field.datasets.length ? field.element : "",
    flow.element,
    strips.legend,
    partitions(model),
    columns.count ? columns.element : "",
    maintained(model),
    missing(model)
  );
  flow.connect();
  columns.refresh();
  const parts = { field, flow, columns };
  if (state) Object.entries(parts).forEach(([name, part]) => part.restore(state[name]));
  performance.measure("sparklineage:draw", "sparklineage:draw");
  return {
    strips: strips.isNeeded ? strips : null,
    get state() {
      return { field: field.state, flow: flow.state, columns: columns.state };
    },
  };
}

// One sentence, where there is nothing to draw.
export function showText(root, sentence) {
  root.replaceChildren(make("p.sentence", { role: "status" }, sentence));
}

function header(model, links) {
  const state = make(`span.state.${model.state === "COMPLETE" ? "good" : "bad"}`, {}, model.state);
  const facts = [
    model.time,
    model.spark && `Spark ${model.spark}`,
    model.application,
    model.runId && `run ${model.runId}`,
  ].filter(Boolean);
  return make(
    "header",
    {},
    make("h2", {}, name(model.job), state, links.job ? link(`in ${links.backend}`, links.job) : ""),
    model.summary ? make("p.summary", {}, model.summary) : "",
    make("p.facts", {}, facts.join(" · "))
  );
}

// --- tables of which files were maintained -------------------------------------------------------

function maintained(model) {
  if (!model.maintained.length) return "";
  const entries = model.maintained.map((one) =>
    make("li", {}, make("code", {}, one.operation), make("span.where", {}, name(one.name)))
  );
  return make(
    "section.gaps",
    { "aria-label": "Maintained" },
    make("h3", {}, "Maintained, neither read nor written"),
    make("ul", {}, ...entries)
  );
}

// --- what is missing -----------------------------------------------------------------------------

function missing(model) {
  if (!model.missing.length) return "";
  const entries = model.missing.map((entry) =>
    make(
      "li",
      {},
      make("code", {}, entry.code),
      entry.where ? make("span.where", {}, name(entry.where)) : "",
      make("div", {}, name(entry.message, "span"))
    )
  );
  if (model.unlisted) {
    entries.push(make("li", {}, `${model.unlisted} more are not listed in the event.`));
  }
  return make(
    "section.gaps",
    { "aria-label": "Missing or assumed" },
    make("h3", {}, "Missing or assumed, and why"),
    make("ul", {}, ...entries)
  );
}
