import { viewed } from "./sets.js";
import { best, type Hit } from "./similarity.js";
import { readSparse, writeSparse } from "./text-file.js";
import { TextSet, type Said } from "./text-sets.js";

/** The weights of a text's words: the ids of tokens, each larger than the one before it, and for each its weight, above 0. */
export interface SparseVector {
  indices: Uint32Array<ArrayBuffer>;
  values: Float32Array<ArrayBuffer>;
}

/** Everything that a model says of the words of a call's texts. */
export interface Weighed extends Said, SparseVector {}

/**
 * Sparse vectors in the order of their texts, one after another, with the fingerprint of their model. A score is the inner product; a
 * vector that shares no word with a query is no hit.
 */
export class SparseEmbeddings extends TextSet {
  /** Where each vector begins in `indices` and `values`, and at last where they end. */
  readonly offsets: Uint32Array<ArrayBuffer>;
  /** The token ids of all vectors. */
  readonly indices: Uint32Array<ArrayBuffer>;
  /** The weights of all vectors. */
  readonly values: Float32Array<ArrayBuffer>;
  /** Words that can have a weight. */
  readonly dimension: number;

  /** @internal */
  constructor(said: Weighed) {
    super(said);
    this.offsets = said.offsets;
    this.indices = said.indices;
    this.values = said.values;
    this.dimension = said.dimension;
  }

  /** Opens a set that was saved here or by the Rust SDK (docs/embeddings-format.md). Bytes are viewed, not copied. */
  static async load(bytes: Uint8Array<ArrayBuffer> | ArrayBuffer | Blob): Promise<SparseEmbeddings> {
    return new SparseEmbeddings(readSparse(viewed(bytes instanceof Blob ? await bytes.arrayBuffer() : bytes)));
  }

  /** The set as a file that `load`, the Rust SDK and Python open. */
  save(): Uint8Array<ArrayBuffer> {
    const { offsets, indices, values, dimension, tokenCounts, fingerprint, prompt, model, marks: truncated } = this;
    return writeSparse({ offsets, indices, values, dimension, tokenCounts, fingerprint, prompt, model, truncated });
  }

  /** One vector; views, no copies. */
  row(index: number): SparseVector {
    const [start, end] = this.ends(index);
    return { indices: this.indices.subarray(start, end), values: this.values.subarray(start, end) };
  }

  /** @internal */
  protected nearest(queries: this, query: number, k: number): Hit[] {
    const { indices, values } = queries.row(query);
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
