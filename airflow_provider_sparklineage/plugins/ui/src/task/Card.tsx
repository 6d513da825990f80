// The card of one dataset. Where there are many, those far from what is in view have only their names,
// as a card may have dozens of elements.

import { type ReactNode, useLayoutEffect } from "react";

import { historyOf } from "../shared/address";
import type { Partition } from "../shared/dates";
import { Link, Name } from "../shared/Name";
import { counted, shown } from "../shared/names";
import { type Nearness, useNear } from "./near";
import { type Links, placeOf } from "./Flow";
import type { Dataset } from "./model";
import { Badge } from "./Partitions";

// Partitions that are links; of more of them there is a summary.
const LINKED = 24;
const ALL_RUNS = "all partitions, of all runs";
// What Hive escapes in the name of a folder.
const ESCAPED = /[\u0000-\u001f\u007f"#%'*/:=?\\{[\]^]/g;

interface Props {
  dataset: Dataset;
  url: string | undefined; // its page in the lineage backend
  links: Links;
  column: string; // that is chosen; "" if it is of another dataset, or none
  isLit: boolean;
  isMany: boolean;
  list: Nearness;
  places: Map<Dataset, Element>; // the elements of the cards
  strip: ReactNode;
}

export function Card({ dataset, url, links, column, isLit, isMany, list, places, strip }: Props) {
  const { ref, isNear, style } = useNear<HTMLElement>(list, isMany);
  useLayoutEffect(() => {
    if (ref.current) places.set(dataset, ref.current);
    return () => void places.delete(dataset);
  }, [dataset]);
  const { namespace, name } = dataset;
  const label = shown(dataset.label);
  const facts = [...dataset.facts, dataset.columns.length ? counted(dataset.columns.length, "column") : ""];
  return (
    <article ref={ref} className={isLit ? "card lit" : "card"} style={style}>
      <div className="label"><Name text={dataset.label} /></div>
      {isNear && (
        <div className="rest">
          <div className="full"><Name text={`${dataset.namespace} ${dataset.name}`} /></div>
          {dataset.part && <div className="part"><Parts dataset={dataset} column={column} isLinked={links.isInAirflow} /></div>}
          <div className="facts">{shown(facts.filter(Boolean).join(" · "))}</div>
          {dataset.checks.map((check, n) => <Badge key={n} status={check.status} />)}
          {strip}
          <div className="links">
            {links.isInAirflow && (
              <Link url={historyOf({ namespace, name, column })} label={`${ALL_RUNS} of ${label}`}>{ALL_RUNS}</Link>
            )}
            <Link url={url} label={`${placeOf(links)}, ${label}`}>{placeOf(links)}</Link>
          </div>
        </div>
      )}
    </article>
  );
}

// Its partitions, each linked to its history.
function Parts({ dataset, column, isLinked }: { dataset: Dataset; column: string; isLinked: boolean | undefined }) {
  const { namespace, name, part, partitions } = dataset;
  if (!isLinked || !partitions.length || partitions.length > LINKED) return <Name text={part} />;
  return partitions.map((partition, n) => {
    const text = identifierOf(partition);
    const url = historyOf({ namespace, name, partition: text, column });
    return <span key={n}>{n ? ", " : ""}<Link url={url} otherwise={shown(text)}>{shown(text)}</Link></span>;
  });
}

const identifierOf = (partition: Partition): string =>
  Object.entries(partition).map((entry) => entry.map(escaped).join("=")).join("/");

const escaped = (text: string): string =>
  text.replace(ESCAPED, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
