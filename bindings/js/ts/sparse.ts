import { IsovecError, checkWhole, checkWord } from "./error.js";
import { ROLES, type Role } from "./host.js";
import { BaseModel } from "./model.js";
import { told, type PromptOptions } from "./prompt.js";
import { SparseEmbeddings, type SparseVector } from "./sparse-embeddings.js";
import { stream, type Streamed } from "./stream.js";
import { TEXTS, checkTexts } from "./texts.js";

/** How texts get weights of words. */
export interface SparseOptions {
  /** Keep so many of the largest weights of each text. Default: all. */
  topK?: number;
  /** Ends the call with the signal's `reason`: in the queue at once, in the middle of a run between two operators. */
  signal?: AbortSignal;
}

/** How a stream of texts gets weights of words. */
export interface SparseStreamOptions extends SparseOptions, PromptOptions {
  /** What the texts are: "query" and "passage" put the model's prompt for them before each. Default: its default prompt. */
  role?: Role;
}

/** A text of a stream, with the weights of its words. */
export interface SparseEmbedded extends Streamed {
  vector: SparseVector;
}

/** A word and its weight. */
export interface WordWeight {
  /** The token's id. */
  index: number;
  /** The token, as the tokenizer's file writes it. */
  token: string;
  weight: number;
}

/** A loaded model that gives texts weights of words. */
export abstract class BaseSparseEmbedder extends BaseModel {
  /** Words that can have a weight. */
  get vocabularySize(): number {
    return this.about.dimension;
  }

  /** Gives texts weights of words, in their order. Calls that are under way at the same time are computed together. */
  embed(texts: readonly string[], options: SparseOptions = {}): Promise<SparseEmbeddings> {
    return this.#embed(texts, "default", options);
  }

  /** The same for texts to search with, under the model's query prompt. */
  embedQueries(texts: readonly string[], options: SparseOptions = {}): Promise<SparseEmbeddings> {
    return this.#embed(texts, "query", options);
  }

  /** The same for a text to search with: a set of one vector. */
  embedQuery(text: string, options: SparseOptions = {}): Promise<SparseEmbeddings> {
    return this.#embed([text], "query", options);
  }

  /** The same for texts to search in, under the model's passage prompt. */
  embedPassages(texts: readonly string[], options: SparseOptions = {}): Promise<SparseEmbeddings> {
    return this.#embed(texts, "passage", options);
  }

  /** The same for a text to search in: a set of one vector. */
  embedPassage(text: string, options: SparseOptions = {}): Promise<SparseEmbeddings> {
    return this.#embed([text], "passage", options);
  }

  /**
   * Gives texts weights of words of which there may be any number, in their order, and reads ahead only as far as keeps the engine
   * busy. What is not taken any more (`break`, `return`) is not computed any more.
   */
  async *embedStream(texts: Iterable<string> | AsyncIterable<string>, { role = "default", signal, ...asked }: SparseStreamOptions = {}): AsyncIterableIterator<SparseEmbedded> {
    checkWord("role", role, ROLES);
    checkAsked(asked);
    const compute = (window: string[], signal: AbortSignal) => this.#embed(window, role, { ...asked, signal });
    // Copies: a view would hold all vectors of its window.
    const vector = ({ indices, values }: SparseVector) => ({ indices: indices.slice(), values: values.slice() });
    yield* stream(texts, TEXTS, compute, (set, at) => ({ vector: vector(set.row(at)) }), signal);
  }

  /** The heaviest words of a vector of this model, for people: the largest weight first, words of the same weight by their ids. */
  async words({ indices, values }: SparseVector, most = Infinity): Promise<WordWeight[]> {
    if (most !== Infinity) checkWhole("most", most, 1);
    const beyond = indices.find((index) => index >= this.vocabularySize);
    if (beyond !== undefined) throw new IsovecError("InvalidEmbeddings", `the sparse vector has the index ${beyond}, and this model has ${this.vocabularySize} words`);
    // Sorting is stable.
    const sorted = Array.from(indices, (index, at) => ({ index, weight: values[at]! })).sort((a, b) => b.weight - a.weight).slice(0, most);
    const tokens = await this.tokens(Uint32Array.from(sorted, ({ index }) => index));
    return sorted.map(({ index, weight }, at) => ({ index, token: tokens[at]!, weight }));
  }

  async #embed(texts: readonly string[], role: Role, { topK, signal, ...prompted }: SparseOptions & PromptOptions): Promise<SparseEmbeddings> {
    checkAsked({ topK });
    checkTexts(texts);
    const { rows, about } = await this.run(texts, { lead: told(role, prompted), topK }, signal);
    return new SparseEmbeddings({ ...rows, model: about.model, offsets: rows.offsets!, indices: rows.indices! });
  }
}

function checkAsked({ topK }: { topK?: number | undefined }): void {
  if (topK !== undefined) checkWhole("topK", topK, 1);
}
