import type { CompactForm } from "./codes.js";
import { CompactEmbeddings } from "./compact.js";
import { IsovecError } from "./error.js";
import { read, write } from "./file.js";
import { compatible, only, viewed } from "./sets.js";
import { Scores, again, best, scorer, squared, type Hit, type Similarity } from "./similarity.js";

/** Identifies the model that made a set of vectors. */
export interface Fingerprint {
  /** The entries that must be equal for two vectors to be compared. */
  identity: Record<string, string>;
  /** The numeric class, which may differ. */
  precision: string;
  /** Entries of the identity that a model's file claims and that cannot be computed, each with a value that can. */
  claimed?: Record<string, string>;
}

/** Everything that a set of vectors consists of. */
export interface Parts {
  values: Float32Array<ArrayBuffer>;
  dimension: number;
  tokenCounts: Uint32Array<ArrayBuffer>;
  truncated: Uint8Array<ArrayBuffer>;
  fingerprint: Fingerprint;
  metric: Similarity;
  /** The model's name, for people. */
  model: string;
  /** The name of the prompt that was put before the texts. */
  prompt: string | null;
  labels: readonly string[] | undefined;
}

/**
 * Vectors in one `Float32Array`, in the order of their texts, with the fingerprint of the model. They lie in
 * JavaScript's memory, where searching, reading and writing happen too: what a set takes is free when it is gone,
 * while WebAssembly memory never shrinks.
 */
export class Embeddings implements Iterable<Float32Array> {
  #parts: Parts;
  /** Squared lengths of the rows, once they were needed. */
  #lengths: Float64Array | undefined;
  /** All vectors, row after row. */
  readonly values: Float32Array<ArrayBuffer>;
  /** Components of a vector. */
  readonly dimension: number;
  /** Number of vectors. */
  readonly length: number;
  /** Tokens of each text that the model saw; 0 where that is not known. */
  readonly tokenCounts: Uint32Array<ArrayBuffer>;
  /** The fingerprint of the vectors. */
  readonly fingerprint: Fingerprint;
  /** How the model means them to be compared. */
  readonly metric: Similarity;
  /** The model's name, for people. */
  readonly model: string;
  /** The texts or names that go with the vectors, if any. */
  readonly labels: readonly string[] | undefined;

  /** @internal */
  constructor(parts: Parts) {
    this.#parts = parts;
    this.values = parts.values;
    this.dimension = parts.dimension;
    this.length = parts.tokenCounts.length;
    this.tokenCounts = parts.tokenCounts;
    this.fingerprint = parts.fingerprint;
    this.metric = parts.metric;
    this.model = parts.model;
    this.labels = parts.labels;
  }

  /** Opens a set that was saved here or by the Rust SDK (docs/embeddings-format.md). Bytes are viewed, not copied. */
  static async load(bytes: Uint8Array<ArrayBuffer> | ArrayBuffer | Blob): Promise<Embeddings> {
    return new Embeddings(read(viewed(bytes instanceof Blob ? await bytes.arrayBuffer() : bytes)));
  }

