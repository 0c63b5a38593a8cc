/** An item of a stream, and what the model saw of it. */
export interface Streamed {
  /** Its place in the stream. */
  index: number;
  /** Its tokens that the model saw. */
  tokens: number;
  /** Whether that was only a part of it. */
  truncated: boolean;
}

/** What the items of a window became. */
interface Results {
  readonly length: number;
  readonly tokenCounts: Uint32Array;
  readonly truncated: readonly boolean[];
}

/** Which items are handed over together. */
export interface Window<T> {
  /** The most items. */
  most: number;
  /** Their size, from which on a window is full. */
  room: number;
  size: (item: T) => number;
  /** Refuses what is no such item; `index` is its place in the stream. */
  check: (item: T, index: number) => void;
}

/** Windows that are under way: one is computed, one waits, so that the engine never does. */
const AHEAD = 2;

/** What computes a window. */
type Compute<T, S> = (items: T[], signal: AbortSignal) => Promise<S>;

/**
 * Computes a stream window by window; `row` says what one item of a window became. What has arrived is not kept waiting for
 * more while nothing is computed.
 */
export async function* stream<T, S extends Results, R extends object>(
  items: Iterable<T> | AsyncIterable<T>,
  { most, room, size, check }: Window<T>,
  compute: Compute<T, S>,
  row: (results: S, at: number) => R,
  signal: AbortSignal | undefined,
): AsyncIterableIterator<R & Streamed> {
  const ending = new AbortController();
  const abort = () => ending.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  const running: Promise<S>[] = [];
  let window: T[] = [];
  let filled = 0;
  let taken = 0;
  let index = 0;
  let open = true;
  let next: Promise<IteratorResult<T>> | undefined;
  const flush = () => {
    const results = compute(window, ending.signal);
    results.catch(() => {}); // They are awaited when their turn comes.
    running.push(results);
    [window, filled] = [[], 0];
  };
  try {
    while (open || running.length > 0) {
      while (open && running.length < AHEAD) {
        next ??= Promise.resolve(source.next());
        const other = running[0]?.then(nothing, nothing) ?? (window.length > 0 ? turn() : next);
        const arrived = await Promise.race([next, other]);
        if (arrived === undefined) {
          if (running.length > 0) break;
          flush();
          continue;
        }
        next = undefined;
        if (arrived.done) {
          open = false;
          if (window.length > 0) flush();
          break;
        }
        check(arrived.value, taken++);
        window.push(arrived.value);
        filled += size(arrived.value);
        if (window.length === most || filled >= room) flush();
      }
      const results = await running.shift();
      if (!results) continue;
      const { length, truncated, tokenCounts } = results;
      for (let at = 0; at < length; at++) yield { ...row(results, at), index: index++, tokens: tokenCounts[at]!, truncated: truncated[at]! };
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    ending.abort();
    if (open) await source.return?.();
  }
}

const nothing = () => undefined;

/** A turn of the event loop. */
function turn(): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve));
}
