// What the page asks Airflow's API server: our endpoints, and Airflow's own to clear.

import { tabOf } from "./shared/address";

export interface Dataset {
  namespace: string;
  name: string;
}

// A dataset in an answer.
export interface Named extends Dataset {
  short?: string; // the shortest end of its name that no other dataset has
}

// How many partitions need a person, by the letter of their state.
export type Counts = Record<string, number>;

export interface Found extends Dataset {
  short: string; // the shortest end of its name that no other dataset has
  partitions: number | null; // null if some of them may not be seen
  last_written: string | null;
  troubles: Counts; // as far as it is worked out
}

export interface Datasets {
  unavailable: { message: string; commands: string[] } | null;
  built_at: string | null;
  datasets: Found[];
  count: number;
}

export interface Troubled extends Dataset {
  short: string;
  counts: Counts;
  newest: string | null; // when the newest trouble came
}

export interface Health {
  totals: Counts; // partitions of all datasets
  datasets: Troubled[]; // the newest trouble first
  more: number; // datasets with troubles that are left out
  fine: number; // datasets without any
  is_stale_known: boolean;
  looked: { done: number; of: number; left_out: number }; // datasets in which never written partitions were looked for
}

export interface State {
  generation: number; // 0 if there is no history yet
  built_at: string | null;
  waiting: number; // events of tasks that ended and are not in the history yet
  since: string | null;
  is_merging: boolean;
  problem: string;
}

export interface Run {
  run_id: string;
  namespace: string | null; // of the job: each Airflow has its own
  job: string | null;
  dag_id: string | null;
  task_id: string | null;
  dag_run_id: string | null;
  map_index: number | null;
  logical_date: string | null;
  ended: string | null;
  state: string | null;
}

export interface Cause {
  dataset: Named | null;
  partition: string;
  at: string | null;
  how: string | null;
  run: Run;
}

export interface Partitions {
  short: string; // of the dataset's name
  partitions: {
    names: string[];
    states: string; // a letter for each
    written: (number | null)[]; // seconds since the epoch
    runs: (number | null)[]; // index into runs
  };
  runs: Run[];
  causes: Record<string, Cause>;
  unjudged: string[]; // sentences on what is not known about partitions that may be missing
}

export interface Hop {
  depth: number;
  dataset: Named;
  partition: string;
  column: string | null;
  transformations: { type?: string; subtype?: string; masking?: boolean; description?: string }[];
  is_certain: boolean;
  note: string | null;
  via: string[]; // the runs by which one came here
  run: Run | null;
  is_hidden: boolean;
}

export interface Side {
  hops: Hop[];
  hidden: number;
  more: number;
}

export interface Graph {
  upstream: Side;
  downstream: Side;
  columns: string[];
  is_more: boolean;
}

export interface Step {
  run: Run;
  wave: number;
  reasons: string[];
  may_clear: boolean;
  is_elsewhere: boolean; // it ran in another Airflow, which alone can clear it
  is_certain: boolean;
}

export interface Plan {
  steps: Step[];
  by_hand: Step[];
  hidden: number;
  left_out: number; // of so many datasets, there was no time to look for what was never written
  more?: number; // steps that are left out
}

export interface Change {
  run: Run;
  kind: string;
  dataset: Dataset | null;
  column: string | null;
  message: string;
}

export interface Changes {
  tasks: string[]; // that write the dataset
  hidden: number; // how many other tasks do
  changes: Change[]; // the last ones first
  more: number;
}

export interface ColumnEnd extends Named {
  column: string | null; // null for all columns: a condition on the rows
}

export interface ColumnEdge {
  run: string;
  side: "upstream" | "downstream"; // of the column that is asked for
  source: ColumnEnd;
  target: ColumnEnd;
  type: string | null;
  subtype: string | null;
  masking: boolean | null;
  description: string | null;
}

export interface ColumnPart extends Dataset {
  run: string; // that wrote it
  partitions: number;
  partition: string | null; // the first of them
}

export interface ColumnGraph {
  short: string; // of the dataset's name
  edges: ColumnEdge[];
  runs: Record<string, Run>;
  parts: ColumnPart[];
  columns: string[]; // of the dataset
  further: (Named & { side: string; column: string })[]; // columns that can be followed further
  hidden: number; // runs that the user may not see
  is_cut: boolean; // whether there are more edges
}

