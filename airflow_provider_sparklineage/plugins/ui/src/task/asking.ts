// What the tab asks Airflow: the lineage of a task instance, and again while it goes on.

import type { Links } from "./Flow";
import type { Others } from "./Lineage";
import type { Rec } from "./values";

export interface Task {
  dagId: string;
  runId: string;
  taskId: string;
  mapIndex: number; // -1 for tasks that are not mapped
}

// Asks one of the endpoints of a task instance.
export type Ask = (what: "lineage" | "state" | "partitions", query?: Record<string, string>) => Promise<Response>;

export interface LastRun {
  event: Rec;
  links: Links;
  date: string | null;
  run_id: string;
  try_number: number;
  map_index: number;
}

export interface Answer {
  event: Rec | null;
  message: string; // why there is no event, or what the event does not tell of the try
  tries: number[]; // that have an event
  try_number: number;
  latest: number;
  note: string;
  links: Links;
  state: string | null;
  has_ended: boolean;
  expected_at: string | null;
  expected: Rec | null;
  last: LastRun | null;
}

type Progress = Pick<Answer, "state" | "latest" | "expected_at">;

// An answer, or the sentence that says why there is none.
export type Shown = { answer: Answer } | { sentence: string };

const LOOK_AGAIN_MS = 5000; // while the task is not at its end
const REFUSED = new Map([
  [401, "Your session has ended; log in to see the lineage of this task."],
  [403, "You may not see the lineage of this DAG; ask for access to the DAG and to its XComs."],
]);

// The lineage of a task instance, which `show` gets whenever it has changed.
export class Asking {
  wanted: number | null = null; // the try that is shown or asked for; null for the latest
  private asked = 0;
  private text = ""; // of the answer that is shown
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly ask: Ask,
    private readonly signal: AbortSignal,
    private readonly show: (shown: Shown) => void, // until it returns, it is drawn
    private readonly setBusy: (isBusy: boolean) => void
  ) {
    signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  // Show a try, the latest for null, by an answer that is on its way.
  begin = (tryNumber: number | null, answer: Promise<Response>) => this.load(tryNumber, answer, false);

  // Show a try, the latest for null. What is shown already stays as it is until there is other.
  choose = (tryNumber: number | null) => this.load(tryNumber, this.lineage(tryNumber), false);

  // What other runs accessed.
  others = async (): Promise<Others> => {
    const response = await this.ask("partitions");
    if (!response.ok) throw new Error(`Airflow answered ${response.status}`);
    return (await response.json()) as Others;
  };

  private lineage(tryNumber: number | null): Promise<Response> {
    return this.ask("lineage", tryNumber === null ? {} : { try_number: String(tryNumber) });
  }

  private async load(tryNumber: number | null, answer: Promise<Response>, isLookedForAgain: boolean) {
    clearTimeout(this.timer);
    this.wanted = tryNumber;
    const number = (this.asked += 1);
    const isCurrent = () => number === this.asked && !this.signal.aborted;
    const fail = (sentence: string) => {
      if (isLookedForAgain) this.await(null, tryNumber);
      else this.fail(sentence);
    };
    if (!isLookedForAgain) this.setBusy(true);
    try {
      const response = await answer;
      const text = response.ok ? await response.text() : "";
      if (!isCurrent()) return;
      const refused = REFUSED.get(response.status);
      if (response.ok) this.draw(text, tryNumber);
      else if (refused) this.fail(refused);
      else fail(`Airflow answered ${response.status}; see its log.`);
    } catch (error) {
      if (isCurrent()) fail(`The lineage cannot be shown (${(error as Error).message}).`);
    }
  }

  private fail(sentence: string) {
    this.text = "";
    this.show({ sentence });
    this.setBusy(false);
  }

  private draw(text: string, tryNumber: number | null) {
    const answer = JSON.parse(text) as Answer;
    if (text !== this.text) this.show({ answer });
    this.setBusy(false);
    this.text = text;
    if (!answer.has_ended) this.await(answer, tryNumber);
  }

  // Look again until the task has gone on; a page that nobody looks at asks nothing.
  // known: how far it was; null if that is not known
  private await(known: Progress | null, tryNumber: number | null) {
    const again = () => this.await(known, tryNumber);
    const number = this.asked;
    const look = async () => {
      if (document.hidden) return again();
      let now: Progress | null = null;
      try {
        const response = await this.ask("state");
        if (REFUSED.has(response.status)) return;
        if (response.ok) now = (await response.json()) as Progress;
      } catch {
        if (this.signal.aborted) return;
      }
      if (number !== this.asked) return; // another try was chosen meanwhile
      const isSame = (["state", "latest", "expected_at"] as const).every((key) => now?.[key] === known?.[key]);
      if (now === null || isSame) again();
      else void this.load(tryNumber, this.lineage(tryNumber), true);
    };
    clearTimeout(this.timer);
    if (!this.signal.aborted) this.timer = setTimeout(() => void look(), LOOK_AGAIN_MS);
  }
}
