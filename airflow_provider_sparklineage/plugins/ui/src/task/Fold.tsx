// Of many things the first ones, until somebody asks for all.

import { counted } from "../shared/names";

export const FIRST = 10;

// What is shown of some things: those that are kept are, wherever they stand.
export const firstOf = <T,>(things: T[], isAll: boolean, isKept: (thing: T) => boolean = () => false): T[] =>
  isAll ? things : things.filter((thing, n) => n < FIRST || isKept(thing));

interface Props {
  noun: string;
  count: number;
  isAll: boolean;
  turn: (isAll: boolean) => void;
}

// The button that asks for all, or only for the first.
export function Fold({ noun, count, isAll, turn }: Props) {
  if (count <= FIRST) return null;
  return (
    <button type="button" className="fold" onClick={() => turn(!isAll)}>
      {isAll ? `Show the first ${counted(FIRST, noun)}` : `Show all ${counted(count, noun)}`}
    </button>
  );
}
