// The first view: the partitions of all datasets that need a person, and one plan over all of them.

import { useEffect, useState } from "react";

import type { Api, Health, Troubled } from "./api";
import { useAnswer } from "./shared/asked";
import { Troubles } from "./Finder";
import { List } from "./shared/List";
import { Parted } from "./shared/Name";
import { counted, nameOf, shown, timeOf } from "./shared/names";
import { PlanOfAll } from "./PlanView";
import type { Address, Go } from "./place";
import { Mark, STATES } from "./states";

interface Props {
  api: Api;
  place: Address;
  go: Go;
  version: number; // changes when the history has changed
  onJudged: (judged: string) => void; // is given another text when more is known
}

// What needs a person; the plan makes the first and the last of them again.
const TROUBLES = STATES.filter(({ letter }) => "smwxn".includes(letter));
const PAUSE = 500; // milliseconds between two portions of the search

export function HealthView({ api, place, go, version, onJudged }: Props) {
  const [round, setRound] = useState(0);
  const quick = useAnswer((signal) => api.health(true, signal), [version], true);
  const full = useAnswer((signal) => api.health(false, signal), [version, round], true);
  const value = full.value ?? quick.value;
  const isSearching = full.isAsked || isUnfinished(full.value);
  useEffect(() => {
    if (value) onJudged(JSON.stringify([version, value.totals]));
    if (full.isAsked || !isUnfinished(full.value)) return undefined;
    const timer = setInterval(() => document.hidden || setRound((before) => before + 1), PAUSE);
    return () => clearInterval(timer);
  }, [full.value, full.isAsked, quick.value]);
  if (!value) {
    const problem = full.problem || quick.problem;
    return <p className="sentence" role="status" aria-busy={!problem}>{problem || "Looking for what needs you …"}</p>;
  }
  const chosen = new Set(place.states);
  const toggle = (letter: string) => {
    const next = new Set(chosen);
    if (!next.delete(letter)) next.add(letter);
    go({ states: [...next].join("") });
  };
  const listed = value.datasets.filter(({ counts }) => !chosen.size || [...chosen].some((letter) => counts[letter]));
  const isPlanned = place.view === "plan";
  return (
    <article className="health" aria-label="Health of all datasets">
      <h2>{value.datasets.length ? `${counted(value.datasets.length + value.more, "dataset")} ${value.datasets.length + value.more === 1 ? "needs" : "need"} you` : "Nothing needs you"}</h2>
      <div className="legend" role="group" aria-label="Show datasets with partitions that are">
        {TROUBLES.map(({ letter, name, sentence }) => (
          <button key={letter} type="button" className="total" aria-pressed={chosen.has(letter)} title={sentence} onClick={() => toggle(letter)}>
            <Mark letter={letter} /> {name} <strong>{totalOf(value, full.value, letter)}</strong>
          </button>
        ))}
        {(isPlanned || value.totals.s || value.totals.n) && (
          <button type="button" className="act" aria-expanded={isPlanned} onClick={() => go({ view: isPlanned ? "" : "plan" })}>What to run again</button>
        )}
      </div>
      <p className="facts" role="status">{sentencesOf(value, full.value, isSearching, full.problem)}</p>
      {isPlanned && <PlanOfAll api={api} version={JSON.stringify([version, isUnfinished(full.value)])} />}
      {listed.length > 0 && (
        <List label="Datasets that need you" count={listed.length} chosen={-1} height={52} className="troubled"
          choose={(n) => listed[n] && go({ namespace: listed[n].namespace, name: listed[n].name, states: place.states })}
          entry={(n) => listed[n] && <Entry {...listed[n]} />} />
      )}
      {value.more > 0 && <p className="facts">and {counted(value.more, "other dataset")} with older troubles</p>}
    </article>
  );
}

function Entry({ namespace, name, short, counts, newest }: Troubled) {
  return (
    <>
      <Parted className="name" title={shown(`${namespace} ${name}`)} text={nameOf({ short, name })} />
      <span className="facts"><Troubles counts={counts} isNamed />{newest && <> since {timeOf(newest)}</>}</span>
    </>
  );
}

const isUnfinished = (value: Health | null): boolean => value !== null && value.looked.done < value.looked.of;

// What is not worked out yet has no number.
function totalOf(value: Health, full: Health | null, letter: string): string {
  const count = value.totals[letter] ?? 0;
  if (letter === "s" && full && !full.is_stale_known) return "too many";
  const isOpen = letter === "s" ? !full : letter === "n" && (!full || isUnfinished(full));
  return count ? `${count.toLocaleString("en")}${isOpen ? "+" : ""}` : isOpen ? "…" : "0";
}

function sentencesOf(value: Health, full: Health | null, isSearching: boolean, problem: string): string {
  const { looked, fine } = value;
  const sentences = [];
  if (fine) sentences.push(`${counted(fine, "dataset")} ${fine === 1 ? "is" : "are"} fine.`);
  if (fine && !value.datasets.length) sentences.push("Choose one, or find a column, to see what it was made of.");
  if (problem) sentences.push(problem);
  else if (!full) sentences.push("Looking for what is stale …");
  else if (isSearching && looked.done < looked.of) {
    sentences.push(`Looking for what was never written: ${looked.done.toLocaleString("en")} of ${counted(looked.of, "dataset")} …`);
  }
  if (full && !full.is_stale_known) sentences.push("Too many partitions are stale to count them: open a dataset to see its own.");
  if (looked.left_out) {
    sentences.push(`In ${counted(looked.left_out, "other dataset")}, never written partitions are not looked for here: open one to see its own.`);
  }
  return sentences.join(" ");
}
