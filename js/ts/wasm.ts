import init, { lastPanic } from "../pkg/isovec_js.js";
import { IsovecError, typed } from "./error.js";

let loading: Promise<unknown> | undefined;
let poisoned: IsovecError | undefined;

/** Compiles the module once, streaming. */
export async function ready(): Promise<void> {
  loading ??= init().catch((cause: unknown) => {
    loading = undefined;
    throw new IsovecError("EngineUnavailable", `isovec's WebAssembly module cannot be loaded: ${String(cause)}. Serve isovec_js_bg.wasm beside isovec_js.js as application/wasm, and allow 'wasm-unsafe-eval' in the page's CSP`, { cause });
  });
  await loading;
}

/**
 * Calls into the module. A module that panicked once is never called again: its memory may be
 * half written.
 */
export async function guarded<T>(call: () => T | Promise<T>): Promise<T> {
  if (poisoned) throw poisoned;
  try {
    return await call();
  } catch (thrown) {
    if (thrown instanceof WebAssembly.RuntimeError) {
      poisoned = new IsovecError("EnginePoisoned", `isovec stopped at an internal error (${lastPanic() ?? thrown.message}); reload the page and report it`, { cause: thrown });
      throw poisoned;
    }
    throw typed(thrown);
  }
}

/** The same for calls that answer at once. */
export function guardedNow<T>(call: () => T): T {
  if (poisoned) throw poisoned;
  try {
    return call();
  } catch (thrown) {
    throw typed(thrown);
  }
}
