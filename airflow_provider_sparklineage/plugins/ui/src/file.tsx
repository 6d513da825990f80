// The page as one file: the events are in it, the last of each job.

import { type ReactNode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

import { shown } from "./shared/names";
import { adopt } from "./shared/styles";
import { Header, Lineage, USUAL, useModel, useView } from "./task/Lineage";
import { Guard, Sentence } from "./task/Sentence";
import css from "./task/task.css?inline";
import { type Rec, record, text } from "./task/values";

const OLD = "This browser is too old for this page: it has no DecompressionStream. Any of 2023 or later has.";

function Page({ events }: { events: Rec[] }) {
  const [n, choose] = useState(0);
  const event = events[n];
  if (!event) return <Sentence text="There is no lineage in this file." />;
  const tools = events.length > 1 && (
    <nav className="tries">
      <label>
        {"Task "}
        <select value={n} onChange={({ target }) => choose(Number(target.value))}>
          {events.map((one, at) => <option key={at} value={at}>{shown(text(record(one.job).name))}</option>)}
        </select>
      </label>
    </nav>
  );
  return <Guard of={event} tools={tools}><One event={event} tools={tools} /></Guard>;
}

const NO_LINKS = {};

function One({ event, tools }: { event: Rec; tools: ReactNode }) {
  const [view, setView] = useView();
  const model = useModel(event);
  useEffect(() => setView(() => USUAL), [event]);
  return model && (
    <>
      <div className="top"><Header model={model} />{tools}</div>
      <Lineage model={model} links={NO_LINKS} view={view} setView={setView} />
    </>
  );
}

async function unpacked(packed: string): Promise<Rec[]> {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as Rec[];
}

adopt(document, css);
const root = createRoot(document.querySelector("main") as HTMLElement);
if ("DecompressionStream" in globalThis) {
  unpacked(document.getElementById("events")?.textContent ?? "").then((events) => root.render(<Page events={events} />));
} else {
  root.render(<Sentence text={OLD} />);
}
