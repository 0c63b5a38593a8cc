/**
 * isovec in the thread that imports it: no worker, and nothing is imported later. For service workers of extensions and
 * for edge runtimes, which allow neither. Everything else is as in `isovec`.
 *
 * @example
 * import { Embedder } from "isovec/inline";
 * import module from "isovec/simd128.wasm"; // where the platform makes a WebAssembly.Module of it
 * const embedder = await Embedder.load(files, { module });
 *
 * @module
 */
import * as relaxed from "../pkg/relaxed/isovec_js.js";
import * as simd128 from "../pkg/simd128/isovec_js.js";
import { chosen, type Build } from "./builds.js";
import { BaseClassifier } from "./classifier.js";
import { compiled, unavailable } from "./compile.js";
import { BaseEmbedder } from "./embedder.js";
import type { Host, Request } from "./host.js";
import { instance } from "./instances.js";
import { open } from "./local.js";
import type { Opener } from "./lived.js";
import type { Module } from "./module.js";
import type { LoadOptions as Options } from "./request.js";
import { BaseMultiVectorEmbedder } from "./multi-vector.js";
import { BaseReranker } from "./reranker.js";
import type { ModelSource } from "./source.js";
import { BaseSparseEmbedder } from "./sparse.js";

const GLUE = { simd128, relaxed } as unknown as Record<Build, typeof simd128 | undefined>;

/** How a model is loaded. */
export interface LoadOptions extends Options {
  /**
   * The compiled module, where it cannot be fetched or compiled: `isovec/simd128.wasm`, or another build's with the
   * option `build`. The first that is given is used for all models.
   */
  module?: WebAssembly.Module | Promise<WebAssembly.Module>;
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

const opener = ({ module }: LoadOptions): Opener<Host> => (request, listening) => open(request, listening, ready(request, module));

async function ready(request: Request, module: LoadOptions["module"]): Promise<Module> {
  const build = request.build ?? (module ? "simd128" : await chosen({ ...request, threads: 1 }));
  const glue = Object.hasOwn(GLUE, build) ? GLUE[build] : undefined;
  if (!glue) throw unavailable(build, `isovec/inline has ${Object.keys(GLUE).join(" and ")}`);
  return instance(build, async () => glue, () => module ?? compiled(build));
}

export type { Build } from "./builds.js";
export { cache } from "./cache.js";
export * from "./common.js";
