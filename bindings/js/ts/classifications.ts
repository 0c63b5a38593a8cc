/** A label and its score for one text or picture. */
export interface Label {
  /** The label's place among the model's. */
  index: number;
  label: string;
  /** A probability, unless the model's own numbers are wanted. */
  score: number;
}

/** Everything that a classifier says of the texts or pictures of a call. */
export interface Said {
  labels: readonly string[];
  values: Float32Array<ArrayBuffer>;
  tokenCounts: Uint32Array<ArrayBuffer>;
  truncated: Uint8Array<ArrayBuffer>;
}

/** What a classifier says of texts, or of pictures: a score for each of them and each label, in their order. */
export class Classifications {
  #truncated: Uint8Array;
  /** The names of the labels, in the order of a text's scores. */
  readonly labels: readonly string[];
  /** All scores, text after text. */
  readonly values: Float32Array<ArrayBuffer>;
  /** Number of texts. */
  readonly length: number;
  /** Tokens of each text that the model saw. */
  readonly tokenCounts: Uint32Array<ArrayBuffer>;

  /** @internal */
  constructor({ labels, values, tokenCounts, truncated }: Said) {
    this.labels = labels;
    this.values = values;
    this.length = tokenCounts.length;
    this.tokenCounts = tokenCounts;
    this.#truncated = truncated;
  }

  /** Whether the model saw only a part of each text. */
  get truncated(): readonly boolean[] {
    return Array.from(this.#truncated, (mark) => mark === 1);
  }

  /** The scores of one text, one for each label in the model's order: a view; no copy. */
  scores(text: number): Float32Array<ArrayBuffer> {
    if (!Number.isInteger(text) || text < 0 || text >= this.length) throw new RangeError(`text ${text} of ${this.length}`);
    const { length } = this.labels;
    return this.values.subarray(text * length, (text + 1) * length);
  }

  /** The label of one text with the highest score, the first of those that are equal. */
  best(text: number): Label {
    return this.ranked(text)[0]!;
  }

  /** All labels of one text, the highest score first; labels of the same score in the model's order. */
  ranked(text: number): Label[] {
    return ranked(this.labels, this.scores(text));
  }
}

/** Labels by their scores, the highest first; labels of the same score in their order. */
export function ranked(labels: readonly string[], scores: Float32Array): Label[] {
  // Sorting is stable.
  return Array.from(scores, (score, index) => ({ index, label: labels[index]!, score })).sort((a, b) => b.score - a.score);
}
