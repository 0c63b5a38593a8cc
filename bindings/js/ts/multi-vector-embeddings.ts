import { coded, decoded, type CompactForm, type Codes } from "./codes.js";
import { viewed } from "./sets.js";
import { best, product, type Hit } from "./similarity.js";
import { readTokens, writeTokens } from "./text-file.js";
import { TextSet, type Said } from "./text-sets.js";

/** What a model or a file says of texts' tokens, whose vectors are in f32 or in a compact form. */
export interface SaidOfTokens extends Said {
  vectors: Float32Array<ArrayBuffer> | Codes;
}

/**
 * The vectors of texts' tokens, one text after another, with the fingerprint of their model. A score is the sum over the query's vectors
 * of the largest inner product with a vector of the text; a text without vectors is no hit. Of a passage fewer tokens are compared than
 * the model saw.
 */
export class MultiVectorEmbeddings extends TextSet {
  /** Where the vectors of each text begin among those of all, counted in vectors, and at last where they end. */
  readonly offsets: Uint32Array<ArrayBuffer>;
  /** Numbers of a vector. */
  readonly dimension: number;
  #vectors: SaidOfTokens["vectors"];

  /** @internal */
  constructor(said: SaidOfTokens) {
    super(said);
    this.offsets = said.offsets;
    this.dimension = said.dimension;
    this.#vectors = said.vectors;
  }

  /** How the vectors are held; nothing: in f32. */
  get form(): CompactForm | undefined {
    return this.#vectors instanceof Float32Array ? undefined : this.#vectors.form;
  }

  /** All vectors, one after another, where they are in f32; nothing of a compact form. */
  get values(): Float32Array<ArrayBuffer> | undefined {
    return this.#vectors instanceof Float32Array ? this.#vectors : undefined;
  }

  /** Opens a set that was saved here or by the Rust SDK (docs/embeddings-format.md). Bytes are viewed, not copied. */
  static async load(bytes: Uint8Array<ArrayBuffer> | ArrayBuffer | Blob): Promise<MultiVectorEmbeddings> {
    return new MultiVectorEmbeddings(readTokens(viewed(bytes instanceof Blob ? await bytes.arrayBuffer() : bytes)));
  }

  /** The set as a file that `load` and the Rust SDK open. */
  save(): Uint8Array<ArrayBuffer> {
    return writeTokens(this.#with(this.#vectors));
  }

  /**
   * The same set in a compact form: `int8` takes a quarter of the bytes, and a scale for each vector, `binary` a thirty-second. Scores
   * approximate those of this set. Queries stay in f32.
   */
  compact(form: CompactForm): MultiVectorEmbeddings {
    return new MultiVectorEmbeddings(this.#with(coded(this.#between(0, this.offsets[this.length]!), this.dimension, form)));
  }

  /** The vectors of one text, one after another: a view, no copy; of a compact form those that its codes stand for. */
  row(index: number): Float32Array<ArrayBuffer> {
    return this.#between(...this.ends(index));
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

  /** Vectors by their places among those of all. */
  #between(start: number, end: number): Float32Array<ArrayBuffer> {
    const vectors = this.#vectors;
    return vectors instanceof Float32Array ? vectors.subarray(start * this.dimension, end * this.dimension) : decoded(vectors, this.dimension, start, end);
  }

  /** Everything that is said of this set, with these vectors. */
  #with(vectors: SaidOfTokens["vectors"]): SaidOfTokens {
    const { offsets, dimension, tokenCounts, fingerprint, prompt, model, marks: truncated } = this;
    return { offsets, vectors, dimension, tokenCounts, fingerprint, prompt, model, truncated };
  }
}

/** The vectors of one text, one by one. */
function vectors(set: MultiVectorEmbeddings, index: number): Float32Array[] {
  const row = set.row(index);
  return Array.from({ length: row.length / set.dimension }, (_, at) => row.subarray(at * set.dimension, (at + 1) * set.dimension));
}
