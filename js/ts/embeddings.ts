import type { RawEmbeddings } from "../pkg/simd128/isovec_js.js";
import { anyReady, type Module } from "./wasm.js";

/** What made a set of vectors. */
export interface Fingerprint {
  /** What must be equal for two vectors to be compared. */
  identity: Record<string, string>;
  /** The numeric class, which may differ. */
  precision: string;
}

/** A found vector: its row, and its score (larger is more alike). */
export interface Hit {
  index: number;
  score: number;
}

/** Vectors in one `Float32Array`, in the order of their texts, with the fingerprint of what made them. */
export class Embeddings {
  /** All vectors, row after row. */
  readonly values: Float32Array;
  /** Components of a vector. */
  readonly dimension: number;
  /** Number of vectors. */
  readonly length: number;
  /** Whether the model saw only a part of each text. */
  readonly truncated: readonly boolean[];
  /** Tokens of each text. */
  readonly tokenCounts: Uint32Array;
  /** What made the vectors. */
  readonly fingerprint: Fingerprint;
  #module: Module;
  #raw: RawEmbeddings;

  /** @internal */
  constructor(module: Module, raw: RawEmbeddings) {
    this.#module = module;
    this.#raw = raw;
    this.values = raw.values();
    this.dimension = raw.dimension;
    this.length = raw.length;
    this.truncated = Array.from(raw.truncated(), (mark) => mark === 1);
    this.tokenCounts = raw.tokenCounts();
    this.fingerprint = JSON.parse(raw.fingerprint()) as Fingerprint;
  }

  /** Opens a set that was saved here or by the Rust SDK (docs/embeddings-format.md). */
  static async load(bytes: Uint8Array | ArrayBuffer | Blob): Promise<Embeddings> {
    const module = await anyReady();
    const content = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes instanceof Blob ? await bytes.arrayBuffer() : bytes);
    return module.guardedNow(() => new Embeddings(module, module.glue.RawEmbeddings.fromBytes(content)));
  }

  /** The set as a file that `load` and the Rust SDK open. */
  save(): Uint8Array {
    return this.#module.guardedNow(() => this.#raw.toBytes());
  }

  /** A view of one vector; no copy. */
  row(index: number): Float32Array {
    if (!Number.isInteger(index) || index < 0 || index >= this.length) throw new RangeError(`row ${index} of ${this.length}`);
    return this.values.subarray(index * this.dimension, (index + 1) * this.dimension);
  }

  *[Symbol.iterator](): Iterator<Float32Array> {
    for (let index = 0; index < this.length; index++) yield this.row(index);
  }

  /** The texts or names that go with the vectors, if any. */
  get labels(): string[] | undefined {
    return this.#module.guardedNow(() => this.#raw.labels());
  }

  /** The same set with a text or name for each vector. */
  withLabels(labels: string[]): Embeddings {
    return this.#module.guardedNow(() => new Embeddings(this.#module, this.#raw.withLabels(labels)));
  }

  /** The nearest `k` vectors of this set for each query. Throws `IncompatibleIndex` when another model made the queries. */
  search(queries: Embeddings, k: number): Hit[][] {
    return this.#module.guardedNow(() => {
      // A module knows nothing of what another build of it made.
      const raw = queries.#module === this.#module ? queries.#raw : this.#module.glue.RawEmbeddings.fromBytes(queries.save());
      return JSON.parse(this.#raw.search(raw, k)) as Hit[][];
    });
  }
}

/** The cosine of the angle between two vectors. */
export function similarity(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) throw new RangeError(`vectors of ${a.length} and ${b.length} components`);
  let dot = 0, aa = 0, bb = 0;
  for (let i = 0; i < a.length; i++) {
    const x = a[i]!, y = b[i]!;
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa === 0 || bb === 0 ? 0 : dot / Math.sqrt(aa * bb);
}
