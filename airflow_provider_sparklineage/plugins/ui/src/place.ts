// The state of the page, in the address: a reload, Back, and a colleague who opens the link show the
// same.

import { useEffect, useRef, useState } from "react";

import type { Place } from "./api";
import { enter, followAddress, here, queryOf } from "./shared/address";

export interface Address extends Place {
  view: string; // of the partition: one of VIEWS, or of the health: "plan"; of a range of time, too
  depth: string; // how many runs in a row the graph follows
  states: string; // the letters of the states to which a list is limited
  open: string; // ends of the graph of columns that were followed further, one a line
  conditions: string; // whether the graph of columns has conditions, too
  from: string; // the first and the last step of a range of time
  to: string;
  on: string; // a date of the calendar, to which the list of partitions is limited
  find: string; // words of partitions' names
  q: string; // words of datasets' names
  sort: string; // of the list of datasets
}

const OF_LIST = { q: "", sort: "" };
const OF_DATASET = {
  ...{ namespace: "", name: "", partition: "", column: "", view: "", depth: "", states: "" },
  ...{ from: "", to: "", on: "", find: "", open: "", conditions: "" },
};
const NOWHERE: Address = { ...OF_DATASET, ...OF_LIST };

export type Go = (change: Partial<Address>, isTyped?: boolean) => void;

function read(): Address {
  const query = new URLSearchParams(window.location.search);
  const entries = Object.keys(NOWHERE).map((key) => [key, query.get(key) ?? ""]);
  return Object.fromEntries(entries) as unknown as Address;
}

// The address of a state, as a link has it.
export const hrefOf = (address: Partial<Address>): string => here(queryOf({ ...address }));

// Gives the state, and the function that changes a part of it. What is typed (`isTyped`) makes no new
// entry of the browser's history.
export function usePlace(): [Address, Go] {
  const [place, setPlace] = useState(read);
  const latest = useRef(place);
  const show = (next: Address) => {
    latest.current = next;
    setPlace(next);
  };
  useEffect(() => followAddress(() => show(read())), []);
  const go: Go = (change, isTyped = false) => {
    const before = latest.current;
    const isOther = [change.namespace ?? before.namespace, change.name ?? before.name].join() !== [before.namespace, before.name].join();
    const next = { ...before, ...(isOther ? OF_DATASET : {}), ...change };
    show(next);
    enter(hrefOf(next), isTyped);
  };
  return [place, go];
}
