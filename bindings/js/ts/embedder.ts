import type { Build } from "./builds.js";
import { Embeddings, type Fingerprint } from "./embeddings.js";
import { IsovecError, checkWhole, checkWord, disposed } from "./error.js";
import { ROLES, type About, type Asked, type Capabilities, type Downloaded, type Host, type Knob, type Listening, type ModelDescription, type ProviderInfo, type Request, type Role } from "./host.js";
import { ProfileSession, type ProfileOptions } from "./profile.js";
import { requested, type LoadOptions } from "./request.js";
import type { Similarity } from "./similarity.js";
import type { ModelSource } from "./source.js";
import type { Stats } from "./stats.js";
import { stream, type Embedded } from "./stream.js";
import { checkText, checkTexts } from "./texts.js";

/** How texts are embedded. */
export interface EmbedOptions {
  /**
   * The number of first components to keep (matryoshka). They are scaled to unit length again if the vectors have it.
   * At most the model's own. Default: as the model was loaded.
   */
  dimension?: number;
  /**
   * Whether vectors are scaled to unit length. Default: as the model was loaded. `false` needs a model that was
   * loaded with `{ config: { text: { normalize: false } } }`: a call cannot undo the scaling.
   */
  normalize?: boolean;
  /** Ends the call with the signal's `reason`: in the queue at once, in the middle of a run between two operators. */
  signal?: AbortSignal;
}

/** How a stream of texts is embedded. */
export interface StreamOptions extends EmbedOptions {
  /** The prompt that is put before each text. Default: the model's default prompt. */
  role?: Role;
}

/** Opens a model; the two entries of the package do it in different places. */
export type Opener = (request: Request, listening: Listening) => Promise<Host>;

/** Workers whose embedder was forgotten without being disposed hold the model until the page goes. */
const forgotten = globalThis.FinalizationRegistry && new FinalizationRegistry<Host>((host) => void host.dispose());

/** After a crash the files are fetched again, or come from the cache. */
function repeated(opener: Opener, request: Request, { fetch }: Listening): () => Promise<Host> {
  return () => opener(request, { fetch });
}

/** Arrays that were given are not held on to; that is why this is a function apart, which knows nothing of them. */
function lost(host: Host): () => Promise<Host> {
  return () => Promise.reject(new IsovecError("EnginePoisoned", `${String(host.ended?.message)}. Load the model again: its files were given as arrays, which are not kept`));
}

/** A loaded model that turns texts into vectors. */
export abstract class BaseEmbedder {
  #open: () => Promise<Host>;
  #host: Host;
  /** The one that is being loaded after a crash. */
  #reopening: Promise<Host> | undefined;
  #disposed = false;

  /** @internal */
  protected constructor(host: Host, open: () => Promise<Host>) {
    this.#host = host;
    this.#open = open;
    forgotten?.register(this, host, this);
  }

  /** @internal */
  protected static async opened<T>(make: (host: Host, open: () => Promise<Host>) => T, opener: Opener, source: ModelSource, options: LoadOptions): Promise<T> {
    options.signal?.throwIfAborted();
    const { request, listening } = requested(source, options);
    const host = await opener(request, listening);
    const again = "folder" in request.files || [...request.files.contents.values()].every((content) => content instanceof Blob);
    return make(host, again ? repeated(opener, request, listening) : lost(host));
  }

