// A list that draws what is in view of it: one that has the keys, however many entries there are.

import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";

interface Props {
  label: string;
  count: number;
  chosen: number; // -1 for none
  choose: (n: number) => void;
  entry: (n: number) => ReactNode;
  height: number; // of an entry, in pixels
  className?: string;
}

const PAGE = 10;

export function List({ label, count, chosen, choose, entry, height, className = "" }: Props) {
  const id = useId();
  const host = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(Math.max(chosen, 0));
  const rows = useVirtualizer({ count, getScrollElement: () => host.current, estimateSize: () => height, overscan: 8 });
  useEffect(() => {
    const n = Math.max(chosen, 0);
    setActive(n);
    if (n < count) rows.scrollToIndex(n, { align: "auto" });
  }, [chosen, count]);
  const go = (n: number) => {
    const to = Math.min(Math.max(n, 0), count - 1);
    setActive(to);
    rows.scrollToIndex(to, { align: "auto" });
  };
  const press = (event: KeyboardEvent) => {
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + PAGE, PageUp: active - PAGE, Home: 0, End: count - 1 }[event.key];
    if (to !== undefined) go(to);
    else if (event.key === "Enter" || event.key === " ") choose(active);
    else return;
    event.preventDefault();
  };
  const drawn = rows.getVirtualItems();
  const isDrawn = drawn.some(({ index }) => index === active);
  return (
    <div ref={host} className={`list ${className}`} role="listbox" tabIndex={0} aria-label={label} onKeyDown={press}
      aria-activedescendant={isDrawn ? `${id}${active}` : undefined}>
      <div role="presentation" style={{ height: rows.getTotalSize(), position: "relative" }}>
        {drawn.map(({ index, start }) => (
          <div key={index} id={`${id}${index}`} role="option" aria-selected={index === chosen} aria-setsize={count}
            aria-posinset={index + 1} className={index === active ? "row active" : "row"}
            style={{ height, transform: `translateY(${start}px)` }}
            onClick={() => { setActive(index); choose(index); }}>
            {entry(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
