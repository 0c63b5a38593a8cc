import { IsovecError, checkWhole, checkWord } from "./error.js";
import { BaseModel } from "./model.js";
import { PAIRS, unzipped, type Pair } from "./pairs.js";
import { told } from "./prompt.js";
import { stream, type Streamed } from "./stream.js";
import { checkText, checkTexts } from "./texts.js";

/**
 * The form of a relevance.
 *
 * - `sigmoid`: between 0 and 1.
 * - `logits`: the model's own number.
 */
export type Relevance = "sigmoid" | "logits";
const RELEVANCES: readonly Relevance[] = ["sigmoid", "logits"];

/** How pairs are scored. */
export interface ScoreOptions {
  /** What scores are; the order is the same. Default: what the model's `config.json` asks for. */
  scores?: Relevance;
  /**
   * The name of one of the model's prompts, or `"none"`. A decoder with a chat template gets it as its instruction; for every other
   * model it stands before the first text of each pair. Default: the model's default prompt.
   */
  prompt?: string;
  /** The instruction itself, in place of a prompt of the model's. */
  instruction?: string;
  /** Ends the call with the signal's `reason`: in the queue at once, in the middle of a run between two operators. */
  signal?: AbortSignal;
}

/** How documents are ranked. */
export interface RankOptions extends ScoreOptions {
  /** How many documents are given back, the best first; all where there are fewer. Default: all. */
  topN?: number;
}

/** A document of a ranking. */
export interface Ranked {
  /** Its place among the documents that were handed over. */
  index: number;
  /** How relevant it is: more is more relevant. */
  score: number;
  /** Tokens that the model saw of the query and the document. */
  tokens: number;
  /** Whether that was only a part of them. */
  truncated: boolean;
}

/** A pair of a stream, scored. */
export interface Scored extends Streamed {
  score: number;
}

/** How relevant the second texts of pairs are to the first ones, in the order of the pairs. */
export class PairScores {
  #truncated: Uint8Array;
  /** A number for each pair: more is more relevant. */
  readonly values: Float32Array<ArrayBuffer>;
  /** Tokens of each pair that the model saw. */
  readonly tokenCounts: Uint32Array<ArrayBuffer>;

  /** @internal */
  constructor({ values, tokenCounts, truncated }: { values: Float32Array<ArrayBuffer>; tokenCounts: Uint32Array<ArrayBuffer>; truncated: Uint8Array }) {
    this.values = values;
    this.tokenCounts = tokenCounts;
    this.#truncated = truncated;
  }

  /** Number of pairs. */
  get length(): number {
    return this.values.length;
  }

  /** Whether the model saw only a part of each pair. */
  get truncated(): readonly boolean[] {
    return Array.from(this.#truncated, (mark) => mark === 1);
  }

  /** The pairs, the highest score first; pairs of the same score in their order. */
  ranked(): Ranked[] {
    const { tokenCounts } = this;
    const all = Array.from(this.values, (score, index) => ({ index, score, tokens: tokenCounts[index]!, truncated: this.#truncated[index] === 1 }));
    // Sorting is stable.
    return all.sort((a, b) => b.score - a.score);
  }
}

/** A loaded model that says how relevant documents are to a query. */
export abstract class BaseReranker extends BaseModel {
  /**
   * Ranks documents by their relevance to a query, the best first; documents of the same score in their order. Where a query and a
   * document are too long together, the longer one is cut first. Calls that are under way at the same time are computed together.
   */
  async rank(query: string, documents: readonly string[], { topN, ...options }: RankOptions = {}): Promise<Ranked[]> {
    if (topN !== undefined) checkWhole("topN", topN, 1);
    if (typeof query !== "string") throw new IsovecError("InvalidText", `the query is not a string but ${query === null ? "null" : typeof query}`);
    checkText(query, 0);
    checkTexts(documents);
    const scores = await this.#scores(documents.map(() => query), documents, options);
    return scores.ranked().slice(0, topN);
  }

  /** The relevance of the second text of each pair to the first, in the order of the pairs. */
  async score(pairs: readonly Pair[], options: ScoreOptions = {}): Promise<PairScores> {
    const { firsts, seconds } = unzipped(pairs);
    return this.#scores(firsts, seconds, options);
  }

  /**
   * Scores pairs of which there may be any number, in their order, and reads ahead only as far as keeps the engine busy. What is not
   * taken any more (`break`, `return`) is not computed any more.
   */
  async *scoreStream(pairs: Iterable<Pair> | AsyncIterable<Pair>, { signal, ...asked }: ScoreOptions = {}): AsyncIterableIterator<Scored> {
    checkScores(asked);
    lead(asked);
    const compute = (window: Pair[], signal: AbortSignal) => this.score(window, { ...asked, signal });
    yield* stream(pairs, PAIRS, compute, (scored, at) => ({ score: scored.values[at]! }), signal);
  }

  async #scores(firsts: readonly string[], seconds: readonly string[], { signal, ...asked }: ScoreOptions): Promise<PairScores> {
    checkScores(asked);
    const { rows } = await this.run(firsts, { seconds, scores: asked.scores, lead: lead(asked) }, signal);
    return new PairScores(rows);
  }
}

/** What the engine is told of the prompt. */
function lead({ prompt, instruction }: ScoreOptions): string {
  return told("default", { prompt, prefix: instruction }, "instruction");
}

function checkScores({ scores }: { scores?: Relevance | undefined }): void {
  if (scores !== undefined) checkWord("scores", scores, RELEVANCES);
}
