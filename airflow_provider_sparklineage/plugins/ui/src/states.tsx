// The states of a partition: what each is, how it is drawn (form and colour, not colour alone).

import { box, crossed, diamond, SIZE, triangle } from "./shared/squares";

export interface State {
  letter: string;
  name: string;
  sentence: string;
  path: string; // in a square
}

const MIDDLE = SIZE / 2;

// Those that need a person come first: of several partitions on one day the first of these is shown.
export const STATES: State[] = [
  { letter: "s", name: "stale", sentence: "made of something that has been written again since", path: diamond(MIDDLE) },
  { letter: "m", name: "mismatched", sentence: "its run read or wrote other partitions than expected", path: triangle(MIDDLE) },
  { letter: "x", name: "missing", sentence: "it was there, and has been removed", path: crossed(MIDDLE) },
  { letter: "n", name: "never written", sentence: "a run of its task was due, and none wrote it", path: box(MIDDLE, 9) },
  { letter: "u", name: "writer unknown", sentence: "it was read, and no run in the history wrote it", path: box(MIDDLE, 5) },
  { letter: "c", name: "being checked", sentence: "it is there, and whether it is stale is being looked for", path: box(MIDDLE, 7) },
  { letter: "f", name: "fresh", sentence: "it is there, and nothing that it is made of has changed", path: box(MIDDLE, 10) },
];

const BY_LETTER = new Map(STATES.map((state, n) => [state.letter, { state, n }]));

export const stateOf = (letter: string | undefined): State => (BY_LETTER.get(letter ?? "")?.state ?? STATES.at(-1)) as State;

export const rankOf = (letter: string): number => BY_LETTER.get(letter)?.n ?? STATES.length;

export function Mark({ letter }: { letter: string }) {
  return (
    <svg className={`mark ${letter}`} viewBox={`0 0 ${SIZE} ${SIZE}`} width={SIZE} height={SIZE} aria-hidden="true">
      <path d={stateOf(letter).path} />
    </svg>
  );
}
