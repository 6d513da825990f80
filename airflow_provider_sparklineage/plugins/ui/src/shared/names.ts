// Names and values as people read them.

// A name can be of any length; what is longer can only be there to break something. Control characters
// have no look, and separators that turn or hide text get one here.
const LONGEST = 2000;
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

export const shown = (text: string): string =>
  (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text).replace(INVISIBLE, "\ufffd");

export const lastOf = (name: string): string => shown(name.split("/").filter(Boolean).at(-1) ?? name);

// The name of a dataset in an answer.
export const nameOf = ({ short, name }: { short?: string; name: string }): string => (short ? shown(short) : lastOf(name));

// The parts of a name, between which a line may break: "daily_delays_", "of_carrier". They are not
// shorter than is of use, because each break is an element of the page.
export const partsOf = (text: string): string[] => text.match(/.{6,}?[_\-./=]+(?![_\-./=]|$)|.+$/gs) ?? [];

export const counted = (count: number, noun: string): string =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export const timeOf = (iso: string | null): string => (iso ? `${iso.slice(0, 16).replace("T", " ")} UTC` : "");

export const timeOfSeconds = (seconds: number | null): string =>
  seconds === null ? "" : timeOf(new Date(seconds * 1000).toISOString());

// Midnight is a day.
export function dateOf(time: string): string {
  const iso = new Date(time).toISOString();
  return iso.endsWith("T00:00:00.000Z") ? iso.slice(0, 10) : timeOf(iso);
}

// What a partition's name says, by dimension: "dt=2024-05-06/region=eu".
export function valuesOf(partition: string): Record<string, string> {
  const plain = (part: string) =>
    part.replace(/%([0-9A-Fa-f]{2})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
  const folders = partition.split("/").filter((folder) => folder.includes("="));
  return Object.fromEntries(
    folders.map((folder) => {
      const at = folder.indexOf("=");
      return [plain(folder.slice(0, at)), plain(folder.slice(at + 1))];
    })
  );
}
