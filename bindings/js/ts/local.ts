import type { RawModel } from "../pkg/simd128/isovec_js.js";
import type { Build } from "./builds.js";
import type { Fingerprint } from "./embeddings.js";
import { IsovecError, disposed } from "./error.js";
import type { About, Asked, AskedPictures, Downloaded, Host, Items, Knob, Listening, Request, Rows, Unread } from "./host.js";
import type { Module } from "./module.js";
import { camelCased, spoken } from "./names.js";
import type { PixelOptions, Portable } from "./pictures.js";
import type { Pixels } from "./pixels.js";
import type { ProfileOptions, RawProfile } from "./profile.js";
import { rulesOf } from "./rules.js";
import { gather, using, type Gathered } from "./source.js";
import type { Fallback, Stats } from "./stats.js";

/** Kinds of errors by which the engine says that its programs do not take a model. */
export const REFUSED = ["UnsupportedModel", "UnsupportedOperator"];

/** The file of a decoder that says how it is asked about a query and a document, and older ones that may say it in a member. */
const CHAT_TEMPLATE = "chat_template.jinja";
const OLDER = ["chat_template.json", "tokenizer_config.json"];

/** What is fetched for some models alone, where anything may be fetched later. */
export interface Later {
  /** The build for models that the others' programs do not take. */
  tract: () => Promise<Module>;
  /** What makes pictures ready. */
  pixels: (origin: string, files: ReadonlyMap<string, Uint8Array>, options: PixelOptions) => Promise<Pixels>;
  /** Why a program does not use the build `native`. */
  notNative?: string | undefined;
}

/**
 * Loads a model in this thread, by a build that `module` brings, or, where its programs do not take the model and nobody
 * asked for that very build, by the build `tract`.
 */
export async function open(request: Request, listening: Listening, module: Promise<Module>, later?: Later): Promise<Host> {
  const { signal } = listening;
  signal?.throwIfAborted();
  // Side by side. A module that cannot be had is said when the files are there, unless they fail first.
  module.catch(() => {});
  const gathered = await gather(request, listening, rulesOf(module));
  return using(gathered, () => made(request, gathered, signal, module, later));
}

async function made(request: Request, gathered: Gathered, signal: AbortSignal | undefined, module: Promise<Module>, later: Later | undefined): Promise<Host> {
  // Only that build reads chat templates. A decoder is large, so it is not read twice.
  const template = request.output === "relevance" ? withTemplate(gathered.files) : undefined;
  if (later && request.build === undefined && template !== undefined) {
    const { build } = await module;
    const instead = { from: build, to: "tract", cause: `${template} says how the model is asked` } as const;
    if (build !== "native") return loaded(request, gathered, signal, later.tract(), later, instead);
  }
  // A load takes the files out of what it is given. Only ONNX files are read by others than programs.
  const isOnnx = Array.from(gathered.files.keys()).some((name) => name.endsWith(".onnx"));
  const again = later && isOnnx && request.build === undefined ? { ...gathered, files: new Map(gathered.files) } : undefined;
  try {
    return await loaded(request, gathered, signal, module, later);
  } catch (cause) {
    if (!again || !(cause instanceof IsovecError && REFUSED.includes(cause.kind))) throw cause;
    const { build } = await module;
    return await loaded(request, again, signal, later!.tract(), later, { from: build, to: "tract", cause: cause.message });
  }
}

/** The file with a chat template, if one of them has it. */
function withTemplate(files: Gathered["files"]): string | undefined {
  if (files.has(CHAT_TEMPLATE)) return CHAT_TEMPLATE;
  return OLDER.find((name) => files.has(name) && new TextDecoder().decode(files.get(name)).includes('"chat_template"'));
}

async function loaded(request: Request, { files, downloaded }: Gathered, signal: AbortSignal | undefined, module: Promise<Module>, later: Later | undefined, instead?: Fallback): Promise<Host> {
  const engine = living(await module);
  const pixels = request.pixels && (await later!.pixels(request.name, files, request.pixels));
  const raw = await engine.signalled(signal, (cancel) => engine.glue.RawModel.load(request.name, files, request.config, request.output, pixels?.json(), cancel)).catch((cause: unknown) => {
    pixels?.free();
    throw cause;
  });
  const local = new Local(engine, raw, downloaded, pixels, instead, later?.notNative);
  if (!pixels || String(pixels.size) === String(local.about.pixels)) return local;
  await local.dispose();
  const [[height, width], [high, wide]] = [pixels.size, local.about.pixels!];
  throw new IsovecError("Preprocessor", `${request.name}: preprocessor_config.json: it makes an input of ${width} x ${height} pixels, and the model reads ${wide} x ${high}`);
}

