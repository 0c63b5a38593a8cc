import type { Build, Gpu } from "./builds.js";
import type { Config } from "./config.js";
import { IsovecError, checkFlag, checkWhole, checkWord } from "./error.js";
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

/** How a reader of text is loaded. The files are those of the Python package rapidocr-onnxruntime 1.4.4, unless others are named. */
export interface LoadReading extends LoadOptions {
  /** The file of the network that finds lines. Default: `ch_PP-OCRv4_det_infer.onnx`. */
  detector?: string;
  /**
   * The file of the network that finds lines which stand on their head. `false`: every line is taken to be upright. Default:
   * `ch_ppocr_mobile_v2.0_cls_infer.onnx`.
   */
  orientation?: string | false;
  /** The file of the network that reads lines. Default: `ch_PP-OCRv4_rec_infer.onnx`. */
  recognizer?: string;
  /** Lines with a lower score are left out, from 0 to 1. Default: 0.5. */
  minScore?: number;
  /** How files of pictures are decoded. */
  pixels?: Pick<PixelOptions, "turn" | "maxPixels" | "maxBytes">;
}

/** What loading a reader of text takes. */
export function requestedReading(source: ModelSource, options: LoadReading): ReturnType<typeof requested> {
  const { detector = "ch_PP-OCRv4_det_infer.onnx", orientation = "ch_ppocr_mobile_v2.0_cls_infer.onnx", recognizer = "ch_PP-OCRv4_rec_infer.onnx", minScore = 0.5, build } = options;
  for (const [name, file] of Object.entries({ detector, orientation: orientation === false ? "none" : orientation, recognizer })) {
    if (typeof file !== "string" || file === "") throw new IsovecError("Config", `\`${name}\` is ${JSON.stringify(file)}, and has to be the name of a file`);
  }
  if (typeof minScore !== "number" || !(minScore >= 0 && minScore <= 1)) throw new IsovecError("Config", `\`minScore\` is ${String(minScore)}, and scores are from 0 to 1`);
  if (build !== undefined && build !== "tract" && build !== "native") throw new IsovecError("EngineUnavailable", `isovec's build ${String(build)} reads no text of pictures; the builds tract and native do`);
  const { request, listening } = requested({ output: "text", pictures: true }, source, options);
  return { request: { ...request, reading: { detector, orientation: orientation || undefined, recognizer, minScore } }, listening };
}

/** What loading a model takes, in the part that can be handed to a worker and the part that cannot. */
export function requested({ output, pictures }: Task, source: ModelSource, options: LoadOptions & LoadPictures): { request: Request; listening: Listening } {
  const { headers = {}, offline = false, cache = "use", onProgress, fetch, signal, build } = options;
  checkWord("cache", cache, CACHING);
  const config = inWords(options);
  const fetching = { headers, offline, cache, progress: onProgress !== undefined };
  const request = { output, ...resolve(source, options), fetching, config: nativeConfig(cache === "off" ? { remember: false, ...config } : config), build, threads: wanted(config), gpu: gpuIn(config), pixels: pictures ? checked(options.pixels ?? {}) : undefined, reading: undefined };
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
