import { Embeddings } from "./embeddings.js";
import { checkFlag, checkWhole, checkWord } from "./error.js";
import { ROLES, type Role } from "./host.js";
import { BaseModel } from "./model.js";
import { told, type PromptOptions } from "./prompt.js";
import type { Similarity } from "./similarity.js";
import { stream, type Streamed } from "./stream.js";
import { TEXTS, checkTexts } from "./texts.js";

/** How texts are embedded. */
export interface EmbedOptions {
  /**
   * The number of first components to keep (matryoshka). They are scaled to unit length again if the vectors have it.
   * At most the model's own. Default: as the model was loaded.
   */
  dimension?: number;
  /**
   * Whether vectors are scaled to unit length. Default: as the model was loaded. `false` needs a model that was
   * loaded with `{ config: { text: { normalize: false } } }`: a call cannot undo the scaling.
   */
  normalize?: boolean;
  /** Ends the call with the signal's `reason`: in the queue at once, in the middle of a run between two operators. */
  signal?: AbortSignal;
}

/** Refuses a form that no vector has. */
export function checkForm(dimension: unknown, normalize: unknown): void {
  if (dimension !== undefined) checkWhole("dimension", dimension, 1);
  if (normalize !== undefined) checkFlag("normalize", normalize);
}

/** How a stream of texts is embedded. */
export interface StreamOptions extends EmbedOptions, PromptOptions {
  /** What the texts are: "query" and "passage" put the model's prompt for them before each. Default: its default prompt. */
  role?: Role;
}

/** A text of a stream, embedded. */
export interface Embedded extends Streamed {
  vector: Float32Array;
}

/** A loaded model that turns texts into vectors. */
export abstract class BaseEmbedder extends BaseModel {
  /** Components of a vector. */
  get dimension(): number {
    return this.about.dimension;
  }

  /** How the model means its vectors to be compared. */
  get metric(): Similarity {
    return this.about.metric;
  }

  /** Embeds texts, in their order. Calls that are under way at the same time are computed together. */
  embed(texts: readonly string[], options: EmbedOptions & PromptOptions = {}): Promise<Embeddings> {
    return this.#embed(texts, "default", options);
  }

  /** The vector of one text. */
  async embedOne(text: string, options: EmbedOptions & PromptOptions = {}): Promise<Float32Array> {
    return (await this.#embed([text], "default", options)).row(0);
  }

  /** Embeds texts to search with, under the model's query prompt. */
  embedQueries(texts: readonly string[], options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed(texts, "query", options);
  }

  /** Embeds a text to search with, under the model's query prompt: a set of one vector. */
  embedQuery(text: string, options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed([text], "query", options);
  }

  /** Embeds texts to search in, under the model's passage prompt. */
  embedPassages(texts: readonly string[], options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed(texts, "passage", options);
  }

  /** Embeds a text to search in, under the model's passage prompt: a set of one vector. */
  embedPassage(text: string, options: EmbedOptions = {}): Promise<Embeddings> {
    return this.#embed([text], "passage", options);
  }

  /**
   * Embeds any number of texts, in their order, and reads ahead only far enough to keep the engine busy. After
   * `break` or `return` nothing more is computed.
   */
  async *embedStream(texts: Iterable<string> | AsyncIterable<string>, options: StreamOptions = {}): AsyncIterableIterator<Embedded> {
    const { role = "default", signal, ...asked } = options;
    checkWord("role", role, ROLES);
    yield* stream(texts, TEXTS, (window, signal) => this.#embed(window, role, { ...asked, signal }), (vectors, at) => ({ vector: vectors.row(at) }), signal);
  }

  async #embed(texts: readonly string[], role: Role, { dimension, normalize, signal, ...prompted }: EmbedOptions & PromptOptions): Promise<Embeddings> {
    checkForm(dimension, normalize);
    const lead = told(role, prompted);
    checkTexts(texts);
    const { rows, about } = await this.run(texts, { lead, dimension, normalize }, signal);
    const { metric, model } = about;
    return new Embeddings({ ...rows, metric, model, labels: undefined });
  }
}
