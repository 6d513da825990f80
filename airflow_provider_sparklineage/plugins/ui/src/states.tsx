// The states of a partition: what each is, how it is drawn (form and colour, not colour alone).

import { box, crossed, diamond, SIZE, triangle, triangleDown } from "./shared/squares";

export interface State {
  letter: string;
  name: string;
  sentence: string;
  form: (x: number) => string; // the path of its square around x, in a line of the height SIZE
}

// Those that need a person come first: of several partitions on one day the first of these is shown.
export const STATES: State[] = [
  { letter: "s", name: "stale", sentence: "made of something that has been written again since", form: diamond },
  { letter: "m", name: "mismatched", sentence: "its run read or wrote other partitions than expected", form: triangle },
  { letter: "w", name: "write failed", sentence: "a run that wrote it failed, and none has written it since", form: triangleDown },
  { letter: "x", name: "missing", sentence: "it was there, and has been removed", form: crossed },
  { letter: "n", name: "never written", sentence: "a run of its task was due, and none wrote it", form: (x) => box(x, 9) },
  { letter: "u", name: "writer unknown", sentence: "it was read, and no run in the history wrote it", form: (x) => box(x, 5) },
  { letter: "c", name: "being checked", sentence: "it is there, and whether it is stale is being looked for", form: (x) => box(x, 7) },
  { letter: "f", name: "fresh", sentence: "it is there, and nothing that it is made of has changed", form: (x) => box(x, 10) },
];

const BY_LETTER = new Map(STATES.map((state, n) => [state.letter, { state, n }]));

export const stateOf = (letter: string | undefined): State => (BY_LETTER.get(letter ?? "")?.state ?? STATES.at(-1)) as State;

export const rankOf = (letter: string): number => BY_LETTER.get(letter)?.n ?? STATES.length;

export function Mark({ letter }: { letter: string }) {
  return (
    <svg className="mark" viewBox={`0 0 ${SIZE} ${SIZE}`} width={SIZE} height={SIZE} aria-hidden="true">
      <path className={stateOf(letter).letter} d={stateOf(letter).form(SIZE / 2)} />
    </svg>
  );
}