export interface FoundColumns {
  columns: (Named & { column: string })[];
  count: number; // of all that were found
  is_cut: boolean; // whether there are more than that, which were not looked for
}

export interface Place extends Dataset {
  partition: string;
  column: string;
}

const REFUSED = new Map([
  [401, "Your session has ended; log in again."],
  [403, "You may not do this; ask for access to the DAG."],
]);

export class Api {
  constructor(private readonly url: URL) {}

  // Asking for it starts merging what waits.
  state = (signal: AbortSignal) => this.get<State>("state", {}, signal);

  datasets = (q: string, sort: string, signal: AbortSignal) => this.get<Datasets>("datasets", { q, sort }, signal);

  partitions = ({ namespace, name }: Dataset, signal: AbortSignal) =>
    this.get<Partitions>("partitions", { namespace, name }, signal);

  // Without what may take long: which of them are stale, and which were never written.
  quickPartitions = ({ namespace, name }: Dataset, signal: AbortSignal) =>
    this.get<Partitions>("partitions", { namespace, name, quick: "true" }, signal);

  graph = ({ namespace, name, partition, column }: Place, depth: number, signal: AbortSignal) =>
    this.get<Graph>("graph", { namespace, name, partition, column, depth: String(depth) }, signal);

  plan = ({ namespace, name, partition, column }: Place, signal: AbortSignal) =>
    this.get<Record<"impact" | "refresh", Plan>>("plan", { namespace, name, partition, column }, signal);

  columns = (q: string, signal: AbortSignal) => this.get<FoundColumns>("columns", { q }, signal);

  columnGraph = ({ namespace, name, partition, column }: Place, depth: number, signal: AbortSignal) =>
    this.get<ColumnGraph>("columns/graph", { namespace, name, partition, column, depth: String(depth) }, signal);

  // To make fresh the stale partitions whose names are in one of these spans.
  planOfSpans = ({ namespace, name }: Dataset, spans: [string, string][], signal: AbortSignal) =>
    this.get<Record<"refresh", Plan>>(
      "plan",
      [["namespace", namespace], ["name", name], ...spans.flatMap(([first, last]) => [["first", first], ["last", last]])],
      signal
    );

  // All datasets' troubles; a quick answer leaves out what may take long.
  health = (isQuick: boolean, signal: AbortSignal) =>
    this.get<Health>("health", isQuick ? { quick: "true" } : {}, signal);

  // What to run again of all datasets.
  planOfAll = (signal: AbortSignal) => this.get<Plan>("health/plan", {}, signal);

  changes = ({ namespace, name }: Dataset, signal: AbortSignal) =>
    this.get<Changes>("changes", { namespace, name }, signal);

  private async get<T>(what: string, query: Record<string, string> | string[][], signal: AbortSignal): Promise<T> {
    const url = new URL(what, this.url);
    url.search = new URLSearchParams(query).toString();
    const response = await fetch(url, { signal, credentials: "same-origin" });
    if (!response.ok) throw new Error(await problemOf(response));
    return (await response.json()) as T;
  }
}

// Clear task instances of one DAG run, by Airflow's own API: with the user's own permission.
export async function clear(dagId: string, dagRunId: string, tasks: (string | [string, number])[]): Promise<void> {
  const url = new URL(`api/v2/dags/${encodeURIComponent(dagId)}/clearTaskInstances`, document.baseURI);
  const body = { dry_run: false, only_failed: false, reset_dag_runs: true, dag_run_id: dagRunId, task_ids: tasks };
  const response = await fetch(url, {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await problemOf(response));
}

async function problemOf(response: Response): Promise<string> {
  const refused = REFUSED.get(response.status);
  if (refused) return refused;
  const answer = (await response.json().catch(() => null)) as { detail?: unknown } | null;
  return typeof answer?.detail === "string" ? answer.detail : `Airflow answered ${response.status}; see its log.`;
}

// Where Airflow shows a task instance, with our tab; null for a run that is none.
export function pageOf(run: Run): string | null {
  if (!run.dag_id || !run.dag_run_id || !run.task_id) return null;
  return tabOf({ dagId: run.dag_id, runId: run.dag_run_id, taskId: run.task_id, mapIndex: run.map_index });
}
