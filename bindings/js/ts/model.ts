import type { Fingerprint } from "./embeddings.js";
import type { About, Asked, Capabilities, Host, Items, ModelDescription, Rows, Task } from "./host.js";
import { Lived, type Opener } from "./lived.js";
import { ProfileSession, type ProfileOptions } from "./profile.js";
import { requested, type LoadOptions, type LoadPictures } from "./request.js";
import type { ModelSource } from "./source.js";
import type { Stats } from "./stats.js";
import { checkText } from "./texts.js";

/** A loaded model, of texts or of pictures. */
export abstract class BaseModel extends Lived<Host> {
  /** @internal */
  protected static async opened<T>(task: Task, make: (host: Host, open: () => Promise<Host>) => T, opener: Opener<Host>, source: ModelSource, options: LoadOptions & LoadPictures): Promise<T> {
    options.signal?.throwIfAborted();
    return Lived.begun(make, opener, requested(task, source, options));
  }

  /** Tokens of a text that the model sees, special ones included; of a picture, the squares. */
  get maxLength(): number {
    return this.about.maxLength;
  }

  /** Tokens that a text makes, special ones included, before truncation. */
  async countTokens(text: string): Promise<number> {
    checkText(text, 0);
    return (await this.live()).countTokens(text);
  }

  /** Says which vectors can be compared with this model's. */
  fingerprint(): Fingerprint {
    return this.about.fingerprint;
  }

  /** The capabilities of the engine with the model. */
  capabilities(): Capabilities {
    return this.about.capabilities;
  }

  /** The model's graph: inputs, outputs, operators, size. */
  description(): ModelDescription {
    return this.about.description;
  }

  /** The statistics since the model was loaded: sessions, buffers, tokens and padding, times. */
  async stats(): Promise<Stats> {
    return (await this.live()).stats();
  }

  /**
   * Records all work from now on, request by request and operator by operator, until the session is finished. Calls
   * that are under way are not recorded. One profile at a time: another one ends with `AlreadyProfiled`.
   */
  async profile(options: ProfileOptions = {}): Promise<ProfileSession> {
    const host = await this.live();
    await host.startProfile(options);
    return new ProfileSession(host);
  }

  /**
   * The tokens of ids.
   *
   * @internal
   */
  protected async tokens(ids: Uint32Array): Promise<readonly string[]> {
    return (await this.live()).tokens(ids);
  }

  /**
   * The rows of items, and the facts about the model that made them.
   *
   * @internal
   */
  protected async run(items: Items, asked: Asked, signal: AbortSignal | undefined): Promise<{ rows: Rows; about: About }> {
    const host = await this.live();
    const { about } = host;
    return { rows: await host.run(items, asked, signal), about };
  }
}
