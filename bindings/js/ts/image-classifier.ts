import { Classifications, ranked, type Label } from "./classifications.js";
import type { ClassifyOptions } from "./classifier.js";
import { checkWord, type IsovecError } from "./error.js";
import { SCORE_FORMS } from "./host.js";
import { BaseImageModel } from "./image-model.js";
import type { Picture } from "./pictures.js";
import type { Streamed } from "./stream.js";

/** A picture of a stream: its labels, the highest score first, or why it cannot be read. */
export type ClassifiedPicture = Streamed & ({ labels: Label[]; error?: undefined } | { labels?: undefined; error: IsovecError });

/** A loaded model that gives pictures labels. */
export abstract class BaseImageClassifier extends BaseImageModel {
  /** The names of the labels, in the order of a picture's scores. */
  get labels(): readonly string[] {
    return this.about.labels;
  }

  /**
   * Classifies pictures, in their order. The first that cannot be read is the error `Picture`, which says its place; the other
   * pictures and calls are unharmed.
   */
  async classify(pictures: readonly Picture[], { scores, signal }: ClassifyOptions = {}): Promise<Classifications> {
    if (scores !== undefined) checkWord("scores", scores, SCORE_FORMS);
    const sets = (await this.all(pictures, { scores }, signal)).map(({ rows }) => rows);
    const values = new Float32Array(sets.reduce((sum, { values }) => sum + values.length, 0));
    const tokenCounts = new Uint32Array(pictures.length);
    let [value, row] = [0, 0];
    for (const set of sets) {
      values.set(set.values, value);
      tokenCounts.set(set.tokenCounts, row);
      value += set.values.length;
      row += set.tokenCounts.length;
    }
    return new Classifications({ labels: this.labels, values, tokenCounts, truncated: new Uint8Array(pictures.length) });
  }

  /** The labels of one picture, the highest score first. */
  async classifyOne(picture: Picture, options: ClassifyOptions = {}): Promise<Label[]> {
    return (await this.classify([picture], options)).ranked(0);
  }

  /**
   * Classifies any number of pictures, in their order, and reads ahead only far enough to keep the engine busy. A picture that
   * cannot be read has an `error` in place of its `labels`, and the stream goes on. After `break` or `return` nothing more is
   * computed.
   */
  async *classifyStream(pictures: Iterable<Picture> | AsyncIterable<Picture>, { scores, signal }: ClassifyOptions = {}): AsyncIterableIterator<ClassifiedPicture> {
    if (scores !== undefined) checkWord("scores", scores, SCORE_FORMS);
    yield* this.streamed(pictures, { scores }, (scores) => ({ labels: ranked(this.labels, scores) }), signal) as AsyncIterableIterator<ClassifiedPicture>;
  }
}
