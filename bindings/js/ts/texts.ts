import { IsovecError } from "./error.js";
import type { Window } from "./stream.js";

/**
 * Characters that a text may have. Models see some hundred words of it; a longer one is a mistake that would cost the
 * module memory that it never gives back.
 */
export const LONGEST = 1 << 24;

/**
 * What is no text is refused by its place. JavaScript strings may hold lone surrogates, which no UTF-8 text can.
 * Replacing them in silence would embed another text than the one that was given.
 */
export function checkTexts(texts: readonly string[]): void {
  if (!Array.isArray(texts)) throw new IsovecError("InvalidText", `texts have to be an array of strings, not ${typeof texts}`);
  for (const [index, text] of texts.entries()) checkText(text, index);
}

/** One text, by its place. */
export function checkText(text: unknown, index: number): asserts text is string {
  if (typeof text !== "string") throw new IsovecError("InvalidText", `text ${index} is not a string but ${text === null ? "null" : typeof text}`);
  if (text.length > LONGEST) throw new IsovecError("InputTooLarge", `text ${index} has ${text.length} characters, and ${LONGEST} are the most; cut it into passages, of which a model sees some hundred words each`);
  if (!isWellFormed(text)) throw new IsovecError("InvalidText", `text ${index} holds half of a surrogate pair, which is no character; use text.toWellFormed() to replace it`);
}

/** Whether a string is a text: half of a surrogate pair is none. */
export function isWellFormed(text: string): boolean {
  const native = (text as { isWellFormed?: () => boolean }).isWellFormed;
  if (native) return native.call(text);
  return !/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(text);
}

/** Texts of a stream that are handed over together: enough to be sorted by length, and batched. */
export const TEXTS: Window<string> = { most: 256, room: 1 << 18, size: (text) => text.length, check: checkText };
