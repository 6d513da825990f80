// The tab "Spark lineage" on a task instance: Airflow imports this module and renders what it puts
// into globalThis.AirflowPlugin, with Airflow's own React.

import { make } from "./dom.js";
import { draw, say } from "./view.js";

const HERE = new URL(".", import.meta.url);
const REFUSED = {
  401: "Your session has ended; log in to see the lineage of this task.",
  403: "You may not see the lineage of this DAG; ask for access to the DAG and to its XComs.",
};

globalThis.AirflowPlugin = function SparkLineageTab(props) {
  const React = globalThis.React;
  const host = React.useRef(null);
  const { dagId, runId, taskId, mapIndex } = props;
  React.useEffect(() => open(host.current, props), [dagId, runId, taskId, mapIndex]);
  return React.createElement("div", { ref: host, "data-sparklineage": "" });
};

// Show the latest try below an element; gives a function that ends what was begun.
function open(host, task) {
  // A shadow tree, because Airflow's style sheets take the look from headings and tables.
  const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const ending = new AbortController();
  const root = make("main.sparklineage");
  const style = make("link", { rel: "stylesheet", href: new URL("page.css", HERE).href });
  shadow.replaceChildren(style, root);
  followTheme(root, ending.signal);
  const styled = new Promise((resolve) => {
    style.addEventListener("load", resolve);
    style.addEventListener("error", resolve);
  });
  say(root, "Loading …");
  styled.then(() => show(root, task, null, ending.signal));
  return () => ending.abort();
}

async function show(root, task, tryNumber, signal) {
  const address = new URL(`../api/dags/${encodeURIComponent(task.dagId)}/lineage`, HERE);
  address.searchParams.set("run_id", task.runId);
  address.searchParams.set("task_id", task.taskId);
  // Airflow leaves it out, or its placeholder in, for tasks that are not mapped.
  const mapIndex = Number.parseInt(task.mapIndex, 10);
  address.searchParams.set("map_index", Number.isNaN(mapIndex) ? -1 : mapIndex);
  if (tryNumber !== null) address.searchParams.set("try_number", tryNumber);
  try {
    const response = await fetch(address, { signal, credentials: "same-origin" });
    if (signal.aborted) return;
    if (!response.ok) {
      say(root, REFUSED[response.status] ?? `Airflow answered ${response.status}; see its log.`);
      return;
    }
    const answer = await response.json();
    const body = make("div");
    root.replaceChildren(tries(root, task, answer, signal) ?? "", body);
    if (answer.event) draw(body, answer.event, answer.links ?? {});
    else say(body, answer.message);
  } catch (error) {
    if (!signal.aborted) say(root, `The lineage cannot be shown (${error.message}).`);
  }
}

// Earlier tries, where the archive has some, and the document itself.
function tries(root, task, answer, signal) {
  const tools = [];
  if (answer.tries.length > 1) {
    const options = answer.tries.map((n) => {
      const option = make("option", { value: n }, n === answer.latest ? `${n} (latest)` : `${n}`);
      option.selected = n === answer.try_number;
      return option;
    });
    const select = make("select", {}, ...options);
    select.addEventListener("change", () => show(root, task, select.value, signal));
    tools.push(make("label", {}, "Try ", select));
  }
  if (answer.event) {
    const content = new Blob([JSON.stringify(answer.event, null, 2)], { type: "application/json" });
    const save = make("button", { type: "button" }, "Save as JSON");
    save.addEventListener("click", () => {
      const address = URL.createObjectURL(content);
      make("a", { href: address, download: `${task.taskId}.json` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
    tools.push(save);
  }
  if (answer.note) tools.push(make("span.facts", {}, answer.note));
  return tools.length ? make("nav.tries", {}, ...tools) : null;
}

// Airflow says its theme in a class of the document, and changes it without loading anew.
function followTheme(root, signal) {
  const page = document.documentElement;
  const follow = () => {
    root.dataset.theme = page.classList.contains("dark") ? "dark" : "light";
  };
  follow();
  const observer = new MutationObserver(follow);
  observer.observe(page, { attributes: true, attributeFilter: ["class"] });
  signal.addEventListener("abort", () => observer.disconnect());
}
