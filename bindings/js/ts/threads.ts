import type * as Glue from "../pkg/threads/isovec_js.js";
import type { Config } from "./config.js";

/** What a worker opens to become a thread. */
export interface Shared {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
}

/** What it answers: nothing when it is ready, or why it never will be. */
export interface Answer {
  failed?: string;
}

/** The most that the module takes, the calling one included. */
const MOST = 64;
/** How long loading waits for a worker. One that comes later is used from then on. */
const PATIENCE_MS = 10_000;

/** How many threads are wanted: as many as the configuration says, else half of the processors, 2 to 4. */
export function wanted(config: Config | undefined): number {
  const asked = config?.session?.intraOpThreads;
  // What is no number of threads is refused where the configuration is read.
  if (asked !== undefined && asked !== null) return Number.isInteger(asked) ? Math.min(asked, MOST) : 1;
  const processors = globalThis.navigator?.hardwareConcurrency ?? 1;
  return Math.min(processors, 4, Math.max(2, Math.ceil(processors / 2)));
}

/** The workers: each is waited for once, and sleeps when there is nothing to do. */
const workers: Promise<void>[] = [];

/** Starts workers until so many threads compute, the calling one included, and waits until they are ready. */
export async function start(glue: typeof Glue, threads: number): Promise<void> {
  while (workers.length < threads - 1) workers.push(worker(glue));
  await Promise.all(workers.slice(0, Math.max(threads - 1, 0)));
}

/** Starts one. It ends with a warning where there will be a thread less. */
async function worker(glue: typeof Glue): Promise<void> {
  let patience;
  try {
    // Written so that bundlers find the file and take it along. webpack puts workers of one name into one file, so this one
    // has another name than the worker that holds a model.
    const started = new Worker(new URL("./thread.js", import.meta.url), { type: "module", name: "isovec-thread" });
    await new Promise<void>((resolve, reject) => {
      started.onmessage = ({ data }: MessageEvent<Answer>) => (data.failed ? reject(new Error(data.failed)) : resolve());
      started.onerror = ({ message }) => reject(new Error(message ?? "its script cannot be loaded"));
      patience = setTimeout(() => reject(new Error(`it is not ready after ${PATIENCE_MS / 1000} s`)), PATIENCE_MS);
      const shared: Shared = { module: glue.isovecModule() as WebAssembly.Module, memory: glue.isovecMemory() as WebAssembly.Memory };
      started.postMessage(shared);
    });
  } catch (cause) {
    console.warn(`isovec goes on without a worker (${String(cause)}). Workers need 'worker-src' in the page's CSP, and dist/thread.js the page's own origin and its Cross-Origin-Embedder-Policy`);
  } finally {
    clearTimeout(patience);
  }
}
