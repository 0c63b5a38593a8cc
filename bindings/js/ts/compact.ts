/** Sets of vectors in a quarter or a thirty-second of their bytes. Scores are those of the Rust SDK (src/embeddings/compact). */
import { coded, isAbove, signs, widthOf, type Codes, type CompactForm } from "./codes.js";
import type { Embeddings, Fingerprint, Parts } from "./embeddings.js";
import { IsovecError } from "./error.js";
import { readCompact, writeCompact } from "./file.js";
import { compatible, only, viewed } from "./sets.js";
import { again, best, squared, total, type Hit, type Similarity } from "./similarity.js";

/** Everything that a compact set consists of. */
export interface CompactParts extends Codes, Pick<Parts, "fingerprint" | "metric" | "model" | "prompt" | "labels" | "dimension"> {
  rows: number;
}

/** A search by signs scores this many times the hits that were asked for, those with the fewest signs that differ. */
const CANDIDATES = 4;

/** Vectors in a compact form, with the fingerprint of the model. A search looks at every vector; queries stay in f32. */
export class CompactEmbeddings {
  #parts: CompactParts;
  /** With which the product of a query and each row's codes is multiplied to get the score, before the query's length; of signs it is one number. */
  #factors: Float32Array;
  /** Bytes of a row. */
  #width: number;
  /** How the vectors are held. */
  readonly form: CompactForm;
  /** Components of a vector. */
  readonly dimension: number;
  /** Number of vectors. */
  readonly length: number;
  /** The codes, row by row. */
  readonly codes: Uint8Array<ArrayBuffer>;
  /** Of `int8` one number for each row, with which its codes (as signed bytes) are multiplied to get the vector back. */
  readonly scales: Float32Array<ArrayBuffer>;
  /** The fingerprint of the vectors. */
  readonly fingerprint: Fingerprint;
  /** How the model means them to be compared. */
  readonly metric: Similarity;
  /** The model's name, for people. */
  readonly model: string;
  /** The texts or names that go with the vectors, if any. */
  readonly labels: readonly string[] | undefined;

  /** @internal */
  constructor(parts: CompactParts) {
    this.#parts = parts;
    this.form = parts.form;
    this.dimension = parts.dimension;
    this.length = parts.rows;
    this.codes = parts.codes;
    this.scales = parts.scales;
    this.fingerprint = parts.fingerprint;
    this.metric = parts.metric;
    this.model = parts.model;
    this.labels = parts.labels;
    this.#width = widthOf(this.form, this.dimension);
    this.#factors = this.#factorsOf();
  }

  /** @internal */
  static of(set: Embeddings, prompt: string | null, form: CompactForm): CompactEmbeddings {
    const { dimension, fingerprint, metric, model, labels, length: rows } = set;
    return new CompactEmbeddings({ ...coded(set.values, dimension, form), rows, dimension, fingerprint, metric, model, prompt, labels });
  }

  /** Opens a compact set that was saved here or by the Rust SDK (docs/embeddings-format.md). Bytes are viewed, not copied. */
  static async load(bytes: Uint8Array<ArrayBuffer> | ArrayBuffer | Blob): Promise<CompactEmbeddings> {
    return new CompactEmbeddings(readCompact(viewed(bytes instanceof Blob ? await bytes.arrayBuffer() : bytes)));
  }

