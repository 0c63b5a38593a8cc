import type { Dtype, Pooling } from "../config.js";
import { IsovecError } from "../error.js";
import type { LoadOptions } from "../index.js";
import type { Device } from "../words.js";
import type { Head } from "./files.js";
import type { ProgressCallback } from "./progress.js";

/** The names of transformers.js for how weights are stored. */
export type DataType = "auto" | "fp32" | "fp16" | "q8" | "int8" | "uint8" | "q4" | "q4f16" | "bnb4" | "q2" | "q2f16" | "q1" | "q1f16";

/** The names of transformers.js for devices. */
export type DeviceType = "auto" | "gpu" | "cpu" | "wasm" | "webgpu" | "cuda" | "dml" | "coreml" | "webnn" | "webnn-npu" | "webnn-gpu" | "webnn-cpu";

/** How a model is loaded: the options of transformers.js, and isovec's own in `isovec`. Unsupported options are the error `Unsupported`. */
export interface PipelineOptions {
  /**
   * How the weights are stored; with an object, what it says of `model`.
   *
   * - `fp32`, `auto` and by default: as they are published. (In browsers transformers.js takes `q8` by default.)
   * - `fp16`: the 16-bit file that is published, if it is smaller than the checkpoint.
   * - `q8`, `int8`, `uint8`: the published weights as 8-bit integers, made at load: nearer to the model's own vectors than
   *   the published files with quantised activations that transformers.js takes, and a larger download than they are.
   *   The smaller download is a folder that `isovec export --dtype int8` wrote.
   */
  dtype?: DataType | Record<string, DataType> | null;
  /**
   * `wasm`, `cpu` and `auto` are the processor, which computes by default. `webgpu` and `gpu` are the GPU where the browser
   * has one, else the processor.
   */
  device?: DeviceType | Record<string, DeviceType> | null;
  /** Branch, tag or commit of a model id. Default: `main`. */
  revision?: string;
  /** Makes no request: the files have to be cached from an earlier visit. Default: `false`. */
  local_files_only?: boolean;
  /** Is told how far loading has come. There is no `progress_total`: how much is to come is known file by file. */
  progress_callback?: ProgressCallback | null;
  /** Options of `Embedder.load`: the hub's address, threads, the build, ... */
  isovec?: Omit<LoadOptions, "revision" | "offline" | "onProgress">;
  /** Refused where it is set: it configures ONNX Runtime, which isovec does without. `isovec.config` has its own knobs. */
  session_options?: Record<string, never>;
  /** Refused where it is set: isovec reads the model's `config.json`. */
  config?: null;
  /** Refused if it is set: files are cached in the browser's Cache API. */
  cache_dir?: null;
  /** Refused where it is set: isovec finds the weights by itself. `isovec.config.model.onnxFile` names another file. */
  subfolder?: null;
  /** Refused where it is set, as `subfolder` is. */
  model_file_name?: null;
  /** Refused where it is set, as `subfolder` is. */
  use_external_data_format?: null;
}

/** How texts become vectors: the options of transformers.js. Unsupported options are the error `Unsupported`. */
export interface FeatureExtractionPipelineOptions {
  /**
   * How the vectors of a text's tokens become one. By default transformers.js gives the vectors of all tokens (`none`),
   * which isovec does not: say which pooling. `last_token` and `eos` are the last token of each text, where
   * transformers.js takes the last column of the batch, which for shorter texts is padding.
   */
  pooling?: "none" | "mean" | "cls" | "first_token" | "eos" | "last_token";
  /** Whether vectors are scaled to unit length. Default: `false`. */
  normalize?: boolean;
  /** Whether a bit is left of each component. `true` is refused: vectors are 32-bit floats. Default: `false`. */
  quantize?: boolean;
  /** The form of the bits that `quantize` would leave. */
  precision?: "binary" | "ubinary";
}

/** The error of what isovec cannot do. */
export function unsupported(message: string): IsovecError {
  return new IsovecError("Unsupported", message);
}

const DTYPES: Partial<Record<DataType, Dtype>> = { fp32: "f32", fp16: "auto", q8: "int8", int8: "int8", uint8: "int8" };
/** By default, and for `auto`, `isovec.config` decides. */
const DEVICES: Partial<Record<DeviceType, Device | undefined>> = { auto: undefined, wasm: "cpu", cpu: "cpu", webgpu: "webgpu", gpu: "webgpu" };
const POOLINGS: Record<string, Pooling> = { mean: "mean", cls: "cls", first_token: "cls", last_token: "last_token", eos: "last_token" };

/** Options without a counterpart, and what to do instead. */
const REFUSED: readonly (readonly [keyof PipelineOptions, string])[] = [
  ["session_options", "configures ONNX Runtime, which isovec does without; the knobs of isovec are in `isovec.config`, such as `{ session: { intraOpThreads: 2 } }`"],
  ["config", "cannot replace the model's config.json; give the model's files as a Map with the config.json that you want"],
  ["cache_dir", "has no use in a page, whose files are kept in the browser's Cache API; leave it out"],
  ["subfolder", "is not looked at; name the file in `isovec.config.model.onnxFile`"],
  ["model_file_name", "is not looked at; name the file in `isovec.config.model.onnxFile`"],
  ["use_external_data_format", "is not looked at; leave it out, and isovec finds the weights by itself"],
];

/** What `Embedder.load` is given for these options, the head apart. */
export function loading(options: PipelineOptions): LoadOptions {
  for (const [name, why] of REFUSED) {
    const value: unknown = options[name];
    const empty = !value || (typeof value === "object" && Object.keys(value).length === 0);
    if (!empty) throw unsupported(`the option ${name} ${why}`);
  }
  const place = ofModel(options.device) ?? "auto";
  if (!Object.hasOwn(DEVICES, place)) throw unsupported(`isovec computes on ${Object.keys(DEVICES).join(", ")}, not on the device ${JSON.stringify(place)}; leave \`device\` out`);
  const device = DEVICES[place];
  const asked = ofModel(options.dtype) ?? "auto";
  const dtype = Object.hasOwn(DTYPES, asked) ? DTYPES[asked] : undefined;
  if (asked !== "auto" && !dtype) throw unsupported(`isovec stores weights as ${Object.keys(DTYPES).join(", ")}, not as ${JSON.stringify(asked)}; \`q8\` is the smallest`);
  const { revision, isovec = {}, local_files_only: offline } = options;
  const model = { ...isovec.config?.model, ...(dtype && { dtype }) };
  return { ...isovec, config: { ...isovec.config, model }, ...(device && { device }), ...(revision && { revision }), ...(offline && { offline }) };
}

/** What is said for all files of the model, or for its one graph. */
function ofModel<T extends string>(value: T | Record<string, T> | null | undefined): T | undefined {
  return (typeof value === "string" ? value : value?.["model"]) ?? undefined;
}

/** The head that these options ask for. */
export function headOf({ pooling = "none", normalize = false, quantize = false }: FeatureExtractionPipelineOptions): Head {
  if (pooling === "none") throw unsupported('isovec gives one vector for a text, not one for each token; say how they become one: `pooling: "mean"`, or "cls" or "last_token" if the model was trained so');
  if (!Object.hasOwn(POOLINGS, pooling)) throw unsupported(`there is no pooling ${JSON.stringify(pooling)}; there are ${Object.keys(POOLINGS).join(", ")}`);
  if (quantize) throw unsupported("isovec gives vectors of 32-bit floats; leave `quantize` out, and keep the signs of `data` if bits are wanted");
  return { pooling: POOLINGS[pooling]!, normalize };
}
