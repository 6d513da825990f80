// The lineage as a table: all hops, a row for each.

import type { Graph, Hop, Place } from "./api";
import { Parted } from "./shared/Name";
import { nameOf, shown } from "./shared/names";
import { type Row, Table } from "./shared/Table";
import { RunLink } from "./RunLink";

const TITLES = ["Step", "Dataset", "Partition", "Column", "Made by", "How"];
const WIDTHS = "44px 1.2fr 1.4fr 1fr 2fr 1.4fr";

export function HopTable({ graph, go }: { graph: Graph; go: (change: Partial<Place>) => void }) {
  const up = graph.upstream.hops.map((hop) => ({ hop, sign: -hop.depth }));
  const down = graph.downstream.hops.map((hop) => ({ hop, sign: hop.depth }));
  const rows = [...up.reverse(), ...down].map(({ hop, sign }, n): Row => ({
    key: String(n),
    cells: () => [
      sign > 0 ? `+${sign}` : sign,
      <Parted text={nameOf(hop.dataset)} title={shown(`${hop.dataset.namespace} ${hop.dataset.name}`)} />,
      <button type="button" className="link" onClick={() => go({ ...hop.dataset, partition: hop.partition, column: "" })}>
        <Parted text={hop.partition || "all of it"} />
      </button>,
      <Parted text={hop.column ?? ""} />,
      <Writer hop={hop} />,
      howOf(hop),
    ],
  }));
  return <Table label="Lineage, step by step" titles={TITLES} widths={WIDTHS} rows={rows} height={46} className="hops" />;
}

function Writer({ hop }: { hop: Hop }) {
  if (hop.run) return <RunLink run={hop.run} />;
  return <span className="facts">{hop.is_hidden ? "a run that you may not see" : "nobody known"}</span>;
}

export function howOf({ transformations, is_certain, note }: Hop): string {
  const kinds = transformations.map(({ subtype, type, masking }) => `${(subtype || type || "").toLowerCase()}${masking ? ", masked" : ""}`);
  return shown([...new Set(kinds), is_certain ? "" : "not certain", note ?? ""].filter(Boolean).join(" · "));
}
