import { Classifications, type Label } from "./classifications.js";
import { checkWord } from "./error.js";
import { SCORE_FORMS, type ScoreForm } from "./host.js";
import { BaseModel } from "./model.js";
import { unzipped, type Pair } from "./pairs.js";
import { stream, type Streamed } from "./stream.js";
import { TEXTS, checkTexts } from "./texts.js";

/** How texts are classified. */
export interface ClassifyOptions {
  /** What scores are. Default: what the kind of problem in the model's `config.json` asks for. */
  scores?: ScoreForm;
  /** Ends the call with the signal's `reason`: in the queue at once, in the middle of a run between two operators. */
  signal?: AbortSignal;
}

/** A text of a stream, classified. */
export interface Classified extends Streamed {
  /** All labels, the highest score first; labels of the same score in the model's order. */
  labels: Label[];
}

/** A loaded model that gives texts labels. */
export abstract class BaseClassifier extends BaseModel {
  /** The names of the labels, in the order of a text's scores. */
  get labels(): readonly string[] {
    return this.about.labels;
  }

  /** Classifies texts, in their order. Calls that are under way at the same time are computed together. */
  async classify(texts: readonly string[], { scores, signal }: ClassifyOptions = {}): Promise<Classifications> {
    if (scores !== undefined) checkWord("scores", scores, SCORE_FORMS);
    checkTexts(texts);
    const { rows, about } = await this.run(texts, { scores }, signal);
    return new Classifications({ ...rows, labels: about.labels });
  }

  /**
   * Classifies pairs of texts that the model reads together, as models of paraphrase, entailment and relevance want them. Where a
   * pair is too long, its longer text is cut first.
   */
  async classifyPairs(pairs: readonly Pair[], { scores, signal }: ClassifyOptions = {}): Promise<Classifications> {
    if (scores !== undefined) checkWord("scores", scores, SCORE_FORMS);
    const { firsts, seconds } = unzipped(pairs);
    const { rows, about } = await this.run(firsts, { seconds, scores, lead: "default" }, signal);
    return new Classifications({ ...rows, labels: about.labels });
  }

  /** The labels of one text, the highest score first. */
  async classifyOne(text: string, options: ClassifyOptions = {}): Promise<Label[]> {
    return (await this.classify([text], options)).ranked(0);
  }

  /**
   * Classifies texts of which there may be any number, in their order, and reads ahead only as far as keeps the engine busy.
   * What is not taken any more (`break`, `return`) is not computed any more.
   */
  async *classifyStream(texts: Iterable<string> | AsyncIterable<string>, { signal, ...asked }: ClassifyOptions = {}): AsyncIterableIterator<Classified> {
    if (asked.scores !== undefined) checkWord("scores", asked.scores, SCORE_FORMS);
    yield* stream(texts, TEXTS, (window, signal) => this.classify(window, { ...asked, signal }), (said, at) => ({ labels: said.ranked(at) }), signal);
  }
}
