// What the tab shows of a task instance: its lineage; or what is expected of it, and below the last
// run's lineage, greyed. Its state is in the page's address: the try, and the column that is chosen.

import { type ComponentProps, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";

import { enterParts, followAddress, tabOf } from "../shared/address";
import { Link } from "../shared/Name";
import { dateOf, shown as shownText } from "../shared/names";
import { adopt, followTheme } from "../shared/styles";
import { type Answer, type Ask, Asking, type LastRun, type Shown, type Task } from "./asking";
import type { Choice } from "./Columns";
import { placeOf } from "./Flow";
import { Header, Lineage, Missing, USUAL, useModel, type View } from "./Lineage";
import { expectedOf } from "./model";
import { Pending } from "./Partitions";
import css from "./task.css?inline";
import { Guard, Sentence } from "./Sentence";
import { keyOf, list, type Rec } from "./values";

type TryInAddress = () => number | null;

// Show a try in an element, which has a skeleton until there is an answer.
// first: the answer about the try of the page's address, which is on its way
export function mount(
  main: HTMLElement, task: Task, ask: Ask, first: Promise<Response>, signal: AbortSignal, tryInAddress: TryInAddress
) {
  adopt(main.getRootNode() as ShadowRoot, css);
  signal.addEventListener("abort", followTheme(main));
  const root = createRoot(main);
  signal.addEventListener("abort", () => root.unmount());
  const show = (shown: Shown) => // at once, as `main` is busy until then
    flushSync(() => root.render(<TaskTab shown={shown} task={task} asking={asking} tryInAddress={tryInAddress} />));
  const asking = new Asking(ask, signal, show, (isBusy) => main.setAttribute("aria-busy", String(isBusy)));
  void asking.begin(tryInAddress(), first);
}

interface TabProps {
  shown: Shown;
  task: Task;
  asking: Asking;
  tryInAddress: TryInAddress;
}

function TaskTab({ shown, task, asking, tryInAddress }: TabProps) {
  const [view, setView] = useAddressed(asking, tryInAddress);
  if ("sentence" in shown) return <Sentence text={shown.sentence} />;
  const { answer } = shown;
  const choose = (tryNumber: number | null) => {
    void asking.choose(tryNumber);
    enterParts({ try_number: String(tryNumber ?? "") });
  };
  const tools = <Tools answer={answer} task={task} choose={choose} />;
  return (
    <Guard of={answer} tools={tools}>
      <Try answer={answer} task={task} view={view} setView={setView} askOthers={asking.others} tools={tools} />
    </Guard>
  );
}

// What a person has made of the tab; the column that is chosen is that of the page's address.
function useAddressed(asking: Asking, tryInAddress: TryInAddress): [View, (change: (before: View) => View) => void] {
  const [view, draw] = useState(() => ({ ...USUAL, choice: choiceInAddress() }));
  const latest = useRef<View>(view);
  const show = (next: View) => {
    latest.current = next;
    draw(next);
  };
  useEffect(() => followAddress(() => {
    const [choice, tryNumber] = [choiceInAddress(), tryInAddress()];
    if (!isSame(choice, latest.current.choice)) show({ ...latest.current, choice });
    if (tryNumber !== asking.wanted) void asking.choose(tryNumber);
  }), []);
  const setView = (change: (before: View) => View) => {
    const before = latest.current;
    show(change(before));
    const { choice } = latest.current;
    if (!isSame(choice, before.choice)) enterParts(choice ? partsOf(choice) : NO_PARTS);
  };
  return [view, setView];
}

// The parts of the address that name a column, as those of the page of the history do.
const NO_PARTS = { side: "", namespace: "", name: "", column: "" };

function partsOf({ side, dataset, column }: Choice): typeof NO_PARTS {
  const [namespace, name] = list(JSON.parse(dataset)).map(String);
  return { side, namespace: namespace ?? "", name: name ?? "", column };
}

function choiceInAddress(): Choice | null {
  const query = new URLSearchParams(window.location.search);
  const [side, namespace, name, column] = Object.keys(NO_PARTS).map((key) => query.get(key) ?? "");
  if (!column || (side !== "from" && side !== "to")) return null;
  return { side, dataset: keyOf({ namespace, name }), column };
}

const isSame = (one: Choice | null, other: Choice | null): boolean =>
  JSON.stringify(one && partsOf(one)) === JSON.stringify(other && partsOf(other));

interface TryProps extends Pick<ComponentProps<typeof Lineage>, "view" | "setView" | "askOthers"> {
  answer: Answer;
  task: Task;
  tools: ReactNode;
}

// The lineage of this try and that of the last run have one place, so that what a person has made of
// the one stays for the other.
function Try({ answer, task, view, setView, askOthers, tools }: TryProps) {
  const { event, expected, last, message } = answer;
  const hasOther = !event || expected !== null || last !== null; // nothing of this try is to be drawn
  const own = useModel(event);
  const other = useModel(hasOther ? last?.event ?? null : null);
  const drawn = hasOther ? other : own;
  const mapped = !own && task.mapIndex >= 0 ? `Map index ${task.mapIndex}. ` : "";
  const links = useMemo(() => ({ ...(hasOther ? last?.links : answer.links), isInAirflow: true }), [answer]);
  const title = hasOther && last ? titleOf(last, answer, task) : undefined;
  return (
    <>
      <div className="top">
        <div>
          {own && <Header model={own} mapIndex={task.mapIndex} />}
          {message && <Sentence text={`${mapped}${message}`} />}
        </div>
        {tools}
      </div>
      {own && hasOther && <Missing model={own} />}
      {expected && <Pending entries={expectedOf(expected)} unlisted={Number(expected.unlisted) || 0} />}
      {drawn && (
        <section className={title && "last"} aria-label={title}>
          {title && last && <h3><Link url={tabOfLast(last, task)}>{title}</Link></h3>}
          <div className={title && "greyed"}>
            {title && last && <Header model={drawn} mapIndex={last.map_index} />}
            <Lineage model={drawn} links={links} view={view} setView={setView} askOthers={title ? undefined : askOthers} />
          </div>
        </section>
      )}
    </>
  );
}

const tabOfLast = (last: LastRun, task: Task): string =>
  tabOf({ ...task, runId: last.run_id, mapIndex: last.map_index }, last.try_number);

function titleOf(last: LastRun, answer: Answer, task: Task): string {
  const until = answer.has_ended ? "" : ", until this one has ended";
  if (last.run_id !== task.runId) return shownText(`Last run: ${last.date ? dateOf(last.date) : last.run_id}${until}`);
  if (last.map_index !== task.mapIndex) return `Mapped instance ${last.map_index} of this run${until}`;
  return `Try ${last.try_number} of this run${until}`;
}

// Earlier tries, where the archive has some, the document itself, and where the lineage backend has it.
function Tools({ answer, task, choose }: { answer: Answer; task: Task; choose: (tryNumber: number | null) => void }) {
  const { event, latest, note } = answer;
  const links = answer.links.job ? answer.links : answer.last?.links ?? {};
  const tries = [...new Set([...answer.tries, answer.try_number])].sort((one, other) => one - other);
  const [wanted, setWanted] = useState(answer.try_number);
  useEffect(() => setWanted(answer.try_number), [answer]);
  const change = (tryNumber: number) => {
    setWanted(tryNumber);
    choose(tryNumber === latest ? null : tryNumber);
  };
  if (tries.length < 2 && !event && !note && !links.job) return null;
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
      <Link url={links.job}>{placeOf(links)}</Link>
      {note && <span className="facts">{shownText(note)}</span>}
    </nav>
  );
}

function save(event: Rec, task: Task) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(event, null, 2)], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: url, download: `${task.taskId}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
