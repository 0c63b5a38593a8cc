import type * as Glue from "../pkg/simd128/isovec_js.js";
import type { Build } from "./builds.js";
import { IsovecError, typed } from "./error.js";

/**
 * A build that is loaded. What one of them made is not to be handed to another, and a module that panicked once is never
 * called again: its memory may be half written.
 */
export class Module {
  #poisoned: IsovecError | undefined;
  /** What ends the calls that are under way. */
  #waiting = new Set<(cause: IsovecError) => void>();

  constructor(
    readonly build: Build,
    readonly glue: typeof Glue,
  ) {
    // A future is polled between events, where nobody catches what ends it, and its promise is then never settled.
    const ended = (cause: unknown) => {
      if (cause instanceof WebAssembly.RuntimeError && (glue.lastPanic() !== undefined || cause.stack?.includes("isovec_js"))) this.#poison(cause);
    };
    globalThis.addEventListener?.("error", ({ error }: ErrorEvent) => ended(error));
    globalThis.addEventListener?.("unhandledrejection", ({ reason }: PromiseRejectionEvent) => ended(reason));
  }

  /** What ended the module, if anything did. */
  get poisoned(): IsovecError | undefined {
    return this.#poisoned;
  }

  /** Calls into the module. */
  async guarded<T>(call: () => Promise<T>): Promise<T> {
    if (this.#poisoned) throw this.#poisoned;
    let end!: (cause: IsovecError) => void;
    const ended = new Promise<never>((_, reject) => (end = reject));
    this.#waiting.add(end);
    try {
      return await Promise.race([call(), ended]);
    } catch (thrown) {
      throw this.#named(thrown);
    } finally {
      this.#waiting.delete(end);
    }
  }

  /** The same for calls that answer at once. */
  guardedNow<T>(call: () => T): T {
    if (this.#poisoned) throw this.#poisoned;
    try {
      return call();
    } catch (thrown) {
      throw this.#named(thrown);
    }
  }

  #named(thrown: unknown): unknown {
    return thrown instanceof WebAssembly.RuntimeError ? this.#poison(thrown) : typed(thrown);
  }

  #poison(cause: WebAssembly.RuntimeError): IsovecError {
    this.#poisoned ??= new IsovecError("EnginePoisoned", `isovec stopped at an internal error (${this.glue.lastPanic() ?? cause.message}); please report it`, { cause });
    for (const end of this.#waiting) end(this.#poisoned);
    return this.#poisoned;
  }
}
