// An answer while it is asked for: what there is, or the sentence that says why not.

import { useEffect, useState } from "react";

export interface Answer<T> {
  value: T | null;
  problem: string;
  isAsked: boolean;
}

// Ask whenever one of `keys` changes; what came before stays until there is other, if it `isKept`.
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>, keys: unknown[], isKept = false): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ value: null, problem: "", isAsked: true });
  useEffect(() => {
    const ending = new AbortController();
    setAnswer((before) => ({ value: isKept ? before.value : null, problem: "", isAsked: true }));
    ask(ending.signal).then(
      (value) => ending.signal.aborted || setAnswer({ value, problem: "", isAsked: false }),
      (error: Error) => ending.signal.aborted || setAnswer({ value: null, problem: error.message, isAsked: false })
    );
    return () => ending.abort();
  }, keys);
  return answer;
}

// An answer that is asked for again and again while the page is seen.
export function usePolled<T>(ask: (signal: AbortSignal) => Promise<T>, milliseconds: number): Answer<T> {
  const [round, setRound] = useState(0);
  const answer = useAnswer(ask, [round], true);
  useEffect(() => {
    if (answer.isAsked) return undefined;
    const timer = setInterval(() => document.hidden || setRound((before) => before + 1), milliseconds);
    return () => clearInterval(timer);
  }, [answer.isAsked, milliseconds]);
  return answer;
}

// Whether something has lasted for a while.
export function useLasting(is: boolean, milliseconds: number): boolean {
  const [lasts, setLasts] = useState(false);
  useEffect(() => {
    const timer = is ? setTimeout(() => setLasts(true), milliseconds) : undefined;
    return () => clearTimeout(timer);
  }, [is, milliseconds]);
  return lasts;
}

// A value that has not changed for a while, as what is typed.
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
