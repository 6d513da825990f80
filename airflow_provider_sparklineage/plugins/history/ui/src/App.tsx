// All of the page: find a dataset, its partitions, and one of them.

import { type Api } from "./api";
import { useAnswer, useSettled } from "./asked";
import { DatasetView } from "./DatasetView";
import { Finder } from "./Finder";
import { usePlace } from "./place";
import { timeOf } from "./names";
import { useState } from "react";

export function App({ api }: { api: Api }) {
  const [place, go] = usePlace();
  const [text, setText] = useState("");
  const typed = useSettled(text, 150);
  const found = useAnswer((signal) => api.datasets(typed, signal), [typed], true);
  const why = found.value?.unavailable;
  return (
    <>
      <header className="top">
        <h1>Spark lineage</h1>
        {found.value?.built_at && <span className="facts">as of {timeOf(found.value.built_at)}</span>}
      </header>
      {why ? (
        <Unavailable {...why} />
      ) : (
        <div className="columns">
          <Finder text={text} setText={setText} found={found} chosen={place}
            choose={({ namespace, name }) => go({ namespace, name, partition: "", column: "" })} />
          {place.name ? (
            <DatasetView key={JSON.stringify([place.namespace, place.name])} api={api} place={place} go={go} />
          ) : (
            <p className="sentence">Choose a dataset to see its partitions.</p>
          )}
        </div>
      )}
    </>
  );
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
