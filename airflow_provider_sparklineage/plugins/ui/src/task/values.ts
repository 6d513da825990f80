// Values of an event, whatever they are: a list, a record or a text is what they are taken for.

export type Rec = Record<string, unknown>;

export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

export const record = (value: unknown): Rec =>
  value && typeof value === "object" && !Array.isArray(value) ? (value as Rec) : {};

export const text = (value: unknown): string =>
  value !== null && typeof value === "object" ? JSON.stringify(value) : String(value ?? "");

// One text for each dataset.
export const keyOf = (dataset: { namespace?: unknown; name?: unknown }): string =>
  JSON.stringify([text(dataset.namespace), text(dataset.name)]);
