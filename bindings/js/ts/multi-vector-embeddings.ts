import type { Fingerprint } from "./embeddings.js";
import { IsovecError } from "./error.js";
import { compatible } from "./sets.js";
import { best, product, type Hit } from "./similarity.js";

/** Everything that a model says of the tokens of a call's texts. */
interface Read {
  offsets: Uint32Array<ArrayBuffer>;
  values: Float32Array<ArrayBuffer>;
  dimension: number;
  tokenCounts: Uint32Array<ArrayBuffer>;
  truncated: Uint8Array<ArrayBuffer>;
  fingerprint: Fingerprint;
  prompt: string | null;
}

/** The vectors of texts' tokens, one text after another, with the fingerprint of their model. */
export class MultiVectorEmbeddings {
  #truncated: Uint8Array;
  /** Where the vectors of each text begin among those of all, counted in vectors, and at last where they end. */
  readonly offsets: Uint32Array<ArrayBuffer>;
  /** All vectors, one after another. */
  readonly values: Float32Array<ArrayBuffer>;
  /** Numbers of a vector. */
  readonly dimension: number;
  /** Tokens of each text that the model saw. Fewer of a passage are compared. */
  readonly tokenCounts: Uint32Array<ArrayBuffer>;
  /** Says which vectors can be compared with these. */
  readonly fingerprint: Fingerprint;
  /** The name of the prompt that was put before the texts. */
  readonly prompt: string | null;

  /** @internal */
  constructor({ offsets, values, dimension, tokenCounts, truncated, fingerprint, prompt }: Read) {
    this.offsets = offsets;
    this.values = values;
    this.dimension = dimension;
    this.tokenCounts = tokenCounts;
    this.fingerprint = fingerprint;
    this.prompt = prompt;
    this.#truncated = truncated;
  }

  /** Number of texts. */
  get length(): number {
    return this.tokenCounts.length;
  }

  /** Whether the model saw only a part of each text. */
  get truncated(): readonly boolean[] {
    return Array.from(this.#truncated, (mark) => mark === 1);
  }

  /** The vectors of one text, one after another; a view, no copy. */
  row(index: number): Float32Array<ArrayBuffer> {
    if (!Number.isInteger(index) || index < 0 || index >= this.length) throw new RangeError(`row ${index} of ${this.length}`);
    return this.values.subarray(this.offsets[index]! * this.dimension, this.offsets[index + 1]! * this.dimension);
  }

  /**
   * The `k` texts of this set with the highest scores for each query, best first. A score is the sum over the query's vectors of the
   * largest inner product with a vector of the text. Throws `IncompatibleIndex` when another model made the queries.
   */
  search(queries: MultiVectorEmbeddings, k: number): Hit[][] {
    compatible(this, queries);
    return Array.from({ length: queries.length }, (_, query) => this.#nearest(vectors(queries, query), k));
  }

  /** The same for a set of one query. */
  searchOne(query: MultiVectorEmbeddings, k: number): Hit[] {
    if (query.length !== 1) throw new IsovecError("NotOneQuery", `searchOne takes a set of one query, and this one has ${query.length}`);
    return this.search(query, k)[0]!;
  }

  #nearest(query: Float32Array[], k: number): Hit[] {
    const scores = new Float32Array(this.length);
    for (let index = 0; index < this.length; index++) {
      const own = vectors(this, index);
      let score = 0;
      for (const asked of query) {
        let largest = -Infinity;
        for (const vector of own) largest = Math.max(largest, product(asked, vector));
        score += largest;
      }
      scores[index] = score;
    }
    // A text without vectors is no hit.
    return query.length === 0 ? [] : best(scores, k).filter(({ score }) => score !== -Infinity);
  }
}

/** The vectors of one text; views, no copies. */
function vectors(set: MultiVectorEmbeddings, index: number): Float32Array[] {
  const row = set.row(index);
  return Array.from({ length: row.length / set.dimension }, (_, at) => row.subarray(at * set.dimension, (at + 1) * set.dimension));
}
