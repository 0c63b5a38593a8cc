import { IsovecError } from "./error.js";
import type { Window } from "./stream.js";
import { checkText } from "./texts.js";

/** Two texts that a model reads together, such as a question and a passage. */
export type Pair = readonly [first: string, second: string];

/** The first texts of pairs, and the second ones. What is no pair of texts is refused by its place. */
export function unzipped(pairs: readonly Pair[]): { firsts: string[]; seconds: string[] } {
  if (!Array.isArray(pairs)) throw new IsovecError("InvalidText", `pairs have to be an array of pairs of strings, not ${typeof pairs}`);
  pairs.forEach(checkPair);
  return { firsts: pairs.map(([first]) => first), seconds: pairs.map(([, second]) => second) };
}

/** One pair, by its place. */
function checkPair(pair: unknown, index: number): void {
  if (!Array.isArray(pair) || pair.length !== 2) throw new IsovecError("InvalidText", `pair ${index} is no array of two strings`);
  for (const text of pair) checkText(text, index);
}

/** Pairs of a stream that are handed over together. */
export const PAIRS: Window<Pair> = { most: 256, room: 1 << 18, size: ([first, second]) => first.length + second.length, check: checkPair };
