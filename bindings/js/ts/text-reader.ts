import { IsovecError } from "./error.js";
import type { ReadingHost } from "./host.js";
import { Lived, type Opener } from "./lived.js";
import type { PictureText } from "./picture-text.js";
import { portable, type Picture } from "./pictures.js";
import { requestedReading, type LoadReading } from "./request.js";
import type { ModelSource } from "./source.js";

/** The options of a call. */
export interface ReadOptions {
  signal?: AbortSignal;
}

/** The loaded networks that read the text of pictures. */
export abstract class BaseTextReader extends Lived<ReadingHost> {
  /** @internal */
  protected static async opened<T>(make: (host: ReadingHost, open: () => Promise<ReadingHost>) => T, opener: Opener<ReadingHost>, source: ModelSource, options: LoadReading): Promise<T> {
    options.signal?.throwIfAborted();
    return Lived.begun(make, opener, requestedReading(source, options));
  }

  /**
   * Reads pictures, one after another, in their order. A picture without text has no lines. The first that cannot be read is the error
   * `Picture`, and one that is too long and narrow the error `Reading`; both say its place.
   */
  async read(pictures: readonly Picture[], { signal }: ReadOptions = {}): Promise<PictureText[]> {
    if (!Array.isArray(pictures)) throw new IsovecError("Picture", `pictures have to be an array, not ${typeof pictures}`);
    signal?.throwIfAborted();
    const texts: PictureText[] = [];
    for (const [at, picture] of pictures.entries()) {
      const ready = await portable(picture, at);
      texts.push(await (await this.live()).read(ready, at, signal));
    }
    return texts;
  }

  /** Reads one picture. */
  async readOne(picture: Picture, options: ReadOptions = {}): Promise<PictureText> {
    return (await this.read([picture], options))[0]!;
  }
}
