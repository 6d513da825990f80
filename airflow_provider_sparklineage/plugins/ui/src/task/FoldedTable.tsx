// A table whose first rows are shown until somebody asks for all, and then those that are in view.

import { type ReactNode, useState } from "react";

import { FIRST, firstOf, Fold } from "./Fold";
import { type Nearness, useNear, useNearness } from "./near";

interface Props {
  noun: string; // one of its rows is
  titles: string[];
  rows: (() => ReactNode[])[]; // functions that give the cells of each
}

export function FoldedTable({ noun, titles, rows }: Props) {
  const [isAll, setAll] = useState(false);
  const list = useNearness();
  const drawn = firstOf(rows, isAll);
  return (
    <>
      <table>
        <thead>
          <tr>{titles.map((title, n) => <th key={n}>{title}</th>)}</tr>
        </thead>
        <tbody>
          {drawn.map((cells, n) => <Row key={n} list={list} isMany={drawn.length > FIRST} cells={cells} />)}
        </tbody>
      </table>
      <Fold noun={noun} count={rows.length} isAll={isAll} turn={setAll} />
    </>
  );
}

function Row({ list, isMany, cells }: { list: Nearness; isMany: boolean; cells: () => ReactNode[] }) {
  const { ref, isNear, style } = useNear<HTMLTableRowElement>(list, isMany);
  return <tr ref={ref} style={style}>{isNear && cells().map((cell, n) => <td key={n}>{cell}</td>)}</tr>;
}