/** The module, unless it stopped. */
export function living(module: Module): Module {
  const { poisoned } = module;
  if (!poisoned) return module;
  throw new IsovecError("EnginePoisoned", `${poisoned.message}. In this thread the module cannot be replaced: reload the page, or load in a worker`, { cause: poisoned });
}

/** The knobs as the engine has them under JavaScript's names, and the build, where another was wanted. */
export function knobs(all: readonly Knob[], used: Build, why: string | undefined): readonly Knob[] {
  const named = all.map(({ name, why, ...knob }) => ({ name: spoken(name), ...knob, why: spoken(why) }));
  return why === undefined ? named : [...named, { name: "build", asked: null, used, why, honoured: true }];
}

class Local implements Host {
  readonly worker = false;
  readonly about: About;
  #module: Module;
  #raw: RawModel | undefined;
  #downloaded: Promise<Downloaded>;
  /** Calls that are under way, and what ends them. */
  #running = new Set<AbortController>();
  /** Calls that found the engine's queue full, in their order. */
  #waiting: (() => void)[] = [];
  /** When the profile began, if one is under way. */
  #profiled = 0;
  /** What makes pictures ready, for a model of those. */
  #pixels: Pixels | undefined;
  /** The build that did not take the model, if one was tried before. */
  #instead: Fallback | undefined;

  constructor(module: Module, raw: RawModel, downloaded: Promise<Downloaded>, pixels: Pixels | undefined, instead: Fallback | undefined, notNative: string | undefined) {
    this.#downloaded = downloaded;
    this.#module = module;
    this.#raw = raw;
    this.#pixels = pixels;
    this.#instead = instead;
    const { dimension, maxLength } = raw;
    const about = camelCased<About>(JSON.parse(raw.about()));
    this.about = { ...about, effectiveConfig: knobs(about.effectiveConfig, module.build, instead?.cause ?? notNative), build: module.build, dimension, maxLength };
  }

  get ended(): Error | undefined {
    return this.#module.poisoned;
  }

