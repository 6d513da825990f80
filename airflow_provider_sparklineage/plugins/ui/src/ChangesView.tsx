// What the tasks that write a dataset did otherwise from one run to the next.

import { useState } from "react";

import type { Api, Change, Changes, Dataset } from "./api";
import { useAnswer } from "./shared/asked";
import { Parted } from "./shared/Name";
import { counted, shown, timeOf } from "./shared/names";
import { RunLink } from "./RunLink";

const SHOWN = 50;

export function ChangesView({ api, dataset, version }: { api: Api; dataset: Dataset; version: number }) {
  const [isOpen, setOpen] = useState(false);
  const ask = async (signal: AbortSignal) => (isOpen ? api.changes(dataset, signal) : null);
  const { value, problem } = useAnswer(ask, [isOpen, version], true);
  return (
    <details className="changes" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What changed from run to run</summary>
      {problem && <p className="sentence" role="status">{problem}</p>}
      {isOpen && !value && !problem && <p className="sentence" role="status">Comparing the runs …</p>}
      {value && <Found {...value} />}
    </details>
  );
}

function Found({ tasks, hidden, changes, more }: Changes) {
  const [all, setAll] = useState(false);
  const listed = all ? changes : changes.slice(0, SHOWN);
  const byRun = Map.groupBy(listed, ({ run }) => run.run_id);
  return (
    <>
      {!tasks.length && !hidden && <p>No run is known that wrote it.</p>}
      {tasks.length > 0 && !changes.length && (
        <p>Each run of <bdi>{shown(tasks.join(", "))}</bdi> did what the one before it did.</p>
      )}
      {changes.length > 0 && (
        <table>
          <thead><tr><th>Run</th><th>Ended</th><th>What is different</th></tr></thead>
          <tbody>
            {[...byRun.values()].map((ofRun) => {
              const { run } = ofRun[0] as Change;
              return (
                <tr key={run.run_id}>
                  <td><RunLink run={run} /></td>
                  <td className="facts">{timeOf(run.ended)}</td>
                  <td>{ofRun.map(({ message }, n) => <div key={n}><Parted text={message} /></div>)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {listed.length < changes.length && (
        <button type="button" onClick={() => setAll(true)}>Show all {counted(changes.length, "change")}</button>
      )}
      {all && more > 0 && <p className="facts">{counted(more, "older change")} are not listed.</p>}
      {hidden > 0 && <p className="facts">Written, too, by {counted(hidden, "task")} of DAGs that you may not see.</p>}
    </>
  );
}
