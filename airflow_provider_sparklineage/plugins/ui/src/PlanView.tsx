// What to run again, of a partition or of all datasets: step by step, in the order in which data
// flows, cleared after confirmation.

import { type ReactNode, useEffect, useRef, useState } from "react";

import { type Api, clear, type Dataset, type Place, type Plan, type Step } from "./api";
import { useAnswer } from "./shared/asked";
import { Parted } from "./shared/Name";
import { counted, shown } from "./shared/names";
import { type Row, Table } from "./shared/Table";
import { Hidden } from "./PartitionView";
import { RunLink, RunName, textOfRun } from "./RunLink";

export function PlanView({ api, place }: { api: Api; place: Place }) {
  const { value, problem } = useAnswer((signal) => api.plan(place, signal), [place.column]);
  if (problem) return <p className="sentence" role="status">{problem}</p>;
  if (!value) return <p className="sentence" role="status">Looking for what depends on it …</p>;
  const { refresh, impact } = value;
  const isStale = refresh.steps.length + refresh.by_hand.length + refresh.hidden > 0;
  return (
    <>
      {isStale && <Steps title="To make it fresh" plan={refresh} />}
      <Steps title="What was made of it, to run again after it was corrected" plan={impact} />
    </>
  );
}

// As many as an address has room for, if names are long.
const MOST_LETTERS = 6000;

export function PlanOfRange({ api, dataset, spans, version }: { api: Api; dataset: Dataset; spans: [string, string][]; version: unknown }) {
  const isLong = spans.join().length > MOST_LETTERS;
  const ask = async (signal: AbortSignal) => (isLong || !spans.length ? null : api.planOfSpans(dataset, spans, signal));
  const { value, problem, isAsked } = useAnswer(ask, [spans.join("\n"), version]);
  if (isLong) return <p className="sentence" role="status">Too many partitions are stale in this range; choose a shorter one.</p>;
  if (problem) return <p className="sentence" role="status">{problem}</p>;
  if (isAsked) return <p className="sentence" role="status">Looking for what has to run again …</p>;
  return <Steps title="To run again, so that nothing in this range is stale" plan={value?.refresh ?? NOTHING} />;
}

const NOTHING: Plan = { steps: [], by_hand: [], hidden: 0, left_out: 0 };

export function PlanOfAll({ api, version }: { api: Api; version: unknown }) {
  const { value, problem } = useAnswer((signal) => api.planOfAll(signal), [version], true);
  if (problem) return <p className="sentence" role="status">{problem}</p>;
  if (!value) return <p className="sentence" role="status">Looking for what has to run again …</p>;
  return (
    <>
      <Steps title="To run again, so that nothing is stale and nothing due is unwritten" plan={value} />
      <p className="facts">
        Not in it: mismatched partitions and failed writes, which the same run would make again, unless they are due; and missing partitions, which
        were removed. Open the dataset to see why.
      </p>
    </>
  );
}

const TITLES = ["Run again", "Task instance", "Because of"];
const WIDTHS = "72px 1fr 1fr";

// How the clearing of a step went.
interface Outcome {
  text: string;
  isDone: boolean; // it cannot be cleared any more
}

