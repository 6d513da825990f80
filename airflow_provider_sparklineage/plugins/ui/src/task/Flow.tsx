// Datasets in, the task, datasets out, with lines between them.

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { FIRST, firstOf, Fold } from "./Fold";
import { Name } from "../shared/Name";
import { counted } from "../shared/names";
import { useNearness } from "./near";
import { Card } from "./Card";
import type { ChosenColumn } from "./Explanation";
import type { Dataset, Model, Side } from "./model";
import type { Search } from "./search";
import { type OtherRuns, Strip } from "./Strip";

export interface Links {
  backend?: string;
  show?: string; // the runs that its pages show; "" for all
  job?: string;
  datasets?: { namespace: string; name: string; url: string }[];
  isInAirflow?: boolean; // where the page of many runs is
}

// Where a link to the lineage backend leads.
export const placeOf = ({ backend, show }: Links): string => `in ${backend}${show ? `: ${show}` : ""}`;

interface Props {
  model: Model;
  links: Links;
  search: Search;
  chosen: ChosenColumn | null;
  lit: ReadonlySet<string> | null; // keys of the datasets that the chosen column has to do with
  others: OtherRuns;
  all: Record<Side, boolean>; // whether all datasets are asked for, or the first
  turn: (side: Side, isAll: boolean) => void;
}

interface Line {
  d: string;
  isLit: boolean;
}

export function Flow({ model, links, search, chosen, lit, others, all, turn }: Props) {
  const host = useRef<HTMLElement>(null);
  const task = useRef<HTMLDivElement>(null);
  const [cards] = useState(() => new Map<Dataset, Element>());
  const [lines, setLines] = useState<Line[]>([]);
  const shown = {
    read: useShown(model.inputs, search, lit, all.read),
    written: useShown(model.outputs, search, lit, all.written),
  };
  const connect = useCallback(() => {
    if (host.current && task.current) setLines(linesOf(host.current, task.current, cards, shown, lit));
  }, [shown.read, shown.written, lit]);
  useLayoutEffect(connect, [connect]);
  useEffect(() => {
    const observer = new ResizeObserver(connect);
    if (host.current) observer.observe(host.current);
    return () => observer.disconnect();
  }, [connect]);
  const side = (side: Side, datasets: Dataset[]) => (
    <Datasets side={side} datasets={datasets} {...shown[side]} {...{ links, search, chosen, lit, others, cards }} isAll={all[side]}
      turn={(isAll) => turn(side, isAll)} />
  );
  return (
    <section ref={host} className={lit ? "flow choosing" : "flow"} aria-label="Datasets">
      <svg aria-hidden="true">
        {lines.map(({ d, isLit }, n) => <path key={n} d={d} className={isLit ? "lit" : ""} />)}
      </svg>
      {side("read", model.inputs)}
      <div className="middle">
        <div ref={task} className="task"><Name text={model.job.split(".").at(-1) || model.job} /></div>
      </div>
      {side("written", model.outputs)}
    </section>
  );
}

interface Shown {
  found: Dataset[];
  drawn: Dataset[];
}

// The datasets that are looked for, and those that are highlighted; of many these come first.
function useShown(datasets: Dataset[], search: Search, lit: ReadonlySet<string> | null, isAll: boolean): Shown {
  return useMemo(() => {
    const isLit = ({ key }: Dataset) => lit?.has(key) ?? false;
    const found = datasets.filter((dataset) => isLit(dataset) || search.has(dataset));
    if (found.length > FIRST) found.sort((one, other) => Number(isLit(other)) - Number(isLit(one)));
    return { found, drawn: firstOf(found, isAll, isLit) };
  }, [datasets, search, lit, isAll]);
}

interface DatasetsProps extends Shown {
  side: Side;
  datasets: Dataset[];
  links: Links;
  search: Search;
  chosen: ChosenColumn | null;
  lit: ReadonlySet<string> | null;
  others: OtherRuns;
  cards: Map<Dataset, Element>;
  isAll: boolean;
  turn: (isAll: boolean) => void;
}

function Datasets({ side, datasets, found, drawn, links, search, chosen, lit, others, cards, isAll, turn }: DatasetsProps) {
  const list = useNearness();
  const places = useMemo(() => new Map(datasets.map((dataset, n) => [dataset, n])), [datasets]);
  const pages = useMemo(
    () => new Map((links.datasets ?? []).map((d) => [JSON.stringify([d.namespace, d.name]), d.url])),
    [links]
  );
  return (
    <div className="side">
      <h3>
        {side === "read" ? "Read" : "Written"}
        <span className="count">{datasets.length ? counted(datasets.length, "dataset") : ""}</span>
      </h3>
      {!found.length && <p className="none">{datasets.length ? search.nothing(side) : `Nothing was ${side}.`}</p>}
      <div className="cards">
        {drawn.map((dataset) => (
          <Card key={places.get(dataset)} dataset={dataset} url={pages.get(dataset.key)} links={links}
            column={chosen?.dataset.key === dataset.key ? chosen.column.name : ""}
            isLit={lit?.has(dataset.key) ?? false} isMany={drawn.length > FIRST} list={list} places={cards}
            strip={<Strip dataset={dataset} others={others} />} />
        ))}
      </div>
      <Fold noun="dataset" count={found.length} isAll={isAll} turn={turn} />
    </div>
  );
}

// Lines from card to task to card, where the cards are now.
function linesOf(
  host: Element, task: Element, cards: Map<Dataset, Element>, shown: Record<Side, Shown>, lit: ReadonlySet<string> | null
): Line[] {
  const [frame, middle] = [host.getBoundingClientRect(), task.getBoundingClientRect()];
  const center = middle.top + middle.height / 2 - frame.top;
  return (["read", "written"] as const).flatMap((side) => {
    const { drawn } = shown[side];
    const isLit = ({ key }: Dataset) => lit?.has(key) ?? false;
    // Lines of a hundred cards would be one grey area.
    return (drawn.length > FIRST ? drawn.filter(isLit) : drawn).flatMap((dataset) => {
      const box = cards.get(dataset)?.getBoundingClientRect();
      if (!box) return [];
      const y = box.top + box.height / 2 - frame.top;
      const [x1, x2] = side === "read" ? [box.right, middle.left] : [middle.right, box.left];
      const [y1, y2] = side === "read" ? [y, center] : [center, y];
      return [{ d: curve(x1 - frame.left, y1, x2 - frame.left, y2), isLit: isLit(dataset) }];
    });
  });
}

function curve(x1: number, y1: number, x2: number, y2: number): string {
  const bend = (x1 + x2) / 2;
  return `M${x1},${y1} C${bend},${y1} ${bend},${y2} ${x2},${y2}`;
}
