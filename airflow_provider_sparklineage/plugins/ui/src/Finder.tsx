// The search for datasets, and what it finds.

import { Fragment } from "react";

import type { Api, Counts, Dataset, Datasets, FoundColumns } from "./api";
import { type Answer, useAnswer } from "./shared/asked";
import { List } from "./shared/List";
import { Parted } from "./shared/Name";
import { counted, nameOf, shown, timeOf } from "./shared/names";
import { Mark, STATES, type State } from "./states";

interface Props {
  api: Api;
  typed: string; // what has been typed for a while
  text: string;
  setText: (text: string) => void;
  sort: string;
  setSort: (sort: string) => void;
  found: Answer<Datasets>;
  chosen: Dataset;
  choose: (dataset: Dataset) => void;
  chooseColumn: (column: Dataset & { column: string }) => void;
}

const FEWEST = 2; // letters by which columns are looked for

export function Finder({ api, typed, chooseColumn, text, setText, sort, setSort, found, chosen, choose }: Props) {
  const datasets = found.value?.datasets ?? [];
  const isText = typed.trim().length >= FEWEST && !found.value?.unavailable;
  const more = useAnswer(async (signal) => (isText ? api.columns(typed, signal) : null), [typed, isText], true);
  const columns = isText ? more.value : null;
  const at = datasets.findIndex((d) => d.namespace === chosen.namespace && d.name === chosen.name);
  return (
    <search className="finder">
      <input type="search" aria-label="Find a dataset or a column" placeholder="Find a dataset or a column" value={text}
        onChange={(event) => setText(event.target.value)} />
      <label className="facts">
        Sorted by{" "}
        <select value={sort} onChange={(event) => setSort(event.target.value)}>
          <option value="">trouble</option>
          <option value="name">name</option>
          <option value="written">last write</option>
        </select>
      </label>
      <p className="facts" role="status">{sentenceOf(found)}</p>
      {datasets.length > 0 && (
        <List label="Datasets" count={datasets.length} chosen={at} height={52}
          choose={(n) => datasets[n] && choose(datasets[n])}
          entry={(n) => {
            const d = datasets[n];
            return d && (
              <>
                <Parted className="name" title={shown(`${d.namespace} ${d.name}`)} text={nameOf(d)} />
                <span className="facts">
                  <Troubles counts={d.troubles} />
                  {[d.partitions ? counted(d.partitions, "partition") : "", d.last_written ? timeOf(d.last_written) : "read only"]
                    .filter(Boolean).join(" · ")}
                </span>
              </>
            );
          }} />
      )}
      {columns && columns.columns.length > 0 && <FoundList {...columns} choose={chooseColumn} />}
    </search>
  );
}

function FoundList({ columns, count, is_cut, choose }: FoundColumns & { choose: Props["chooseColumn"] }) {
  const all = `${is_cut ? "more than " : ""}${counted(count, "column")}`;
  return (
    <>
      <p className="facts" role="status">
        {is_cut || count > columns.length ? `The first ${columns.length} of ${all}. Type more to see others.` : all}
      </p>
      <List label="Found columns" count={columns.length} chosen={-1} height={44} className="short"
        choose={(n) => columns[n] && choose(columns[n])}
        entry={(n) => columns[n] && (
          <>
            <bdi className="name">{shown(columns[n].column)}</bdi>
            <bdi className="facts" title={shown(`${columns[n].namespace} ${columns[n].name}`)}>{nameOf(columns[n])}</bdi>
          </>
        )} />
    </>
  );
}

// The states of which there are partitions that need a person, each with its mark.
export function Troubles({ counts, isNamed = false }: { counts: Counts; isNamed?: boolean }) {
  const there = STATES.filter(({ letter }) => counts[letter]);
  const textOf = ({ letter, name }: State) => `${(counts[letter] ?? 0).toLocaleString("en")} ${name}`;
  if (!there.length) return null;
  const words = there.map(textOf).join(", ");
  return (
    <>
      <span className="trouble" title={`Partitions: ${words}`} aria-hidden={!isNamed || undefined}>
        {there.map((state) => (
          <Fragment key={state.letter}>
            <Mark letter={state.letter} /> {isNamed ? textOf(state) : textOf(state).split(" ")[0]}{"\u2002 "}
          </Fragment>
        ))}
      </span>
      {!isNamed && <span className="unseen">{words} </span>}
    </>
  );
}

function sentenceOf({ value, problem, isAsked }: Answer<Datasets>): string {
  if (problem) return problem;
  if (!value) return isAsked ? "Looking for datasets …" : "";
  if (!value.count) return "There is no such dataset, or you may not see it.";
  const more = value.count - value.datasets.length;
  return counted(value.count, "dataset") + (more > 0 ? `; type more of the name to see the other ${more}` : "");
}
