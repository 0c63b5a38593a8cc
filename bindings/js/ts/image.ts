import { Embeddings } from "./embeddings.js";
import { checkForm, type EmbedOptions } from "./embedder.js";
import type { IsovecError } from "./error.js";
import { BaseImageModel } from "./image-model.js";
import type { Picture } from "./pictures.js";
import type { Similarity } from "./similarity.js";
import type { Streamed } from "./stream.js";

/** A picture of a stream: its vector, or why it cannot be read. */
export type EmbeddedPicture = Streamed & ({ vector: Float32Array; error?: undefined } | { vector?: undefined; error: IsovecError });

/** A loaded model that turns pictures into vectors. */
export abstract class BaseImageEmbedder extends BaseImageModel {
  /** Components of a vector. */
  get dimension(): number {
    return this.about.dimension;
  }

  /** How the model means its vectors to be compared. */
  get metric(): Similarity {
    return this.about.metric;
  }

  /**
   * Embeds pictures, in their order. The first that cannot be read is the error `Picture`, which says its place; the other
   * pictures and calls are unharmed.
   */
  async embed(pictures: readonly Picture[], options: EmbedOptions = {}): Promise<Embeddings> {
    const { dimension, normalize, signal } = options;
    checkForm(dimension, normalize);
    const sets = (await this.all(pictures, { dimension, normalize }, signal)).map(({ rows, about }) => new Embeddings({ ...rows, metric: about.metric, model: about.model, labels: undefined }));
    return sets.length === 1 ? sets[0]! : Embeddings.concat(sets);
  }

  /** The vector of one picture. */
  async embedOne(picture: Picture, options: EmbedOptions = {}): Promise<Float32Array> {
    return (await this.embed([picture], options)).row(0);
  }

  /**
   * Embeds any number of pictures, in their order, and reads ahead only far enough to keep the engine busy. A picture that
   * cannot be read has an `error` in place of its `vector`, and the stream goes on. After `break` or `return` nothing more
   * is computed.
   */
  async *embedStream(pictures: Iterable<Picture> | AsyncIterable<Picture>, { dimension, normalize, signal }: EmbedOptions = {}): AsyncIterableIterator<EmbeddedPicture> {
    checkForm(dimension, normalize);
    yield* this.streamed(pictures, { dimension, normalize }, (vector) => ({ vector }), signal) as AsyncIterableIterator<EmbeddedPicture>;
  }
}
