// One partition: its state and why, where it comes from and what was made of it, what to run again.

import type { Api, Cause } from "./api";
import { useAnswer } from "./shared/asked";
import { GraphView } from "./GraphView";
import { HopTable } from "./HopTable";
import { nameOf, shown, timeOf } from "./shared/names";
import type { Address, Go } from "./place";
import { PlanView } from "./PlanView";
import { RunLink } from "./RunLink";
import { Mark, stateOf } from "./states";

interface Props {
  api: Api;
  place: Address;
  go: Go;
  version: number; // changes when the history has changed
  letter: string; // its state; empty if it is not known
  cause: Cause | null;
}

const VIEWS = ["Graph", "Table", "Columns", "Run again"] as const; // columns are a view of their own
const DEPTHS = [1, 2, 3, 5, 10, 50];

export function PartitionView({ api, place, go, version, letter, cause }: Props) {
  const view = VIEWS.find((one) => one === place.view) ?? "Graph";
  const depth = DEPTHS.find((one) => String(one) === place.depth) ?? 3;
  const ask = (signal: AbortSignal) => api.graph(place, depth, signal);
  const { value, problem } = useAnswer(ask, [place.column, depth, version], true);
  return (
    <section className="partition" aria-label="Partition">
      <h3>
        <bdi>{shown(place.partition) || "All of it"}</bdi>
        {letter && <span className={`state ${letter}`}><Mark letter={letter} /> {stateOf(letter).name}</span>}
      </h3>
      {letter && <p className="facts">{stateOf(letter).sentence}</p>}
      {cause && (
        <p>
          <bdi>{cause.dataset ? nameOf(cause.dataset) : ""} {shown(cause.partition)}</bdi> was written again
          at {timeOf(cause.at)} by <RunLink run={cause.run} />.
        </p>
      )}
      <div className="tools">
        <div role="group" aria-label="View" className="views">
          {VIEWS.map((one) => (
            <button key={one} type="button" aria-pressed={one === view} onClick={() => go({ view: one })}>{one}</button>
          ))}
        </div>
        <label>
          Column{" "}
          <select value={place.column} onChange={(event) => go({ column: event.target.value })}>
            <option value="">all</option>
            {[...new Set([...(value?.columns ?? []), place.column])].filter(Boolean).map((column) => (
              <option key={column} value={column}>{shown(column)}</option>
            ))}
          </select>
        </label>
        <label>
          Steps{" "}
          <select value={depth} onChange={(event) => go({ depth: event.target.value })}>
            {DEPTHS.map((n) => <option key={n} value={n}>{n}</option>)}
          </select>
        </label>
      </div>
      {problem && <p className="sentence" role="status">{problem}</p>}
      {!value && !problem && <p className="sentence" role="status">Loading the lineage …</p>}
      {view === "Run again" ? (
        <PlanView api={api} place={place} />
      ) : value && (
        <>
          {view === "Graph" ? <GraphView graph={value} place={place} go={go} /> : <HopTable graph={value} go={go} />}
          <Hidden count={value.upstream.hidden + value.downstream.hidden} />
        </>
      )}
    </section>
  );
}

export function Hidden({ count }: { count: number }) {
  return count ? <p className="facts">{count.toLocaleString("en")} more are of DAGs that you may not see.</p> : null;
}
