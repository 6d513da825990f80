// What the tasks that write a dataset did otherwise from one run to the next.

import { useState } from "react";

import type { Api, Changes, Dataset } from "./api";
import { useAnswer } from "./shared/asked";
import { Parted } from "./shared/Name";
import { counted, shown, timeOf } from "./shared/names";
import { type Row, Table } from "./shared/Table";
import { RunLink } from "./RunLink";

const TITLES = ["Run", "Ended", "What is different"];
const WIDTHS = "2fr 150px 3fr";

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
  const rows = changes.map(({ run, message }, n): Row => ({
    key: String(n),
    cells: () => [<RunLink run={run} />, <span className="facts">{timeOf(run.ended)}</span>, <Parted text={message} />],
  }));
  return (
    <>
      {!tasks.length && !hidden && <p>No run is known that wrote it.</p>}
      {tasks.length > 0 && !changes.length && (
        <p>Each run of <bdi>{shown(tasks.join(", "))}</bdi> did what the one before it did.</p>
      )}
      {changes.length > 0 && <Table label="Changes, the last ones first" titles={TITLES} widths={WIDTHS} rows={rows} />}
      {more > 0 && <p className="facts">{counted(more, "older change")} are not listed.</p>}
      {hidden > 0 && <p className="facts">Written, too, by {counted(hidden, "task")} of DAGs that you may not see.</p>}
    </>
  );
}
