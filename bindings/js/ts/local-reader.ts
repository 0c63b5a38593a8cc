import type * as Tract from "../pkg/tract/isovec_js.js";
import type { Decode } from "./decode.js";
import { IsovecError, disposed } from "./error.js";
import type { Downloaded, Facts, Listening, ReadingHost, Request } from "./host.js";
import { REFUSED, knobs, living } from "./local.js";
import type { Module } from "./module.js";
import { camelCased, snakeCased } from "./names.js";
import type { PictureText } from "./picture-text.js";
import type { PixelOptions, Portable } from "./pictures.js";
import { gather, using, type Gathered } from "./source.js";

/** What a reader takes besides the module. */
export interface Beside {
  decode: Decode;
  /** The build for networks that the first does not take, if there is another. */
  tract?: () => Promise<Module>;
  /** Why a program does not use the build `native`. */
  notNative?: string | undefined;
}

/** Loads a reader of text in this thread. */
export async function openReader(request: Request, listening: Listening, module: Promise<Module>, beside: Beside): Promise<ReadingHost> {
  const { signal } = listening;
  signal?.throwIfAborted();
  // Side by side. A module that cannot be had is said when the files are there, unless they fail first.
  module.catch(() => {});
  const gathered = await gather(request, listening, noRules);
  return using(gathered, () => made(request, gathered, signal, module, beside));
}

/** Its files are named, so nothing has to be chosen. */
const noRules = () => Promise.reject(new Error("nothing is chosen of named files"));

async function made(request: Request, gathered: Gathered, signal: AbortSignal | undefined, module: Promise<Module>, { decode, tract, notNative }: Beside): Promise<ReadingHost> {
  // A load takes the files out of what it is given.
  const again = tract && request.build === undefined ? { ...gathered, files: new Map(gathered.files) } : undefined;
  try {
    return await loaded(request, gathered, signal, await module, decode, notNative);
  } catch (cause) {
    if (!again || !(cause instanceof IsovecError && REFUSED.includes(cause.kind))) throw cause;
    return await loaded(request, again, signal, await tract!(), decode, cause.message);
  }
}

async function loaded({ name, config, reading, pixels }: Request, { files, downloaded }: Gathered, signal: AbortSignal | undefined, module: Module, decode: Decode, why: string | undefined): Promise<ReadingHost> {
  const { RawTextReader } = living(module).glue as unknown as typeof Tract;
  const raw = await module.signalled(signal, (cancel) => RawTextReader.load(name, files, config, JSON.stringify(snakeCased(reading)), cancel as unknown as Tract.RawCancel));
  return new LocalReader(module, raw, downloaded, (picture, at) => decode(picture, at, pixels ?? {}), why);
}

class LocalReader implements ReadingHost {
  readonly worker = false;
  readonly about: Facts;
  #module: Module;
  #raw: Tract.RawTextReader | undefined;
  #downloaded: Promise<Downloaded>;
  #decode: (picture: Portable, at: number) => ReturnType<Decode>;
  /** Calls that are under way, and what ends them. */
  #running = new Set<AbortController>();

  constructor(module: Module, raw: Tract.RawTextReader, downloaded: Promise<Downloaded>, decode: (picture: Portable, at: number) => ReturnType<Decode>, why: string | undefined) {
    this.#module = module;
    this.#raw = raw;
    this.#downloaded = downloaded;
    this.#decode = decode;
    const about = camelCased<Facts>(JSON.parse(raw.about()));
    this.about = { ...about, effectiveConfig: knobs(about.effectiveConfig, module.build, why), build: module.build };
  }

  get ended(): Error | undefined {
    return this.#module.poisoned;
  }

  async read(picture: Portable, at: number, signal: AbortSignal | undefined): Promise<PictureText> {
    const raw = this.#raw;
    if (!raw) throw disposed();
    signal?.throwIfAborted();
    const own = new AbortController();
    const abort = () => own.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    this.#running.add(own);
    try {
      const { data, width, height, channels } = await this.#decode(picture, at);
      const text = await this.#module.signalled(own.signal, (cancel) => raw.read(data, width, height, channels, at, cancel as unknown as Tract.RawCancel));
      return JSON.parse(text) as PictureText;
    } catch (error) {
      throw this.#raw || this.#module.poisoned ? error : disposed();
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#running.delete(own);
    }
  }

  downloaded(): Promise<Downloaded> {
    return this.#downloaded;
  }

  async dispose(): Promise<void> {
    const raw = this.#raw;
    this.#raw = undefined;
    for (const running of this.#running) running.abort();
    await this.#downloaded;
    // Runs end at the next turn that they give, and until then they hold on to the networks.
    while (this.#running.size > 0 && !this.#module.poisoned) await new Promise((resolve) => setTimeout(resolve));
    if (!this.#module.poisoned) raw?.free();
  }
}
