/** An error of isovec. `kind` is the stable name that Rust gives the same failure. */
export class IsovecError extends Error {
  override readonly name = "IsovecError";
  constructor(
    /** What went wrong, for programs: `MissingFile`, `InvalidModel`, `Cancelled`, `EnginePoisoned`, ... */
    readonly kind: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Refuses a word that is none of those that there are: what it was meant to say is not known. */
export function checkWord(name: string, word: unknown, words: readonly string[]): void {
  if (typeof word === "string" && words.includes(word)) return;
  const said = typeof word === "string" ? JSON.stringify(word) : `of type ${typeof word}`;
  throw new IsovecError("Config", `\`${name}\` is ${said}, and has to be one of ${words.map((word) => JSON.stringify(word)).join(", ")}`);
}

/** The error of an aborted signal. */
export function cancelled(signal: AbortSignal): IsovecError {
  return new IsovecError("Cancelled", "cancelled", { cause: signal.reason });
}

/** The error of an embedder that was disposed. */
export function disposed(): IsovecError {
  return new IsovecError("Disposed", "this embedder was disposed; load the model again");
}

/** Turns whatever was thrown into an `IsovecError`, or leaves it where it is none of ours. */
export function typed(thrown: unknown): unknown {
  if (thrown instanceof Error && "kind" in thrown && typeof thrown.kind === "string") {
    return thrown instanceof IsovecError ? thrown : new IsovecError(thrown.kind, thrown.message);
  }
  return thrown;
}
