// The page of one task's lineage: what it read, the task, what it wrote; partitions; columns; what
// is missing and why.

import { ColumnView } from "./columns.js";
import { link, make, name } from "./dom.js";
import { modelOf } from "./model.js";

// Datasets of one side that are drawn at once.
const FOLD = 24;
const SVG = "http://www.w3.org/2000/svg";

const STATUS = new Map([
  ["matched", "as expected"],
  ["unexpected", "unexpected"],
  ["missing", "missing"],
  ["unobserved", "not observed"],
  ["undeclared", "nothing expected"],
]);

// Draw an event into an element, instead of what is in it.
// links: { backend, job: url, datasets: [{ namespace, name, url }] }, where the lineage backend
// shows them.
// state: of an earlier view of the same task, which this one goes on from.
// Gives the view: its `state` is what was chosen, searched and scrolled to.
export function draw(root, event, links = {}, state = null) {
  performance.mark("sparklineage:draw");
  const model = modelOf(event);
  const pages = new Map(
    (links.datasets ?? []).map((d) => [JSON.stringify([d.namespace, d.name]), d.url])
  );
  const flow = new Flow(model, pages);
  const columns = new ColumnView(model, (keys) => flow.highlight(keys));
  root.replaceChildren(
    header(model, links),
    flow.element,
    partitions(model),
    columns.count ? columns.element : "",
    missing(model)
  );
  flow.connect();
  if (state) columns.restore(state);
  performance.measure("sparklineage:draw", "sparklineage:draw");
  return columns;
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

// --- datasets in, task, datasets out -------------------------------------------------------------

class Flow {
  constructor(model, pages) {
    this.cards = new Map();
    this.lines = document.createElementNS(SVG, "svg");
    this.lines.setAttribute("aria-hidden", "true");
    this.task = make("div.task", {}, name(model.job.split(".").at(-1) || model.job));
    const side = (title, datasets, none) => this.#side(title, datasets, none, pages);
    this.element = make(
      "section.flow",
      { "aria-label": "Datasets" },
      this.lines,
      side("Read", model.inputs, "Nothing was read."),
      make("div.middle", {}, this.task),
      side("Written", model.outputs, "Nothing was written.")
    );
    new ResizeObserver(() => this.connect()).observe(this.element);
  }

  #side(title, datasets, none, pages) {
    const side = make("div.side", {}, make("h3", {}, title));
    const cards = datasets.map((dataset) => this.#card(dataset, pages.get(dataset.key)));
    cards.slice(FOLD).forEach((card) => (card.hidden = true));
    side.append(...cards);
    if (!cards.length) side.append(make("p.none", {}, none));
    if (cards.length > FOLD) {
      const more = make("button", { type: "button" }, `Show all ${cards.length}`);
      more.addEventListener("click", () => {
        cards.forEach((card) => (card.hidden = false));
        more.remove();
        this.connect();
      });
      side.append(more);
    }
    return side;
  }

  #card(dataset, url) {
    const facts = [...dataset.facts];
    if (dataset.columns.length) facts.push(`${dataset.columns.length} columns`);
    const card = make(
      "article.card",
      {},
      make("div.label", {}, name(dataset.label), url ? link("open", url) : ""),
      make("div.full", {}, name(`${dataset.namespace} ${dataset.name}`)),
      dataset.part ? make("div.part", {}, name(dataset.part)) : "",
      make("div.facts", {}, facts.join(" · ")),
      ...dataset.checks.map((check) => badge(check.status))
    );
    this.cards.set(`${dataset.side} ${dataset.key}`, { card, dataset });
    return card;
  }

  // Lines from card to task to card, where the cards are now.
  connect() {
    const frame = this.element.getBoundingClientRect();
    const task = this.task.getBoundingClientRect();
    const visible = [...this.cards.values()].filter(({ card }) => !card.hidden);
    const boxes = visible.map(({ card }) => card.getBoundingClientRect());
    this.lines.replaceChildren(
      ...visible.map(({ card, dataset }, n) => {
        const read = dataset.side === "read";
        const y = boxes[n].top + boxes[n].height / 2 - frame.top;
        const middle = task.top + task.height / 2 - frame.top;
        const [x1, x2] = read
          ? [boxes[n].right - frame.left, task.left - frame.left]
          : [task.right - frame.left, boxes[n].left - frame.left];
        const [y1, y2] = read ? [y, middle] : [middle, y];
        const bend = (x1 + x2) / 2;
        const line = document.createElementNS(SVG, "path");
        line.setAttribute("d", `M${x1},${y1} C${bend},${y1} ${bend},${y2} ${x2},${y2}`);
        line.classList.toggle("lit", card.classList.contains("lit"));
        return line;
      })
    );
  }

  // Highlight these datasets; none if null.
  highlight(keys) {
    this.element.classList.toggle("choosing", keys !== null);
    this.cards.forEach(({ card, dataset }) =>
      card.classList.toggle("lit", keys !== null && keys.has(dataset.key))
    );
    const visible = [...this.cards.values()].filter(({ card }) => !card.hidden);
    [...this.lines.children].forEach((line, n) =>
      line.classList.toggle("lit", visible[n].card.classList.contains("lit"))
    );
  }
}

// --- partitions ----------------------------------------------------------------------------------

function badge(status) {
  return make(`span.badge.${STATUS.has(status) ? status : "other"}`, {}, STATUS.get(status) ?? status);
}

function partitions(model) {
  const rows = [...model.inputs, ...model.outputs].flatMap((dataset) =>
    dataset.checks
      .filter((check) => check.expected || check.observed || check.from.length)
      .map((check) =>
        make(
          "tr",
          {},
          make("td", {}, name(dataset.label)),
          make("td", {}, how(check, dataset.side)),
          make("td", {}, badge(check.status)),
          make("td", {}, name(check.expected)),
          make("td", {}, observed(check, dataset.part)),
          make("td", {}, ...origins(check.from))
        )
      )
  );
  if (!rows.length) return "";
  const titles = ["Dataset", "", "Status", "Expected", "Observed", "Expected because of"];
  return make(
    "section.partitions",
    { "aria-label": "Partitions" },
    make("h3", {}, "Partitions, expected and observed"),
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ...titles.map((title) => make("th", {}, title)))),
      make("tbody", {}, ...rows)
    )
  );
}

function how(check, side) {
  if (check.failed) return "was to be written";
  return check.unreported ? `${check.unreported.replaceAll("_", " ")} to be ${side}` : side;
}

function observed(check, part) {
  const cell = make("div", {}, name(check.observed || (check.status === "unobserved" ? "" : part)));
  if (check.planned) cell.append(make("div.facts", {}, `only planned: ${check.planned}`));
  if (check.unexpected) cell.append(make("div.unexpected", {}, `not expected: ${check.unexpected}`));
  if (check.missing) cell.append(make("div.missing", {}, `missing: ${check.missing}`));
  return cell;
}

function origins(sources) {
  const shown = sources.slice(0, FOLD).map(origin);
  const more = sources.length - shown.length;
  return more > 0 ? [...shown, make("div.facts", {}, `and ${more} more`)] : shown;
}

function origin(source) {
  const what = source.dimension ? `${source.dimension}=${source.value}` : source.value;
  const made = source.expressions.map((e) => `{{ ${e} }}`).join(" ") || "literal";
  return make(
    "div.origin",
    { title: source.template },
    name(what),
    " ← ",
    make("code", {}, name(made)),
    make("span.facts", {}, ` ${source.field}, ${source.kind}`)
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
