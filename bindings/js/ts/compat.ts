/**
 * The feature extraction of transformers.js (`@huggingface/transformers` 4), computed by isovec: the same calls with the
 * same options give results of the same shape.
 *
 * @example
 * import { pipeline } from "isovec/compat";
 * const extractor = await pipeline("feature-extraction", "Xenova/all-MiniLM-L6-v2");
 * const output = await extractor(["a text", "another"], { pooling: "mean", normalize: true });
 * console.log(output.dims, output.tolist());
 *
 * @module
 */
import { filesOf, likely, plain, type Contents, type Head } from "./compat/files.js";
import { headOf, loading, unsupported, type FeatureExtractionPipelineOptions, type PipelineOptions } from "./compat/options.js";
import { Files } from "./compat/progress.js";
import { Tensor } from "./compat/tensor.js";
import { disposed } from "./error.js";
import { Embedder, type LoadOptions } from "./index.js";
import { resolve, type ModelSource } from "./source.js";

export type { DataType, DeviceType, FeatureExtractionPipelineOptions, PipelineOptions } from "./compat/options.js";
export type { ProgressCallback, ProgressInfo } from "./compat/progress.js";
export type { Tensor, TensorRow } from "./compat/tensor.js";
export { IsovecError } from "./error.js";

/** Turns one text or several into vectors, a row for each. */
export interface FeatureExtractionPipeline {
  (texts: string | readonly string[], options?: FeatureExtractionPipelineOptions): Promise<Tensor>;
  readonly task: "feature-extraction";
  /** Gives all memory back. Later calls throw `Disposed`. */
  dispose(): Promise<void>;
}

/**
 * Loads a model, as transformers.js does: it reads the model's own files and those of its tokenizer, and none of
 * sentence-transformers'. So a text is cut to `model_max_length` of `tokenizer_config.json`, where `Embedder.load` takes
 * what `sentence_bert_config.json` says; there is no default prompt, and no dense layer behind the pooling.
 *
 * Pooling and normalisation are part of the model that isovec loads. Those that the model's files name, else `mean`
 * and unit length, is loaded at once. The first call with other options loads the model a second time, from the same
 * files, and gives back what was loaded and not used.
 */
export async function pipeline(task: "feature-extraction" | "embeddings", model: ModelSource, options: PipelineOptions = {}): Promise<FeatureExtractionPipeline> {
  if (!["feature-extraction", "embeddings"].includes(task)) throw unsupported(`isovec turns texts into vectors, and has no task ${JSON.stringify(task)}; use "feature-extraction", or transformers.js for others`);
  if (!model) throw unsupported("there is no default model; name one");
  const { progress_callback: callback } = options;
  const load = loading(options);
  const { name } = resolve(model, load);
  const listener = callback ? new Files(name, callback) : undefined;
  const files = await filesOf(model, { ...load, ...(listener && { onProgress: listener.progress }) });
  listener?.end();
  const extractor = new Extractor(plain(files), load);
  await extractor.begin(await likely(files));
  callback?.({ status: "ready", task: "feature-extraction", model: name });
  const call = (texts: string | readonly string[], options: FeatureExtractionPipelineOptions = {}) => extractor.extract(texts, options);
  return Object.assign(call, { task: "feature-extraction" as const, dispose: () => extractor.dispose() });
}

/** A model with one head, and whether any text was embedded with it. */
interface Loaded {
  embedder: Promise<Embedder>;
  used: boolean;
}

/** A model under every head that was asked for. */
class Extractor {
  #files: Contents | undefined;
  #options: LoadOptions;
  #loaded = new Map<string, Loaded>();

  constructor(files: Contents, options: LoadOptions) {
    this.#files = files;
    this.#options = options;
  }

  /** Loads what will most likely be asked for. */
  async begin(head: Head): Promise<void> {
    await this.#load(head).embedder;
  }

  async extract(texts: string | readonly string[], options: FeatureExtractionPipelineOptions): Promise<Tensor> {
    const head = headOf(options);
    const loaded = this.#loaded.get(keyOf(head)) ?? this.#load(head);
    loaded.used = true;
    const { values, length, dimension } = await (await loaded.embedder).embed(typeof texts === "string" ? [texts] : texts);
    return new Tensor(values, [length, dimension]);
  }

  async dispose(): Promise<void> {
    this.#files = undefined;
    await this.#release(() => true);
  }

  #load(head: Head): Loaded {
    const loaded = { embedder: this.#open(head), used: false };
    this.#loaded.set(keyOf(head), loaded);
    // A later call may try again.
    loaded.embedder.catch(() => this.#loaded.delete(keyOf(head)));
    return loaded;
  }

  async #open(head: Head): Promise<Embedder> {
    if (!this.#files) throw disposed();
    const { config } = this.#options;
    const files = this.#files;
    // A model takes memory: what nobody asked for makes room.
    await this.#release(({ used }) => !used);
    return Embedder.load(files, { ...this.#options, config: { ...config, text: { ...config?.text, ...head } } });
  }

  async #release(which: (loaded: Loaded) => boolean): Promise<void> {
    const released = [...this.#loaded].filter(([, loaded]) => which(loaded));
    for (const [key] of released) this.#loaded.delete(key);
    await Promise.all(released.map(([, { embedder }]) => embedder.then((embedder) => embedder.dispose(), () => {})));
  }
}

function keyOf({ pooling, normalize }: Head): string {
  return `${pooling} ${normalize}`;
}