function Steps({ title, plan }: { title: string; plan: Plan }) {
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set()); // runs that are not to be cleared
  const [outcomes, setOutcomes] = useState<ReadonlyMap<number, Outcome>>(new Map());
  const [asked, setAsked] = useState<{ name: string; wave: number; wanted: Step[] } | null>(null);
  const waves = [...Map.groupBy(plan.steps, ({ wave }) => wave)].sort(([one], [other]) => one - other);
  const toggle = (id: string) => {
    const next = new Set(left);
    if (!next.delete(id)) next.add(id);
    setLeft(next);
  };
  const confirm = async (wave: number, wanted: Step[]) => {
    const note = (outcome: Outcome) => setOutcomes((before) => new Map(before).set(wave, outcome));
    note({ text: `Clearing ${counted(wanted.length, "task instance")} …`, isDone: true });
    const { cleared, problems } = await clearAll(wanted);
    note({ text: [`Cleared ${counted(cleared, "task instance")}.`, ...problems].join(" "), isDone: !problems.length });
  };
  const rows = waves.flatMap(([wave, steps], n): Row[] => {
    const name = `Step ${n + 1}`;
    const canClear = steps.some(({ may_clear }) => may_clear);
    const { text = "", isDone = false } = outcomes.get(wave) ?? {};
    const wanted = steps.filter(({ run, may_clear }) => may_clear && !left.has(run.run_id));
    const heading = () => [
      <>
        {waves.length > 1 && <strong>{name}</strong>}
        {canClear && (
          <button type="button" className="act" disabled={!wanted.length || isDone} onClick={() => setAsked({ name, wave, wanted })}>
            Clear {counted(wanted.length, "task instance")} …
          </button>
        )}
        <span role="status">{text}</span>
      </>,
    ];
    const choice = ({ run, may_clear }: Step) => (
      <input type="checkbox" aria-label={`Clear ${textOfRun(run)}`} disabled={!may_clear || isDone}
        checked={may_clear && !left.has(run.run_id)} onChange={() => toggle(run.run_id)} />
    );
    const headings = waves.length > 1 || canClear ? [{ key: name, isHeading: true, cells: heading }] : [];
    return [...headings, ...steps.map((step) => rowOf(step, choice))];
  });
  if (plan.by_hand.length) {
    rows.push({ key: "by hand", isHeading: true, cells: () => [<strong>Not run by Airflow: run again by hand</strong>] });
    rows.push(...plan.by_hand.map((step) => rowOf(step)));
  }
  return (
    <section className="plan" aria-label={title}>
      <h4>{title}</h4>
      {!rows.length && !plan.hidden && <p>Nothing has to run again.</p>}
      {waves.length > 1 && (
        <p className="facts">Airflow starts all that is cleared at once: clear the next step when the one before it has ended.</p>
      )}
      {rows.length > 0 && <Table label={title} titles={TITLES} widths={WIDTHS} rows={rows} />}
      {Boolean(plan.more) && <p className="facts">and {counted(plan.more ?? 0, "later task instance")}: run these first</p>}
      <Hidden count={plan.hidden} />
      {plan.left_out > 0 && (
        <p className="facts" role="status">Not judged: there was no time to look in {counted(plan.left_out, "dataset")} for partitions that were never written. The command “airflow sparklineage impact --plan” takes more time.</p>
      )}
      {asked && <Confirmation {...asked} cancel={() => setAsked(null)} confirm={() => void confirm(asked.wave, asked.wanted)} />}
    </section>
  );
}

// choice: whether to clear it; none for what Airflow does not run.
function rowOf(step: Step, choice?: (step: Step) => ReactNode): Row {
  const { run, reasons, may_clear, is_elsewhere, is_certain } = step;
  return {
    key: run.run_id,
    cells: () => [
      choice?.(step),
      <>
        <RunLink run={run} />
        {choice && is_elsewhere && <span className="facts"> Another Airflow ran it; clear it there.</span>}
        {choice && !may_clear && !is_elsewhere && <span className="facts"> You may not clear it.</span>}
        {!is_certain && <span className="facts"> Perhaps: something of this is assumed.</span>}
      </>,
      <><Parted text={reasons.slice(0, REASONS).join("; ")} />{reasons.length > REASONS && ` and ${reasons.length - REASONS} more`}</>,
    ],
  };
}

const [REASONS, LISTED] = [3, 20];

interface Asked {
  name: string; // of the step
  wanted: Step[];
  cancel: () => void;
  confirm: () => void;
}

function Confirmation({ name, wanted, cancel, confirm }: Asked) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={`Clear ${name.toLowerCase()}`} onClose={cancel}>
      <p>Airflow will run {counted(wanted.length, "task instance")} again:</p>
      <ul>{wanted.slice(0, LISTED).map(({ run }) => <li key={run.run_id}><RunName run={run} /> <span className="facts">{shown(run.dag_run_id ?? "")}</span></li>)}</ul>
      {wanted.length > LISTED && <p>and {wanted.length - LISTED} more</p>}
      <div className="tools">
        <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
        <button type="button" className="act" onClick={() => { dialog.current?.close(); confirm(); }}>Clear</button>
      </div>
    </dialog>
  );
}

// One request for each DAG run; what one refuses does not keep the others from being cleared.
async function clearAll(steps: Step[]): Promise<{ cleared: number; problems: string[] }> {
  const problems: string[] = [];
  let cleared = 0;
  for (const of of Map.groupBy(steps, ({ run }) => JSON.stringify([run.dag_id, run.dag_run_id])).values()) {
    const { dag_id, dag_run_id } = of[0]!.run;
    const tasks = of.map(({ run }): string | [string, number] =>
      run.map_index !== null && run.map_index >= 0 ? [run.task_id ?? "", run.map_index] : (run.task_id ?? "")
    );
    try {
      await clear(dag_id ?? "", dag_run_id ?? "", tasks);
      cleared += of.length;
    } catch (error) {
      problems.push(`${shown(`${dag_id} ${dag_run_id}`)}: ${(error as Error).message}`);
    }
  }
  return { cleared, problems };
}
