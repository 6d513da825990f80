// A list of any length that draws only what is in view: rows of one height, in groups whose headings
// stay in view. The focus is on the list itself, so that no scrolling loses it; aria-activedescendant
// says which row the keys are at.

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, type Ref, useCallback, useEffect, useId, useImperativeHandle, useMemo, useRef, useState } from "react";
import { flushSync } from "react-dom";

import { shown } from "./names";

export interface Group<T> {
  items: T[];
  heading?: { label: string; content: ReactNode; look: string; title: string }; // label: for a screen reader
}

export interface ListHandle<T> {
  scrolled: number; // pixels
  show: () => void; // the row that the keys are at
  focus: () => void; // the list, and show that row
  begin: () => void; // at the first row
  reveal: (item: T) => void; // as the row that the keys are at
}

interface Props<T, G extends Group<T>> {
  label: string;
  groups: G[];
  height: number; // of a row, in pixels
  entry: (item: T, group: G) => ReactNode;
  choose: (item: T, group: G) => void; // by a click or by Enter
  isChosen: (item: T) => boolean;
  look?: (item: T, group: G) => string;
  press?: (key: string) => boolean; // a key that means nothing here; whether it means something there
  className?: string;
  overscan?: number; // how many rows are drawn above and below those in view
  ref?: Ref<ListHandle<T>>;
}

const HEADING = 32; // pixels
const OVERSCAN = 10;
const FEW = 2; // of pages with several lists

