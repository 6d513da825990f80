// The lineage of one task: what it read, the task, what it wrote; partitions; columns; what is
// missing and why.

import { type ReactNode, useEffect, useMemo, useState } from "react";

import { useAnswer } from "../shared/asked";
import type { Partition } from "../shared/dates";
import { Name } from "../shared/Name";
import { counted, shown } from "../shared/names";
import { chosenOf, type Choice, Columns } from "./Columns";
import type { ListSide } from "./Explanation";
import { Flow, type Links } from "./Flow";
import { type Dataset, type Model, modelOf, sentenceOf, type Side } from "./model";
import { Partitions } from "./Partitions";
import { Search } from "./search";
import { hasStrip, keyOfSide, Legend, type OtherRuns } from "./Strip";
import type { Rec } from "./values";

// What a person has made of it. It stays when another event of the same task is drawn.
export interface View {
  text: string; // that is looked for
  choice: Choice | null;
  all: Record<Side | ListSide, boolean>; // whether all datasets are asked for, or the first
}

export const USUAL: View = { text: "", choice: null, all: { read: false, written: false, from: false, to: false } };

export const useView = () => useState(USUAL);

// What other runs of the task accessed.
export interface Others {
  datasets: { side: string; namespace: string; name: string; partitions: Partition[] }[];
  runs: number;
  note: string;
}

interface Props {
  model: Model;
  links: Links;
  view: View;
  setView: (change: (before: View) => View) => void;
  askOthers?: ((signal: AbortSignal) => Promise<Others>) | undefined;
}

export function useModel(event: Rec | null): Model | null {
  const model = useMemo(() => {
    performance.mark("sparklineage:draw");
    return event && modelOf(event);
  }, [event]);
  useEffect(() => {
    performance.measure("sparklineage:draw", "sparklineage:draw");
  }, [model]);
  return model;
}

export function Lineage({ model, links, view, setView, askOthers }: Props) {
  const search = useMemo(() => new Search(view.text), [view.text, model]);
  const chosen = useMemo(() => chosenOf(model, view.choice), [model, view.choice]);
  const lit = useMemo(
    () => chosen && new Set([chosen.dataset.key, ...chosen.edges.flatMap(({ dataset, target }) => [dataset, target])]),
    [chosen]
  );
  const isDated = useMemo(() => [...model.inputs, ...model.outputs].some(hasStrip), [model]);
  const others = useOthers(model, isDated ? askOthers : undefined);
  const change = (to: Partial<View>) => setView((before) => ({ ...before, ...to }));
  const turn = (part: Side | ListSide, isAll: boolean) =>
    setView((before) => ({ ...before, all: { ...before.all, [part]: isAll } }));
  return (
    <>
      <SearchField model={model} search={search} text={view.text} setText={(text) => change({ text })} />
      <Flow {...{ model, links, search, chosen, lit, turn }} others={others.known} all={view.all} />
      {isDated && (
        <Legend removes={model.outputs.some(({ removed }) => removed.length)} hasOthers={others.known.size > 0} note={others.note} />
      )}
      <Partitions model={model} />
      <Columns {...{ model, search, chosen, turn }} all={view.all} choose={(choice) => change({ choice })} />
      <Maintained model={model} />
      <Missing model={model} />
    </>
  );
}

const NONE: OtherRuns = new Map();
const NEVER = () => new Promise<Others>(() => {});

// Asks about other runs when all else is drawn: the archive may be slow.
function useOthers(model: Model, ask: Props["askOthers"]): { known: OtherRuns; note: string } {
  const { value, problem } = useAnswer(ask ?? NEVER, [model, ask]);
  const known = useMemo(() => (value ? new Map(value.datasets.map(placed)) : NONE), [value]);
  if (problem) return { known, note: `Other runs are not shown (${problem}).` };
  return { known, note: value ? value.note || `Other runs that are known: ${value.runs}.` : "" };
}

const placed = ({ side, namespace, name, partitions }: Others["datasets"][number]): [string, Partition[]] => [
  keyOfSide(side, JSON.stringify([namespace, name])), partitions,
];

// What a person reads first: what the try read and wrote, and whether that was expected.
export function Header({ model, mapIndex = -1 }: { model: Model; mapIndex?: number }) {
  const facts = [
    model.time,
    model.spark && `Spark ${model.spark}`,
    model.application,
    model.runId && `run ${model.runId}`,
  ];
  return (
    <header>
      <h2>
        <span><Name text={model.job} />{mapIndex >= 0 && ` [${mapIndex}]`} <bdi>{shown(sentenceOf(model))}</bdi></span>
        <span className={`state ${model.state === "COMPLETE" ? "good" : "bad"}`}>{shown(model.state)}</span>
      </h2>
      {model.summary && <p className="summary">{shown(model.summary)}</p>}
      <p className="facts">{shown(facts.filter(Boolean).join(" · "))}</p>
    </header>
  );
}

interface SearchProps {
  model: Model;
  search: Search;
  text: string;
  setText: (text: string) => void;
}

// The field, and how much was found.
function SearchField({ model, search, text, setText }: SearchProps) {
  const datasets = useMemo(
    () => [...new Map([...model.sources, ...model.outputs].map((d) => [d.key, d])).values()],
    [model]
  );
  if (!datasets.length) return null;
  return (
    <div className="search" role="search">
      <span className="found" role="status">{search.isEmpty ? "" : countOf(search, datasets)}</span>
      <input type="search" placeholder="Find datasets and columns" aria-label="Find datasets and columns" value={text}
        onChange={(event) => setText(event.target.value)} />
    </div>
  );
}

function countOf(search: Search, all: Dataset[]): string {
  const datasets = all.filter((dataset) => search.has(dataset));
  const columns = datasets.reduce((sum, dataset) => sum + search.columnsOf(dataset).length, 0);
  if (!datasets.length) return `No dataset and no column has “${search.text}” in its name.`;
  return `${counted(datasets.length, "dataset")}, ${counted(columns, "column")}`;
}

// Tables of which files were maintained.
function Maintained({ model }: { model: Model }) {
  if (!model.maintained.length) return null;
  return (
    <Gaps label="Maintained" title="Maintained, neither read nor written">
      {model.maintained.map((one, n) => (
        <li key={n}><code>{shown(one.operation)}</code><span className="where"><Name text={one.name} /></span></li>
      ))}
    </Gaps>
  );
}

export function Missing({ model }: { model: Model }) {
  if (!model.missing.length) return null;
  return (
    <Gaps label="Missing or assumed" title="Missing or assumed, and why">
      {model.missing.map(({ code, where, message }, n) => (
        <li key={n}>
          <code>{shown(code)}</code>
          {where && <span className="where"><Name text={where} /></span>}
          <div><span dir="auto" title={shown(message)}>{shown(message)}</span></div>
        </li>
      ))}
      {model.unlisted > 0 && <li>{model.unlisted} more are not listed in the event.</li>}
    </Gaps>
  );
}

function Gaps({ label, title, children }: { label: string; title: string; children: ReactNode }) {
  return (
    <section className="gaps" aria-label={label}>
      <h3>{title}</h3>
      <ul>{children}</ul>
    </section>
  );
}
