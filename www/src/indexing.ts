import { Embeddings, type Embedder } from "isovec";

/** Passages that are embedded between two looks at how far it is. */
const SLICE = 64;

/** How far indexing is. */
export interface Progress {
  done: number;
  all: number;
  /** Passages a second, so far. */
  rate: number;
}

/**
 * Embeds passages, with the passages as labels. Those of an aborted run that are done are not lost: it returns them, or
 * nothing where there are none.
 */
export async function indexPassages(
  embedder: Embedder,
  passages: readonly string[],
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<Embeddings | undefined> {
  const slices: Embeddings[] = [];
  const started = performance.now();
  for (let done = 0; done < passages.length && !signal.aborted; ) {
    const texts = passages.slice(done, done + SLICE);
    try {
      slices.push((await embedder.embedPassages(texts, { signal })).withLabels(texts));
    } catch (error) {
      if (signal.aborted) break;
      throw error;
    }
    done += texts.length;
    onProgress({ done, all: passages.length, rate: done / ((performance.now() - started) / 1000) });
  }
  return slices.length > 0 ? Embeddings.concat(slices) : undefined;
}
