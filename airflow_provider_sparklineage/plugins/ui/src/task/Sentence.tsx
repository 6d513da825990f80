// One sentence, where there is nothing to draw, or where drawing fails.

import { Component, type ReactNode } from "react";

import { shown } from "../shared/names";
import { text } from "./values";

export const Sentence = ({ text }: { text: string }) => <p className="sentence" role="status">{shown(text)}</p>;

interface GuardState {
  of: unknown;
  problem: string | null;
}

// A sentence in the place of what cannot be drawn; `of` is what is drawn: another one is tried again.
// The `tools` stay next to the sentence.
export class Guard extends Component<{ of: unknown; tools?: ReactNode; children: ReactNode }, GuardState> {
  override state: GuardState = { of: this.props.of, problem: null };

  static getDerivedStateFromError(error: unknown): Partial<GuardState> {
    return { problem: error instanceof Error ? error.message : text(error) };
  }

  static getDerivedStateFromProps({ of }: { of: unknown }, before: GuardState): GuardState | null {
    return of === before.of ? null : { of, problem: null };
  }

  override render() {
    const { problem } = this.state;
    if (problem === null) return this.props.children;
    return <><Sentence text={`The lineage cannot be shown (${problem}).`} />{this.props.tools}</>;
  }
}
