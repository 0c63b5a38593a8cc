import type { Fingerprint } from "./embeddings.js";
import { IsovecError } from "./error.js";
import { compatible } from "./sets.js";
import type { Hit } from "./similarity.js";

/** What a model says of a call's texts, beside the values that each of them has. */
export interface Said {
  /** Where those of each text begin, and at last where they end. */
  offsets: Uint32Array<ArrayBuffer>;
  dimension: number;
  tokenCounts: Uint32Array<ArrayBuffer>;
  truncated: Uint8Array<ArrayBuffer>;
  fingerprint: Fingerprint;
  prompt: string | null;
  /** The model's name, for people. */
  model: string;
}

/** Texts whose values lie one after another, as many for each text as it has words or tokens, with the fingerprint of their model. */
export abstract class TextSet {
  #truncated: Uint8Array<ArrayBuffer>;
  /** Tokens of each text that the model saw. */
  readonly tokenCounts: Uint32Array<ArrayBuffer>;
  /** Says which vectors can be compared with these. */
  readonly fingerprint: Fingerprint;
  /** The name of the prompt that was put before the texts. */
  readonly prompt: string | null;
  /** The model's name, for people. */
  readonly model: string;
  /** Where what belongs to each text begins, and at last where that of the last one ends. */
  abstract readonly offsets: Uint32Array<ArrayBuffer>;
  /** Numbers of a vector. */
  abstract readonly dimension: number;

  /** @internal */
  constructor({ tokenCounts, truncated, fingerprint, prompt, model }: Said) {
    this.model = model;
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

  /**
   * The `k` texts of this set with the highest scores for each query, best first. Throws `IncompatibleIndex` when another model made
   * the queries.
   */
  search(queries: this, k: number): Hit[][] {
    compatible(this, queries);
    return Array.from({ length: queries.length }, (_, query) => this.nearest(queries, query, k));
  }

  /** The same for a set of one query. */
  searchOne(query: this, k: number): Hit[] {
    if (query.length !== 1) throw new IsovecError("NotOneQuery", `searchOne takes a set of one query, and this one has ${query.length}`);
    return this.search(query, k)[0]!;
  }

  /** @internal */
  protected get marks(): Uint8Array<ArrayBuffer> {
    return this.#truncated;
  }

  /** @internal Where what belongs to a text begins and ends. */
  protected ends(index: number): [number, number] {
    if (!Number.isInteger(index) || index < 0 || index >= this.length) throw new RangeError(`row ${index} of ${this.length}`);
    return [this.offsets[index]!, this.offsets[index + 1]!];
  }

  /** @internal */
  protected abstract nearest(queries: this, query: number, k: number): Hit[];
}
