// Made from the Rust configuration by `cargo xtask types`; what is to be different here is changed there.

/**
 * How a model is found, loaded and run. A knob that is left out means: as the model's own files say,
 * or the default named there.
 *
 * In JSON the engine's own keys stand beside the groups: `{"engine": "portable", "session": {...},
 * "text": {...}, "batching": {...}, "hub": {...}, "model": {...}, "embeddingCache": {...}}`. An unknown key is an error.
 */
export interface Config {
  /** How texts are put together. */
  batching?: BatchingConfig;
  /** Whether vectors are kept, and where. */
  embeddingCache?: EmbeddingCacheConfig;
  /** Which engine. Default: `auto`. */
  engine?: EngineChoice;
  /** Where model ids are resolved. */
  hub?: HubConfig;
  /** How tensors reach it and come back. */
  io?: IoConfig;
  /** What memory it may take and keep. */
  memory?: MemoryConfig;
  /** Which of a model's files are used. */
  model?: ModelConfig;
  /**
   * Path of the ONNX Runtime library. Default: the `ORT_DYLIB_PATH` variable, then the
   * set-up's cache. A library that merely lies around on the system is never used.
   */
  onnxruntimeLibrary?: string;
  /** What it may compute on. */
  providers?: ProvidersConfig;
  /**
   * Keep what was found out while loading and running (which provider is the fastest, how large batches should be,
   * what a GPU is checked against, its compiled kernels) for the next start: in isovec's cache folder, in a page in
   * the browser's cache. Default: true.
   */
  remember?: boolean;
  /** How a session computes. */
  session?: SessionConfig;
  /** From text to vector. */
  text?: TextConfig;
}

/** How texts are put together into batches. */
export interface BatchingConfig {
  /**
   * Whether a `DynamicBatcher` steers the size of its batches by what
   * it measures. Default: true.
   */
  dynamicBatching?: boolean;
  /** Texts in a batch. Default: 32, or 128 on a GPU. */
  maxBatchSize?: number;
  /**
   * Tokens in a batch, padding included. A single longer text is a batch of its own. Default: 256,
   * which on CPUs is faster than more, because sorted small batches carry almost no padding and
   * stay in the cache, or 8192 on a GPU; after half a minute of work, what was measured, where
   * the engine pads (ONNX Runtime).
   */
  maxBatchTokens?: number;
  /** Texts that may wait in a batcher; more are refused. Default: 8192. */
  maxQueue?: number;
  /** Tokens that may wait in a batcher; more are refused. Default: 1,048,576. */
  maxQueueTokens?: number;
  /**
   * How long a text waits for companions, though the engine is idle (`"5ms"`). Default: not at
   * all, or 5 ms where `preferredBatchSize` is set.
   */
  maxWait?: string;
  /** Texts that a steered batch may have however long they take. Default: 1. */
  minBatchSize?: number;
  /** Texts for which a batcher waits, up to `maxWait`. Default: `maxBatchSize`. */
  preferredBatchSize?: number;
  /**
   * How long an answer may take; steered batches are as large as that allows (`"100ms"`).
   * Default: 100 ms.
   */
  targetLatency?: string;
  /** Whether steered batches are instead as large as brings more texts a second. Default: false. */
  throughputOptimization?: boolean;
}

/**
 * Vectors that are kept by their text, so that a text that was embedded before is not computed again. Off where neither
 * `memory` nor `disk` is set. What is kept belongs to one model, precision, engine and set of knobs that decide a vector:
 * another never sees it. Sizes are in bytes.
 */
export interface EmbeddingCacheConfig {
  /**
   * Bytes of vectors that are kept for other embedders, processes and starts: natively in files, in a page in the
   * browser's cache. Default: no vector is kept for them.
   */
  disk?: number;
  /**
   * The folder of those files, which several processes may share; a page has none. Default: `embeddings` in isovec's
   * cache folder.
   */
  folder?: string;
  /**
   * Bytes of vectors that an embedder keeps in memory; those that were not used for longest go first. Default: no vector
   * is kept in memory.
   */
  memory?: number;
}

