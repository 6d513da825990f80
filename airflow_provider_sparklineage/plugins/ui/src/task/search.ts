// The search for datasets and columns: each word has to be in their names.

import type { Column, Dataset, Side } from "./model";

export class Search {
  readonly text: string;
  private readonly words: string[];
  private readonly found = new Map<Dataset, Column[]>(); // cards, lists and counts ask for the same datasets

  constructor(text: string) {
    this.text = text.trim();
    this.words = this.text.toLowerCase().split(/\s+/).filter(Boolean);
  }

  get isEmpty(): boolean {
    return !this.words.length;
  }

  // The columns of a dataset that are looked for: those with the words in their own names; without
  // such a column all of them where the dataset is looked for; else those that share the words with it.
  columnsOf(dataset: Dataset): Column[] {
    if (this.isEmpty) return dataset.columns;
    const found = this.found.get(dataset) ?? this.find(dataset);
    this.found.set(dataset, found);
    return found;
  }

  has(dataset: Dataset): boolean {
    return this.isIn(`${dataset.name} ${dataset.label}`.toLowerCase()) || this.columnsOf(dataset).length > 0;
  }

  // What there is to say where nothing was found.
  nothing(side: Side): string {
    return `Nothing that was ${side} has “${this.text}” in its name.`;
  }

  private find({ name, label, columns }: Dataset): Column[] {
    const having = (prefix: string) => columns.filter((column) => this.isIn(`${prefix}${column.name.toLowerCase()}`));
    const own = having("");
    const dataset = `${name} ${label}`.toLowerCase();
    if (own.length) return own;
    return this.isIn(dataset) ? columns : having(`${dataset}.`);
  }

  private isIn(text: string): boolean {
    return this.words.every((word) => text.includes(word));
  }
}
