/**
 * Text embeddings and classification in the browser, the same numbers as on the server.
 *
 * @example
 * import { Embedder } from "isovec";
 * const embedder = await Embedder.load("sentence-transformers/all-MiniLM-L6-v2");
 * const index = await embedder.embedPassages(["rain is expected tomorrow", "shares fell"]);
 * const [best] = index.searchOne(await embedder.embedQuery("what will the weather be like?"), 1);
 *
 * @module
 */
import { BaseClassifier } from "./classifier.js";
import { BaseEmbedder } from "./embedder.js";
import { BaseImageClassifier } from "./image-classifier.js";
import { BaseImageEmbedder } from "./image.js";
import type { Host, ReadingHost } from "./host.js";
import type { Opener } from "./lived.js";
import { open as inWorker } from "./remote.js";
import type { LoadPictures, LoadReading, LoadOptions as Options } from "./request.js";
import { BaseMultiVectorEmbedder } from "./multi-vector.js";
import { BaseReranker } from "./reranker.js";
import type { ModelSource } from "./source.js";
import { BaseSparseEmbedder } from "./sparse.js";
import { BaseTextReader } from "./text-reader.js";

/** How a model is loaded. */
export interface LoadOptions extends Options {
  /**
   * Whether the model is loaded in a worker of its own, and this thread stays free. Default: in a page, and not where
   * there is none to be kept free (a worker, a server).
   */
  worker?: boolean;
}

/** A loaded model that turns texts into vectors. */
export class Embedder extends BaseEmbedder {
  /** Loads a model: fetches its files (or takes them), checks them, prepares them to run. */
  static load(source: ModelSource, options: LoadOptions = {}): Promise<Embedder> {
    return BaseEmbedder.opened({ output: "vectors", pictures: false }, (host, open) => new Embedder(host, open), opener(options), source, options);
  }
}

/** A loaded model that gives texts labels: sentiment, topic, language, whatever it was trained to tell apart. */
export class Classifier extends BaseClassifier {
  /** Loads a model as `Embedder.load` does. One that gives no labels is the error `UnsupportedModel`. */
  static load(source: ModelSource, options: LoadOptions = {}): Promise<Classifier> {
    return BaseClassifier.opened({ output: "labels", pictures: false }, (host, open) => new Classifier(host, open), opener(options), source, options);
  }
}

/**
 * A loaded model that reads a query and a document together and says how relevant the document is: a cross-encoder. It is slower
 * than comparing vectors, and better, so it usually gets the documents that vectors found.
 *
 * @example
 * const reranker = await Reranker.load("cross-encoder/ms-marco-MiniLM-L6-v2");
 * const [best] = await reranker.rank("what is the capital of France?", documents, { topN: 1 });
 * console.log(documents[best.index], best.score);
 */
export class Reranker extends BaseReranker {
  /** Loads a model as `Embedder.load` does. One that does not give one number for a pair is the error `UnsupportedModel`. */
  static load(source: ModelSource, options: LoadOptions = {}): Promise<Reranker> {
    return BaseReranker.opened({ output: "relevance", pictures: false }, (host, open) => new Reranker(host, open), opener(options), source, options);
  }
}

/**
 * A loaded model that gives a text a weight for every word that it speaks of, and for words that belong to them: a SPLADE model.
 *
 * @example
 * const embedder = await SparseEmbedder.load("naver/splade-cocondenser-ensembledistil");
 * const index = await embedder.embedPassages(["rain is expected tomorrow", "shares fell"]);
 * const query = await embedder.embedQuery("stock market");
 * const [best] = index.searchOne(query, 1);
 * console.log(best, await embedder.words(query.row(0), 5));
 */
export class SparseEmbedder extends BaseSparseEmbedder {
  /** Loads a model as `Embedder.load` does. One that gives words no numbers is the error `UnsupportedModel`. */
  static load(source: ModelSource, options: LoadOptions = {}): Promise<SparseEmbedder> {
    return BaseSparseEmbedder.opened({ output: "words", pictures: false }, (host, open) => new SparseEmbedder(host, open), opener(options), source, options);
  }
}

