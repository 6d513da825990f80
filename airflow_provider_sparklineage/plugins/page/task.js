// What the tab shows of a task instance: it asks Airflow for its lineage, and again while it goes on.

import { make } from "./dom.js";
import { draw, showText } from "./view.js";
import { drawWaiting } from "./waiting.js";

const HERE = new URL(".", import.meta.url);
const HISTORY = new URL("plugin/spark-lineage-history", document.baseURI).href;
const LOOK_AGAIN_MS = 5000; // while the task is not at its end
const REFUSED = {
  401: "Your session has ended; log in to see the lineage of this task.",
  403: "You may not see the lineage of this DAG; ask for access to the DAG and to its XComs.",
};

// A task instance in an element.
// styled: a promise of the page's style sheet
export class Tab {
  constructor(root, task, signal, styled) {
    this.root = root;
    // Airflow leaves it out, or its placeholder in, for tasks that are not mapped.
    const mapped = Number.parseInt(task.mapIndex, 10);
    this.task = { ...task, mapIndex: Number.isNaN(mapped) ? -1 : mapped };
    this.signal = signal;
    this.styled = styled;
    this.asked = 0;
    this.drawn = null; // { text: of the answer, view: of its event }
    this.chosen = null; // the state of the last view
    signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  #urlOf(what, parameters = {}) {
    const { dagId, runId, taskId, mapIndex } = this.task;
    const url = new URL(`../api/dags/${encodeURIComponent(dagId)}/${what}`, HERE);
    const query = { run_id: runId, task_id: taskId, map_index: mapIndex, ...parameters };
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
      if (isLookedForAgain) this.#await(null, tryNumber);
      else this.#fail(sentence);
    };
    if (!isLookedForAgain) this.root.setAttribute("aria-busy", "true");
    try {
      const which = tryNumber === null ? {} : { try_number: tryNumber };
      const response = await this.#fetch(this.#urlOf("lineage", which));
      const text = response.ok ? await response.text() : "";
      await this.styled;
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
    this.root.setAttribute("aria-busy", "false");
    showText(this.root, sentence);
  }

  #draw(text, tryNumber) {
    const answer = JSON.parse(text);
    this.root.setAttribute("aria-busy", "false");
    if (text !== this.drawn?.text) {
      const restore = scrollOf(this.root);
      const state = (this.chosen = this.drawn?.view?.state ?? this.chosen);
      const body = make("div");
      this.root.replaceChildren(this.#tools(answer) ?? "", body);
      this.drawn = { text, view: null };
      try {
        this.drawn.view = answer.event
          ? draw(body, answer.event, { ...answer.links, history: HISTORY }, state)
          : drawWaiting(body, answer, this.task, state);
      } catch (error) {
        showText(body, `The lineage cannot be shown (${error.message}).`);
      }
      restore();
      if (answer.event) this.#addOtherRuns(this.drawn.view?.strips);
    }
    if (!answer.has_ended) this.#await(answer, tryNumber);
  }

  // Ask what other runs accessed, once all else is drawn: the archive may be slow.
  async #addOtherRuns(strips) {
    if (!strips) return;
    try {
      const response = await this.#fetch(this.#urlOf("partitions"));
      if (!response.ok) throw new Error(`Airflow answered ${response.status}`);
      const { datasets, runs, note } = await response.json();
      strips.add(datasets, note || `Other runs that are known: ${runs}.`);
    } catch (error) {
      if (!this.signal.aborted) strips.add([], `Other runs are not shown (${error.message}).`);
    }
  }

  // Look again until the task has gone on; a page that nobody looks at asks nothing.
  // known: how far it was; null if that is not known
  #await(known, tryNumber) {
    const again = () => this.#await(known, tryNumber);
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
      const isSame = ["state", "latest", "expected_at"].every((key) => now?.[key] === known?.[key]);
      return now === null || isSame ? again() : this.show(tryNumber, true);
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
