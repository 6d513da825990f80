// The address of a state: what is in the query of the page's URL, so that a reload, Back, and a
// colleague who opens the link show the same.

// The query of the parts of an address that are not empty, with its "?".
export function queryOf(parts: Partial<Record<string, string>>): string {
  const query = new URLSearchParams(Object.entries(parts).filter((part): part is [string, string] => Boolean(part[1])));
  return query.size ? `?${query}` : "";
}

// Airflow's page has a <base>, against which a query alone would be resolved.
export const here = (query: string): string => `${window.location.pathname}${query}`;

// Put an address into the browser's address bar; `isSame`: without a new entry of its history.
export function enter(address: string, isSame = false) {
  // Airflow's router numbers the entries of the history.
  const state = window.history.state as { idx?: number } | null;
  if (isSame) window.history.replaceState(state, "", address);
  else window.history.pushState({ ...state, idx: (state?.idx ?? 0) + 1 }, "", address);
}

// Change some parts of the query, and keep all others, which may be Airflow's.
export function enterParts(parts: Record<string, string>) {
  const query = new URLSearchParams(window.location.search);
  Object.entries(parts).forEach(([key, value]) => (value ? query.set(key, value) : query.delete(key)));
  enter(here(query.size ? `?${query}` : ""));
}

// Calls `show` when the address of this page changes, as by Back; gives a function that ends it.
export function followAddress(show: () => void): () => void {
  const { pathname } = window.location;
  // Airflow's own links change the address without an event of the window.
  const follow = () => void (window.location.pathname === pathname && show());
  const changes = (window as { navigation?: EventTarget }).navigation;
  window.addEventListener("popstate", follow);
  changes?.addEventListener("currententrychange", follow);
  return () => {
    window.removeEventListener("popstate", follow);
    changes?.removeEventListener("currententrychange", follow);
  };
}

// Where Airflow shows what runs did with a dataset or a partition: a state of the page of the history.
export const historyOf = (state: Partial<Record<string, string>>): string =>
  new URL(`plugin/spark-lineage-history${queryOf(state)}`, document.baseURI).href;

export interface Instance {
  dagId: string;
  runId: string;
  taskId: string;
  mapIndex: number | null; // null or -1 for tasks that are not mapped
}

// Where Airflow shows a task instance, with our tab; of the latest try without a number.
export function tabOf({ dagId, runId, taskId, mapIndex }: Instance, tryNumber?: number): string {
  const [dag, run, task] = [dagId, runId, taskId].map(encodeURIComponent);
  const mapped = mapIndex !== null && mapIndex >= 0 ? `/mapped/${mapIndex}` : "";
  const query = queryOf({ try_number: String(tryNumber ?? "") });
  return new URL(`dags/${dag}/runs/${run}/tasks/${task}${mapped}/plugin/spark-lineage${query}`, document.baseURI).href;
}
