import { checkWord } from "./error.js";
import { ROLES, type Role } from "./host.js";
import { BaseModel } from "./model.js";
import { MultiVectorEmbeddings } from "./multi-vector-embeddings.js";
import { stream, type Streamed } from "./stream.js";
import { TEXTS, checkTexts } from "./texts.js";

/** How texts' tokens get vectors. */
export interface MultiVectorOptions {
  /** Ends the call with the signal's `reason`: in the queue at once, in the middle of a run between two operators. */
  signal?: AbortSignal;
}

/** How the tokens of a stream of texts get vectors. */
export interface MultiVectorStreamOptions extends MultiVectorOptions {
  /** With "query", texts are read as queries, else as passages. Default: "passage". */
  role?: Role;
}

/** A text of a stream, with the vectors of its tokens. */
export interface MultiVectorEmbedded extends Streamed {
  /** One after another, each of `dimension` numbers. */
  vectors: Float32Array<ArrayBuffer>;
}

/** A loaded model that gives every token a vector. */
export abstract class BaseMultiVectorEmbedder extends BaseModel {
  /** Numbers of a token's vector. */
  get dimension(): number {
    return this.about.dimension;
  }

  /** Embeds texts to search in, in their order. Calls that are under way at the same time are computed together. */
  embedPassages(texts: readonly string[], options: MultiVectorOptions = {}): Promise<MultiVectorEmbeddings> {
    return this.#embed(texts, "passage", options);
  }

  /** The same for a text to search in: a set of one. */
  embedPassage(text: string, options: MultiVectorOptions = {}): Promise<MultiVectorEmbeddings> {
    return this.#embed([text], "passage", options);
  }

  /** The same for texts to search with. */
  embedQueries(texts: readonly string[], options: MultiVectorOptions = {}): Promise<MultiVectorEmbeddings> {
    return this.#embed(texts, "query", options);
  }

  /** The same for a text to search with: a set of one. */
  embedQuery(text: string, options: MultiVectorOptions = {}): Promise<MultiVectorEmbeddings> {
    return this.#embed([text], "query", options);
  }

  /**
   * Embeds texts of which there may be any number, in their order, and reads ahead only as far as keeps the engine busy. What is not taken
   * any more (`break`, `return`) is not computed any more.
   */
  async *embedStream(texts: Iterable<string> | AsyncIterable<string>, { role = "passage", signal }: MultiVectorStreamOptions = {}): AsyncIterableIterator<MultiVectorEmbedded> {
    checkWord("role", role, ROLES);
    const compute = (window: string[], signal: AbortSignal) => this.#embed(window, role, { signal });
    // Copies: a view would hold all vectors of its window.
    yield* stream(texts, TEXTS, compute, (set, at) => ({ vectors: set.row(at).slice() }), signal);
  }

  async #embed(texts: readonly string[], role: Role, { signal }: MultiVectorOptions): Promise<MultiVectorEmbeddings> {
    checkTexts(texts);
    const { rows, about } = await this.run(texts, { lead: role, tokens: true }, signal);
    return new MultiVectorEmbeddings({ ...rows, vectors: rows.values, model: about.model, offsets: rows.offsets! });
  }
}
