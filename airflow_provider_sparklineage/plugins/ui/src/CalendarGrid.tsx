// The calendar: a row for each month (day, year), the last one first, of which those in view are drawn.
// A page has a thousand elements at most, so only two rows have an element for each of their cells: the
// row that the keys are at, and the one below the pointer. In the others the cells are painted.

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";

import { type Calendar, columnsOf, headOf, labelOf, row, rowOf, worstOf } from "./calendar";
import { counted } from "./shared/names";
import { SIZE } from "./shared/squares";
import { Mark, STATES, stateOf } from "./states";

interface Props {
  calendar: Calendar;
  states: string;
  filter: ReadonlySet<string>; // states that are shown; all if empty
  chosen: number | null; // the step whose partitions are listed
  partition: number; // index of the partition that is shown, or -1
  choose: (step: number) => void;
}

const [HEIGHT, WIDTH] = [20, 17]; // of a row, and of a cell

export function CalendarGrid({ calendar, states, filter, chosen, partition, choose }: Props) {
  const { unit, first, last, steps } = calendar;
  const [top, bottom] = [rowOf(unit, last), rowOf(unit, first)];
  const host = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(last);
  const [below, setBelow] = useState(-1); // the row below the pointer
  const awaited = useRef<number | null>(null); // the step whose cell is to get the focus
  const rows = useVirtualizer({
    count: top - bottom + 1, getScrollElement: () => host.current, estimateSize: () => HEIGHT, overscan: 1,
  });
  const go = (step: number) => {
    const to = Math.min(Math.max(step, first), last);
    awaited.current = to;
    setActive(to);
    rows.scrollToIndex(top - rowOf(unit, to), { align: "auto" });
  };
  useEffect(() => {
    // Its row may be drawn only after the scrolling; then this is called again.
    // It may be called late, too, for what was drawn before the key: `active` is then the step before.
    const cell = awaited.current !== null && host.current?.querySelector<HTMLElement>(`[data-step="${awaited.current}"]`);
    if (cell) {
      cell.focus({ preventScroll: true });
      awaited.current = null;
    }
  });
  const press = (event: KeyboardEvent) => {
    const width = columnsOf(unit);
    const to = {
      ArrowLeft: active - 1, ArrowRight: active + 1,
      ArrowUp: active + width, ArrowDown: active - width, PageUp: active + 6 * width, PageDown: active - 6 * width,
      Home: last, End: first,
    }[event.key];
    if (to !== undefined) go(to);
    else if (event.key === "Enter" || event.key === " ") choose(active);
    else return;
    event.preventDefault();
  };
  const letterOf = (step: number) => {
    const on = steps.get(step) ?? [];
    const seen = filter.size ? on.filter((n) => filter.has(states[n] ?? "")) : on;
    return seen.length ? worstOf(seen, states) : "";
  };
  const take = (step: number | undefined) => {
    if (step === undefined) return;
    setActive(step);
    if (steps.has(step)) choose(step);
  };
  const columns = Array.from({ length: columnsOf(unit) }, (_, n) => n);
  const grid = { gridTemplateColumns: `${unit === "day" ? 54 : 78}px repeat(${columns.length}, ${WIDTH}px)` };
  return (
    <div className="calendar">
      <div ref={host} role="grid" aria-label={`Partitions by ${unit}`} aria-rowcount={top - bottom + 2}
        aria-colcount={columns.length + 1} className="grid" onKeyDown={press}>
        <div role="row" aria-rowindex={1} className="line head" style={grid}>
          <span role="columnheader">{unit}</span>
          {columns.map((n) => <span key={n} role="columnheader">{headOf(unit, n)}</span>)}
        </div>
        <div role="presentation" style={{ height: rows.getTotalSize(), position: "relative" }}>
          {rows.getVirtualItems().map(({ index, start }) => {
            const { label, steps: places } = row(unit, top - index);
            const hasCells = index === below || top - index === rowOf(unit, active);
            return (
              <div key={index} role="row" aria-rowindex={index + 2} className="line" style={{ ...grid, transform: `translateY(${start}px)` }}
                onPointerEnter={() => setBelow(index)}>
                <span role="rowheader">{label}</span>
                {!hasCells && <Painted letters={places.map(letterOf)} choose={(n) => take(places[n])} />}
                {hasCells && places.map((step) => {
                  const on = steps.get(step) ?? [];
                  const letter = letterOf(step);
                  const words = [labelOf(unit, step), letter ? stateOf(letter).name : "none", on.length > 1 ? counted(on.length, "partition") : ""];
                  const isShown = step === chosen || on.includes(partition);
                  return (
                    <span key={step} role="gridcell" data-step={step} tabIndex={step === active ? 0 : -1}
                      aria-selected={isShown} aria-label={words.filter(Boolean).join(", ")} title={words.filter(Boolean).join(", ")}
                      className="cell" onClick={() => take(step)}>
                      {letter && <Mark letter={letter} />}
                    </span>
                  );
                })}
              </div>
            );
          })}
        </div>
      </div>
      {calendar.undated > 0 && <p className="facts">{counted(calendar.undated, "partition")} without such a date: see the list.</p>}
    </div>
  );
}

// A row without elements of its cells: a form for each, those of one state as one path.
function Painted({ letters, choose }: { letters: string[]; choose: (n: number) => void }) {
  const there = STATES.map((state) => ({ ...state, at: letters.flatMap((letter, n) => (letter === state.letter ? [n] : [])) }))
    .filter(({ at }) => at.length);
  const words = there.map(({ name, at }) => `${at.length} ${name}`).join(", ") || "none";
  return (
    <svg role="gridcell" aria-colindex={2} aria-colspan={letters.length} aria-label={words} className="painted"
      width={letters.length * WIDTH} height={SIZE}
      onClick={({ clientX, currentTarget }) => choose(Math.floor((clientX - currentTarget.getBoundingClientRect().left) / WIDTH))}>
      {there.map(({ letter, form, at }) => (
        <path key={letter} className={letter} d={at.map((n) => form((n + 0.5) * WIDTH)).join("")} />
      ))}
    </svg>
  );
}
