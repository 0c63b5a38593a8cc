import type { ErrorKind } from "./kinds.js";
import { spoken, spokenOfConfig } from "./names.js";

/** An error of isovec. `kind` is the stable name that Rust gives the same failure. */
export class IsovecError extends Error {
  override readonly name = "IsovecError";
  constructor(
    /** What went wrong, for programs: `MissingFile`, `InvalidModel`, `EnginePoisoned`, ... */
    readonly kind: ErrorKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Refuses an unknown word. */
export function checkWord(name: string, word: unknown, words: readonly string[]): void {
  if (typeof word === "string" && words.includes(word)) return;
  const said = typeof word === "string" ? JSON.stringify(word) : `of type ${typeof word}`;
  throw new IsovecError("Config", `\`${name}\` is ${said}, and has to be one of ${words.map((word) => JSON.stringify(word)).join(", ")}`);
}

/** Refuses values that are not a whole number of at least `least`. */
export function checkWhole(name: string, value: unknown, least: number): void {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) < 2 ** 32) return;
  throw new IsovecError("Config", `\`${name}\` is ${String(value)}, and has to be a whole number from ${least} on`);
}

/** Refuses what is neither true nor false. */
export function checkFlag(name: string, value: unknown): void {
  if (typeof value !== "boolean") throw new IsovecError("Config", `\`${name}\` is of type ${typeof value}, and has to be true or false`);
}

/** The error of a model that was disposed. */
export function disposed(): IsovecError {
  return new IsovecError("Disposed", "this model was disposed; load it again");
}

/** Turns what Rust threw into an `IsovecError` that names knobs as JavaScript does, and leaves other errors unchanged. */
export function typed(thrown: unknown): unknown {
  if (!(thrown instanceof Error && "kind" in thrown && typeof thrown.kind === "string") || thrown instanceof IsovecError) return thrown;
  const message = thrown.kind === "Config" ? spokenOfConfig(thrown.message) : spoken(thrown.message);
  return new IsovecError(thrown.kind as ErrorKind, message);
}
