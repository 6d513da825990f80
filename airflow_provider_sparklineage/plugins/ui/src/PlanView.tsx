// What to run again, of a partition or of all datasets: step by step, in the order in which data
// flows, cleared after confirmation.

import { useEffect, useRef, useState } from "react";

import { type Api, clear, type Dataset, type Place, type Plan, type Step } from "./api";
import { useAnswer } from "./shared/asked";
import { Parted } from "./shared/Name";
import { counted, shown } from "./shared/names";
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
        Not in it: mismatched partitions, which the same run would make again, and missing ones, which were removed. Open the dataset to see why.
      </p>
    </>
  );
}

function Steps({ title, plan }: { title: string; plan: Plan }) {
  const waves = Map.groupBy(plan.steps, ({ wave }) => wave);
  return (
    <section className="plan" aria-label={title}>
      <h4>{title}</h4>
      {!plan.steps.length && !plan.by_hand.length && !plan.hidden && <p>Nothing has to run again.</p>}
      {waves.size > 1 && (
        <p className="facts">Airflow starts all that is cleared at once: clear the next step when the one before it has ended.</p>
      )}
      {[...waves.entries()].sort(([one], [other]) => one - other).map(([wave, steps], n) => (
        <Wave key={wave} title={`Step ${n + 1}`} isOnly={waves.size === 1} steps={steps} shown={Math.max(2, Math.floor(ROWS / waves.size))} />
      ))}
      {plan.by_hand.length > 0 && (
        <>
          <h5>Not run by Airflow: run again by hand</h5>
          <ul>
            {plan.by_hand.slice(0, SHOWN).map((step) => (
              <li key={step.run.run_id}><RunLink run={step.run} /> <bdi className="facts">{shown(step.reasons[0] ?? "")}</bdi></li>
            ))}
          </ul>
          {plan.by_hand.length > SHOWN && <p className="facts">and {counted(plan.by_hand.length - SHOWN, "other run")}</p>}
        </>
      )}
      {Boolean(plan.more) && <p className="facts">and {counted(plan.more ?? 0, "later task instance")}: run these first</p>}
      <Hidden count={plan.hidden} />
      {plan.left_out > 0 && (
        <p className="facts" role="status">Not judged: there was no time to look in {counted(plan.left_out, "dataset")} for partitions that were never written. The command “airflow sparklineage impact --plan” takes more time.</p>
      )}
    </section>
  );
}

// Rows of all steps together, and of what is run by hand: the page has a thousand elements.
const [ROWS, SHOWN] = [24, 10];

function Wave({ title, isOnly, steps, shown: most }: { title: string; isOnly: boolean; steps: Step[]; shown: number }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [all, setAll] = useState(false);
  const [isAsked, setAsked] = useState(false); // whether the dialog is open, which is empty else
  const [result, setResult] = useState("");
  const [isDone, setDone] = useState(false);
  const wanted = steps.filter(({ run, may_clear }) => may_clear && !left.has(run.run_id));
  useEffect(() => {
    if (isAsked) dialog.current?.showModal();
  }, [isAsked]);
  const toggle = (id: string) => {
    const next = new Set(left);
    if (!next.delete(id)) next.add(id);
    setLeft(next);
  };
  const confirm = async () => {
    dialog.current?.close();
    setDone(true);
    setResult(`Clearing ${counted(wanted.length, "task instance")} …`);
    const { cleared, problems } = await clearAll(wanted);
    setResult([`Cleared ${counted(cleared, "task instance")}.`, ...problems].join(" "));
    setDone(problems.length === 0);
  };
  return (
    <section className="wave" aria-label={title}>
      {!isOnly && <h5>{title}</h5>}
      <table>
        <thead><tr><th>Run again</th><th>Task instance</th><th>Because of</th></tr></thead>
        <tbody>
          {(all ? steps : steps.slice(0, most)).map(({ run, reasons, may_clear, is_elsewhere, is_certain }) => (
            <tr key={run.run_id}>
              <td>
                <input type="checkbox" aria-label={`Clear ${textOfRun(run)}`} disabled={!may_clear || isDone}
                  checked={may_clear && !left.has(run.run_id)} onChange={() => toggle(run.run_id)} />
              </td>
              <td><RunLink run={run} />
                {is_elsewhere && <span className="facts"> Another Airflow ran it; clear it there.</span>}
                {!may_clear && !is_elsewhere && <span className="facts"> You may not clear it.</span>}
                {!is_certain && <span className="facts"> Perhaps: something of this is assumed.</span>}
              </td>
              <td><Parted text={reasons.slice(0, 3).join("; ")} />{reasons.length > 3 && ` and ${reasons.length - 3} more`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {!all && steps.length > most && <button type="button" onClick={() => setAll(true)}>Show all {steps.length.toLocaleString("en")}</button>}
      <p>
        {steps.some(({ may_clear }) => may_clear) && (
          <button type="button" className="act" disabled={!wanted.length || isDone} onClick={() => setAsked(true)}>
            Clear {counted(wanted.length, "task instance")} …
          </button>
        )}{" "}
        <span role="status">{result}</span>
      </p>
      <dialog ref={dialog} aria-label={`Clear ${title.toLowerCase()}`} onClose={() => setAsked(false)}>
        {isAsked && (
          <>
            <p>Airflow will run {counted(wanted.length, "task instance")} again:</p>
            <ul>{wanted.slice(0, 20).map(({ run }) => <li key={run.run_id}><RunName run={run} /> <span className="facts">{shown(run.dag_run_id ?? "")}</span></li>)}</ul>
            {wanted.length > 20 && <p>and {wanted.length - 20} more</p>}
            <div className="tools">
              <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
              <button type="button" className="act" onClick={() => void confirm()}>Clear</button>
            </div>
          </>
        )}
      </dialog>
    </section>
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
