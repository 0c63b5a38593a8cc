/** What a page and its worker say to each other. */
import type { Build } from "./builds.js";
import { IsovecError } from "./error.js";
import type { ErrorKind } from "./kinds.js";
import type { Asked, Items, Progress, Request } from "./host.js";
import type { Portable } from "./pictures.js";
import type { ProfileOptions } from "./profile.js";

/**
 * A call. The first is `load`, and there is one of it. It has the build that the page chose, and the address of its script as the
 * page knows it: a worker that was made of a blob has no address that others are relative to.
 */
export type Call =
  | { call: "load"; request: Request; build: Build; glue: string | undefined }
  | { call: "run"; items: Items; asked: Asked }
  | { call: "read"; picture: Portable; at: number }
  | { call: "countTokens"; text: string }
  | { call: "tokens"; ids: Uint32Array }
  | { call: "stats" }
  | { call: "startProfile"; options: ProfileOptions }
  | { call: "finishProfile" }
  | { call: "downloaded" }
  | { call: "dispose" };

/** From the page: calls, calls that are taken back, and the compiled module, which `load` waits for last. */
export type ToWorker = (Call & { id: number }) | { call: "cancel"; id: number } | { call: "module"; module: WebAssembly.Module };

/** From the worker: that its script runs, the lock that it holds as long as it lives, how far loading has come, an answer. */
export type FromWorker = { ready: true } | { lives: string } | { progress: Progress } | { id: number; value: unknown } | { id: number; error: Failure };

/** An error on its way: of an `Error` only the message would arrive. */
export interface Failure {
  kind: ErrorKind | undefined;
  name: string;
  message: string;
  cause: string | undefined;
}

export function failure(thrown: unknown): Failure {
  const { name, message, cause } = thrown instanceof Error ? thrown : { name: "Error", message: String(thrown), cause: undefined };
  return { kind: thrown instanceof IsovecError ? thrown.kind : undefined, name, message, cause: cause === undefined ? undefined : String(cause) };
}

export function restored({ kind, name, message, cause }: Failure): Error {
  const options = cause === undefined ? undefined : { cause };
  if (kind !== undefined) return new IsovecError(kind, message, options);
  return Object.assign(new Error(message, options), { name });
}
