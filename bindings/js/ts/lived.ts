import type { Build } from "./builds.js";
import { IsovecError, disposed } from "./error.js";
import type { Downloaded, Facts, Knob, Listening, Living, ProviderInfo, Request } from "./host.js";

/** Loads what is asked for; the two entries of the package do it in different places. */
export type Opener<H extends Living> = (request: Request, listening: Listening) => Promise<H>;

/** Workers whose model was forgotten without being disposed hold the model until the page goes. */
const forgotten = globalThis.FinalizationRegistry && new FinalizationRegistry<Living>((host) => void host.dispose());

/** After a crash the files are fetched again, or come from the cache. */
function repeated<H extends Living>(opener: Opener<H>, request: Request, { fetch }: Listening): () => Promise<H> {
  return () => opener(request, { fetch });
}

/** Arrays that were given are not held on to; that is why this is a function apart, which knows nothing of them. */
function lost(host: Living): () => Promise<never> {
  return () => Promise.reject(new IsovecError("EnginePoisoned", `${String(host.ended?.message)}. Load the model again: its files were given as arrays, which are not kept`));
}

/** What is loaded: where it is, what is known of it, and what is done when it stopped. */
export abstract class Lived<H extends Living> {
  #open: () => Promise<H>;
  #host: H;
  /** The one that is being loaded after a crash. */
  #reopening: Promise<H> | undefined;
  #disposed = false;

  /** @internal */
  protected constructor(host: H, open: () => Promise<H>) {
    this.#host = host;
    this.#open = open;
    forgotten?.register(this, host, this);
  }

  /** @internal */
  protected static async begun<H extends Living, T>(make: (host: H, open: () => Promise<H>) => T, opener: Opener<H>, { request, listening }: { request: Request; listening: Listening }): Promise<T> {
    listening.signal?.throwIfAborted();
    const host = await opener(request, listening);
    const again = "folder" in request.files || [...request.files.contents.values()].every((content) => content instanceof Blob);
    return make(host, again ? repeated(opener, request, listening) : lost(host));
  }

  /** @internal */
  protected get about(): H["about"] {
    return this.#host.about;
  }

  /** Whether a worker computes, and not this thread. */
  get worker(): boolean {
    return this.#host.worker;
  }

  /** The build of the module that computes. */
  get build(): Build {
    return this.#facts.build;
  }

  /** The provider that really computes. */
  provider(): ProviderInfo {
    return this.#facts.provider;
  }

  /** Every knob: the requested value, the value in effect, and the reason. */
  effectiveConfig(): readonly Knob[] {
    return this.#facts.effectiveConfig;
  }

  /** The files that loading fetched, and which of them are cached for the next time. Settled when that is known. */
  async downloaded(): Promise<Downloaded> {
    return (await this.live()).downloaded();
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

  /** @internal */
  protected async live(): Promise<H> {
    if (this.#disposed) throw disposed();
    return this.#reopening || this.#host.ended ? this.#reopen() : this.#host;
  }

  get #facts(): Facts {
    return this.#host.about;
  }

  async #reopen(): Promise<H> {
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
}