  get #about(): About {
    return this.#host.about;
  }

  /** Whether a worker computes, and not this thread. */
  get worker(): boolean {
    return this.#host.worker;
  }

  /** The build of the module that computes. */
  get build(): Build {
    return this.#about.build;
  }

  /** Components of a vector. */
  get dimension(): number {
    return this.#about.dimension;
  }

  /** Tokens of a text that the model sees, special ones included. */
  get maxLength(): number {
    return this.#about.maxLength;
  }

  /** How the model means its vectors to be compared. */
  get metric(): Similarity {
    return this.#about.metric;
  }

  /** Embeds texts, in their order. Calls that are under way at the same time are computed together. */
  embed(texts: readonly string[], options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed(texts, "default", options);
  }

  /** The vector of one text. */
  async embedOne(text: string, options: EmbedOptions = {}): Promise<Float32Array> {
    return (await this.#embed([text], "default", options)).row(0);
  }

  /** Embeds texts to search with, under the model's query prompt. */
  embedQueries(texts: readonly string[], options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed(texts, "query", options);
  }

  /** Embeds a text to search with, under the model's query prompt: a set of one vector. */
  embedQuery(text: string, options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed([text], "query", options);
  }

  /** Embeds texts to search in, under the model's passage prompt. */
  embedPassages(texts: readonly string[], options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed(texts, "passage", options);
  }

  /** Embeds a text to search in, under the model's passage prompt: a set of one vector. */
  embedPassage(text: string, options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed([text], "passage", options);
  }

  /**
   * Embeds any number of texts, in their order, and reads ahead only far enough to keep the engine busy. After
   * `break` or `return` nothing more is computed.
   */
  async *embedStream(texts: Iterable<string> | AsyncIterable<string>, options: StreamOptions = {}): AsyncIterableIterator<Embedded> {
    const { role = "default", signal, ...asked } = options;
    checkWord("role", role, ROLES);
    yield* stream(texts, (window, signal) => this.#embed(window, role, { ...asked, signal }), signal);
  }

  /** Tokens that a text makes, special ones included, before truncation. */
  async countTokens(text: string): Promise<number> {
    checkText(text, 0);
    return (await this.#live()).countTokens(text);
  }

  /** The provider that really computes. */
  provider(): ProviderInfo {
    return this.#about.provider;
  }

  /** Says which vectors can be compared with this model's. */
  fingerprint(): Fingerprint {
    return this.#about.fingerprint;
  }

  /** Every knob: the requested value, the value in effect, and the reason. */
  effectiveConfig(): readonly Knob[] {
    return this.#about.effectiveConfig;
  }

  /** The capabilities of the engine with the model. */
  capabilities(): Capabilities {
    return this.#about.capabilities;
  }

  /** The model's graph: inputs, outputs, operators, size. */
  description(): ModelDescription {
    return this.#about.description;
  }

  /** The files that loading fetched, and which of them are cached for the next time. Settled when that is known. */
  async downloaded(): Promise<Downloaded> {
    return (await this.#live()).downloaded();
  }

  /** The statistics since the model was loaded: sessions, buffers, tokens and padding, times. */
  async stats(): Promise<Stats> {
    return (await this.#live()).stats();
  }

  /**
   * Records all work from now on, request by request and operator by operator, until the session is finished. Calls
   * that are under way are not recorded. One profile at a time: another one ends with `AlreadyProfiled`.
   */
  async profile(options: ProfileOptions = {}): Promise<ProfileSession> {
    const host = await this.#live();
    await host.startProfile(options);
    return new ProfileSession(host);
  }

  /**
   * Loads the model again, in a new worker. Running calls end with `Disposed`. After a crash (`EnginePoisoned`) the
   * next call does this by itself.
   */
  async recreate(): Promise<void> {
    if (this.#disposed) throw disposed();
    await this.#reopen();
  }

  /** Frees the model's memory. Calls that are under way, and later ones, end with `Disposed`. */
  async dispose(): Promise<void> {
    this.#disposed = true;
    forgotten?.unregister(this);
    const reopened = await this.#reopening?.catch(() => undefined);
    await (reopened ?? this.#host).dispose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async #live(): Promise<Host> {
    if (this.#disposed) throw disposed();
    return this.#reopening || this.#host.ended ? this.#reopen() : this.#host;
  }

  async #reopen(): Promise<Host> {
    const again = async () => {
      await this.#host.dispose();
      return this.#open();
    };
    this.#reopening ??= again().finally(() => (this.#reopening = undefined));
    const host = await this.#reopening;
    if (this.#host !== host) {
      forgotten?.unregister(this);
      forgotten?.register(this, host, this);
      this.#host = host;
    }
    return host;
  }

  async #embed(texts: readonly string[], role: Role, options: EmbedOptions): Promise<Embeddings> {
    checkTexts(texts);
    const { dimension, normalize, signal } = options;
    if (dimension !== undefined) checkWhole("dimension", dimension, 1);
    if (normalize !== undefined && typeof normalize !== "boolean") throw new IsovecError("Config", `\`normalize\` is of type ${typeof normalize}, and has to be true or false`);
    const host = await this.#live();
    const { metric, model } = host.about;
    const asked: Asked = { role, dimension, normalize };
    return new Embeddings({ ...(await host.embed(texts, asked, signal)), metric, model, labels: undefined });
  }
}
