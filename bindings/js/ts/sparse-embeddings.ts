import type { Fingerprint } from "./embeddings.js";
import { IsovecError } from "./error.js";
import { compatible } from "./sets.js";
import { best, type Hit } from "./similarity.js";

/** The weights of a text's words: the ids of tokens, each larger than the one before it, and for each its weight, above 0. */
export interface SparseVector {
  indices: Uint32Array<ArrayBuffer>;
  values: Float32Array<ArrayBuffer>;
}

/** Everything that a model says of the words of a call's texts. */
export interface Weighed extends SparseVector {
  offsets: Uint32Array<ArrayBuffer>;
  tokenCounts: Uint32Array<ArrayBuffer>;
  truncated: Uint8Array<ArrayBuffer>;
  dimension: number;
  fingerprint: Fingerprint;
  prompt: string | null;
}

/** Sparse vectors in the order of their texts, one after another, with the fingerprint of their model. */
export class SparseEmbeddings {
  #truncated: Uint8Array;
  /** Where each vector begins in `indices` and `values`, and at last where they end. */
  readonly offsets: Uint32Array<ArrayBuffer>;
  /** The token ids of all vectors. */
  readonly indices: Uint32Array<ArrayBuffer>;
  /** The weights of all vectors. */
  readonly values: Float32Array<ArrayBuffer>;
  /** Words that can have a weight. */
  readonly dimension: number;
  /** Tokens of each text that the model saw. */
  readonly tokenCounts: Uint32Array<ArrayBuffer>;
  /** Says which vectors can be compared with these. */
  readonly fingerprint: Fingerprint;
  /** The name of the prompt that was put before the texts. */
  readonly prompt: string | null;

  /** @internal */
  constructor({ offsets, indices, values, dimension, tokenCounts, truncated, fingerprint, prompt }: Weighed) {
    this.offsets = offsets;
    this.indices = indices;
    this.values = values;
    this.dimension = dimension;
    this.tokenCounts = tokenCounts;
    this.fingerprint = fingerprint;
    this.prompt = prompt;
    this.#truncated = truncated;
  }

  /** Number of vectors. */
  get length(): number {
    return this.tokenCounts.length;
  }

  /** Whether the model saw only a part of each text. */
  get truncated(): readonly boolean[] {
    return Array.from(this.#truncated, (mark) => mark === 1);
  }

  /** One vector; views, no copies. */
  row(index: number): SparseVector {
    if (!Number.isInteger(index) || index < 0 || index >= this.length) throw new RangeError(`row ${index} of ${this.length}`);
    const [start, end] = [this.offsets[index]!, this.offsets[index + 1]!];
    return { indices: this.indices.subarray(start, end), values: this.values.subarray(start, end) };
  }

  /**
   * The `k` vectors of this set with the largest inner product with each query, best first. A vector that shares no word with a query
   * is no hit. Throws `IncompatibleIndex` when another model made the queries.
   */
  search(queries: SparseEmbeddings, k: number): Hit[][] {
    compatible(this, queries);
    return Array.from({ length: queries.length }, (_, query) => this.#nearest(queries.row(query), k));
  }

  /** The same for a set of one query. */
  searchOne(query: SparseEmbeddings, k: number): Hit[] {
    if (query.length !== 1) throw new IsovecError("NotOneQuery", `searchOne takes a set of one query, and this one has ${query.length}`);
    return this.search(query, k)[0]!;
  }

  #nearest({ indices, values }: SparseVector, k: number): Hit[] {
    // Spread out once, so that each vector is walked alone.
    const weights = new Float64Array(this.dimension);
    for (const [at, index] of indices.entries()) weights[index] = values[at]!;
    const scores = new Float32Array(this.length);
    for (let row = 0; row < this.length; row++) {
      let score = 0;
      for (let at = this.offsets[row]!; at < this.offsets[row + 1]!; at++) score += weights[this.indices[at]!]! * this.values[at]!;
      scores[row] = score;
    }
    return best(scores, k).filter(({ score }) => score > 0);
  }
}
