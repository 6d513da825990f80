// One of the two lists of columns. What the column that was chosen in the other list is made of, or
// what is made of it, comes first, below a heading that says so; the rest follows in its usual order.

import { type Ref, useImperativeHandle, useLayoutEffect, useMemo, useRef } from "react";

import { firstOf, Fold } from "./Fold";
import { type Group, GroupedList, type ListHandle } from "../shared/List";
import { Name } from "../shared/Name";
import { counted, shown } from "../shared/names";
import type { Edge } from "./edges";
import { type ChosenColumn, idOf, type ListSide } from "./Explanation";
import type { Column, Dataset, Model } from "./model";
import type { Search } from "./search";

const SIDES = {
  from: { done: "read", lit: "Sources of", faint: "Influence every row of" },
  to: { done: "written", lit: "Made of", faint: "" },
} as const;
const ROW = 26; // pixels
// Transformations of one column that its row names.
const MARKS = 3;

export interface PaneHandle {
  show: () => void; // the row that the keys are at
  focus: () => void; // the list, and show that row
  keep: () => void; // remember where the list is, to go back there once nothing is chosen
}

interface Props {
  model: Model;
  side: ListSide;
  search: Search;
  chosen: ChosenColumn | null; // in this list or the other
  isAll: boolean;
  turn: (isAll: boolean) => void;
  choose: (dataset: Dataset, column: Column) => void;
  leave: () => void;
  press: (key: string) => boolean;
  ref: Ref<PaneHandle>;
}

interface ColumnGroup extends Group<Column> {
  dataset: Dataset | null; // null for a heading of the groups below it
}

type Look = "lit" | "faint";

// Columns of this list that the chosen one has to do with: key of a dataset -> column -> how.
type Marks = Map<string, Map<string, { look: Look; edges: Edge[] }>>;

export const datasetsOf = (model: Model, side: ListSide): Dataset[] =>
  (side === "from" ? model.sources : model.outputs).filter((dataset) => dataset.columns.length);

export function Pane({ model, side, search, chosen, isAll, turn, choose, leave, press, ref }: Props) {
  const { done } = SIDES[side];
  const list = useRef<ListHandle<Column>>(null);
  const usual = useRef(0); // how far the list was scrolled in its usual order
  const datasets = useMemo(() => datasetsOf(model, side), [model, side]);
  const count = useMemo(() => datasets.reduce((sum, { columns }) => sum + columns.length, 0), [datasets]);
  const isOther = chosen !== null && chosen.side !== side;
  const marks = useMemo(() => (isOther ? marksOf(chosen, side) : NO_MARKS), [chosen, side]);
  const { first, rest } = useMemo(() => {
    const first = [...marked(datasets, marks, "lit", side, chosen), ...marked(datasets, marks, "faint", side, chosen)];
    const rest = groupsOf(datasets, (dataset) => {
      const found = marks.get(dataset.key);
      const columns = search.columnsOf(dataset);
      return found ? columns.filter((column) => !found.has(column.name)) : columns;
    });
    return { first, rest };
  }, [datasets, marks, search]);
  const groups = useMemo(() => {
    const drawn = search.isEmpty ? firstOf(rest, isAll, ({ dataset }) => dataset === chosen?.dataset) : rest;
    return [...first, ...(first.length && rest.length ? [divider("Other columns")] : []), ...drawn];
  }, [first, rest, search, isAll, chosen?.dataset]);
  useImperativeHandle(ref, () => ({
    show: () => list.current?.show(),
    focus: () => list.current?.focus(),
    keep: () => {
      if (!isOther) usual.current = list.current?.scrolled ?? 0;
    },
  }));
  const id = chosen ? idOf(chosen) : "";
  const before = useRef({ text: search.text, id: "" }); // a column of the page's address is chosen from the first
  useLayoutEffect(() => {
    const { text, id: was } = before.current;
    before.current = { text: search.text, id };
    if (search.text === text && id === was) return;
    if (search.text !== text) usual.current = 0;
    // What comes first is seen at once, and afterwards what was there before.
    if (marks.size) list.current?.begin();
    else if (list.current) list.current.scrolled = usual.current;
    if (chosen?.side === side && search.isEmpty) list.current?.reveal(chosen.column);
  }, [search.text, id]);
  const markOf = (column: Column, { dataset }: ColumnGroup) => dataset && marks.get(dataset.key)?.get(column.name);
  const look = (column: Column, group: ColumnGroup) => {
    const isBare = side === "to" && group.dataset && !model.edges.sourcesOf(group.dataset.key, column.name).length;
    const classes = [markOf(column, group)?.look ?? "plain", isBare && "bare", column === chosen?.column && "chosen"];
    return classes.filter(Boolean).join(" ");
  };
  const hasNone = !datasets.some((dataset) => search.columnsOf(dataset).length);
  const many = `${counted(count, "column")} of ${counted(datasets.length, "dataset")}`;
  return (
    <div className={isOther ? "pane dimmed" : "pane"}>
      <div className="head">
        <h4>Columns {done}<span className="count">{count ? many : ""}</span></h4>
        {first.length > 0 && <button type="button" className="back" onClick={leave}>Back to the usual order</button>}
      </div>
      {hasNone && <p className="none">{count ? search.nothing(done) : "No columns are known."}</p>}
      <GroupedList ref={list} label={`Columns ${done}`} groups={groups} height={ROW}
        isChosen={(column) => column === chosen?.column} press={press} look={look}
        choose={(column, { dataset }) => dataset && choose(dataset, column)}
        entry={(column, group) => <Row column={column} edges={markOf(column, group)?.edges ?? []} />} />
      {search.isEmpty && <Fold noun="dataset" count={rest.length} isAll={isAll} turn={turn} />}
    </div>
  );
}

