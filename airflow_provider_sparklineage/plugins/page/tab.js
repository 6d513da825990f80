// The tab "Spark lineage" on a task instance, and the page of that name in the navigation: Airflow
// imports this module and renders what it puts into globalThis.AirflowPlugin, with its own React.
//
// All else is loaded while a skeleton shows: a server under load takes seconds for each file.

const HERE = new URL(".", import.meta.url);
const loaded = import("./task.js");
loaded.catch(() => {}); // open() reports it

// Airflow keeps one component for each name, and the page in the navigation has the name of the tab.
globalThis.AirflowPlugin = function SparkLineage(props) {
  return globalThis.React.createElement(props.taskId ? SparkLineageTab : SparkLineagePage, props);
};

// The page of what many runs did: all of it is loaded when it is opened.
function SparkLineagePage() {
  const React = globalThis.React;
  const host = React.useRef(null);
  React.useEffect(() => openPage(host.current), []);
  return React.createElement("div", { ref: host, "data-sparklineage-page": "", style: { height: "100%", overflow: "auto" } });
}

function openPage(host) {
  let isWanted = true;
  let close = () => {};
  import(new URL("../history/page.js", HERE))
    .then(({ open: openHistory }) => openHistory(host, new URL("../api/history/", HERE)))
    .then(
      (ending) => (isWanted ? (close = ending) : ending()),
      () => (host.textContent = "The files of this page could not be loaded; load it anew.")
    );
  return () => {
    isWanted = false;
    close();
  };
}

function SparkLineageTab(props) {
  const React = globalThis.React;
  const host = React.useRef(null);
  const { dagId, runId, taskId, mapIndex } = props;
  React.useEffect(() => open(host.current, props), [dagId, runId, taskId, mapIndex]);
  return React.createElement("div", { ref: host, "data-sparklineage": "" });
}

// Show the latest try below an element; gives a function that ends what was begun.
function open(host, task) {
  // A shadow tree, because Airflow's style sheets take the look from headings and tables.
  const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const ending = new AbortController();
  const root = element("main", "sparklineage", ...skeleton());
  root.setAttribute("aria-busy", "true");
  const style = element("link", "");
  Object.assign(style, { rel: "stylesheet", href: new URL("page.css", HERE).href });
  shadow.adoptedStyleSheets = [SKELETON];
  const styled = new Promise((resolve) => {
    style.addEventListener("load", resolve);
    style.addEventListener("error", resolve);
  });
  shadow.replaceChildren(style, root);
  followTheme(root, ending.signal);
  loaded.then(
    ({ Tab }) => ending.signal.aborted || new Tab(root, task, ending.signal, styled).show(null),
    () => {
      root.setAttribute("aria-busy", "false");
      root.replaceChildren("The files of this tab could not be loaded; load the page anew.");
    }
  );
  return () => ending.abort();
}

// --- while nothing is there yet ------------------------------------------------------------------

// In a style sheet of its own, which is there before the page's.
const SKELETON = new CSSStyleSheet();
SKELETON.replaceSync(`
  :where(.sparklineage) { font: 14px/1.45 system-ui, sans-serif; padding: 12px 16px; }
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

function element(tag, name, ...children) {
  const made = document.createElement(tag);
  made.className = name;
  made.append(...children);
  return made;
}

// The page's form, before anything of it is known: two datasets in, the task, two datasets out.
function skeleton() {
  const sentence = element("p", "sentence", "Loading the lineage …");
  sentence.setAttribute("role", "status");
  const parts = ["title", "card", "task", "card", "card", "space", "card"];
  const blocks = element("div", "skeleton", ...parts.map((part) => element("i", part)));
  blocks.setAttribute("aria-hidden", "true");
  return [sentence, blocks];
}

// Airflow has its theme in a class of the document, and changes it without loading anew.
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
