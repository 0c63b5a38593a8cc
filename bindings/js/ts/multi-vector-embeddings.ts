import { viewed } from "./sets.js";
import { best, product, type Hit } from "./similarity.js";
import { readTokens, writeTokens } from "./text-file.js";
import { TextSet, type Said } from "./text-sets.js";

/**
 * The vectors of texts' tokens, one text after another, with the fingerprint of their model. A score is the sum over the query's vectors
 * of the largest inner product with a vector of the text; a text without vectors is no hit. Of a passage fewer tokens are compared than
 * the model saw.
 */
export class MultiVectorEmbeddings extends TextSet {
  /** Where the vectors of each text begin among those of all, counted in vectors, and at last where they end. */
  readonly offsets: Uint32Array<ArrayBuffer>;
  /** All vectors, one after another. */
  readonly values: Float32Array<ArrayBuffer>;
  /** Numbers of a vector. */
  readonly dimension: number;

  /** @internal */
  constructor(said: Said) {
    super(said);
    this.offsets = said.offsets;
    this.values = said.values;
    this.dimension = said.dimension;
  }

  /** Opens a set of f32 vectors that was saved here or by the Rust SDK (docs/embeddings-format.md). Bytes are viewed, not copied. */
  static async load(bytes: Uint8Array<ArrayBuffer> | ArrayBuffer | Blob): Promise<MultiVectorEmbeddings> {
    return new MultiVectorEmbeddings(readTokens(viewed(bytes instanceof Blob ? await bytes.arrayBuffer() : bytes)));
  }

  /** The set as a file that `load` and the Rust SDK open. */
  save(): Uint8Array<ArrayBuffer> {
    const { offsets, values, dimension, tokenCounts, fingerprint, prompt, model, marks: truncated } = this;
    return writeTokens({ offsets, values, dimension, tokenCounts, fingerprint, prompt, model, truncated });
  }

  /** The vectors of one text, one after another; a view, no copy. */
  row(index: number): Float32Array<ArrayBuffer> {
    const [start, end] = this.ends(index);
    return this.values.subarray(start * this.dimension, end * this.dimension);
  }

  /** @internal */
  protected nearest(queries: this, query: number, k: number): Hit[] {
    const asking = vectors(queries, query);
    const scores = new Float32Array(this.length);
    for (let index = 0; index < this.length; index++) {
      const own = vectors(this, index);
      let score = 0;
      for (const asked of asking) {
        let largest = -Infinity;
        for (const vector of own) largest = Math.max(largest, product(asked, vector));
        score += largest;
      }
      scores[index] = score;
    }
    return asking.length === 0 ? [] : best(scores, k).filter(({ score }) => score !== -Infinity);
  }
}

/** The vectors of one text; views, no copies. */
function vectors(set: MultiVectorEmbeddings, index: number): Float32Array[] {
  const row = set.row(index);
  return Array.from({ length: row.length / set.dimension }, (_, at) => row.subarray(at * set.dimension, (at + 1) * set.dimension));
}
