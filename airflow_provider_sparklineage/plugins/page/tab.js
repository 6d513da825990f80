// The tab "Spark lineage" on a task instance: Airflow imports this module and renders what it puts
// into globalThis.AirflowPlugin, with Airflow's own React.

import { make } from "./dom.js";
import { draw, showText } from "./view.js";

const HERE = new URL(".", import.meta.url);
const LOOK_AGAIN_MS = 5000; // while the task is not at its end
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
  showText(root, "Loading …");
  const tab = new Tab(root, task, ending.signal);
  styled.then(() => tab.show(null));
  return () => ending.abort();
}

class Tab {
  constructor(root, task, signal) {
    this.root = root;
    this.task = task;
    this.signal = signal;
    this.asked = 0;
    this.drawn = null; // { text: of the answer, view: of its event }
    signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  #urlOf(what, parameters = {}) {
    const { dagId, runId, taskId } = this.task;
    const url = new URL(`../api/dags/${encodeURIComponent(dagId)}/${what}`, HERE);
    // Airflow leaves it out, or its placeholder in, for tasks that are not mapped.
    const mapped = Number.parseInt(this.task.mapIndex, 10);
    const map_index = Number.isNaN(mapped) ? -1 : mapped;
    const query = { run_id: runId, task_id: taskId, map_index, ...parameters };
    Object.entries(query).forEach(([key, value]) => url.searchParams.set(key, value));
    return url;
  }

  #fetch(url) {
    return fetch(url, { signal: this.signal, credentials: "same-origin" });
  }

  // Show a try, the latest for null. What is shown already stays as it is until there is other.
  async show(tryNumber, isLookedForAgain = false) {
    clearTimeout(this.timer);
    const number = (this.asked += 1);
    const isCurrent = () => number === this.asked && !this.signal.aborted;
    const fail = (sentence) => {
      if (isLookedForAgain) this.#await(null, null, tryNumber);
      else this.#fail(sentence);
    };
    try {
      const which = tryNumber === null ? {} : { try_number: tryNumber };
      const response = await this.#fetch(this.#urlOf("lineage", which));
      const text = response.ok ? await response.text() : "";
      if (!isCurrent()) return;
      if (response.ok) this.#draw(text, tryNumber);
      else if (response.status in REFUSED) this.#fail(REFUSED[response.status]);
      else fail(`Airflow answered ${response.status}; see its log.`);
    } catch (error) {
      if (isCurrent()) fail(`The lineage cannot be shown (${error.message}).`);
    }
  }

  #fail(sentence) {
    this.drawn = null;
    showText(this.root, sentence);
  }

  #draw(text, tryNumber) {
    const answer = JSON.parse(text);
    if (text !== this.drawn?.text) {
      const [restore, state] = [scrollOf(this.root), this.drawn?.view?.state];
      const body = make("div");
      this.root.replaceChildren(this.#tools(answer) ?? "", body);
      this.drawn = { text, view: null };
      try {
        if (answer.event) this.drawn.view = draw(body, answer.event, answer.links ?? {}, state);
        else showText(body, answer.message);
      } catch (error) {
        showText(body, `The lineage cannot be shown (${error.message}).`);
      }
      restore();
    }
    if (!answer.has_ended) this.#await(answer.latest, answer.state, tryNumber);
  }

  // Look again until the task has gone on; a page that nobody looks at asks nothing.
  #await(latest, state, tryNumber) {
    const again = () => this.#await(latest, state, tryNumber);
    const number = this.asked;
    const look = async () => {
      if (document.hidden) return again();
      let now = null;
      try {
        const response = await this.#fetch(this.#urlOf("state"));
        if (response.status in REFUSED) return undefined;
        if (response.ok) now = await response.json();
      } catch {
        if (this.signal.aborted) return undefined;
      }
      if (number !== this.asked) return undefined; // another try was chosen meanwhile
      const isSame = now === null || (now.state === state && now.latest === latest);
      return isSame ? again() : this.show(tryNumber, true);
    };
    clearTimeout(this.timer);
    if (!this.signal.aborted) this.timer = setTimeout(look, LOOK_AGAIN_MS);
  }

  // Earlier tries, where the archive has some, and the document itself.
  #tools(answer) {
    const tools = [];
    if (answer.tries.length > 1) {
      const options = answer.tries.map((n) => {
        const option = make("option", { value: n }, n === answer.latest ? `${n} (latest)` : `${n}`);
        option.selected = n === answer.try_number;
        return option;
      });
      const select = make("select", {}, ...options);
      select.addEventListener("change", () => {
        const number = Number(select.value);
        this.show(number === answer.latest ? null : number);
      });
      tools.push(make("label", {}, "Try ", select));
    }
    if (answer.event) {
      const content = () => new Blob([JSON.stringify(answer.event, null, 2)], { type: "application/json" });
      const save = make("button", { type: "button" }, "Save as JSON");
      save.addEventListener("click", () => {
        const url = URL.createObjectURL(content());
        make("a", { href: url, download: `${this.task.taskId}.json` }).click();
        setTimeout(() => URL.revokeObjectURL(url), 1000);
      });
      tools.push(save);
    }
    if (answer.note) tools.push(make("span.facts", {}, answer.note));
    return tools.length ? make("nav.tries", {}, ...tools) : null;
  }
}

// How far what is around an element is scrolled; gives a function that scrolls there again.
function scrollOf(root) {
  const scrolled = [];
  for (let e = root.getRootNode().host; e; e = e.parentElement) {
    if (e.scrollTop) scrolled.push([e, e.scrollTop]);
  }
  return () => scrolled.forEach(([e, top]) => (e.scrollTop = top));
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