/**
 * Which engine to use.
 *
 * - `auto`: ONNX Runtime where its library was named (see `onnxruntimeLibrary`),
 *   else the portable engine.
 * - `onnxruntime`: ONNX Runtime, or an error.
 * - `portable`: The portable engine, with no shared library; the one that browsers run.
 */
export type EngineChoice = "auto" | "onnxruntime" | "portable";

/**
 * Where model ids are resolved; without use in a browser, where the page fetches. What is left out means the
 * variable that Hugging Face's own tools read, or their default.
 */
export interface HubConfig {
  /** The cache's folder. Default: `HF_HUB_CACHE`, else `HF_HOME/hub`, else the standard place. */
  cacheDir?: string;
  /** The hub's address. Default: `HF_ENDPOINT`, else `https://huggingface.co`. */
  endpoint?: string;
  /** Never ask the network. Default: `HF_HUB_OFFLINE`. */
  offline?: boolean;
  /** Branch, tag or commit. Default: `main`. Name a commit to pin the model. */
  revision?: string;
  /**
   * Access token, for private and gated models. Default: `HF_TOKEN`, else the token file. It is
   * never shown in debug output and never serialised.
   */
  token?: string;
}

/**
 * How tensors reach an engine and come back. A knob that is left out means the default that is named
 * there.
 */
export interface IoConfig {
  /**
   * Sort by length and cut by tokens before batching, so that little is padded. Default: true.
   * Off, batches follow the caller's order and hold `batching.maxBatchSize` rows. Measured on
   * two cores with texts of 1 to 256 tokens: 1.4 s against 15.5 s in one batch.
   */
  batchOptimization?: boolean;
  /** On CUDA: copy on a stream of its own beside the one that computes. Default: true. */
  cudaMemoryStreams?: boolean;
  /**
   * Tell the engine before a run where its outputs go, so that it writes them there. Default:
   * true. Off, the engine makes its own outputs, and they are copied.
   */
  ioBinding?: boolean;
  /**
   * Input buffers that are made when the model is loaded, so that the first batches find some.
   * Default: 4.
   */
  preAllocatedInputBuffers?: number;
  /** The same for outputs. Default: 4. */
  preAllocatedOutputBuffers?: number;
  /** Let the engine read inputs where they are. Default: true. Off, they are copied for it. */
  zeroCopy?: boolean;
}

/**
 * What memory an engine may take and keep. A knob that is left out means the default that is named
 * there. Sizes are in bytes.
 */
export interface MemoryConfig {
  /** Bytes that the pool keeps. Default: 256 MiB. */
  maxPoolMemory?: number;
  /** Buffers that the pool keeps. Default: 32. */
  maxPoolSize?: number;
  /**
   * The most that one model may take: its weights, and what its batches need beside them.
   * Default: what the machine has free, up to the pressure threshold.
   */
  memoryLimit?: number;
  /** Keep buffers for inputs and outputs and use them again. Default: true. */
  memoryPool?: boolean;
  /** Foretell what a batch takes, and split or refuse one that would not fit. Default: true. */
  memoryPrediction?: boolean;
  /**
   * Look at how much memory the machine or its control group has left, and let go of the
   * pool's buffers when it is little. Default: true.
   */
  memoryPressureDetection?: boolean;
  /** The part of the memory in use from which it counts as little: 0 to 1. Default: 0.8. */
  memoryPressureThreshold?: number;
  /**
   * Map the model's file into memory instead of reading it, so that its pages are shared and
   * can be dropped. Default: true.
   */
  mmap?: boolean;
}

/** Which of a model's files are used. */
export interface ModelConfig {
  /** How the weights are stored. Default: as the file that is used stores them. */
  dtype?: Dtype;
  /**
   * This ONNX file (`onnx/model_quantized.onnx`) instead of the one that would be chosen. Default:
   * safetensors of a family that isovec converts, else ONNX.
   */
  onnxFile?: string;
}

