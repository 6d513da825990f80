// The search for datasets, and what it finds.

import type { Dataset, Datasets } from "./api";
import type { Answer } from "./shared/asked";
import { List } from "./shared/List";
import { counted, lastOf, shown, timeOf } from "./shared/names";

interface Props {
  text: string;
  setText: (text: string) => void;
  found: Answer<Datasets>;
  chosen: Dataset;
  choose: (dataset: Dataset) => void;
}

export function Finder({ text, setText, found, chosen, choose }: Props) {
  const datasets = found.value?.datasets ?? [];
  const at = datasets.findIndex((d) => d.namespace === chosen.namespace && d.name === chosen.name);
  return (
    <search className="finder">
      <input type="search" aria-label="Find a dataset" placeholder="Find a dataset" value={text}
        onChange={(event) => setText(event.target.value)} />
      <p className="facts" role="status">{sentenceOf(found)}</p>
      {datasets.length > 0 && (
        <List label="Datasets" count={datasets.length} chosen={at} height={52}
          choose={(n) => datasets[n] && choose(datasets[n])}
          entry={(n) => {
            const d = datasets[n];
            return d && (
              <>
                <bdi className="name" title={shown(`${d.namespace} ${d.name}`)}>{lastOf(d.name)}</bdi>
                <span className="facts">
                  {[d.partitions ? counted(d.partitions, "partition") : "", d.last_written ? timeOf(d.last_written) : "read only"]
                    .filter(Boolean).join(" · ")}
                </span>
              </>
            );
          }} />
      )}
    </search>
  );
}

function sentenceOf({ value, problem, isAsked }: Answer<Datasets>): string {
  if (problem) return problem;
  if (!value) return isAsked ? "Looking for datasets …" : "";
  if (!value.count) return "There is no such dataset, or you may not see it.";
  const more = value.count - value.datasets.length;
  return counted(value.count, "dataset") + (more > 0 ? `; type more of the name to see the other ${more}` : "");
}
