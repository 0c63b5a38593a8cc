import type * as Glue from "../pkg/simd128/isovec_js.js";
import type { Build } from "./builds.js";
import { IsovecError, typed } from "./error.js";

type Cancel = InstanceType<typeof Glue.RawCancel>;

/** The builds that are loaded in this thread. */
const loaded: Module[] = [];

/** Finds out which build a trap ended, of which nobody knows but the browser. */
function ended(cause: unknown): void {
  if (!(cause instanceof WebAssembly.RuntimeError)) return;
  const living = loaded.filter(({ poisoned }) => !poisoned);
  const panicked = living.filter(({ glue }) => glue.lastPanic() !== undefined);
  if (panicked.length > 0) return panicked.forEach((module) => module.end(cause));
  // Of a trap without a panic only the stack tells. It names the build, unless a bundler gave the files other names.
  const stack = cause.stack ?? "";
  const named = living.filter(({ build }) => stack.includes(`/${build}/isovec_js`));
  if (stack.includes("isovec_js")) (named.length > 0 ? named : living).forEach((module) => module.end(cause));
}

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
    if (loaded.push(this) > 1) return;
    // A future is polled between events, where nobody catches what ends it, and its promise is then never settled.
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

  /** The same for a call that a signal ends. */
  async signalled<T>(signal: AbortSignal | undefined, call: (cancel: Cancel) => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    const cancel = new this.glue.RawCancel();
    const abort = () => cancel.cancel();
    signal?.addEventListener("abort", abort, { once: true });
    try {
      return await this.guarded(() => call(cancel));
    } catch (error) {
      // Who aborts hears the reason that they gave, as everywhere on the platform.
      if (error instanceof IsovecError && error.kind === "Cancelled") signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
      if (!this.#poisoned) cancel.free();
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
    return thrown instanceof WebAssembly.RuntimeError ? this.end(thrown) : typed(thrown);
  }

  /** Ends every call that is under way, and refuses those to come. */
  end(cause: WebAssembly.RuntimeError): IsovecError {
    this.#poisoned ??= new IsovecError("EnginePoisoned", `isovec stopped at an internal error (${this.glue.lastPanic() ?? cause.message}); please report it`, { cause });
    for (const end of this.#waiting) end(this.#poisoned);
    return this.#poisoned;
  }
}
