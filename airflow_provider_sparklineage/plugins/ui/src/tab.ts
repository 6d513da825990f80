// The tab "Spark lineage" on a task instance, and the page "Lineage" in the navigation: Airflow imports
// this module and renders the components that it puts into globalThis, with its own React.
//
// It is small and needs no other file to show a skeleton, while the rest and the answer are asked for
// at the same time: a server under load takes seconds for each.

import type * as AirflowReact from "react";

import type { Ask, Task } from "./task/asking";

interface Props {
  dagId?: string;
  runId?: string;
  taskId?: string;
  mapIndex?: string;
}

const airflow = globalThis as unknown as { React: typeof AirflowReact } & Record<string, (props: Props) => unknown>;
// Not the URL of an asset, for which the bundler would take it if it stood in the call.
const HERE = import.meta.url;
const API = new URL("../api/", HERE);

// Airflow renders the component that has the name of the entry. It imports a module for each entry, but
// a browser runs a module once, so that both names are set.
airflow["Spark lineage"] = SparkLineageTab;
airflow["Lineage"] = SparkLineagePage;

// The page of what many runs did: all of it is loaded when it is opened.
function SparkLineagePage() {
  const React = airflow.React;
  const host = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => (host.current ? openPage(host.current) : undefined), []);
  return React.createElement("div", { ref: host, "data-sparklineage-page": "", style: { height: "100%", overflow: "auto" } });
}

function openPage(host: HTMLElement): () => void {
  let isWanted = true;
  let close = () => {};
  import("./main")
    .then(({ mount }) => mount(host, new URL("history/", API)))
    .then(
      (ending) => (isWanted ? (close = ending) : ending()),
      () => (host.textContent = "The files of this page could not be loaded; load it anew.")
    );
  return () => {
    isWanted = false;
    close();
  };
}

function SparkLineageTab(props: Props) {
  const React = airflow.React;
  const host = React.useRef<HTMLDivElement>(null);
  const { dagId = "", runId = "", taskId = "", mapIndex } = props;
  React.useEffect(() => {
    // Airflow leaves it out, or its placeholder in, for tasks that are not mapped.
    const mapped = Number.parseInt(mapIndex ?? "", 10);
    const task = { dagId, runId, taskId, mapIndex: Number.isNaN(mapped) ? -1 : mapped };
    return host.current ? openTab(host.current, task) : undefined;
  }, [dagId, runId, taskId, mapIndex]);
  return React.createElement("div", { ref: host, "data-sparklineage": "" });
}

// The try that the page's address names, as Airflow's own pages do; null for the latest.
function tryInAddress(): number | null {
  const found = new URLSearchParams(window.location.search).get("try_number") ?? "";
  return /^[1-9]\d{0,8}$/.test(found) ? Number(found) : null;
}

// Show a try below an element; gives a function that ends what was begun.
function openTab(host: HTMLElement, task: Task): () => void {
  const ending = new AbortController();
  const ask: Ask = (what, query = {}) => {
    const url = new URL(`dags/${encodeURIComponent(task.dagId)}/${what}`, API);
    const of = { run_id: task.runId, task_id: task.taskId, map_index: String(task.mapIndex) };
    url.search = new URLSearchParams({ ...of, ...query }).toString();
    return fetch(url, { signal: ending.signal, credentials: "same-origin" });
  };
  // A shadow tree, because Airflow's style sheets take the look from headings and tables.
  const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const main = element("main", "sparklineage", ...skeleton());
  main.setAttribute("aria-busy", "true");
  shadow.adoptedStyleSheets = [SKELETON];
  shadow.replaceChildren(main);
  const tryNumber = tryInAddress();
  const first = ask("lineage", tryNumber === null ? {} : { try_number: String(tryNumber) });
  first.catch(() => {}); // it is reported once the files are there
  import("./task/TaskTab").then(
    ({ mount }) => ending.signal.aborted || mount(main, task, ask, first, ending.signal, tryInAddress),
    () => {
      main.setAttribute("aria-busy", "false");
      main.replaceChildren("The files of this tab could not be loaded; load the page anew.");
    }
  );
  return () => ending.abort();
}

// --- while nothing is there yet ------------------------------------------------------------------

// In a style sheet of its own, which is there before the others.
const SKELETON = new CSSStyleSheet();
SKELETON.replaceSync(`
  :where(.sparklineage) { font: 14px/1.45 var(--chakra-fonts-body, sans-serif); padding: 12px 16px; }
  .skeleton { display: grid; grid-template-columns: 1fr 160px 1fr; gap: 10px 40px; align-items: center; }
  .skeleton i { display: block; height: 72px; border-radius: 8px; background: currentColor; opacity: 0.12; }
  .skeleton i.title { grid-column: 1 / -1; height: 22px; width: 40%; }
  .skeleton i.task { height: 40px; }
  .skeleton i.space { visibility: hidden; }
  @media (prefers-reduced-motion: no-preference) {
    .skeleton { animation: skeleton 1.2s ease-in-out infinite alternate; }
    @keyframes skeleton { from { opacity: 1; } to { opacity: 0.45; } }
  }
`);

function element(tag: string, name: string, ...children: (string | Node)[]): HTMLElement {
  const made = document.createElement(tag);
  made.className = name;
  made.append(...children);
  return made;
}

// The page's form, before anything of it is known: two datasets in, the task, two datasets out.
function skeleton(): HTMLElement[] {
  const sentence = element("p", "sentence", "Loading the lineage …");
  sentence.setAttribute("role", "status");
  const parts = ["title", "card", "task", "card", "card", "space", "card"];
  const blocks = element("div", "skeleton", ...parts.map((part) => element("i", part)));
  blocks.setAttribute("aria-hidden", "true");
  return [sentence, blocks];
}
