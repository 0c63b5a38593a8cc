import { Embeddings } from "./embeddings.js";
import { checkForm, type EmbedOptions } from "./embedder.js";
import { IsovecError } from "./error.js";
import type { About, Rows, Unread } from "./host.js";
import { BaseModel } from "./model.js";
import { portable, type Picture } from "./pictures.js";
import type { Similarity } from "./similarity.js";
import { stream, type Streamed, type Window } from "./stream.js";

/** A picture of a stream: its vector, or why it cannot be read. */
export type EmbeddedPicture = Streamed & ({ vector: Float32Array; error?: undefined } | { vector?: undefined; error: IsovecError });

/** Pictures that are handed over together: their values are a few megabytes, whatever their files are. */
const PICTURES = 16;
const WINDOW: Window<Picture> = { most: PICTURES, room: PICTURES, size: () => 1, check: () => {} };

/** What the pictures of a window became. */
interface Read {
  readonly length: number;
  readonly tokenCounts: Uint32Array;
  readonly truncated: readonly boolean[];
  /** For each its vector, or why it has none. */
  readonly rows: readonly (Float32Array | IsovecError)[];
}

/** A loaded model that turns pictures into vectors. */
export abstract class BaseImageEmbedder extends BaseModel {
  /** Components of a vector. */
  get dimension(): number {
    return this.about.dimension;
  }

  /** How the model means its vectors to be compared. */
  get metric(): Similarity {
    return this.about.metric;
  }

  /**
   * Embeds pictures, in their order. The first that cannot be read is the error `Picture`, which says its place; the other
   * pictures and calls are unharmed.
   */
  async embed(pictures: readonly Picture[], options: EmbedOptions = {}): Promise<Embeddings> {
    if (!Array.isArray(pictures)) throw new IsovecError("Picture", `pictures have to be an array, not ${typeof pictures}`);
    const sets: Embeddings[] = [];
    do {
      const first = PICTURES * sets.length;
      const { rows, about } = await this.#rows(pictures.slice(first, first + PICTURES), first, false, options);
      sets.push(new Embeddings({ ...rows, metric: about.metric, model: about.model, labels: undefined }));
    } while (PICTURES * sets.length < pictures.length);
    return sets.length === 1 ? sets[0]! : Embeddings.concat(sets);
  }

  /** The vector of one picture. */
  async embedOne(picture: Picture, options: EmbedOptions = {}): Promise<Float32Array> {
    return (await this.embed([picture], options)).row(0);
  }

  /**
   * Embeds any number of pictures, in their order, and reads ahead only far enough to keep the engine busy. A picture that
   * cannot be read has an `error` in place of its `vector`, and the stream goes on. After `break` or `return` nothing more
   * is computed.
   */
  async *embedStream(pictures: Iterable<Picture> | AsyncIterable<Picture>, { signal, ...asked }: EmbedOptions = {}): AsyncIterableIterator<EmbeddedPicture> {
    let taken = 0;
    const compute = async (window: Picture[], signal: AbortSignal): Promise<Read> => {
      const first = taken;
      taken += window.length;
      const { rows } = await this.#rows(window, first, true, { ...asked, signal });
      return placed(window.length, rows);
    };
    const row = ({ rows }: Read, at: number) => (rows[at] instanceof IsovecError ? { error: rows[at] } : { vector: rows[at]! });
    yield* stream(pictures, WINDOW, compute, row, signal) as AsyncIterableIterator<EmbeddedPicture>;
  }

  async #rows(pictures: readonly Picture[], first: number, skip: boolean, { dimension, normalize, signal }: EmbedOptions): Promise<{ rows: Rows; about: About }> {
    checkForm(dimension, normalize);
    const unread: Unread[] = [];
    const ready = await Promise.all(
      pictures.map((picture, at) =>
        portable(picture, first + at).catch((cause: unknown) => {
          if (!skip || !(cause instanceof IsovecError)) throw cause;
          unread.push({ at, message: cause.message });
          // Its place is that of a file without bytes, which is not looked at.
          return NOTHING;
        }),
      ),
    );
    const ran = await this.run(ready, { first, skip, dimension, normalize }, signal);
    // What was refused here says it better than what found no bytes.
    return { ...ran, rows: { ...ran.rows, unread: [...(ran.rows.unread ?? []), ...unread] } };
  }
}

const NOTHING = new Uint8Array(0);

/** Rows, and errors in the places of those that are missing. */
function placed(length: number, { values, dimension, tokenCounts, unread = [] }: Rows): Read {
  const missing = new Map(unread.map(({ at, message }) => [at, new IsovecError("Picture", message)]));
  let row = 0;
  const counts = new Uint32Array(length);
  const rows = Array.from({ length }, (_, at) => {
    const error = missing.get(at);
    if (error) return error;
    counts[at] = tokenCounts[row]!;
    return values.subarray(row * dimension, ++row * dimension);
  });
  return { length, tokenCounts: counts, truncated: new Array<boolean>(length).fill(false), rows };
}
