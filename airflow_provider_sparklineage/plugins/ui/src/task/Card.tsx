// The card of one dataset. Where there are many, those far from what is in view have only their names,
// as a card may have dozens of elements.

import { type ReactNode, useLayoutEffect } from "react";

import type { Partition } from "../shared/dates";
import { Link, Name } from "../shared/Name";
import { counted, shown } from "../shared/names";
import { type Nearness, useNear } from "../shared/near";
import type { Dataset } from "./model";
import { Badge } from "./Partitions";

// Partitions that are links; of more of them there is a summary.
const LINKED = 24;
// What Hive escapes in the name of a folder.
const ESCAPED = /[\u0000-\u001f\u007f"#%'*/:=?\\{[\]^]/g;

interface Props {
  dataset: Dataset;
  url: string | undefined; // its page in the lineage backend
  history: string; // URL of the page of many runs, in Airflow; "" outside of it
  isLit: boolean;
  isMany: boolean;
  list: Nearness;
  places: Map<Dataset, Element>; // the elements of the cards
  strip: ReactNode;
}

export function Card({ dataset, url, history, isLit, isMany, list, places, strip }: Props) {
  const { ref, isNear, style } = useNear<HTMLElement>(list, isMany);
  useLayoutEffect(() => {
    if (ref.current) places.set(dataset, ref.current);
    return () => void places.delete(dataset);
  }, [dataset]);
  const facts = [...dataset.facts, dataset.columns.length ? counted(dataset.columns.length, "column") : ""];
  return (
    <article ref={ref} className={isLit ? "card lit" : "card"} style={style}>
      <div className="label"><Name text={dataset.label} /><Link url={url}>open</Link></div>
      {isNear && (
        <div className="rest">
          <div className="full"><Name text={`${dataset.namespace} ${dataset.name}`} /></div>
          {dataset.part && <div className="part"><Parts dataset={dataset} history={history} /></div>}
          <div className="facts">{shown(facts.filter(Boolean).join(" · "))}</div>
          {dataset.checks.map((check, n) => <Badge key={n} status={check.status} />)}
          {strip}
        </div>
      )}
    </article>
  );
}

// Its partitions, each linked to its history.
function Parts({ dataset, history }: { dataset: Dataset; history: string }) {
  const { namespace, name, part, partitions } = dataset;
  if (!history || !partitions.length || partitions.length > LINKED) return <Name text={part} />;
  return partitions.map((partition, n) => {
    const text = identifierOf(partition);
    const url = `${history}?${new URLSearchParams({ namespace, name, partition: text })}`;
    return <span key={n}>{n ? ", " : ""}<Link url={url} otherwise={shown(text)}>{shown(text)}</Link></span>;
  });
}

const identifierOf = (partition: Partition): string =>
  Object.entries(partition).map((entry) => entry.map(escaped).join("=")).join("/");

const escaped = (text: string): string =>
  text.replace(ESCAPED, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
