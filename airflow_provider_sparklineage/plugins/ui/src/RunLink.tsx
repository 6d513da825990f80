// A run by the name of its job, linked to where Airflow shows it.

import { pageOf, type Run } from "./api";
import { shown } from "./shared/names";

export function RunLink({ run }: { run: Run }) {
  const url = pageOf(run);
  const name = shown(run.job ?? run.run_id);
  const which = run.logical_date?.slice(0, 10) ?? run.dag_run_id ?? "";
  const text = `${name}${run.map_index !== null && run.map_index >= 0 ? ` [${run.map_index}]` : ""}`;
  return (
    <>
      {url ? <a href={url}><bdi>{text}</bdi></a> : <bdi>{text}</bdi>}
      {which && <span className="facts"> {shown(which)}</span>}
    </>
  );
}