/** What an engine may compute on. */
export interface ProvidersConfig {
  /** Options of CUDA. */
  cuda?: CudaOptions;
  /**
   * What to try, best first; the first that works is used, and every one before it that did
   * not is reported. Empty: the processor.
   */
  executionProviders?: readonly ExecutionProvider[];
  /** Look whether the hardware is there before a provider is tried. Default: true. */
  hardwareDetection?: boolean;
  /** Options of the others, by ONNX Runtime's own names. Empty: ONNX Runtime's defaults. */
  options?: Partial<Record<ExecutionProvider, Record<string, string>>>;
  /**
   * Try what is there in a short measured run, and take the fastest. The result is remembered
   * per model and machine. Default: false.
   */
  providerAutoSelection?: boolean;
  /**
   * A provider of the chain that does not work is an error, not a reason to go on to the next.
   * Default: false.
   */
  strictProviders?: boolean;
  /** Options of TensorRT. */
  tensorrt?: TensorRtOptions;
  /** Options of WebGPU. */
  webgpu?: WebGpuOptions;
}

/** How a session computes. A knob that is left out means the default that is named there. */
export interface SessionConfig {
  /** Keep memory for intermediate tensors between runs. Default: true. */
  cpuArena?: boolean;
  /**
   * A text's vector is bit-identical whatever else is asked for at the same time: an engine that
   * pads runs every text alone, unpadded, on one thread; on the portable engine it is so in every
   * build and on every processor as well. Default: false.
   */
  deterministicCompute?: boolean;
  /**
   * 0: the graph as it is; 1: constants folded and dead operators dropped; 2: operators fused;
   * 3: data laid out for this machine as well. Default: 3.
   */
  graphOptimizationLevel?: number;
  /** Operators that run at the same time, with `parallelExecution`. Default: 1. */
  interOpThreads?: number;
  /**
   * Threads that work on one operator. Default: the physical cores, at most 4; in a page half of
   * the processors, 2 to 4, and 1 where its memory is not shared with workers.
   */
  intraOpThreads?: number;
  /**
   * Plan where every intermediate tensor lies, once per input shape. Default: true where shapes
   * are fixed. An engine may keep a plan for every shape that it has seen, so with shapes that
   * vary it is off, whatever was asked for.
   */
  memoryPattern?: boolean;
  /**
   * Keep the optimised graph in this folder, so that the next start need not optimise again.
   * Default: it is not kept.
   */
  optimizedModelCache?: string;
  /**
   * Run operators that do not need each other at the same time. Default: false, because an
   * encoder's operators nearly all wait for the one before.
   */
  parallelExecution?: boolean;
  /**
   * Runs that may be under way at the same time, on one copy of the weights. Default: as many as
   * fit the cores at `intraOpThreads` each, at least 1; a page has 1.
   */
  poolSize?: number;
  /** Write the engine's own profile to a file whose name begins like this. Default: no profile. */
  profiling?: string;
}

/** From text to vector. What is set here overrides the model's sentence-transformers files. */
export interface TextConfig {
  /**
   * Keep only the first components (matryoshka), cut before normalising. Default: all that the
   * model gives.
   */
  dimension?: number;
  /**
   * Tokens of a text that the model sees, special ones included; the rest is cut off and
   * reported. At most what the model's position table holds. Default: the model's files, else 512.
   */
  maxLength?: number;
  /** Whether vectors are scaled to unit length. Default: the model's files, else true. */
  normalize?: boolean;
  /**
   * The prompt of `embedPassage`. Default: the one named `document`, `passage` or `corpus` in
   * `prompts` or in the model's files, else the model's default prompt.
   */
  passagePrompt?: string;
  /** How positions become one vector. Default: the model's files; an error where they do not say. */
  pooling?: Pooling;
  /**
   * Prompts by name, added to the model's own or replacing them. A prompt is put before the
   * text as it is, so it wants its own trailing space. Empty: the model's own.
   */
  prompts?: Record<string, string>;
  /**
   * The prompt of `embedQuery`. Default: the one named `query` in `prompts` or in the model's
   * files, else the model's default prompt.
   */
  queryPrompt?: string;
  /**
   * Which part of a text that is too long the model sees. Default: as the tokenizer's files say,
   * else the start.
   */
  truncation?: Truncation;
}