  /** Sets, one after another. Throws `IncompatibleIndex` when they were not made the same way. */
  static concat(sets: readonly Embeddings[]): Embeddings {
    const [first, ...rest] = sets;
    if (!first) throw new IsovecError("InvalidEmbeddings", "there is no set to join");
    for (const set of rest) {
      compatible(first, set);
      if ((set.labels === undefined) !== (first.labels === undefined)) throw new IsovecError("InvalidEmbeddings", "one set has labels and another has none; give both or none");
    }
    const length = sets.reduce((sum, set) => sum + set.length, 0);
    const joined = { values: new Float32Array(length * first.dimension), tokenCounts: new Uint32Array(length), truncated: new Uint8Array(length) };
    let row = 0;
    for (const { length, dimension, values, tokenCounts, ...set } of sets.map((set) => ({ ...set.#parts, length: set.length }))) {
      joined.values.set(values, row * dimension);
      joined.tokenCounts.set(tokenCounts, row);
      joined.truncated.set(set.truncated, row);
      row += length;
    }
    return new Embeddings({ ...first.#parts, ...joined, labels: first.labels && sets.flatMap((set) => set.labels ?? []) });
  }

  /** The set as a file that `load` and the Rust SDK open. */
  save(): Uint8Array<ArrayBuffer> {
    return write(this.#parts);
  }

  /** Whether the model saw only a part of each text. */
  get truncated(): readonly boolean[] {
    return Array.from(this.#parts.truncated, (mark) => mark === 1);
  }

  /** A view of one vector; no copy. */
  row(index: number): Float32Array<ArrayBuffer> {
    if (!Number.isInteger(index) || index < 0 || index >= this.length) throw new RangeError(`row ${index} of ${this.length}`);
    return this.values.subarray(index * this.dimension, (index + 1) * this.dimension);
  }

  *[Symbol.iterator](): Iterator<Float32Array<ArrayBuffer>> {
    for (let index = 0; index < this.length; index++) yield this.row(index);
  }

  /** The same set with a text or name for each vector. */
  withLabels(labels: readonly string[]): Embeddings {
    if (labels.length !== this.length) throw new IsovecError("InvalidEmbeddings", `${labels.length} labels for ${this.length} vectors; give each one`);
    return new Embeddings({ ...this.#parts, labels: [...labels] });
  }

  /** The nearest `k` vectors of this set for each query, best first. Throws `IncompatibleIndex` when another model made the queries. */
  search(queries: Embeddings, k: number): Hit[][] {
    return Array.from(this.#scored(queries), (scores) => best(scores, k));
  }

  /** The nearest `k` vectors of this set for one query, best first. Throws `NotOneQuery` for a set of none or several. */
  searchOne(query: Embeddings, k: number): Hit[] {
    only(query);
    return this.search(query, k)[0]!;
  }

  /**
   * The `k` best of these hits by the scores of this set, best first: for hits of a compact set of the same rows, whose scores
   * are less accurate.
   */
  rescored(query: Embeddings, hits: readonly Hit[], k: number): Hit[] {
    compatible(this, query);
    const score = scorer(this.metric, only(query));
    return again(hits, k, this.length, (index) => score(this.row(index), () => squared(this.row(index))));
  }

  /**
   * The same set in a quarter (`int8`) or a thirty-second (`binary`) of its bytes. Throws `InvalidEmbeddings` when the model
   * compares its vectors by a distance, which compact forms do not keep.
   */
  compact(form: CompactForm): CompactEmbeddings {
    return CompactEmbeddings.of(this, this.#parts.prompt, form);
  }

  /**
   * How alike each vector of this set is to each of another, by the models' metric: a row for each vector of this set, a
   * column for each of the other. Throws `IncompatibleIndex` when another model made the other, `InputTooLarge` for more scores
   * than there is memory for.
   */
  similarity(other: Embeddings): Scores {
    const values = room(this.length * other.length);
    let row = 0;
    for (const scores of other.#scored(this)) values.set(scores, other.length * row++);
    return new Scores(values, this.length, other.length);
  }

  /** The scores of all vectors of this set for each query, in an array that is used again. */
  *#scored(queries: Embeddings): Iterable<Float32Array> {
    compatible(this, queries);
    const lengths = (this.#lengths ??= Float64Array.from(this, squared));
    const scores = new Float32Array(this.length);
    for (const query of queries) {
      const score = scorer(this.metric, query);
      for (let index = 0; index < this.length; index++) scores[index] = score(this.row(index), () => lengths[index]!);
      yield scores;
    }
  }
}

function room(scores: number): Float32Array<ArrayBuffer> {
  try {
    return new Float32Array(scores);
  } catch (cause) {
    throw new IsovecError("InputTooLarge", `${scores} scores do not fit into memory; compare parts of the sets one after another`, { cause });
  }
}
