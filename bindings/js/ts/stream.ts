import type { Embeddings } from "./embeddings.js";
import { checkText } from "./texts.js";

/** A text of a stream, embedded. */
export interface Embedded {
  /** Its place in the stream. */
  index: number;
  vector: Float32Array;
  /** Its tokens that the model saw. */
  tokens: number;
  /** Whether that was only a part of it. */
  truncated: boolean;
}

/** Texts that are handed over together: enough to be sorted by length, and batched. */
const TEXTS = 256;
/** Characters of them, past which a window is full. */
const CHARACTERS = 1 << 18;
/** Windows that are under way: one is computed, one waits, so that the engine never does. */
const AHEAD = 2;

type Embed = (texts: string[], signal: AbortSignal) => Promise<Embeddings>;

/** Embeds a stream window by window. What has arrived is not kept waiting for more while nothing is computed. */
export async function* stream(texts: Iterable<string> | AsyncIterable<string>, embed: Embed, signal: AbortSignal | undefined): AsyncIterableIterator<Embedded> {
  const ending = new AbortController();
  const abort = () => ending.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  const source = Symbol.asyncIterator in texts ? texts[Symbol.asyncIterator]() : texts[Symbol.iterator]();
  const running: Promise<Embeddings>[] = [];
  let window: string[] = [];
  let characters = 0;
  let taken = 0;
  let index = 0;
  let open = true;
  let next: Promise<IteratorResult<string>> | undefined;
  const flush = () => {
    const vectors = embed(window, ending.signal);
    vectors.catch(() => {}); // It is awaited when its turn comes.
    running.push(vectors);
    [window, characters] = [[], 0];
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
        checkText(arrived.value, taken++);
        window.push(arrived.value);
        characters += arrived.value.length;
        if (window.length === TEXTS || characters >= CHARACTERS) flush();
      }
      const vectors = await running.shift();
      if (!vectors) continue;
      const { truncated, tokenCounts } = vectors;
      for (const [row, vector] of [...vectors].entries()) yield { index: index++, vector, tokens: tokenCounts[row]!, truncated: truncated[row]! };
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
