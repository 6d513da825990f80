// What is chosen, in the address: each choice can be linked to and gone back from.

import { useEffect, useState } from "react";

import type { Place } from "./api";

const NOWHERE: Place = { namespace: "", name: "", partition: "", column: "" };

function read(): Place {
  const query = new URLSearchParams(window.location.search);
  const entries = Object.keys(NOWHERE).map((key) => [key, query.get(key) ?? ""]);
  return Object.fromEntries(entries) as Place;
}

export function usePlace(): [Place, (change: Partial<Place>) => void] {
  const [place, setPlace] = useState(read);
  useEffect(() => {
    const back = () => setPlace(read());
    window.addEventListener("popstate", back);
    return () => window.removeEventListener("popstate", back);
  }, []);
  const go = (change: Partial<Place>) => {
    const next = { ...place, ...change };
    const query = new URLSearchParams(Object.entries(next).filter(([, value]) => value));
    // Airflow's router numbers the entries of the history.
    const state = window.history.state as { idx?: number } | null;
    window.history.pushState({ ...state, idx: (state?.idx ?? 0) + 1 }, "", `?${query}`);
    setPlace(next);
  };
  return [place, go];
}
