// One sentence, where there is nothing to draw, or where drawing fails.

import { Component, type ReactNode } from "react";

import { shown } from "../shared/names";
import { type Rec, text } from "./values";

export const Sentence = ({ text }: { text: string }) => <p className="sentence" role="status">{shown(text)}</p>;

interface GuardState {
  event: Rec;
  problem: string | null;
}

// A sentence in the place of an event that cannot be drawn.
export class Guard extends Component<{ event: Rec; children: ReactNode }, GuardState> {
  override state: GuardState = { event: this.props.event, problem: null };

  static getDerivedStateFromError(error: unknown): Partial<GuardState> {
    return { problem: error instanceof Error ? error.message : text(error) };
  }

  static getDerivedStateFromProps({ event }: { event: Rec }, before: GuardState): GuardState | null {
    return event === before.event ? null : { event, problem: null };
  }

  override render() {
    const { problem } = this.state;
    return problem === null ? this.props.children : <Sentence text={`The lineage cannot be shown (${problem}).`} />;
  }
}
