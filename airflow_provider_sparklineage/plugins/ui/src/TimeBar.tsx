// A bar over all time of a dataset, of which a range is chosen: by dragging, or by the keys of its two
// ends.

import { type KeyboardEvent, type PointerEvent, useMemo, useRef, useState } from "react";

import { type Calendar, labelOf } from "./calendar";
import { heightOfBar, pathsOf, type Range, ticksOf } from "./timebar";

interface Props {
  calendar: Calendar;
  states: string;
  filter: ReadonlySet<string>; // states that are shown; all if empty
  range: Range | null; // null for all time
  choose: (range: Range | null, isTyped: boolean) => void; // typed: one of many small changes
}

interface Drag {
  from: number; // steps
  to: number;
  x: number; // where it has begun, in pixels
  isMoved: boolean; // a click is no drag
}

const isMoved = (drag: Drag, x: number): boolean => drag.isMoved || Math.abs(x - drag.x) > STILL;

const STILL = 3; // pixels that the pointer moves in a click
const PAGES = 12; // a page of the keys is a part of the bar

export function TimeBar({ calendar, states, filter, range, choose }: Props) {
  const { unit, first, last } = calendar;
  const size = last - first + 1;
  const host = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<Drag | null>(null);
  const { width, paths } = useMemo(() => pathsOf(calendar, states, filter), [calendar, states, filter]);
  const ticks = useMemo(() => ticksOf(calendar), [calendar]);
  const dragged = drag?.isMoved && { first: Math.min(drag.from, drag.to), last: Math.max(drag.from, drag.to) };
  const shown = dragged || range || { first, last };
  const chosen = (one: number, other: number, isTyped: boolean) =>
    choose(one <= first && other >= last ? null : { first: Math.max(one, first), last: Math.min(other, last) }, isTyped);
  const stepAt = (x: number) => {
    const { left, width: wide } = (host.current as HTMLDivElement).getBoundingClientRect();
    return Math.min(last, Math.max(first, first + Math.floor(((x - left) / wide) * size)));
  };
  const begin = (event: PointerEvent<HTMLDivElement>) => {
    if (event.button !== 0) return;
    const end = (event.target as HTMLElement).dataset.end; // it moves, and the other one stays
    const from = end === "first" ? shown.last : end === "last" ? shown.first : stepAt(event.clientX);
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag({ from, to: stepAt(event.clientX), x: event.clientX, isMoved: false });
  };
  const move = ({ clientX }: PointerEvent) =>
    setDrag((before) => before && { ...before, to: stepAt(clientX), isMoved: isMoved(before, clientX) });
  // The last moves may not have been drawn yet: what counts is where the pointer is now.
  const end = ({ clientX }: PointerEvent) => {
    const to = stepAt(clientX);
    if (drag && isMoved(drag, clientX)) chosen(Math.min(drag.from, to), Math.max(drag.from, to), false);
    setDrag(null);
  };
  const press = (which: "first" | "last") => (event: KeyboardEvent) => {
    const at = shown[which];
    const [least, most] = which === "first" ? [first, shown.last] : [shown.first, last];
    const page = Math.max(1, Math.round(size / PAGES));
    const to = {
      ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageDown: at - page, PageUp: at + page, Home: least, End: most,
    }[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const within = Math.min(Math.max(to, least), most);
    chosen(which === "first" ? within : shown.first, which === "last" ? within : shown.last, true);
  };
  const percent = (step: number) => `${(100 * (step - first)) / size}%`;
  const handle = (which: "first" | "last", label: string) => (
    <div role="slider" tabIndex={0} aria-label={label} data-end={which} className="end" onKeyDown={press(which)}
      aria-valuemin={which === "first" ? first : shown.first} aria-valuemax={which === "first" ? shown.last : last}
      aria-valuenow={shown[which]} aria-valuetext={labelOf(unit, shown[which])} title={labelOf(unit, shown[which])}
      style={{ insetInlineStart: percent(which === "first" ? shown.first : shown.last + 1) }} />
  );
  return (
    <div role="group" aria-label="Range of time" className="timebar">
      <div ref={host} className="track" onPointerDown={begin} onPointerMove={move} onPointerUp={end} onPointerCancel={() => setDrag(null)}>
        <svg role="img" viewBox={`0 0 ${width} ${heightOfBar}`} preserveAspectRatio="none" className="painted"
          aria-label={`The worst states from ${labelOf(unit, first)} to ${labelOf(unit, last)}: what is worse is higher`}>
          {[...paths].map(([letter, path]) => <path key={letter} className={letter} d={path} />)}
        </svg>
        <div className="outside" style={{ insetInline: `0 ${percent(last + 1 - (shown.first - first))}` }} />
        <div className="outside" style={{ insetInline: `${percent(shown.last + 1)} 0` }} />
        {handle("first", "From")}
        {handle("last", "To")}
      </div>
      <div className="ticks" aria-hidden="true">
        {ticks.map(({ step, text }) => <span key={step} style={step === last ? { insetInlineEnd: 0 } : { insetInlineStart: percent(step) }}>{text}</span>)}
      </div>
    </div>
  );
}