/**
 * How a model's weights are stored.
 *
 * - `auto`: The smallest form that was published and whose vectors are as good: `onnx/model_fp16.onnx`
 *   where it is smaller than the checkpoint, else as without. It computes in 16 bits and is a
 *   model of its own, whose vectors do not compare with the checkpoint's. Published files with
 *   quantised activations are passed over. Nothing is made smaller at load.
 * - `f32`: As they are published.
 * - `f16`: 16-bit floats: half the bytes. Computed with in f32.
 * - `int8`: 8-bit integers with a scale for every output of a matrix: a quarter of the bytes. ONNX
 *   Runtime computes with them in f32, the portable engine in integers, against activations in
 *   13 to 15 bits.
 */
export type Dtype = "auto" | "f32" | "f16" | "int8";

/** Options of CUDA. */
export interface CudaOptions {
  /** Which GPU. Default: 0. */
  deviceId?: number;
  /** Bytes that its arena may take on the device. Default: no limit. */
  memoryLimit?: number;
  /**
   * Let matrix products round their inputs to TF32's ten bits of mantissa. Default: false, as
   * vectors then leave the bound that fp32 promises.
   */
  tf32?: boolean;
}

/**
 * Something that can compute. Several make a chain: the first that works is used.
 *
 * - `cuda`: NVIDIA GPUs, by ONNX Runtime.
 * - `tensorrt`: NVIDIA GPUs, by ONNX Runtime through TensorRT.
 * - `rocm`: AMD GPUs, by ONNX Runtime.
 * - `directml`: GPUs on Windows, by ONNX Runtime.
 * - `coreml`: Apple's accelerators, by ONNX Runtime.
 * - `openvino`: Intel's accelerators, by ONNX Runtime.
 * - `ort-webgpu`: Any GPU, by ONNX Runtime's own WebGPU path.
 * - `webgpu`: Any GPU, by isovec's own path through wgpu.
 * - `cpu`: The processor, which is always there.
 */
export type ExecutionProvider = "cuda" | "tensorrt" | "rocm" | "directml" | "coreml" | "openvino" | "ort-webgpu" | "webgpu" | "cpu";

/** Options of TensorRT. */
export interface TensorRtOptions {
  /** Which GPU. Default: 0. */
  deviceId?: number;
  /** Keep built engines in this folder; building one takes minutes. Default: they are not kept. */
  engineCache?: string;
  /** Compute in half precision. Default: false, as vectors then leave the bound of fp32. */
  fp16?: boolean;
  /** Bytes that building an engine may take on the device. Default: TensorRT's own default. */
  maxWorkspaceSize?: number;
}

/** Options of WebGPU. */
export interface WebGpuOptions {
  /**
   * Hold weights, and what products and attention read, as 16-bit floats, where the adapter has
   * `shader-f16`; sums stay 32-bit. Default: false, as vectors then leave the bound of fp32.
   */
  f16?: boolean;
  /** Of two adapters, take the one that uses less power. Default: false. */
  lowPower?: boolean;
  /**
   * Use an adapter that is a processor playing a GPU, which is slower than the processor itself.
   * Default: false.
   */
  softwareAdapter?: boolean;
}

/**
 * How the vectors of a row's positions become one.
 *
 * - `mean`: The average over real positions.
 * - `cls`: The first position.
 * - `last_token`: The last real position.
 * - `max`: The largest value of each component over real positions.
 * - `weighted_mean`: The average weighted by 1, 2, 3, ... along the real positions.
 * - `mean_sqrt_len`: The sum divided by the square root of the number of real positions.
 */
export type Pooling = "mean" | "cls" | "last_token" | "max" | "weighted_mean" | "mean_sqrt_len";

/**
 * Which part of a text that is too long the model sees.
 *
 * - `keep_head`: The start: what nearly every model was trained with.
 * - `keep_tail`: The end, where a text's conclusion stands.
 * - `keep_both`: The start and the end: a quarter of the room for the one and the rest for the other, after
 *   Sun et al., "How to Fine-Tune BERT for Text Classification?" (2019), section 5.3.1.
 */
export type Truncation = "keep_head" | "keep_tail" | "keep_both";
