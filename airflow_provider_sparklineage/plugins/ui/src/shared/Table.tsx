// A table of any length, in a box that scrolls: only the rows in view are drawn, and the row that has
// the focus.

import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useCallback, useRef, useState } from "react";

export interface Row {
  key: string;
  cells: () => ReactNode[];
  isHeading?: boolean; // its only cell is as wide as the table
}

interface Props {
  label: string;
  titles: string[];
  widths: string; // of the columns, as in CSS' grid-template-columns
  rows: Row[];
  height?: number; // of a row that has not been drawn yet, in pixels
  className?: string;
}

const OVERSCAN = 3; // rows above and below those in view
const NOTHING = -1;

export function Table({ label, titles, widths, rows, height = 30, className = "" }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState(NOTHING);
  const lines = useVirtualizer({
    count: rows.length,
    getScrollElement: () => host.current,
    estimateSize: () => height,
    getItemKey: useCallback((n: number) => rows[n]?.key ?? n, [rows]),
    rangeExtractor: (range) => {
      const inView = defaultRangeExtractor(range);
      return rows[focused] && !inView.includes(focused) ? [...inView, focused].sort((one, other) => one - other) : inView;
    },
    overscan: OVERSCAN,
  });
  const columns = { gridTemplateColumns: widths };
  return (
    <div ref={host} className={`tabular ${className}`} role="table" aria-label={label} aria-rowcount={rows.length + 1} tabIndex={0}
      onFocus={({ target }) => setFocused(Number(target.closest<HTMLElement>("[data-index]")?.dataset.index ?? NOTHING))}
      onBlur={() => setFocused(NOTHING)}>
      <div role="rowgroup" className="titles">
        <div role="row" aria-rowindex={1} className="record" style={columns}>
          {titles.map((title) => <span key={title} role="columnheader">{title}</span>)}
        </div>
      </div>
      <div role="rowgroup" style={{ height: lines.getTotalSize(), position: "relative" }}>
        {lines.getVirtualItems().map(({ index, key, start }) => {
          const { cells, isHeading } = rows[index] as Row;
          return (
            <div key={key} ref={lines.measureElement} data-index={index} role="row" aria-rowindex={index + 2}
              className={isHeading ? "record heading" : "record"} style={{ ...columns, transform: `translateY(${start}px)` }}>
              {cells().map((cell, n) => <span key={n} role="cell" aria-colspan={isHeading ? titles.length : undefined}>{cell}</span>)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
