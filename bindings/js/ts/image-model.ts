import { IsovecError } from "./error.js";
import type { About, AskedPictureLabels, AskedPictureVectors, AskedPictures, Rows, Unread } from "./host.js";
import { BaseModel } from "./model.js";
import { portable, type Picture } from "./pictures.js";
import { stream, type Streamed, type Window } from "./stream.js";

/** Pictures that are handed over together: their values are a few megabytes, whatever their files are. */
export const PICTURES = 16;
const WINDOW: Window<Picture> = { most: PICTURES, room: PICTURES, size: () => 1, check: () => {} };

/** What the pictures of a window became. */
interface Read {
  readonly length: number;
  readonly tokenCounts: Uint32Array;
  readonly truncated: readonly boolean[];
  /** For each its row, or why it has none. */
  readonly rows: readonly (Float32Array | IsovecError)[];
}

/** What a call asks for besides pictures. */
type Own = Omit<AskedPictureVectors, keyof AskedPictures> | Omit<AskedPictureLabels, keyof AskedPictures>;

/** A loaded model of pictures. */
export abstract class BaseImageModel extends BaseModel {
  /** @internal The rows of pictures, of which `first` is the place of the first. Those that cannot be read end the call, or are left out. */
  protected async rows(pictures: readonly Picture[], { first, skip }: AskedPictures, own: Own, signal: AbortSignal | undefined): Promise<{ rows: Rows; about: About }> {
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
    const ran = await this.run(ready, { first, skip, ...own }, signal);
    // What was refused here says it better than what found no bytes.
    return { ...ran, rows: { ...ran.rows, unread: [...(ran.rows.unread ?? []), ...unread] } };
  }

  /** @internal A call with any number of pictures, a few at a time. */
  protected async all(pictures: readonly Picture[], own: Own, signal: AbortSignal | undefined): Promise<{ rows: Rows; about: About }[]> {
    if (!Array.isArray(pictures)) throw new IsovecError("Picture", `pictures have to be an array, not ${typeof pictures}`);
    const sets: { rows: Rows; about: About }[] = [];
    do {
      const first = PICTURES * sets.length;
      sets.push(await this.rows(pictures.slice(first, first + PICTURES), { first, skip: false }, own, signal));
    } while (PICTURES * sets.length < pictures.length);
    return sets;
  }

  /** @internal A stream of pictures: for each what `row` makes of its row, or why it has none. */
  protected async *streamed<R extends object>(pictures: Iterable<Picture> | AsyncIterable<Picture>, own: Own, row: (row: Float32Array) => R, signal: AbortSignal | undefined): AsyncIterableIterator<Streamed & (R | { error: IsovecError })> {
    let taken = 0;
    const compute = async (window: Picture[], signal: AbortSignal): Promise<Read> => {
      const first = taken;
      taken += window.length;
      const { rows } = await this.rows(window, { first, skip: true }, own, signal);
      return placed(window.length, rows);
    };
    yield* stream(pictures, WINDOW, compute, ({ rows }, at) => (rows[at] instanceof IsovecError ? { error: rows[at] } : row(rows[at]!)), signal) as AsyncIterableIterator<Streamed & (R | { error: IsovecError })>;
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
