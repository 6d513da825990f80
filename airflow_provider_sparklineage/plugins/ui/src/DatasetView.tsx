// The partitions of a dataset: as a calendar, as a list, and one of them.

import { useMemo } from "react";

import type { Api } from "./api";
import { useAnswer, useLasting } from "./shared/asked";
import { calendarOf, labelOf } from "./calendar";
import { CalendarGrid } from "./CalendarGrid";
import { ChangesView } from "./ChangesView";
import { List } from "./shared/List";
import { Parted } from "./shared/Name";
import { counted, lastOf, shown, timeOfSeconds } from "./shared/names";
import { PartitionView } from "./PartitionView";
import { PlanOfRange } from "./PlanView";
import type { Address, Go } from "./place";
import { Mark, STATES, stateOf } from "./states";
import { limitedTo, type Range, rangeOf, spansOfStale } from "./timebar";
import { TimeBar } from "./TimeBar";

interface Props {
  api: Api;
  place: Address;
  go: Go;
  version: number; // changes when the history has changed
}

const PATIENCE = 400; // milliseconds

export function DatasetView({ api, place, go, version }: Props) {
  const all = useAnswer((signal) => api.partitions(place, signal), [version], true);
  // Of a large history it takes seconds, once after each build, to find what is stale.
  const isSlow = useLasting(all.isAsked && !all.value, PATIENCE);
  const quick = useAnswer(async (signal) => (isSlow ? api.quickPartitions(place, signal) : null), [isSlow]);
  const { problem } = all;
  const isAsked = all.isAsked && !all.value;
  const value = all.value ?? quick.value;
  const { find: text } = place;
  const states: ReadonlySet<string> = useMemo(() => new Set(place.states), [place.states]);
  const step = place.on ? Number(place.on) : null;
  const names = value?.partitions.names ?? [];
  const letters = value?.partitions.states ?? "";
  const calendar = useMemo(() => calendarOf(names), [value]);
  const counts = useMemo(() => countsOf(letters), [letters]);
  const range = useMemo(() => calendar && rangeOf(calendar, place.from, place.to), [calendar, place.from, place.to]);
  const limited = useMemo(() => (calendar && range ? limitedTo(calendar, range) : calendar), [calendar, range]);
  const inRange = useMemo(() => (range && limited ? new Set([...limited.steps.values()].flat()) : null), [range, limited]);
  const listed = useMemo(() => {
    const all = inRange ? [...inRange].sort((one, other) => one - other).values() : names.keys();
    const on = step === null ? all : (limited?.steps.get(step) ?? []).values();
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const isListed = (n: number) =>
      (!states.size || states.has(letters[n] ?? "")) && words.every((word) => names[n]?.toLowerCase().includes(word));
    return [...on].filter(isListed).reverse(); // the last ones first
  }, [value, states, text, step, limited, inRange]);
  const spans = useMemo(() => (inRange ? spansOfStale(names, letters, (n) => inRange.has(n)) : []), [value, inRange]);

  if (problem) return <p className="sentence" role="status">{problem}</p>;
  if (!value) return <p className="sentence" role="status" aria-busy={isAsked}>Loading the partitions …</p>;
  const isWhole = names.length === 1 && names[0] === "";
  const at = names.indexOf(place.partition);
  const isPlanned = Boolean(range) && place.view === "plan";
  const toggle = (letter: string) => {
    const next = new Set(states);
    if (!next.delete(letter)) next.add(letter);
    go({ states: [...next].join("") });
  };
  // A plan of a range ends with it.
  const chooseRange = (chosen: Range | null, isTyped = false) =>
    go(chosen ? { from: String(chosen.first), to: String(chosen.last), on: "" } : { from: "", to: "", on: "", ...(isPlanned && { view: "" }) }, isTyped);
  const chooseStep = (chosen: number) => {
    const on = calendar?.steps.get(chosen) ?? [];
    if (on.length === 1) go({ partition: names[on[0] as number] ?? "", column: "", on: "" });
    else go({ on: on.length > 1 && chosen !== step ? String(chosen) : "" });
  };
  return (
    <article className="dataset">
      <h2>
        <Parted text={value.short || lastOf(place.name)} />
        <Parted className="facts" text={`${place.namespace} ${place.name}`} />
        <button type="button" onClick={() => go({ view: "Columns" })}>Columns</button>
      </h2>
      {!isWhole && (
        <>
          <div className="legend" role="group" aria-label="Show partitions that are">
            {STATES.filter(({ letter }) => counts.get(letter)).map((state) => (
              <button key={state.letter} type="button" aria-pressed={states.has(state.letter)} title={state.sentence}
                onClick={() => toggle(state.letter)}>
                <Mark letter={state.letter} /> {state.name} {(counts.get(state.letter) ?? 0).toLocaleString("en")}
              </button>
            ))}
          </div>
          {isAsked && <p className="facts" role="status">Looking for what is stale and what was never written …</p>}
          {calendar && calendar.first < calendar.last && (
            <TimeBar calendar={calendar} states={letters} filter={states} range={range} choose={chooseRange} />
          )}
          {calendar && range && (
            <div className="tools">
              <span className="facts" role="status">{labelOf(calendar.unit, range.first)} to {labelOf(calendar.unit, range.last)}</span>
              <button type="button" onClick={() => chooseRange(null)}>All time</button>
              <button type="button" className="act" aria-expanded={isPlanned} onClick={() => go({ view: isPlanned ? "" : "plan" })}>
                What to run again
              </button>
            </div>
          )}
          {isPlanned && <PlanOfRange api={api} dataset={{ namespace: place.namespace, name: place.name }} spans={spans} version={version} />}
          <div className="partitions">
            {limited && (
              <CalendarGrid key={`${limited.first} ${limited.last}`} calendar={limited} states={letters} filter={states} chosen={step} partition={at} choose={chooseStep} />
            )}
            <div className="names">
              <input type="search" aria-label="Find a partition" placeholder="Find a partition" value={text}
                onChange={(event) => go({ find: event.target.value }, true)} />
              <p className="facts" role="status">
                {counted(listed.length, "partition")}
                {step !== null && calendar && (
                  <>
                    {" "}on {labelOf(calendar.unit, step)}{" "}
                    <button type="button" onClick={() => go({ on: "" })}>Show all</button>
                  </>
                )}
              </p>
              {listed.length > 0 && (
                <List label="Partitions" count={listed.length} chosen={listed.indexOf(at)} height={30}
                  choose={(n) => go({ partition: names[listed[n] as number] ?? "", column: "" })}
                  entry={(n) => {
                    const index = listed[n] as number;
                    const state = stateOf(letters[index]);
                    return (
                      <>
                        <Mark letter={state.letter} />
                        <bdi className="name" title={shown(names[index] ?? "")}>{shown(names[index] ?? "") || "all of it"}</bdi>
                        <span className="facts">{state.name} {timeOfSeconds(value.partitions.written[index] ?? null)}</span>
                      </>
                    );
                  }} />
              )}
            </div>
          </div>
          {value.unjudged.map((sentence) => (
            <p key={sentence} className="facts">Not judged: {shown(sentence)}</p>
          ))}
        </>
      )}
      <ChangesView api={api} dataset={place} version={version} />
      {!names.length && <p className="sentence">No run accessed partitions of it.</p>}
      {(place.partition || at >= 0 || !names.length) && (
        <PartitionView key={place.partition} api={api} place={place} go={go} version={version} letter={letters[at] ?? ""}
          cause={value.causes[place.partition] ?? null} />
      )}
    </article>
  );
}

function countsOf(letters: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const letter of letters) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  return counts;
}