export function GroupedList<T, G extends Group<T>>({
  label, groups, height, entry, choose, isChosen, look, press, className = "", overscan = OVERSCAN, ref,
}: Props<T, G>) {
  const id = useId();
  const host = useRef<HTMLDivElement>(null);
  const { placed, items, headings } = useMemo(() => placesOf<T, G>(groups, height), [groups, height]);
  const [at, setAt] = useState<T | undefined>(items[0]);
  const current = useMemo(() => {
    const position = at === undefined ? -1 : items.indexOf(at);
    return Math.max(0, position < 0 ? items.findIndex(isChosen) : position); // other items may have come
  }, [items, at]);
  const lines = useVirtualizer({
    count: items.length + headings.size,
    getScrollElement: () => host.current,
    estimateSize: (line) => (headings.has(line) ? HEADING : height),
    // Another function for other groups, so that their heights are looked at anew.
    getItemKey: useCallback((line: number) => line, [placed]),
    overscan,
  });
  const groupOf = (position: number) => placed.findLast(({ first, items }) => items.length && first <= position);
  const scrollTo = (top: number) => {
    const list = host.current;
    if (!list) return;
    list.scrollTop = top;
    // The browser tells of it with its next frame, and rows have to be there at once.
    list.dispatchEvent(new Event("scroll"));
  };
  const moveTo = (position: number) => {
    const to = Math.min(Math.max(position, 0), items.length - 1);
    const [group, list] = [groupOf(to), host.current];
    if (!group || !list) return;
    setAt(items[to]);
    const top = group.top + group.headingHeight + (to - group.first) * height;
    const { scrollTop, clientHeight } = list;
    // The heading of its group covers the upper end of the list.
    if (top - group.headingHeight < scrollTop) scrollTo(top - group.headingHeight);
    else if (top + height > scrollTop + clientHeight) scrollTo(top + height - clientHeight);
  };
  // Bring the row that the keys are at into view of what the list is in, as well.
  const go = (position: number) => {
    flushSync(() => moveTo(position));
    host.current?.querySelector(".row.current")?.scrollIntoView({ block: "nearest" });
  };
  const chooseAt = (position: number) => {
    const [item, group] = [items[position], groupOf(position)];
    if (item !== undefined && group) choose(item, group.of);
  };
  useImperativeHandle(ref, () => ({
    get scrolled() {
      return host.current?.scrollTop ?? 0;
    },
    set scrolled(top: number) {
      scrollTo(top);
    },
    show: () => go(current),
    focus: () => {
      host.current?.focus({ preventScroll: true });
      go(current);
    },
    begin: () => {
      setAt(items[0]);
      scrollTo(0);
    },
    reveal: (item: T) => {
      const position = items.indexOf(item);
      if (position >= 0) moveTo(position);
    },
  }));
  const pressed = (event: KeyboardEvent<HTMLDivElement>) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(event.currentTarget.clientHeight / height) - 2);
    const to = {
      ArrowDown: current + 1, ArrowUp: current - 1, PageDown: current + page, PageUp: current - page, Home: 0, End: items.length - 1,
    }[event.key];
    if (to !== undefined) go(to);
    else if (event.key === "Enter" || event.key === " ") chooseAt(current);
    else if (!press?.(event.key)) return;
    event.preventDefault();
  };
  const drawn = lines.getVirtualItems();
  const [from, until] = [drawn[0]?.index ?? 0, drawn.at(-1)?.index ?? -1];
  const isDrawn = drawn.some(({ index }) => index === lineOf(current, groupOf(current)));
  const row = (group: Placed<T, G>, n: number) => {
    const position = group.first + n;
    const item = items[position] as T;
    const classes = ["row", look?.(item, group.of), position === current && "current"];
    return (
      <div key={position} id={`${id}${position}`} role="option" aria-selected={isChosen(item)} aria-setsize={items.length}
        aria-posinset={position + 1} className={classes.filter(Boolean).join(" ")}
        style={{ height, top: group.headingHeight + n * height }}
        onClick={() => { setAt(item); choose(item, group.of); }}>
        {entry(item, group.of)}
      </div>
    );
  };
  return (
    <div ref={host} className={`list ${className}`} role="listbox" tabIndex={0} aria-label={label} hidden={!items.length}
      onKeyDown={pressed} aria-activedescendant={isDrawn ? `${id}${current}` : undefined}>
      <div className="content" role="presentation" style={{ height: lines.getTotalSize() }}>
        {placed.filter(({ line, lines: many }) => line + many > from && line <= until).map((group) => {
          const before = group.headingHeight ? group.line + 1 : group.line; // the line of its first row
          const [begin, end] = [Math.max(0, from - before), Math.min(group.items.length, until - before + 1)];
          const rows = Array.from({ length: Math.max(0, end - begin) }, (_, n) => row(group, begin + n));
          const { heading } = group.of;
          return (
            // A list may own nothing but options, so the headings are in the labels of the groups.
            <div key={group.line} className="group" role={heading && group.items.length ? "group" : "presentation"}
              aria-label={heading && group.items.length ? shown(heading.label) : undefined}
              style={{ top: group.top, height: group.headingHeight + group.items.length * height }}>
              {heading && (
                <div className={`heading ${heading.look}`} aria-hidden="true" title={shown(heading.title)}>{heading.content}</div>
              )}
              {rows}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface Placed<T, G> {
  of: G;
  items: T[];
  headingHeight: number;
  top: number;
  first: number; // position of its first row among all rows
  line: number; // position of its first line among all rows and headings
  lines: number;
}

const lineOf = <T, G>(position: number, group: Placed<T, G> | undefined): number =>
  group ? group.line + (group.headingHeight ? 1 : 0) + position - group.first : -1;

function placesOf<T, G extends Group<T>>(groups: G[], height: number): { placed: Placed<T, G>[]; items: T[]; headings: Set<number> } {
  let [top, first, line] = [0, 0, 0];
  const headings = new Set<number>();
  const placed = groups.map((group) => {
    const headingHeight = group.heading ? HEADING : 0;
    if (group.heading) headings.add(line);
    const lines = group.items.length + (group.heading ? 1 : 0);
    const place = { of: group, items: group.items, headingHeight, top, first, line, lines };
    [top, first, line] = [top + headingHeight + group.items.length * height, first + group.items.length, line + lines];
    return place;
  });
  return { placed, items: groups.flatMap(({ items }) => items), headings };
}

interface FlatProps {
  label: string;
  count: number;
  chosen: number; // -1 for none
  choose: (n: number) => void;
  entry: (n: number) => ReactNode;
  height: number; // of an entry, in pixels
  className?: string;
}

// A list without groups, whose chosen entry is in view.
export function List({ count, chosen, choose, ...rest }: FlatProps) {
  const groups = useMemo(() => [{ items: Array.from({ length: count }, (_, n) => n) }], [count]);
  const handle = useRef<ListHandle<number>>(null);
  useEffect(() => handle.current?.reveal(Math.max(chosen, 0)), [chosen, count]);
  return <GroupedList ref={handle} groups={groups} isChosen={(n) => n === chosen} choose={choose} overscan={FEW} {...rest} />;
}
