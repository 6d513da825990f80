// What the chosen column is made of, or what is made of it, and how.

import { useMemo } from "react";

import { Name } from "../shared/Name";
import { counted, shown } from "../shared/names";
import type { Edge } from "./edges";
import type { Column, Dataset, Model } from "./model";

// Columns that a table names; all of them are first in the list of columns.
const NAMED = 50;

export type ListSide = "from" | "to";

// A column with what it is made of, or what is made of it; and what influences all rows with it.
export interface ChosenColumn {
  side: ListSide; // the list that it is in
  dataset: Dataset;
  column: Column;
  edges: Edge[];
  influences: Edge[];
}

export const idOf = ({ side, dataset, column }: ChosenColumn): string => JSON.stringify([side, dataset.key, column.name]);

export function Explanation({ model, chosen }: { model: Model; chosen: ChosenColumn | null }) {
  return (
    <div className="details" aria-live="polite">
      {chosen ? (
        <Explained key={idOf(chosen)} model={model} {...chosen} />
      ) : (
        <p className="hint">Choose a column to see what it is made of, or what is made of it.</p>
      )}
    </div>
  );
}

function Explained({ model, side, dataset, column, edges, influences }: ChosenColumn & { model: Model }) {
  const labels = useMemo(() => new Map([...model.sources, ...model.outputs].map((d) => [d.key, d.label])), [model]);
  const isWritten = side === "to";
  const none = isWritten
    ? "Its sources are not known. What kept them from being known is below, under “Missing or assumed”."
    : "No column that was written is made of it.";
  const verb = influences.length === 1 ? "influences" : "influence";
  return (
    <>
      <p className="title">
        <Name text={dataset.label} />.<Name text={column.name} className="column" />
        <span className="type">{shown(column.type)}</span>
      </p>
      {edges.length ? (
        <Table labels={labels} edges={edges} title={isWritten ? "Made of" : "Goes into"} isOfSource={isWritten} />
      ) : (
        <p className="hint">{none}</p>
      )}
      {influences.length > 0 && (
        <details>
          <summary>{counted(influences.length, "column")} {verb} every row (filters, joins, groupings)</summary>
          <Table labels={labels} edges={influences} title="By" isOfSource />
        </details>
      )}
    </>
  );
}

interface TableProps {
  labels: Map<string, string>;
  edges: Edge[];
  title: string;
  isOfSource: boolean; // whether the columns are sources, or outputs
}

function Table({ labels, edges, title, isOfSource }: TableProps) {
  const more = edges.length - NAMED;
  return (
    <>
      <table>
        <thead>
          <tr>{[title, "Type", "Subtype", "Masking", "How"].map((text) => <th key={text}>{text}</th>)}</tr>
        </thead>
        <tbody>
          {edges.slice(0, NAMED).flatMap((edge, at) => {
            const label = labels.get(isOfSource ? edge.dataset : edge.target) ?? "";
            const column = isOfSource ? edge.column : edge.targetColumn;
            const kinds = edge.kinds.length ? edge.kinds : [{ type: "", subtype: "", masking: false, description: "" }];
            return kinds.map((kind, n) => (
              <tr key={`${at} ${n}`}>
                <td>{n === 0 && <><Name text={label} />.<Name text={column} className="column" /></>}</td>
                <td>{shown(kind.type || "unknown")}</td>
                <td>{shown(kind.subtype)}</td>
                <td>{kind.masking ? "masked" : ""}</td>
                <td className="how">{shown(kind.description)}</td>
              </tr>
            ));
          })}
        </tbody>
      </table>
      {more > 0 && <p className="hint">and {counted(more, "other")}</p>}
    </>
  );
}
