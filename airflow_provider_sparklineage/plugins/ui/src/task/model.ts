// A merged RunEvent as the page needs it: datasets with columns, edges between columns, what was
// expected and what is missing. Pure, and tolerant: what is missing in an event is empty here.

import type { Partition } from "../shared/dates";
import { counted, valuesOf } from "../shared/names";
import { Edges } from "./edges";
import { keyOf, list, type Rec, record, text } from "./values";

export interface Column {
  name: string;
  type: string;
  comment: string;
}

export type Side = "read" | "written";

export interface Dataset {
  key: string;
  namespace: string;
  name: string;
  label: string; // the shortest end of its name that no other dataset of the event has
  side: Side | ""; // "" if only edges name it
  columns: Column[];
  part: string;
  partitions: Partition[];
  removed: Partition[];
  facts: string[];
  checks: Check[];
  isDone: boolean; // whether the try read it, or wrote it
}

// How many partitions there are, with the first and the last of them.
export interface Extent {
  count: number;
  first: Partition;
  last: Partition;
}

const EXTENTS = ["expected", "observed", "missing", "unexpected"] as const;
export type Extents = Record<(typeof EXTENTS)[number], Extent>;

// Where an expected value comes from.
export interface Origin {
  dimension: string;
  value: string;
  kind: string;
  field: string;
  template: string;
  expressions: string[];
}

export interface Check {
  status: string;
  expected: string;
  isInferred: boolean;
  extents: Extents;
  observed: string;
  planned: string;
  removed: string;
  failed: boolean;
  unreported: string;
  missing: string;
  unexpected: string;
  from: Origin[];
}

// What is expected of a dataset in a try whose job still runs.
export interface Expectation {
  dataset: string;
  side: string;
  check: Check;
}

export type Model = ReturnType<typeof modelOf>;

const SHOWN_PARTITIONS = 3;
// Datasets that a sentence names.
const NAMED = 3;
// Nothing that somebody can read is deeper; what is deeper would be the end of the stack.
const DEEPEST = 50;
const SIGNS = new Map<unknown, string>([
  ["EQUAL", "="],
  ["NOT_EQUAL", "≠"],
  ["GREATER_THAN", ">"],
  ["GREATER_EQUAL_THAN", "≥"],
  ["LESS_THAN", "<"],
  ["LESS_EQUAL_THAN", "≤"],
]);

export function modelOf(event: Rec) {
  const run = record(record(event.run).facets);
  const check = record(run.sparkLineage_partitionCheck);
  const capture = record(run.sparkLineage_capture);
  const missing = list(capture.degradations).map(missingOf);
  const accesses = accessesOf(capture, missing.some(({ code }) => OF_LAST_RUN.includes(code)));
  const inputs = list(event.inputs).map((d) => datasetOf(record(d), "read", list(check.reads), accesses("read")));
  const outputs = list(event.outputs).map((d) => datasetOf(record(d), "written", list(check.writes), accesses("written")));
  const edges = new Edges(list(event.outputs));
  const sources = withSources(inputs, edges);
  outputs.forEach((dataset) => addColumns(dataset, edges.madeOf(dataset.key)));
  label([...sources, ...outputs]);
  return {
    job: text(record(event.job).name),
    state: text(event.eventType),
    time: text(event.eventTime),
    runId: text(record(event.run).runId),
    summary: text(check.summary),
    spark: text(capture.sparkVersion),
    application: text(capture.applicationId),
    inputs,
    outputs,
    sources,
    edges,
    missing,
    maintained: list(capture.maintenance).map(record).map((one) => ({
      name: text(record(one.dataset).name),
      operation: text(one.operation),
    })),
    unlisted: unlisted(capture),
  };
}

// Who saw a dataset, and how much of it was accessed.
const WITNESSES = new Map<unknown, string>([
  ["listener", "not seen by the observer"],
  ["observer", "seen by the observer alone"],
  ["declared", "declared, not reported"],
]);
interface Access {
  accessed: string;
  marks: string[];
  isDone: boolean;
}
type AccessOf = (key: string) => Access;