  /** A call that finds the queue full waits for its turn: its items are the caller's memory as much as when it is refused. */
  async run(items: Items, asked: Asked, signal: AbortSignal | undefined): Promise<Rows> {
    if (this.#waiting.length > 0) await this.#turn(signal);
    try {
      for (;;) {
        try {
          return await this.#once(items, asked, signal);
        } catch (error) {
          // Where nobody runs, nobody would ever make room.
          if (!(error instanceof IsovecError && error.kind === "Overloaded" && this.#running.size > 0)) throw error;
          await this.#turn(signal);
        }
      }
    } finally {
      // So many items fit where these were.
      for (const turn of this.#waiting.splice(0, Math.max(items.length, 1))) turn();
    }
  }

  async #once(items: Items, asked: Asked, signal: AbortSignal | undefined): Promise<Rows> {
    const raw = this.#live();
    const own = new AbortController();
    const abort = () => own.abort(signal?.reason);
    signal?.throwIfAborted();
    signal?.addEventListener("abort", abort, { once: true });
    this.#running.add(own);
    try {
      const read = "skip" in asked ? await this.#read(items as readonly Portable[], asked, own.signal) : undefined;
      const rows = await this.#module.signalled(own.signal, (cancel) => {
        if ("skip" in asked) return "scores" in asked ? raw.classifyValues(read!.values, asked.scores, cancel) : raw.embedValues(read!.values, cancel, asked.dimension, asked.normalize);
        const texts = [...(items as readonly string[])];
        if ("tokens" in asked) return raw.embedTokens(texts, asked.lead, cancel);
        if ("topK" in asked) return raw.embedWords(texts, asked.lead, cancel, asked.topK);
        if ("scores" in asked) return "seconds" in asked ? raw.classify(texts, [...asked.seconds], asked.scores, asked.lead, cancel) : raw.classify(texts, undefined, asked.scores, "default", cancel);
        return raw.embed(texts, asked.lead, cancel, asked.dimension, asked.normalize);
      });
      try {
        // Other vectors than the model was loaded for are other vectors to compare with.
        const made = "dimension" in asked && (asked.dimension !== undefined || asked.normalize !== undefined) ? rows.fingerprint() : undefined;
        const fingerprint = made === undefined ? this.about.fingerprint : (JSON.parse(made) as Fingerprint);
        return { values: rows.values(), tokenCounts: rows.tokenCounts(), truncated: rows.truncated(), prompt: rows.prompt() ?? null, dimension: rows.dimension, fingerprint, ...(read && { unread: read.unread }), ...("tokens" in asked && { offsets: rows.offsets() }), ...("topK" in asked && { offsets: rows.offsets(), indices: rows.indices() }) } as Rows;
      } finally {
        rows.free();
      }
    } catch (error) {
      throw this.#raw || this.#module.poisoned ? error : disposed();
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#running.delete(own);
    }
  }

  /** The values of pictures, one after another, and those that cannot be read. */
  async #read(pictures: readonly Portable[], { first, skip }: AskedPictures, signal: AbortSignal): Promise<{ values: Float32Array; unread: Unread[] }> {
    const pixels = this.#pixels!;
    const [height, width] = pixels.size;
    const all = new Float32Array(pictures.length * 3 * height * width);
    const unread: Unread[] = [];
    let filled = 0;
    const ahead = pixels.isBeside ? pictures.map((picture, at) => pixels.values(picture, first + at)) : [];
    for (const early of ahead) early.catch(() => {}); // They are awaited when their turn comes.
    for (const [at, picture] of pictures.entries()) {
      // Who gave up is heard between two pictures.
      if (!pixels.isBeside) await new Promise((resolve) => setTimeout(resolve));
      signal.throwIfAborted();
      try {
        const values = await (ahead[at] ?? pixels.values(picture, first + at));
        all.set(values, filled);
        filled += values.length;
      } catch (cause) {
        if (!skip || !(cause instanceof IsovecError && cause.kind === "Picture")) throw cause;
        unread.push({ at, message: cause.message });
      }
    }
    return { values: all.subarray(0, filled), unread };
  }

  async #turn(signal: AbortSignal | undefined): Promise<void> {
    await new Promise<void>((resolve) => {
      const turn = () => {
        this.#waiting = this.#waiting.filter((one) => one !== turn);
        signal?.removeEventListener("abort", turn);
        resolve();
      };
      this.#waiting.push(turn);
      signal?.addEventListener("abort", turn, { once: true });
    });
  }

  downloaded(): Promise<Downloaded> {
    return this.#downloaded;
  }

  async countTokens(text: string): Promise<number> {
    return this.#module.guardedNow(() => this.#live().countTokens(text));
  }

  async tokens(ids: Uint32Array): Promise<readonly string[]> {
    return this.#module.guardedNow(() => this.#live().tokens(ids));
  }

  async stats(): Promise<Stats> {
    const stats = camelCased<Stats>(JSON.parse(this.#module.guardedNow(() => this.#live().stats())));
    if (this.#instead) stats.provider.fallbacks.unshift({ ...this.#instead });
    return stats;
  }

  async startProfile({ capacity = 1 << 16, operators = true }: ProfileOptions): Promise<void> {
    if (!Number.isInteger(capacity) || capacity < 1 || capacity >= 2 ** 32) throw new IsovecError("Config", `a profile's capacity is ${String(capacity)}, and has to be a whole number from 1 on`);
    const began = performance.timeOrigin + performance.now();
    this.#module.guardedNow(() => this.#live().startProfile(capacity, operators));
    this.#profiled = began;
  }

  async finishProfile(): Promise<RawProfile> {
    const trace = this.#module.guardedNow(() => this.#live().finishProfile());
    return { trace, began: this.#profiled };
  }

  async dispose(): Promise<void> {
    const raw = this.#raw;
    this.#raw = undefined;
    for (const running of this.#running) running.abort();
    for (const turn of this.#waiting.splice(0)) turn();
    await this.#downloaded;
    // Runs end at the next turn that they give, and until then they hold on to the model.
    while (this.#running.size > 0 && !this.#module.poisoned) await new Promise((resolve) => setTimeout(resolve));
    if (!this.#module.poisoned) raw?.free();
    this.#pixels?.free();
    this.#pixels = undefined;
  }

  #live(): RawModel {
    if (!this.#raw) throw disposed();
    return this.#raw;
  }
}
