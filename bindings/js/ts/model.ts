import type { Build } from "./builds.js";
import type { Fingerprint } from "./embeddings.js";
import { IsovecError, disposed } from "./error.js";
import type { About, Asked, Capabilities, Downloaded, Host, Items, Knob, Listening, ModelDescription, ProviderInfo, Request, Rows, Task } from "./host.js";
import { ProfileSession, type ProfileOptions } from "./profile.js";
import { requested, type LoadOptions, type LoadPictures } from "./request.js";
import type { ModelSource } from "./source.js";
import type { Stats } from "./stats.js";
import { checkText } from "./texts.js";

/** Opens a model; the two entries of the package do it in different places. */
export type Opener = (request: Request, listening: Listening) => Promise<Host>;

/** Workers whose model was forgotten without being disposed hold the model until the page goes. */
const forgotten = globalThis.FinalizationRegistry && new FinalizationRegistry<Host>((host) => void host.dispose());

/** After a crash the files are fetched again, or come from the cache. */
function repeated(opener: Opener, request: Request, { fetch }: Listening): () => Promise<Host> {
  return () => opener(request, { fetch });
}

/** Arrays that were given are not held on to; that is why this is a function apart, which knows nothing of them. */
function lost(host: Host): () => Promise<Host> {
  return () => Promise.reject(new IsovecError("EnginePoisoned", `${String(host.ended?.message)}. Load the model again: its files were given as arrays, which are not kept`));
}

/** A loaded model, of texts or of pictures: where it is, what is known of it, and what is done when it stopped. */
export abstract class BaseModel {
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
  protected static async opened<T>(task: Task, make: (host: Host, open: () => Promise<Host>) => T, opener: Opener, source: ModelSource, options: LoadOptions & LoadPictures): Promise<T> {
    options.signal?.throwIfAborted();
    const { request, listening } = requested(task, source, options);
    const host = await opener(request, listening);
    const again = "folder" in request.files || [...request.files.contents.values()].every((content) => content instanceof Blob);
    return make(host, again ? repeated(opener, request, listening) : lost(host));
  }

  /** @internal */
  protected get about(): About {
    return this.#host.about;
  }

  /** Whether a worker computes, and not this thread. */
  get worker(): boolean {
    return this.#host.worker;
  }

  /** The build of the module that computes. */
  get build(): Build {
    return this.about.build;
  }

  /** Tokens of a text that the model sees, special ones included; of a picture, the squares. */
  get maxLength(): number {
    return this.about.maxLength;
  }

  /** Tokens that a text makes, special ones included, before truncation. */
  async countTokens(text: string): Promise<number> {
    checkText(text, 0);
    return (await this.#live()).countTokens(text);
  }

  /** The provider that really computes. */
  provider(): ProviderInfo {
    return this.about.provider;
  }

  /** Says which vectors can be compared with this model's. */
  fingerprint(): Fingerprint {
    return this.about.fingerprint;
  }

  /** Every knob: the requested value, the value in effect, and the reason. */
  effectiveConfig(): readonly Knob[] {
    return this.about.effectiveConfig;
  }

  /** The capabilities of the engine with the model. */
  capabilities(): Capabilities {
    return this.about.capabilities;
  }

  /** The model's graph: inputs, outputs, operators, size. */
  description(): ModelDescription {
    return this.about.description;
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

  /**
   * The tokens of ids.
   *
   * @internal
   */
  protected async tokens(ids: Uint32Array): Promise<readonly string[]> {
    return (await this.#live()).tokens(ids);
  }

  /**
   * The rows of items, and the facts about the model that made them.
   *
   * @internal
   */
  protected async run(items: Items, asked: Asked, signal: AbortSignal | undefined): Promise<{ rows: Rows; about: About }> {
    const host = await this.#live();
    const { about } = host;
    return { rows: await host.run(items, asked, signal), about };
  }
}