// With these a failed try's event has the datasets of the last run.
const OF_LAST_RUN = ["last_known", "not_submitted"];
const USUAL: Access = { accessed: "", marks: [], isDone: true };
const ONLY_KNOWN: Access = { accessed: "", marks: ["of the last run, not seen in this try"], isDone: false };

const ACCESSED = new Map<unknown, string>([
  ["all", "all of it"],
  ["part", "a part of it"],
  ["none", "nothing of it"],
  ["removed", "all data removed"],
  ["unknown", "partitions not known"],
]);

function accessesOf(capture: Rec, hasLastRun: boolean): (side: Side) => AccessOf {
  const entries = list(capture.datasets).map(record);
  const observed = entries.some(({ witness }) => witness === "observer" || witness === "both");
  const known = new Map<string, Access>(
    entries.map(({ dataset, side, witness, accessed, planned, failed }) => [
      JSON.stringify([side === "read" ? "read" : "written", keyOf(record(dataset))]),
      {
        accessed: failed ? "was to be written, which failed" : extentOf(side, accessed),
        marks: [
          planned ? `${text(planned)} only planned` : "",
          observed || witness !== "listener" ? WITNESSES.get(witness) ?? "" : "",
        ].filter(Boolean),
        isDone: !failed && witness !== "declared",
      },
    ])
  );
  return (side) => (key) => known.get(JSON.stringify([side, key])) ?? (hasLastRun ? ONLY_KNOWN : USUAL);
}

// Rows may have been added to others: a write is of "all" only where there are no partitions.
function extentOf(side: unknown, accessed: unknown): string {
  return side === "write" && accessed === "all" ? "unpartitioned" : ACCESSED.get(accessed) ?? "";
}

function datasetOf(dataset: Rec, side: Side, checks: unknown[], accessOf: AccessOf): Dataset {
  const key = keyOf(dataset);
  const { accessed, marks, isDone } = accessOf(key);
  const facets = record(dataset.facets);
  const sides = { ...record(dataset.inputFacets), ...record(dataset.outputFacets) };
  return {
    key,
    namespace: text(dataset.namespace),
    name: text(dataset.name),
    label: "",
    side,
    columns: fieldsOf(list(record(facets.schema).fields), ""),
    part: partOf(facets, sides) || accessed,
    partitions: partitionsOf(record(sides.subset)),
    removed: removedOf(facets),
    facts: [...factsOf(facets, sides), ...marks],
    checks: checks.map(record).filter((c) => keyOf(record(c.dataset)) === key).map(checkOf),
    isDone,
  };
}

function fieldsOf(fields: unknown[], prefix: string, depth = 0): Column[] {
  if (depth > DEEPEST) return [];
  return fields.map(record).flatMap((field) => {
    const name = prefix + text(field.name);
    const column = { name, type: text(field.type), comment: text(field.description) };
    return [column, ...fieldsOf(list(field.fields), `${name}.`, depth + 1)];
  });
}

// --- which part of a dataset ---------------------------------------------------------------------

function partOf(facets: Rec, sides: Rec): string {
  const subset = record(sides.subset);
  const condition = record(subset.inputCondition ?? subset.outputCondition);
  const { summary, count, removed } = record(facets.sparkLineage_partitions);
  const written = text(summary);
  const described = text(record(sides.sparkLineage_subsetDescription).description);
  const part = conditionOf(condition, written) || written || described;
  const emptied = text(record(removed).summary);
  if (!emptied) return part;
  return count === 0 ? `removed: ${emptied}` : `${part} (removed: ${emptied})`;
}

// The partitions that a write emptied, by dimension, as far as the event names them.
function removedOf(facets: Rec): Partition[] {
  const { partitions } = record(record(facets.sparkLineage_partitions).removed);
  return list(partitions).map(dimensionsOf);
}

