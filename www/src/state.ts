import type { Embeddings } from "isovec";
import { Signal } from "./signal.js";

/** What is searched: passages, and their vectors in the same order. */
export interface Corpus {
  name: string;
  passages: readonly string[];
  index: Embeddings;
  /** Whether it is the one that the page opens with. */
  isSample: boolean;
}

/** A found passage: its place in the corpus, and its score where vectors found it. */
export interface Found {
  index: number;
  score: number | undefined;
}

/** What is searched now; nothing before the sample is there. */
export const corpus = new Signal<Corpus | undefined>(undefined);
/** What the last search found, for the map. */
export const found = new Signal<readonly Found[]>([]);

/** What happened to the engine, the newest last. */
export const events = new Signal<readonly { at: Date; what: string }[]>([]);

/** Adds to what happened. */
export function note(what: string): void {
  events.value = [...events.value, { at: new Date(), what }].slice(-200);
}
