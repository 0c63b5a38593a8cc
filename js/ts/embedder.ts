import type { RawCancel, RawEmbedder } from "../pkg/simd128/isovec_js.js";
import type { Build } from "./builds.js";
import type { Config } from "./config.js";
import { Embeddings, type Fingerprint } from "./embeddings.js";
import { IsovecError } from "./error.js";
import type { Stats } from "./stats.js";
import { cancelled, gather, nameOf, type FetchOptions, type ModelSource } from "./source.js";
import { wanted } from "./threads.js";
import { ready, type Module } from "./wasm.js";

/** How a model is loaded. `config` is the Rust `EmbeddingConfig`. */
export interface LoadOptions extends FetchOptions {
  config?: Config;
  /**
   * The build of the module, for tests and for whoever has to pin it. Default: the fastest that runs here. One that
   * does not is the error `EngineUnavailable`.
   */
  build?: Build;
}

/** How texts are embedded. */
export interface EmbedOptions {
  signal?: AbortSignal;
}

/** Who truly computes. */
export interface ProviderInfo {
  engine: string;
  provider: string;
  version: string;
}

/** One knob of the configuration: what was asked, what is used, and why. */
export interface Knob {
  name: string;
  asked: string | null;
  used: string;
  why: string;
  honoured: boolean;
}

interface About {
  provider: ProviderInfo;
  fingerprint: Fingerprint;
  effectiveConfig: Knob[];
  similarity: string;
}

/** A loaded model that turns texts into vectors. */
export class Embedder {
  #module: Module;
  #raw: RawEmbedder | undefined;
  #about: About;
  /** The build of the module that computes. */
  readonly build: Build;
  /** Components of a vector. */
  readonly dimension: number;
  /** Tokens of a text that the model sees, special ones included. */
  readonly maxLength: number;

  private constructor(module: Module, raw: RawEmbedder) {
    this.#module = module;
    this.#raw = raw;
    this.build = module.build;
    this.#about = JSON.parse(raw.about()) as About;
    this.dimension = raw.dimension;
    this.maxLength = raw.maxLength;
  }

  /** Loads a model: fetches its files (or takes them), checks them, prepares them to run. */
  static async load(source: ModelSource, options: LoadOptions = {}): Promise<Embedder> {
    options.signal?.throwIfAborted();
    const [files, module] = await Promise.all([gather(source, options, options.config?.model), ready(options.build, wanted(options.config))]);
    const config = JSON.stringify(options.config ?? {});
    return withSignal(module, options.signal, async (cancel) => new Embedder(module, await module.glue.RawEmbedder.load(nameOf(source), files, config, cancel)));
  }

  /** Embeds texts, in their order. */
  embed(texts: readonly string[], options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed(texts, "default", options);
  }

  /** The vector of one text. */
  async embedOne(text: string, options: EmbedOptions = {}): Promise<Float32Array> {
    return (await this.#embed([text], "default", options)).row(0);
  }

  /** Embeds a text to search with, under the model's query prompt. */
  embedQuery(text: string, options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed([text], "query", options);
  }

  /** Embeds texts to search in, under the model's passage prompt. */
  embedPassages(texts: readonly string[], options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed(texts, "passage", options);
  }

  /** Tokens that a text makes, special ones included, before truncation. */
  countTokens(text: string): number {
    checkTexts([text]);
    return this.#module.guardedNow(() => this.#live().countTokens(text));
  }

  /** Who truly computes. */
  provider(): ProviderInfo {
    return this.#about.provider;
  }

  /** What makes vectors comparable with this model's. */
  fingerprint(): Fingerprint {
    return this.#about.fingerprint;
  }

  /** Every knob: what was asked, what is in effect, and why. */
  effectiveConfig(): readonly Knob[] {
    return this.#about.effectiveConfig;
  }

  /** What was done since the model was loaded: sessions, buffers, tokens and padding, times. */
  stats(): Stats {
    return JSON.parse(this.#module.guardedNow(() => this.#live().stats())) as Stats;
  }

  /** Frees the model's memory. Later calls throw `Disposed`. */
  dispose(): void {
    this.#raw?.free();
    this.#raw = undefined;
  }

  #live(): RawEmbedder {
    if (!this.#raw) throw new IsovecError("Disposed", "this embedder was disposed; load the model again");
    return this.#raw;
  }

  async #embed(texts: readonly string[], role: string, options: EmbedOptions): Promise<Embeddings> {
    checkTexts(texts);
    const raw = this.#live();
    return withSignal(this.#module, options.signal, async (cancel) => new Embeddings(this.#module, await raw.embed([...texts], role, cancel)));
  }
}

/**
 * JavaScript strings may hold lone surrogates, which no UTF-8 text can. Replacing them in silence
 * would embed another text than the one that was given.
 */
function checkTexts(texts: readonly string[]): void {
  if (!Array.isArray(texts)) throw new IsovecError("InvalidText", `texts have to be an array of strings, not ${typeof texts}`);
  for (const [index, text] of texts.entries()) {
    if (typeof text !== "string") throw new IsovecError("InvalidText", `text ${index} is not a string but ${text === null ? "null" : typeof text}`);
    if (!isWellFormed(text)) throw new IsovecError("InvalidText", `text ${index} holds half of a surrogate pair, which is no character; use text.toWellFormed() to replace it`);
  }
}

function isWellFormed(text: string): boolean {
  const native = (text as { isWellFormed?: () => boolean }).isWellFormed;
  if (native) return native.call(text);
  return !/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(text);
}

async function withSignal<T>(module: Module, signal: AbortSignal | undefined, call: (cancel: RawCancel) => Promise<T>): Promise<T> {
  if (signal?.aborted) throw cancelled(signal);
  const cancel = new module.glue.RawCancel();
  const abort = () => cancel.cancel();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    return await module.guarded(() => call(cancel));
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}
