// All of the page: the health of all datasets; find a dataset, its partitions, and one of them.

import type { Api, State } from "./api";
import { useAnswer, usePolled, useSettled } from "./shared/asked";
import { ColumnsView } from "./ColumnsView";
import { HealthView } from "./HealthView";
import { DatasetView } from "./DatasetView";
import { Finder } from "./Finder";
import { usePlace } from "./place";
import { StateLink } from "./StateLink";
import { counted, timeOf } from "./shared/names";
import { useEffect, useState } from "react";

const AGAIN = 10_000; // milliseconds

export function App({ api }: { api: Api }) {
  const [place, go] = usePlace();
  const typed = useSettled(place.q, 150);
  const state = usePolled(api.state, AGAIN).value;
  const [version, setVersion] = useState(0); // how often the history has changed while the page is open
  const [judged, setJudged] = useState(""); // changes when more of the troubles is known
  const found = useAnswer((signal) => api.datasets(typed, place.sort || "trouble", signal),
    [typed, place.sort, version, judged], true);
  useEffect(() => {
    const isNewer = state?.built_at && found.value && state.built_at !== found.value.built_at;
    if (isNewer) setVersion((before) => before + 1);
  }, [state]);
  const why = found.value?.unavailable;
  const behind = state && behindOf(state);
  return (
    <>
      <header className="top">
        <h1>Lineage</h1>
        {place.name && (
          <StateLink to={{ q: place.q, sort: place.sort }} go={go} change={{ namespace: "", name: "" }}>All datasets</StateLink>
        )}
        {found.value?.built_at && <span className="facts">as of {timeOf(found.value.built_at)}</span>}
        {behind && <span className="facts" role="status">{behind}</span>}
      </header>
      {why ? (
        <Unavailable {...why} />
      ) : (
        <div className="columns">
          <Finder api={api} typed={typed} text={place.q} setText={(q) => go({ q }, true)} sort={place.sort} setSort={(sort) => go({ sort })}
            found={found} chosen={place} choose={({ namespace, name }) => go({ namespace, name })}
            chooseColumn={({ namespace, name, column }) => go({ namespace, name, column, partition: "", view: "Columns", open: "" })} />
          {place.name && place.view === "Columns" ? (
            <ColumnsView api={api} place={place} go={go} version={version} />
          ) : place.name ? (
            <DatasetView key={JSON.stringify([place.namespace, place.name])} api={api} place={place} go={go}
              version={version} />
          ) : found.value && ( // there is a history to ask
            <HealthView api={api} place={place} go={go} version={version} onJudged={setJudged} />
          )}
        </div>
      )}
    </>
  );
}

// What is not in the history yet.
function behindOf({ generation, waiting, is_merging, problem }: State): string {
  if (!generation) return is_merging ? "The history is being built …" : problem;
  if (!waiting) return is_merging ? "" : problem;
  const events = `${counted(waiting, "newer event")} of tasks ${waiting === 1 ? "is" : "are"}`;
  if (is_merging) return `${events} being added …`;
  return `${events} not in it yet. ${problem}`;
}

function Unavailable({ message, commands }: { message: string; commands: string[] }) {
  return (
    <section className="unavailable" aria-label="What is missing">
      <p role="status">{message}</p>
      {commands.map((command) => (
        <pre key={command} tabIndex={0}>{command}</pre>
      ))}
    </section>
  );
}
