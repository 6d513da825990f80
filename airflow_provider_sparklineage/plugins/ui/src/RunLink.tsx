// A run by the name of its task, then that of its DAG, linked to where Airflow shows it. Where space
// is short, the DAG's name is shortened first: the tasks are what differs in a DAG.

import { pageOf, type Run } from "./api";
import { Parted } from "./shared/Name";
import { shown } from "./shared/names";

// The task by its own name, and the DAG; a job of another producer by all of its name.
export function namesOf(run: Run): { task: string; dag: string } {
  if (!run.dag_id || !run.task_id) return { task: run.job ?? run.run_id, dag: "" };
  const mapped = run.map_index !== null && run.map_index >= 0 ? ` [${run.map_index}]` : "";
  return { task: run.task_id + mapped, dag: run.dag_id };
}

// The same as one text.
export function textOfRun(run: Run): string {
  const { task, dag } = namesOf(run);
  return shown(dag ? `${task} · ${dag}` : task);
}

export function RunLink({ run }: { run: Run }) {
  const url = pageOf(run);
  const which = run.logical_date?.slice(0, 10) ?? run.dag_run_id ?? "";
  return (
    <>
      {url ? <a href={url} className="run"><RunName run={run} /></a> : <span className="run"><RunName run={run} /></span>}
      {which && <span className="facts"> {shown(which)}</span>}
    </>
  );
}

export function RunName({ run }: { run: Run }) {
  const { task, dag } = namesOf(run);
  return (
    <>
      <Parted text={task} className="task" />
      {dag && <span className="dag"> · <Parted text={dag} /></span>}
    </>
  );
}
