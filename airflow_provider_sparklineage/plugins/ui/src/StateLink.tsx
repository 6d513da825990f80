// A link to a state of the page: a click shows it without loading the page anew, and a click for a new
// tab or window is the browser's.

import type { ReactNode } from "react";

import { type Address, type Go, hrefOf } from "./place";

interface Props {
  to: Partial<Address>; // the state, as its address has it
  go: Go;
  change?: Partial<Address>; // what a click changes, if that is not all of `to`
  title?: string;
  children: ReactNode;
}

export function StateLink({ to, go, change = to, title, children }: Props) {
  return (
    <a href={hrefOf(to)} title={title} onClick={(event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go(change);
    }}>{children}</a>
  );
}
