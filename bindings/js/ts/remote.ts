import { chosen, type Build } from "./builds.js";
import { compiled } from "./compile.js";
import { IsovecError, disposed } from "./error.js";
import { glueAt } from "./glue.js";
import type { About, Asked, Downloaded, Host, Items, Listening, ReadingHost, Request, Rows } from "./host.js";
import { restored, type Call, type FromWorker, type ToWorker } from "./messages.js";
import type { PictureText } from "./picture-text.js";
import type { Portable } from "./pictures.js";
import type { ProfileOptions, RawProfile } from "./profile.js";
import { rulesHere } from "./rules.js";
import { gather, using } from "./source.js";
import type { Stats } from "./stats.js";

/** Loads a model in a worker of its own: what it computes does not block the page, and all its memory goes with it. */
export async function open(request: Request, listening: Listening): Promise<Host & ReadingHost> {
  const { signal } = listening;
  signal?.throwIfAborted();
  const build = await chosen(request);
  signal?.throwIfAborted();
  const remote = new Remote(build, listening.onProgress);
  try {
    // Side by side: the worker's script, the module, and the files, which the page fetches only where it has to.
    const module = compiled(build).then((module) => remote.give(module));
    const load = async () => {
      // Files that were given are the caller's: they are copied to the worker, and never taken away by a transfer.
      if (!listening.fetch || !("folder" in request.files)) return remote.load(request, signal, []);
      const gathered = await gather(request, listening, rulesHere({ ...request, build }));
      const { files: contents, downloaded } = gathered;
      // Everything here was fetched for this load, into arrays that nobody else knows.
      const transfer = Array.from(contents.values(), ({ buffer }) => buffer as ArrayBuffer);
      return using(gathered, () => remote.load({ ...request, files: { contents } }, signal, transfer, downloaded));
    };
    await aborted(signal, Promise.all([load(), module, remote.ready]));
    return remote;
  } catch (cause) {
    remote.end(cause as Error);
    throw cause;
  }
}

/** A promise, or the reason of a signal that is aborted before. */
async function aborted<T>(signal: AbortSignal | undefined, promise: Promise<T>): Promise<T> {
  if (!signal) return promise;
  let abort!: () => void;
  const early = new Promise<never>((_, reject) => (abort = () => reject(signal.reason)));
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, early]);
  } finally {
    signal.removeEventListener("abort", abort);
    early.catch(() => {});
  }
}

/** How long a worker may take to end by itself. */
const PATIENCE_MS = 5000;

interface Waiting {
  resolve: (value: never) => void;
  reject: (cause: unknown) => void;
}

class Remote implements Host, ReadingHost {
  readonly worker = true;
  about!: About;
  ended: Error | undefined;
  /** Settled when the worker's script runs. */
  readonly ready: Promise<void>;
  /** What the worker will compute with. */
  #build: Build;
  #worker: Worker | undefined;
  #waiting = new Map<number, Waiting>();
  #next = 0;
  #downloaded: Promise<Downloaded> | undefined;
  /** Ends the watch over the worker. */
  #watching = new AbortController();

