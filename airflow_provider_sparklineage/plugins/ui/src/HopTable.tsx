// The lineage as a table: all hops, a row for each, of which those in view are drawn.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";

import type { Graph, Hop, Place } from "./api";
import { Parted } from "./shared/Name";
import { nameOf, shown } from "./shared/names";
import { RunLink } from "./RunLink";

const HEIGHT = 46; // two lines
const TITLES = ["Step", "Dataset", "Partition", "Column", "Made by", "How"];

export function HopTable({ graph, go }: { graph: Graph; go: (change: Partial<Place>) => void }) {
  const up = graph.upstream.hops.map((hop) => ({ hop, sign: -hop.depth }));
  const down = graph.downstream.hops.map((hop) => ({ hop, sign: hop.depth }));
  const rows = [...up.reverse(), ...down];
  const host = useRef<HTMLDivElement>(null);
  const drawn = useVirtualizer({ count: rows.length, getScrollElement: () => host.current, estimateSize: () => HEIGHT, overscan: 8 });
  return (
    <div ref={host} className="hops" role="table" aria-label="Lineage, step by step" aria-rowcount={rows.length + 1} tabIndex={0}>
      <div role="row" aria-rowindex={1} className="hop head">
        {TITLES.map((title) => <span key={title} role="columnheader">{title}</span>)}
      </div>
      <div role="rowgroup" style={{ height: drawn.getTotalSize(), position: "relative" }}>
        {drawn.getVirtualItems().map(({ index, start }) => {
          const { hop, sign } = rows[index] as { hop: Hop; sign: number };
          return (
            <div key={index} role="row" aria-rowindex={index + 2} className="hop" style={{ height: HEIGHT, transform: `translateY(${start}px)` }}>
              <span role="cell">{sign > 0 ? `+${sign}` : sign}</span>
              <span role="cell" title={shown(`${hop.dataset.namespace} ${hop.dataset.name}`)}><Parted text={nameOf(hop.dataset)} /></span>
              <span role="cell">
                <button type="button" className="link" onClick={() => go({ ...hop.dataset, partition: hop.partition, column: "" })}>
                  <Parted text={hop.partition || "all of it"} />
                </button>
              </span>
              <span role="cell"><Parted text={hop.column ?? ""} /></span>
              <span role="cell" className="by"><Writer hop={hop} /></span>
              <span role="cell">{howOf(hop)}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Writer({ hop }: { hop: Hop }) {
  if (hop.run) return <RunLink run={hop.run} />;
  return <span className="facts">{hop.is_hidden ? "a run that you may not see" : "nobody known"}</span>;
}

export function howOf({ transformations, is_certain, note }: Hop): string {
  const kinds = transformations.map(({ subtype, type, masking }) => `${(subtype || type || "").toLowerCase()}${masking ? ", masked" : ""}`);
  return shown([...new Set(kinds), is_certain ? "" : "not certain", note ?? ""].filter(Boolean).join(" · "));
}
