// What the tab shows of a task instance: its lineage; or what is expected of it, and below the last
// run's lineage, greyed.

import { type ComponentProps, useEffect, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";

import { dateOf, shown as shownText } from "../shared/names";
import { adopt, followTheme } from "../shared/styles";
import { type Answer, type Ask, Asking, type LastRun, type Shown, type Task } from "./asking";
import { Lineage, useView } from "./Lineage";
import { expectedOf } from "./model";
import { Pending } from "./Partitions";
import css from "./task.css?inline";
import { Guard, Sentence } from "./Sentence";
import type { Rec } from "./values";

const HISTORY = new URL("plugin/spark-lineage-history", document.baseURI).href;

// Show the latest try in an element, which has a skeleton until there is an answer.
// first: the answer about the latest try, which is on its way
export function mount(main: HTMLElement, task: Task, ask: Ask, first: Promise<Response>, signal: AbortSignal) {
  adopt(main.getRootNode() as ShadowRoot, css);
  signal.addEventListener("abort", followTheme(main));
  const root = createRoot(main);
  signal.addEventListener("abort", () => root.unmount());
  const show = (shown: Shown) => root.render(<TaskTab shown={shown} task={task} asking={asking} />);
  const asking = new Asking(ask, signal, show, (isBusy) => main.setAttribute("aria-busy", String(isBusy)));
  void asking.begin(first);
}

function TaskTab({ shown, task, asking }: { shown: Shown; task: Task; asking: Asking }) {
  const [view, setView] = useView();
  if ("sentence" in shown) return <Sentence text={shown.sentence} />;
  const { answer } = shown;
  return (
    <>
      <Tools answer={answer} task={task} choose={asking.choose} />
      <Guard of={answer}>
        <Try answer={answer} task={task} view={view} setView={setView} askOthers={asking.others} />
      </Guard>
    </>
  );
}

interface TryProps extends Pick<ComponentProps<typeof Lineage>, "view" | "setView" | "askOthers"> {
  answer: Answer;
  task: Task;
}

// The lineage of this try and that of the last run have one place, so that what a person has made of
// the one stays for the other.
function Try({ answer, task, view, setView, askOthers }: TryProps) {
  const { event, expected } = answer;
  const last = event ? null : answer.last;
  const drawn = event ?? last?.event;
  const links = useMemo(() => (event ? { ...answer.links, history: HISTORY } : answer.last?.links ?? {}), [answer]);
  const title = last ? titleOf(last, answer, task) : undefined;
  return (
    <>
      {!event && <Sentence text={answer.message} />}
      {!event && expected && <Pending entries={expectedOf(expected)} unlisted={Number(expected.unlisted) || 0} />}
      {drawn && (
        <section className={last ? "last" : undefined} aria-label={title}>
          {last && <h3>{title}</h3>}
          <div className={last ? "greyed" : undefined}>
            <Lineage event={drawn} links={links} view={view} setView={setView} askOthers={event ? askOthers : undefined} />
          </div>
        </section>
      )}
    </>
  );
}

function titleOf(last: LastRun, answer: Answer, task: Task): string {
  const until = answer.has_ended ? "" : ", until this one has ended";
  if (last.run_id !== task.runId) return shownText(`Last run: ${last.date ? dateOf(last.date) : last.run_id}${until}`);
  if (last.map_index !== task.mapIndex) return `Mapped instance ${last.map_index} of this run${until}`;
  return `Try ${last.try_number} of this run${until}`;
}

// Earlier tries, where the archive has some, and the document itself.
function Tools({ answer, task, choose }: { answer: Answer; task: Task; choose: (tryNumber: number | null) => void }) {
  const { event, tries, latest, note } = answer;
  const [wanted, setWanted] = useState(answer.try_number);
  useEffect(() => setWanted(answer.try_number), [answer]);
  const change = (tryNumber: number) => {
    setWanted(tryNumber);
    choose(tryNumber === latest ? null : tryNumber);
  };
  if (tries.length < 2 && !event && !note) return null;
  return (
    <nav className="tries">
      {tries.length > 1 && (
        <label>
          {"Try "}
          <select value={wanted} onChange={({ target }) => change(Number(target.value))}>
            {tries.map((n) => <option key={n} value={n}>{n === latest ? `${n} (latest)` : n}</option>)}
          </select>
        </label>
      )}
      {event && <button type="button" onClick={() => save(event, task)}>Save as JSON</button>}
      {note && <span className="facts">{shownText(note)}</span>}
    </nav>
  );
}

function save(event: Rec, task: Task) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(event, null, 2)], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: url, download: `${task.taskId}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