  /** The set as a file that `load` and the Rust SDK open. */
  save(): Uint8Array<ArrayBuffer> {
    return writeCompact(this.#parts);
  }

  /**
   * The nearest `k` vectors of this set for each query, best first. Of `int8` every vector is scored; of `binary` the 4 `k` vectors
   * with the fewest signs unlike the query's. Throws `IncompatibleIndex` when another model made the queries.
   */
  search(queries: Embeddings, k: number): Hit[][] {
    compatible(this, queries);
    return Array.from(queries, (query) => this.#nearest(query, k));
  }

  /** The nearest `k` vectors of this set for one query, best first. Throws `NotOneQuery` for a set of none or several. */
  searchOne(query: Embeddings, k: number): Hit[] {
    compatible(this, query);
    return this.#nearest(only(query), k);
  }

  /** The `k` best of these hits by the scores of this set, best first: hits of signs, by int8. */
  rescored(query: Embeddings, hits: readonly Hit[], k: number): Hit[] {
    compatible(this, query);
    return again(hits, k, this.length, this.#scorer(only(query)));
  }

  #nearest(query: Float32Array, k: number): Hit[] {
    const score = this.#scorer(query);
    const scores = new Float32Array(this.length);
    if (this.form === "int8") {
      for (let row = 0; row < this.length; row++) scores[row] = score(row);
      return best(scores, k);
    }
    const own = new Uint8Array(this.#width);
    signs(query, own);
    for (let row = 0; row < this.length; row++) scores[row] = -distance(this.codes, row * this.#width, own);
    return again(best(scores, k * CANDIDATES), k, this.length, score);
  }

  /** The score of a row for a query; 0 where one of them has no direction. */
  #scorer(query: Float32Array): (row: number) => number {
    const length = this.metric === "cosine" ? Math.sqrt(squared(query)) : 1;
    const signed = new Int8Array(this.codes.buffer, this.codes.byteOffset, this.codes.length);
    const product = this.form === "int8" ? (row: number) => ofInt8(query, signed, row * this.#width) : (row: number) => ofSigns(query, this.codes, row * this.#width);
    return (row) => (length === 0 ? 0 : Math.fround((product(row) * this.#factors[this.form === "int8" ? row : 0]!) / length));
  }

  #factorsOf(): Float32Array {
    const { metric, form, length, dimension, scales } = this;
    if (metric === "euclidean" || metric === "manhattan") throw new IsovecError("InvalidEmbeddings", "this model compares vectors by a distance, which compact forms do not keep; keep the set in f32");
    if (form === "binary") return Float32Array.of(metric === "dot" ? 1 : 1 / Math.sqrt(dimension));
    if (metric === "dot") return scales;
    // The length of what the codes stand for, and not of the vector before: so a vector's own score is 1.
    const signed = new Int8Array(this.codes.buffer, this.codes.byteOffset, this.codes.length);
    return Float32Array.from({ length }, (_, row) => {
      const squares = signed.subarray(row * dimension, (row + 1) * dimension).reduce((sum, code) => sum + code * code, 0);
      return squares === 0 ? 0 : 1 / Math.sqrt(squares);
    });
  }
}

/** The inner product of a query with a row of `int8`. Not the function of f32: one that saw two kinds of arrays is slow for both. */
function ofInt8(query: Float32Array, codes: Int8Array, start: number): number {
  let s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
  const whole = query.length - (query.length % 8);
  for (let i = 0, j = start; i < whole; i += 8, j += 8) {
    s0 += query[i]! * codes[j]!;
    s1 += query[i + 1]! * codes[j + 1]!;
    s2 += query[i + 2]! * codes[j + 2]!;
    s3 += query[i + 3]! * codes[j + 3]!;
    s4 += query[i + 4]! * codes[j + 4]!;
    s5 += query[i + 5]! * codes[j + 5]!;
    s6 += query[i + 6]! * codes[j + 6]!;
    s7 += query[i + 7]! * codes[j + 7]!;
  }
  const lanes = Float64Array.of(s0, s1, s2, s3, s4, s5, s6, s7);
  for (let i = whole; i < query.length; i++) lanes[i - whole]! += query[i]! * codes[start + i]!;
  return total(lanes);
}

/** The inner product of a query with a row's signs as ±1. */
function ofSigns(query: Float32Array, codes: Uint8Array, start: number): number {
  const lanes = new Float64Array(8);
  for (let i = 0; i < query.length; i++) lanes[i % 8]! += isAbove(codes, start, i) ? query[i]! : -query[i]!;
  return total(lanes);
}

/** The bits of every byte that are 1. */
const BITS = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll("0", "").length);

/** The number of bits of a row that differ from others. */
function distance(codes: Uint8Array, start: number, others: Uint8Array): number {
  let differ = 0;
  for (let at = 0; at < others.length; at++) differ += BITS[codes[start + at]! ^ others[at]!]!;
  return differ;
}