/**
 * A loaded model of late interaction (ColBERT): every token of a text gets a vector. A query's score with a passage is the sum over the
 * query's tokens of the largest inner product with any token of the passage.
 *
 * @example
 * const embedder = await MultiVectorEmbedder.load("colbert-ir/colbertv2.0");
 * const index = await embedder.embedPassages(["rain is expected tomorrow", "shares fell"]);
 * const [best] = index.searchOne(await embedder.embedQuery("stock market"), 1);
 */
export class MultiVectorEmbedder extends BaseMultiVectorEmbedder {
  /** Loads a model as `Embedder.load` does. One whose files describe no late interaction is the error `UnsupportedModel`. */
  static load(source: ModelSource, options: LoadOptions = {}): Promise<MultiVectorEmbedder> {
    return BaseMultiVectorEmbedder.opened({ output: "tokens", pictures: false }, (host, open) => new MultiVectorEmbedder(host, open), opener(options), source, options);
  }
}

/**
 * A loaded model that turns pictures into vectors: ViT, DeiT, DINO, the halves of CLIP and SigLIP for pictures, and from
 * ONNX files convolutional networks such as ResNet and MobileNet, which the build `tract` runs. What decodes pictures is a
 * module of its own, which is fetched with the first such model.
 *
 * @example
 * const pictures = await ImageEmbedder.load("openai/clip-vit-base-patch32");
 * const texts = await Embedder.load("openai/clip-vit-base-patch32");
 * const index = await pictures.embed([...input.files]);
 * const [best] = index.searchOne(await texts.embedQuery("a dog on a beach"), 1);
 */
export class ImageEmbedder extends BaseImageEmbedder {
  /** Loads a model as `Embedder.load` does. One that reads no pictures is the error `UnsupportedModel`. */
  static load(source: ModelSource, options: LoadOptions & LoadPictures = {}): Promise<ImageEmbedder> {
    return BaseImageEmbedder.opened({ output: "vectors", pictures: true }, (host, open) => new ImageEmbedder(host, open), opener(options), source, options);
  }
}

/**
 * A loaded model that gives pictures labels: ViT and DeiT, and from ONNX files convolutional networks such as MobileNet.
 *
 * @example
 * const classifier = await ImageClassifier.load("google/vit-base-patch16-224");
 * const [best] = await classifier.classifyOne(input.files[0]);
 * console.log(best.label, best.score);
 */
export class ImageClassifier extends BaseImageClassifier {
  /** Loads a model as `ImageEmbedder.load` does. One that gives no labels is the error `UnsupportedModel`. */
  static load(source: ModelSource, options: LoadOptions & LoadPictures = {}): Promise<ImageClassifier> {
    return BaseImageClassifier.opened({ output: "labels", pictures: true }, (host, open) => new ImageClassifier(host, open), opener(options), source, options);
  }
}

/**
 * The loaded networks of PP-OCR, which read the text of photos, scans and screenshots, with a box around each line: one finds lines,
 * one says which of them stand on their head, and one reads a line. The build `tract` runs them in a page.
 *
 * @example
 * const reader = await TextReader.load("/models/pp-ocrv4/");
 * const { lines } = await reader.readOne(input.files[0]);
 * for (const { text, score, corners } of lines) console.log(score, corners[0], text);
 */
export class TextReader extends BaseTextReader {
  /** Loads the networks: fetches the three files (or takes them), checks them, prepares them to run. */
  static load(source: ModelSource, options: LoadOptions & LoadReading = {}): Promise<TextReader> {
    return BaseTextReader.opened((host, open) => new TextReader(host, open), isWorker(options) ? inWorker : readerHere, source, options);
  }
}

const isWorker = ({ worker = typeof document !== "undefined" }: LoadOptions): boolean => worker;
const opener = (options: LoadOptions): Opener<Host> => (isWorker(options) ? inWorker : here);

/** In this thread. Pages that do not want that do not download what it takes. */
const here: Opener<Host> = async (request, listening) => (await import("./here.js")).here(request, listening);
const readerHere: Opener<ReadingHost> = async (request, listening) => (await import("./here.js")).readerHere(request, listening);

export type { Build } from "./builds.js";
export { cache } from "./cache.js";
export { hocr, plain, type Corner, type PictureText, type TextLine } from "./picture-text.js";
export type { LoadReading } from "./request.js";
export type { ReadOptions } from "./text-reader.js";
export * from "./common.js";
