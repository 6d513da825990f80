// Values of an event, whatever they are: a list, a record or a text is what they are taken for.

export const list = (value) => (Array.isArray(value) ? value : []);
export const record = (value) =>
  value && typeof value === "object" && !Array.isArray(value) ? value : {};
export const text = (value) =>
  value !== null && typeof value === "object" ? JSON.stringify(value) : String(value ?? "");

// One text for each dataset.
export const keyOf = (dataset) => JSON.stringify([text(dataset.namespace), text(dataset.name)]);
