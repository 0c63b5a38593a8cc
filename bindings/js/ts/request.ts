import type { Build, Gpu } from "./builds.js";
import type { Config } from "./config.js";
import { checkFlag, checkWhole, checkWord } from "./error.js";
import { CACHING, type Listening, type Request, type Task } from "./host.js";
import { nativeConfig } from "./native.js";
import { ALPHAS, REFERENCES, type PixelOptions } from "./pictures.js";
import { resolve, type FetchOptions, type ModelSource } from "./source.js";
import { wanted } from "./threads.js";
import { inWords, type Device, type DtypeWord } from "./words.js";

/** How a model is loaded. */
export interface LoadOptions extends FetchOptions {
  /** What computes. Default: the processor. */
  device?: Device;
  /** How the weights are stored. Default: as the file that is used stores them. */
  dtype?: DtypeWord;
  /** Every knob: Rust's `EmbeddingConfig` in camel case. */
  config?: Config;
  /**
   * The build of the module, for tests and for whoever has to pin it. Default: the fastest that runs here. One that
   * does not is the error `EngineUnavailable`.
   */
  build?: Build;
}

/** How a model of pictures is loaded. */
export interface LoadPictures {
  /** How pictures are read, where no file of the model says it. */
  pixels?: PixelOptions;
}

/** What loading a model takes, in the part that can be handed to a worker and the part that cannot. */
export function requested({ output, pictures }: Task, source: ModelSource, options: LoadOptions & LoadPictures): { request: Request; listening: Listening } {
  const { headers = {}, offline = false, cache = "use", onProgress, fetch, signal, build } = options;
  checkWord("cache", cache, CACHING);
  const config = inWords(options);
  const fetching = { headers, offline, cache, progress: onProgress !== undefined };
  const request = { output, ...resolve(source, options), fetching, config: nativeConfig(cache === "off" ? { remember: false, ...config } : config), build, threads: wanted(config), gpu: gpuIn(config), pixels: pictures ? checked(options.pixels ?? {}) : undefined };
  return { request, listening: { onProgress, fetch, signal } };
}

/** What a configuration says of GPUs, where one may compute. */
function gpuIn({ providers }: Config): Gpu | undefined {
  const list = providers?.executionProviders;
  // What is no list is refused where the configuration is read.
  const listed = Array.isArray(list) && list.includes("webgpu");
  if (!listed && providers?.providerAutoSelection !== true) return undefined;
  return { only: listed && list.length === 1, software: providers?.webgpu?.softwareAdapter === true };
}

function checked(pixels: PixelOptions): PixelOptions {
  const { reference, alpha, turn, maxPixels, maxBytes } = pixels;
  if (reference !== undefined) checkWord("pixels.reference", reference, REFERENCES);
  if (alpha !== undefined) checkWord("pixels.alpha", alpha, ALPHAS);
  if (turn !== undefined) checkFlag("pixels.turn", turn);
  if (maxPixels !== undefined) checkWhole("pixels.maxPixels", maxPixels, 1);
  if (maxBytes !== undefined) checkWhole("pixels.maxBytes", maxBytes, 1);
  return { reference, alpha, turn, maxPixels, maxBytes } as PixelOptions;
}