const NO_MARKS: Marks = new Map();

function marksOf({ edges, influences }: ChosenColumn, side: ListSide): Marks {
  const marks: Marks = new Map();
  const mark = (look: Look) => (edge: Edge) => {
    const [dataset, column] = side === "from" ? [edge.dataset, edge.column] : [edge.target, edge.targetColumn];
    const columns = marks.get(dataset) ?? new Map<string, { look: Look; edges: Edge[] }>();
    marks.set(dataset, columns);
    const entry = columns.get(column) ?? { look, edges: [] };
    columns.set(column, entry);
    entry.edges.push(edge);
  };
  edges.forEach(mark("lit"));
  influences.forEach(mark("faint"));
  return marks;
}

// The columns that are marked in one way, below a heading of their own.
function marked(datasets: Dataset[], marks: Marks, look: Look, side: ListSide, chosen: ChosenColumn | null): ColumnGroup[] {
  const of = look === "lit" ? chosen?.column.name : chosen?.dataset.label;
  const section = `${SIDES[side][look]} ${of}`;
  const groups = groupsOf(
    datasets.filter(({ key }) => marks.has(key)),
    (dataset) => dataset.columns.filter((column) => marks.get(dataset.key)?.get(column.name)?.look === look),
    section
  );
  return groups.length ? [divider(section), ...groups] : [];
}

const divider = (label: string): ColumnGroup => ({
  items: [], dataset: null,
  heading: { label, title: "", look: "divider", content: <><Name text={label} /><span className="count" /></> },
});

// Groups of the datasets that have such columns.
function groupsOf(datasets: Dataset[], columnsOf: (dataset: Dataset) => Column[], section = ""): ColumnGroup[] {
  return datasets.map((dataset) => groupOf(dataset, columnsOf(dataset), section)).filter(({ items }) => items.length);
}

function groupOf(dataset: Dataset, items: Column[], section: string): ColumnGroup {
  const all = counted(dataset.columns.length, "column");
  const note = items.length < dataset.columns.length ? `${items.length} of ${all}` : all;
  const label = [section, dataset.label, note].filter(Boolean).map(shown).join(", ");
  const content = <><Name text={dataset.label} /><span className="count">{note}</span></>;
  return { items, dataset, heading: { label, title: `${dataset.namespace} ${dataset.name}`, look: "plain", content } };
}

function Row({ column, edges }: { column: Column; edges: Edge[] }) {
  return (
    <>
      <Name text={column.name} className="column" />
      <span className="type" title={shown(column.comment || column.type)}>{shown(column.type)}</span>
      <span className="kinds">
        {edges.flatMap(({ kinds }) => kinds).slice(0, MARKS).map((kind, n) => {
          const word = (kind.subtype || kind.type || "unknown").toLowerCase().replaceAll("_", " ");
          const look = kind.type === "INDIRECT" ? "indirect" : "direct";
          return (
            <span key={n} className={`kind ${look}`} title={shown(kind.description)}>
              {shown(kind.masking ? `${word}, masked` : word)}
            </span>
          );
        })}
      </span>
    </>
  );
}
