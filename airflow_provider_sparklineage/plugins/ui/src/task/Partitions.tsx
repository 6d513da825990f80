// Partitions: expected, observed, and where an expected value comes from.

import { Fragment, type ReactNode } from "react";

import { FIRST } from "./Fold";
import { FoldedTable } from "./FoldedTable";
import { Name } from "../shared/Name";
import { shown } from "../shared/names";
import { type Check, type Expectation, type Model, type Origin, valueOf } from "./model";

// Sources of expected values of one dataset that are named.
const SOURCES = 24;

const STATUS = new Map([
  ["matched", "as expected"],
  ["unexpected", "unexpected"],
  ["missing", "missing"],
  ["unobserved", "not observed"],
  ["undeclared", "nothing expected"],
  ["expected", "expected"],
  ["inferred", "inferred"],
  ["named", "named by an argument"],
]);

export function Badge({ status }: { status: string }) {
  const words = STATUS.get(status);
  return <span className={`badge ${words ? status : "other"}`}>{words ?? shown(status)}</span>;
}

export function Partitions({ model }: { model: Model }) {
  const checks = [...model.inputs, ...model.outputs].flatMap((dataset) =>
    dataset.checks
      .filter((check) => check.expected || check.observed || check.removed || check.from.length)
      .map((check) => ({ dataset, check }))
  );
  // Of many those come first that need a person.
  if (checks.length > FIRST) checks.sort((one, other) => needOf(other.check) - needOf(one.check));
  const rows = checks.map(({ dataset, check }) => () => [
    <Name text={dataset.label} />,
    shown(how(check, dataset.side)),
    <Badge status={check.status} />,
    <><Values summary={check.expected} />{check.isInferred && <span className="facts"> inferred</span>}</>,
    <Observed check={check} part={dataset.part} />,
    <Origins sources={check.from} />,
  ]);
  const titles = ["Dataset", "", "Status", "Expected", "Observed", "Expected because of"];
  return rows.length ? <Section title="Partitions, expected and observed" titles={titles} rows={rows} /> : null;
}

const needOf = ({ status }: Check): number => ["missing", "unexpected"].indexOf(status);

// What is expected of a try whose job still runs.
export function Pending({ entries, unlisted }: { entries: Expectation[]; unlisted: number }) {
  const rows = entries.map(({ dataset, side, check }) => () => [
    dataset ? <Name text={dataset} /> : <span className="facts">{UNNAMED.get(check.status) ?? ""}</span>,
    UNCERTAIN.has(check.status) ? "" : PENDING.get(side) ?? shown(side),
    <Badge status={check.status} />,
    <Values summary={check.expected} />,
    <Origins sources={check.from} />,
  ]);
  if (!rows.length) return null;
  const titles = ["Dataset", "", "Status", "Expected", "Expected because of"];
  return (
    <Section title="Partitions that are expected" titles={titles} rows={rows}>
      {unlisted > 0 && <p className="facts">{unlisted} more are not listed.</p>}
    </Section>
  );
}

const UNCERTAIN = new Set(["inferred", "named"]);
const PENDING = new Map([
  ["read", "to be read"],
  ["write", "to be written"],
  ["either", "to be read or written"],
]);
const UNNAMED = new Map([
  ["expected", "any output"],
  ["inferred", "dates among the arguments"],
]);

interface SectionProps {
  title: string;
  titles: string[];
  rows: (() => ReactNode[])[];
  children?: ReactNode;
}

function Section({ title, titles, rows, children }: SectionProps) {
  return (
    <section className="partitions" aria-label="Partitions">
      <h3>{title}</h3>
      <FoldedTable noun="dataset" titles={titles} rows={rows} />
      {children}
    </section>
  );
}

// A summary of partitions, which breaks between two values and not in one.
function Values({ summary }: { summary: string }) {
  return (
    <span className="values" title={shown(summary)}>
      {summary.split(" … ").map((part, n) => (
        <Fragment key={n}>{n ? " … " : ""}<bdi dir="auto">{shown(part)}</bdi></Fragment>
      ))}
    </span>
  );
}

function how(check: Check, side: string): string {
  if (check.failed) return "was to be written";
  return check.unreported ? `${check.unreported.replaceAll("_", " ")} to be ${side}` : side;
}

function Observed({ check, part }: { check: Check; part: string }) {
  const seen = check.removed ? check.observed : check.observed || part;
  return (
    <div>
      <Values summary={check.status === "unobserved" ? check.observed : seen} />
      {check.removed && <div className="facts">removed: <Values summary={check.removed} /></div>}
      {check.planned && <div className="facts">only planned: <Values summary={check.planned} /></div>}
      {check.unexpected && <div className="unexpected">not expected: <Values summary={check.unexpected} /></div>}
      {check.missing && <div className="missing">missing: <Values summary={check.missing} /></div>}
    </div>
  );
}

function Origins({ sources }: { sources: Origin[] }) {
  const more = sources.length - SOURCES;
  return (
    <>
      {sources.slice(0, SOURCES).map((source, n) => (
        <div key={n} className="origin" title={shown(source.template)}>
          <Name text={valueOf(source)} />
          {" ← "}
          <code><Name text={source.expressions.map((one) => `{{ ${one} }}`).join(" ") || "literal"} /></code>
          <span className="facts"> {shown(`${source.field}, ${source.kind}`)}</span>
        </div>
      ))}
      {more > 0 && <div className="facts">and {more} more</div>}
    </>
  );
}
