// The columns: those of the inputs on the left, those of the outputs on the right. Choosing one
// brings what it is made of, or what is made of it, into view, and explains it.

import { useRef } from "react";
import { flushSync } from "react-dom";

import { type ChosenColumn, Explanation, type ListSide } from "./Explanation";
import type { Column, Dataset, Model } from "./model";
import { datasetsOf, Pane, type PaneHandle } from "./Pane";
import type { Search } from "./search";

// A column by its names, which another event of the same task may have as well.
export interface Choice {
  side: ListSide;
  dataset: string; // its key
  column: string;
}

interface Props {
  model: Model;
  search: Search;
  chosen: ChosenColumn | null;
  choose: (choice: Choice | null) => void;
  all: Record<ListSide, boolean>; // whether all datasets are asked for, or the first
  turn: (side: ListSide, isAll: boolean) => void;
}

export function Columns({ model, search, chosen, choose, all, turn }: Props) {
  const panes = { from: useRef<PaneHandle>(null), to: useRef<PaneHandle>(null) };
  const set = (choice: Choice | null) => {
    Object.values(panes).forEach(({ current }) => current?.keep());
    flushSync(() => choose(choice));
  };
  const leave = () => set(null);
  const press = (key: string, side: ListSide): boolean => {
    const other = key === "ArrowLeft" ? "from" : key === "ArrowRight" ? "to" : side;
    if (key === "Escape" && chosen) leave();
    else if (other !== side) panes[other].current?.focus();
    else return false;
    return true;
  };
  const pane = (side: ListSide) => (
    <Pane ref={panes[side]} {...{ model, side, search, chosen, leave }} isAll={all[side]} turn={(isAll) => turn(side, isAll)}
      choose={(dataset: Dataset, column: Column) => {
        // Choosing the same again chooses none.
        set(column === chosen?.column ? null : { side, dataset: dataset.key, column: column.name });
        panes[side].current?.show();
      }}
      press={(key) => press(key, side)} />
  );
  if (!datasetsOf(model, "from").length && !datasetsOf(model, "to").length) return null;
  return (
    <section className="columns" aria-label="Columns">
      <h3>Columns</h3>
      <Explanation model={model} chosen={chosen} />
      <div className="panes">{pane("from")}{pane("to")}</div>
    </section>
  );
}

// The column that is chosen, with its edges; null if the event does not have it.
export function chosenOf(model: Model, choice: Choice | null): ChosenColumn | null {
  if (!choice) return null;
  const { side } = choice;
  const dataset = datasetsOf(model, side).find(({ key }) => key === choice.dataset);
  const column = dataset?.columns.find(({ name }) => name === choice.column);
  if (!dataset || !column) return null;
  return side === "to"
    ? { side, dataset, column, edges: model.edges.sourcesOf(dataset.key, column.name), influences: model.edges.influencesOn(dataset.key) }
    : { side, dataset, column, edges: model.edges.targetsOf(dataset, column.name), influences: [] };
}