// The partitions that an event names, by dimension.
function partitionsOf(subset: Rec): Partition[] {
  const condition = record(subset.inputCondition ?? subset.outputCondition);
  if (condition.type !== "partition") return [];
  return list(condition.partitions).map(dimensionsOf);
}

function dimensionsOf(partition: unknown): Partition {
  const dimensions = Object.entries(record(record(partition).dimensions));
  return Object.fromEntries(dimensions.map(([label, value]) => [label, text(value)]));
}

function conditionOf(condition: Rec, summary: string, depth = 0): string {
  if (depth > DEEPEST) return "…";
  if (condition.type === "partition") {
    const names = list(condition.partitions).map(partitionOf);
    if (!names.length) return "no partition";
    if (names.length <= SHOWN_PARTITIONS) return names.join(", ");
    return summary || `${names[0]} … ${names.at(-1)} (${names.length} partitions)`;
  }
  if (condition.type === "location") {
    const locations = list(condition.locations).map(text);
    const more = locations.length - SHOWN_PARTITIONS;
    return locations.slice(0, SHOWN_PARTITIONS).join(", ") + (more > 0 ? ` and ${more} more` : "");
  }
  if (condition.type === "binary") {
    const [first, second] = [condition.left, condition.right].map((side) => conditionOf(record(side), "", depth + 1));
    return `(${first} ${text(condition.operator)} ${second})`;
  }
  if (condition.type === "compare") {
    const operand = (o: unknown) => text(record(o).field ?? record(o).value);
    const sign = SIGNS.get(condition.comparison) ?? text(condition.comparison);
    return `${operand(condition.left)} ${sign} ${operand(condition.right)}`;
  }
  return "";
}

function partitionOf(partition: unknown): string {
  const dimensions = Object.entries(dimensionsOf(partition));
  return text(record(partition).identifier) || dimensions.map(([label, value]) => `${label}=${value}`).join("/");
}

// What the try did, in one sentence after the name of its job; and whether that was expected.
export function sentenceOf({ state, inputs, outputs }: Model): string {
  const read = namesOf(inputs.filter(({ isDone }) => isDone));
  const written = namesOf(outputs.filter(({ isDone }) => isDone));
  const done = [read && `read ${read}`, written && `wrote ${written}`].filter(Boolean).join(", and ");
  const all = [...inputs, ...outputs];
  const having = (statuses: string[]) => all.filter(({ checks }) => checks.some(({ status }) => statuses.includes(status)));
  const wrong = having(["missing", "unexpected"]);
  const isMatched = having(["matched"]).length > 0 && !having(["unobserved"]).length;
  const checked = wrong.length ? `; not as expected: ${namesOf(wrong)}` : isMatched ? ", as expected" : "";
  if (state !== "FAIL") return `${done || "read and wrote nothing that is known"}${checked}.`;
  return done ? `${done}${checked}, and then failed.` : "failed before it read or wrote anything that is known.";
}

function namesOf(datasets: Dataset[]): string {
  const names = [...new Map(datasets.map(({ key, label }) => [key, label])).values()];
  if (names.length > NAMED) return counted(names.length, "dataset");
  return [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" and ");
}

function factsOf(facets: Rec, sides: Rec): string[] {
  const written = record(sides.outputStatistics);
  const facts: string[] = [];
  if (written.rowCount !== undefined) facts.push(`${text(written.rowCount)} rows`);
  const change = text(record(facets.lifecycleStateChange).lifecycleStateChange);
  if (change) facts.push(change.toLowerCase());
  const how = text(record(facets.sparkLineage_partitions).description);
  if (how) facts.push(how);
  return facts;
}

