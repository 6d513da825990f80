// What columns are made of. An event may have a hundred thousand edges, and one column is chosen at a
// time, so edges are made of what the event has when somebody asks for those of a column. Pure.

import { keyOf, list, type Rec, record, text } from "./values";

export interface Kind {
  type: string;
  subtype: string;
  description: string;
  masking: boolean;
}

export interface Edge {
  dataset: string; // key of the source
  column: string;
  target: string; // key of the output
  targetColumn: string;
  kinds: Kind[];
}

interface Source {
  namespace: string;
  name: string;
  columns: Set<string>;
}

interface Target {
  key: string;
  fields: Map<string, unknown>; // column -> what it is made of
  influences: unknown[]; // columns that choose or order all rows
}

export class Edges {
  private readonly targets: Target[];

  constructor(outputs: unknown[]) {
    this.targets = outputs.map(record).map((output) => {
      const lineage = record(record(output.facets).columnLineage);
      return {
        key: keyOf(output),
        fields: new Map(Object.entries(record(lineage.fields))),
        influences: list(lineage.dataset),
      };
    });
  }

  // The columns of an output that have lineage, by the output's key.
  madeOf(key: string): string[] {
    return this.of(key).flatMap(({ fields }) => [...fields.keys()]);
  }

  // What a column of an output is made of.
  sourcesOf(key: string, column: string): Edge[] {
    return this.of(key).flatMap(({ fields }) => edgesOf(fields.get(column), key, column));
  }

  // What influences all rows of an output.
  influencesOn(key: string): Edge[] {
    return this.of(key).flatMap(({ influences }) =>
      influences.map((source) => edgeOf(record(source), key, "", []))
    );
  }

  // What is made of a column of an input.
  targetsOf({ namespace, name }: { namespace: string; name: string }, column: string): Edge[] {
    const isFrom = (source: Rec) =>
      text(source.field) === column && text(source.name) === name && text(source.namespace) === namespace;
    return this.targets.flatMap(({ key, fields }) =>
      [...fields].flatMap(([target, field]) => edgesOf(field, key, target, isFrom))
    );
  }

  // Datasets that edges come from, with the columns of each.
  sources(): Source[] {
    const found = new Map<string, Map<string, Source>>(); // namespace -> name -> dataset
    const put = (source: Rec) => {
      const [namespace, name] = [text(source.namespace), text(source.name)];
      const names = found.get(namespace) ?? new Map<string, Source>();
      found.set(namespace, names);
      const dataset = names.get(name) ?? { namespace, name, columns: new Set<string>() };
      names.set(name, dataset);
      dataset.columns.add(text(source.field));
    };
    this.targets.forEach(({ fields }) => fields.forEach((field) => inputsOf(field).forEach(put)));
    this.targets.forEach(({ influences }) => influences.map(record).forEach(put));
    return [...found.values()].flatMap((names) => [...names.values()]);
  }

  private of(key: string): Target[] {
    return this.targets.filter((target) => target.key === key);
  }
}

const inputsOf = (field: unknown): Rec[] => list(record(field).inputFields).map(record);

// A large event says only once what is done with the sources of a column: as the type of the column.
function edgesOf(field: unknown, target: string, column: string, isWanted: (source: Rec) => boolean = () => true): Edge[] {
  const [type, subtype] = text(record(field).transformationType).split(":");
  const kinds = type === "DIRECT" || type === "INDIRECT" ? [{ type, subtype }] : [];
  return inputsOf(field).filter(isWanted).map((source) => edgeOf(source, target, column, kinds));
}

function edgeOf(source: Rec, target: string, targetColumn: string, otherwise: unknown[]): Edge {
  const given = source.transformations === undefined ? otherwise : list(source.transformations);
  return {
    dataset: keyOf(source),
    column: text(source.field),
    target,
    targetColumn,
    kinds: given.map(record).map((kind) => ({
      type: text(kind.type),
      subtype: text(kind.subtype),
      description: text(kind.description),
      masking: kind.masking === true,
    })),
  };
}