  constructor(build: Build, onProgress: Listening["onProgress"]) {
    this.#build = build;
    let started!: () => void, failed!: (cause: unknown) => void;
    this.ready = new Promise((resolve, reject) => ([started, failed] = [resolve, reject]));
    this.ready.catch(() => {});
    try {
      // Written so that bundlers find the file and take it along.
      this.#worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "isovec" });
    } catch (cause) {
      failed(blocked(String(cause), cause));
      return;
    }
    let runs = false;
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if ("ready" in data) {
        runs = true;
        return started();
      }
      if ("lives" in data) return void this.#watch(data.lives);
      if ("progress" in data) return onProgress?.(data.progress);
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if ("value" in data) return waiting?.resolve(data.value as never);
      const error = restored(data.error);
      waiting?.reject(error);
      if (error instanceof IsovecError && error.kind === "EnginePoisoned") this.end(error);
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      const why = event.message ?? "its script cannot be loaded";
      if (runs) this.end(new IsovecError("EnginePoisoned", `isovec's worker stopped at an internal error (${why}); please report it`));
      else failed(blocked(why));
    };
  }

  async load(request: Request, signal: AbortSignal | undefined, transfer: Transferable[], downloaded?: Promise<Downloaded>): Promise<void> {
    this.#downloaded = downloaded;
    this.about = await this.#call({ call: "load", request, build: this.#build, glue: glueAt(this.#build) }, signal, transfer);
  }

  give(module: WebAssembly.Module): void {
    this.#worker?.postMessage({ call: "module", module } satisfies ToWorker);
  }

  run(items: Items, asked: Asked, signal: AbortSignal | undefined): Promise<Rows> {
    return this.#call({ call: "run", items, asked }, signal);
  }

  read(picture: Portable, at: number, signal: AbortSignal | undefined): Promise<PictureText> {
    return this.#call({ call: "read", picture, at }, signal);
  }

  countTokens(text: string): Promise<number> {
    return this.#call({ call: "countTokens", text });
  }

  tokens(ids: Uint32Array): Promise<readonly string[]> {
    return this.#call({ call: "tokens", ids });
  }

  downloaded(): Promise<Downloaded> {
    return (this.#downloaded ??= this.#call({ call: "downloaded" }));
  }

  stats(): Promise<Stats> {
    return this.#call({ call: "stats" });
  }

  startProfile({ capacity, operators }: ProfileOptions): Promise<void> {
    return this.#call({ call: "startProfile", options: { capacity, operators } });
  }

  finishProfile(): Promise<RawProfile> {
    return this.#call({ call: "finishProfile" });
  }

  async dispose(): Promise<void> {
    if (this.ended) return this.end(this.ended);
    const kept = this.#call({ call: "dispose" });
    for (const [id, { reject }] of [...this.#waiting].slice(0, -1)) {
      this.#waiting.delete(id);
      reject(disposed());
    }
    // What was fetched is being kept for the next time; that is worth a moment, and no more.
    let late;
    await Promise.race([kept.catch(() => {}), new Promise((resolve) => (late = setTimeout(resolve, PATIENCE_MS)))]);
    clearTimeout(late);
    this.end(disposed());
  }

  /** Ends the worker, and every call that waits for it. */
  end(cause: Error): void {
    this.ended ??= cause;
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#watching.abort();
    for (const { reject } of this.#waiting.values()) reject(cause);
    this.#waiting.clear();
  }

  /** Waits for the lock that the worker holds: it is given when the worker is gone, whoever ended it. */
  async #watch(lock: string): Promise<void> {
    const gone = () => this.end(new IsovecError("EnginePoisoned", "isovec's worker is gone: something else than isovec ended it"));
    try {
      // Where storage was taken away after the page began, a newer worker's locks are others than the page's.
      const { held } = await navigator.locks.query();
      if (!held?.some(({ name }) => name === lock)) return;
      await navigator.locks.request(lock, { signal: this.#watching.signal }, gone);
    } catch {
      // The watch has ended, or there is none here.
    }
  }

  #call<T>(call: Call, signal?: AbortSignal, transfer: Transferable[] = []): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.ended || !this.#worker) return reject(this.ended ?? disposed());
      if (signal?.aborted) return reject(signal.reason);
      const id = this.#next++;
      const say = (message: ToWorker, transfer: Transferable[] = []) => this.#worker?.postMessage(message, transfer);
      const abort = () => {
        // Who gave up is told now; the worker hears of it at its next turn.
        this.#waiting.get(id)?.reject(signal!.reason);
        this.#waiting.delete(id);
        say({ call: "cancel", id });
      };
      const settled = <A>(settle: (argument: A) => void) => (argument: A) => {
        signal?.removeEventListener("abort", abort);
        settle(argument);
      };
      this.#waiting.set(id, { resolve: settled(resolve), reject: settled(reject) });
      signal?.addEventListener("abort", abort, { once: true });
      try {
        say({ ...call, id }, transfer);
      } catch (cause) {
        this.#waiting.delete(id);
        settled(reject)(new IsovecError("Config", `what was given cannot be handed to a worker (${String(cause)}); give plain values`, { cause }));
      }
    });
  }
}

function blocked(why: string, cause?: unknown): IsovecError {
  const detail = "Serve dist/worker.js from the page's own origin (an isolated page's worker needs Cross-Origin-Embedder-Policy too), allow 'worker-src' in the page's CSP, or load with { worker: false }, which computes in this thread";
  return new IsovecError("EngineUnavailable", `isovec's worker cannot be started (${why}). ${detail}`, { cause });
}
