// What columns are made of. An event may have a hundred thousand edges, and one column is chosen at a
// time, so edges are made of what the event has when somebody asks for those of a column. Pure.

import { keyOf, list, record, text } from "./values.js";

export class Edges {
  constructor(outputs) {
    this.targets = outputs.map((output) => {
      const lineage = record(record(output.facets).columnLineage);
      return {
        key: keyOf(output),
        fields: new Map(Object.entries(record(lineage.fields))), // column -> what it is made of
        influences: list(lineage.dataset), // columns that choose or order all rows
      };
    });
  }

  // The columns of an output that have lineage, by the output's key.
  madeOf(key) {
    return this.targets.filter((target) => target.key === key).flatMap(({ fields }) => [...fields.keys()]);
  }

  // What a column of an output is made of.
  sourcesOf(key, column) {
    return this.targets
      .filter((target) => target.key === key)
      .flatMap(({ fields }) => edgesOf(fields.get(column), key, column));
  }

  // What influences all rows of an output.
  influencesOn(key) {
    return this.targets
      .filter((target) => target.key === key)
      .flatMap(({ influences }) => influences.map((source) => edgeOf(record(source), key, "", [])));
  }

  // What is made of a column of an input.
  targetsOf({ namespace, name }, column) {
    const isFrom = (source) =>
      text(source.field) === column && text(source.name) === name && text(source.namespace) === namespace;
    return this.targets.flatMap(({ key, fields }) =>
      [...fields].flatMap(([target, field]) =>
        edgesOf(field, key, target, isFrom)
      )
    );
  }

  // Datasets that edges come from, with the columns of each: [{ namespace, name, columns }].
  sources() {
    const found = new Map(); // namespace -> name -> dataset
    const put = (source) => {
      const [namespace, name] = [text(source.namespace), text(source.name)];
      if (!found.has(namespace)) found.set(namespace, new Map());
      const names = found.get(namespace);
      if (!names.has(name)) names.set(name, { namespace, name, columns: new Set() });
      names.get(name).columns.add(text(source.field));
    };
    this.targets.forEach(({ fields }) => fields.forEach((field) => inputsOf(field).forEach(put)));
    this.targets.forEach(({ influences }) => influences.map(record).forEach(put));
    return [...found.values()].flatMap((names) => [...names.values()]);
  }
}

const inputsOf = (field) => list(record(field).inputFields).map(record);

// A large event says only once what is done with the sources of a column: as the type of the column.
function edgesOf(field, target, column, isWanted = () => true) {
  const [type, subtype] = text(record(field).transformationType).split(":");
  const kinds = type === "DIRECT" || type === "INDIRECT" ? [{ type, subtype }] : [];
  return inputsOf(field).filter(isWanted).map((source) => edgeOf(source, target, column, kinds));
}

function edgeOf(source, target, targetColumn, otherwise) {
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
