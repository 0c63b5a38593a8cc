import type * as Glue from "../pkg/simd128/isovec_js.js";
import type * as ThreadsGlue from "../pkg/threads/isovec_js.js";
import { fastest, lacking, type Build } from "./builds.js";
import { IsovecError, typed } from "./error.js";
import { start } from "./threads.js";

/** Where a build's parts lie; written so that bundlers find both and take them along. */
interface Parts {
  glue: () => Promise<unknown>;
  wasm: () => URL;
}

const PARTS: Record<Build, Parts> = {
  simd128: {
    glue: () => import("../pkg/simd128/isovec_js.js"),
    wasm: () => new URL("../pkg/simd128/isovec_js_bg.wasm", import.meta.url),
  },
  relaxed: {
    glue: () => import("../pkg/relaxed/isovec_js.js"),
    wasm: () => new URL("../pkg/relaxed/isovec_js_bg.wasm", import.meta.url),
  },
  threads: {
    glue: () => import("../pkg/threads/isovec_js.js"),
    wasm: () => new URL("../pkg/threads/isovec_js_bg.wasm", import.meta.url),
  },
};

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
    this.#poisoned ??= new IsovecError("EnginePoisoned", `isovec stopped at an internal error (${this.glue.lastPanic() ?? cause.message}); reload the page and report it`, { cause });
    for (const end of this.#waiting) end(this.#poisoned);
    return this.#poisoned;
  }
}

const loading = new Map<Build, Promise<Module>>();

/**
 * A build, ready to be called: the one that is asked for, or the fastest that runs here. Each is loaded once, and has as
 * many threads as it was ever wanted to have.
 */
export async function ready(asked: Build | undefined, threads: number): Promise<Module> {
  const build = asked ?? fastest(threads);
  try {
    const module = await once(build);
    if (build === "threads") await start(module.glue as unknown as typeof ThreadsGlue, threads);
    return module;
  } catch (cause) {
    // Its memory is one that not every device can give.
    if (asked || build !== "threads") throw cause;
    console.warn(`isovec computes on one thread: ${String(cause)}`);
    return once(fastest(1));
  }
}

function once(build: Build): Promise<Module> {
  let module = loading.get(build);
  if (!module) {
    module = load(build);
    loading.set(build, module);
    // Another call may try again.
    module.catch(() => loading.delete(build));
  }
  return module;
}

/** Any build, for what all do alike: one that is there or under way, else the fastest. */
export function anyReady(): Promise<Module> {
  const [first] = loading.values();
  return first ?? once(fastest(1));
}

async function load(build: Build): Promise<Module> {
  const unavailable = (why: string, cause?: unknown) => new IsovecError("EngineUnavailable", `isovec's build ${build} cannot be loaded: ${why}`, { cause });
  if (!Object.hasOwn(PARTS, build)) throw unavailable(`there is no such build; there are ${Object.keys(PARTS).join(", ")}`);
  const why = lacking(build);
  if (why) throw unavailable(why);
  try {
    // Side by side: the module, nearly all of the bytes, does not wait for the script.
    const [glue, response] = await Promise.all([PARTS[build].glue() as Promise<typeof Glue>, fetch(PARTS[build].wasm())]);
    await glue.default({ module_or_path: response });
    return new Module(build, glue);
  } catch (cause) {
    throw unavailable(`${String(cause)}. Serve isovec_js_bg.wasm beside isovec_js.js as application/wasm, and allow 'wasm-unsafe-eval' in the page's CSP`, cause);
  }
}
