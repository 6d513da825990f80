// The states of a partition: what each is, how it is drawn (form and colour, not colour alone).

export interface State {
  letter: string;
  name: string;
  sentence: string;
  path: string; // in a square of 12
}

const box = (size: number) => `M${6 - size / 2},${6 - size / 2}h${size}v${size}h${-size}z`;

// Those that need a person come first: of several partitions on one day the first of these is shown.
export const STATES: State[] = [
  { letter: "s", name: "stale", sentence: "made of something that has been written again since", path: "M6,0.5l5.5,5.5l-5.5,5.5l-5.5,-5.5z" },
  { letter: "m", name: "mismatched", sentence: "its run read or wrote other partitions than expected", path: "M6,0.5l5.5,10.5h-11z" },
  { letter: "x", name: "missing", sentence: "it was there, and has been removed", path: `${box(9)}m0,0l9,9m0,-9l-9,9` },
  { letter: "n", name: "never written", sentence: "a run of its task was due, and none wrote it", path: box(9) },
  { letter: "u", name: "writer unknown", sentence: "it was read, and no run in the history wrote it", path: box(5) },
  { letter: "c", name: "being checked", sentence: "it is there, and whether it is stale is being looked for", path: box(7) },
  { letter: "f", name: "fresh", sentence: "it is there, and nothing that it is made of has changed", path: box(10) },
];

const BY_LETTER = new Map(STATES.map((state, n) => [state.letter, { state, n }]));

export const stateOf = (letter: string | undefined): State => (BY_LETTER.get(letter ?? "")?.state ?? STATES.at(-1)) as State;

export const rankOf = (letter: string): number => BY_LETTER.get(letter)?.n ?? STATES.length;

export function Mark({ letter }: { letter: string }) {
  return (
    <svg className={`mark ${letter}`} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      <path d={stateOf(letter).path} />
    </svg>
  );
}