function checkOf(entry: Rec): Check {
  const summary = (name: string) => text(record(entry[name]).summary);
  const from = list(entry.from).map(record).map(sourceOf);
  const expected = summary("expected");
  // Dates among the arguments that were met say what was expected, and nothing else does.
  const inferred = expected || !["matched", "inferred"].includes(text(entry.status)) ? "" : inferredOf(from);
  return {
    status: text(entry.status),
    expected: expected || inferred,
    isInferred: inferred !== "",
    extents: Object.fromEntries(EXTENTS.map((name) => [name, extentOfAll(entry[name])])) as Extents,
    observed: summary("observed"),
    planned: summary("planned"),
    removed: summary("removed"),
    failed: entry.failed === true,
    unreported: text(entry.unreported),
    missing: summary("missing"),
    unexpected: summary("unexpected"),
    from,
  };
}

// What is expected of a try whose job still runs.
export function expectedOf(document: unknown): Expectation[] {
  return list(record(document).entries).map(record).map((entry) => ({
    dataset: text(record(entry.dataset).name),
    side: text(entry.side),
    check: checkOf(entry),
  }));
}

const sourceOf = (source: Rec): Origin => ({
  dimension: text(source.dimension),
  value: text(source.value),
  kind: text(source.kind),
  field: text(source.field),
  template: text(source.template),
  expressions: list(source.expressions).map(text),
});

export const valueOf = ({ dimension, value }: Origin): string => (dimension ? `${dimension}=${value}` : value);

function inferredOf(from: Origin[]): string {
  const values = [...new Set(from.filter(({ kind }) => kind === "inferred").map(valueOf))];
  const more = values.length - SHOWN_PARTITIONS;
  return values.slice(0, SHOWN_PARTITIONS).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

// A count with the names of the first and the last: "dt=2024-05-06/region=eu".
function extentOfAll(counted: unknown): Extent {
  const { count, first, last } = record(counted);
  return { count: Number(count) || 0, first: valuesOf(text(first)), last: valuesOf(text(last)) };
}

// --- columns -------------------------------------------------------------------------------------

// Datasets with the columns that edges come from: the inputs, and others that only edges name.
function withSources(inputs: Dataset[], edges: Edges): Dataset[] {
  const known = new Map(inputs.map((dataset) => [dataset.key, dataset]));
  edges.sources().forEach(({ namespace, name, columns }) => {
    const key = keyOf({ namespace, name });
    const dataset = known.get(key) ?? {
      ...{ key, namespace, name, label: "", side: "" as const, columns: [], part: "" },
      ...{ partitions: [], removed: [], facts: [], checks: [], isDone: false },
    };
    known.set(key, dataset);
    addColumns(dataset, columns);
  });
  return [...known.values()];
}

function addColumns(dataset: Dataset, names: Iterable<string>) {
  const known = new Set(dataset.columns.map((column) => column.name));
  for (const name of names) {
    if (known.has(name)) continue;
    known.add(name);
    dataset.columns.push({ name, type: "", comment: "" });
  }
}

// --- names ---------------------------------------------------------------------------------------

// The shortest end of each name that no other dataset shares.
function label(datasets: Dataset[]) {
  const segments = new Map<string, string[]>();
  datasets.forEach((d) => {
    const parts = `${d.namespace}/${d.name}`.split("/").filter(Boolean).slice(-40);
    segments.set(d.key, parts);
  });
  const ends = new Map<string, number>();
  segments.forEach((parts) => {
    for (let n = 1; n <= parts.length; n++) {
      const end = JSON.stringify(parts.slice(-n));
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
  });
  datasets.forEach((d) => {
    const parts = segments.get(d.key) ?? [];
    let n = 1;
    while (n < parts.length && (ends.get(JSON.stringify(parts.slice(-n))) ?? 0) > 1) n++;
    d.label = parts.slice(-n).join("/") || "(no name)";
  });
}

function missingOf(entry: unknown) {
  const { code, message, dataset, column } = record(entry);
  const where = [text(record(dataset).name), text(column)].filter(Boolean).join(" · ");
  return { code: text(code), message: text(message), where };
}

function unlisted(capture: Rec): number {
  const counts = Object.values(record(capture.degradationCounts)).map(Number);
  const all = counts.reduce((sum, n) => sum + (Number.isFinite(n) ? n : 0), 0);
  return Math.max(0, all - list(capture.degradations).length);
}
