// Generated from the Rust configuration by `cargo xtask types`; change the Rust types instead.

/**
 * How a model is found, loaded and run. A knob that is left out means the value in the model's own files, or the default
 * that is stated there.
 *
 * In JSON the engine's own keys are on the same level as the groups: `{"engine": "portable", "session": {...},
 * "text": {...}, "batching": {...}, "hub": {...}, "model": {...}, "embeddingCache": {...}}`. An unknown key is an
 * error.
 */
export interface Config {
  /** How texts are put together. */
  batching?: BatchingConfig;
  /** The cache of vectors. */
  embeddingCache?: EmbeddingCacheConfig;
  /** Which engine. Default: `auto`. */
  engine?: EngineChoice;
  /** Where model ids are resolved. */
  hub?: HubConfig;
  /** How tensors reach it and return. */
  io?: IoConfig;
  /** The memory that it may use. */
  memory?: MemoryConfig;
  /** Which of a model's files are used. */
  model?: ModelConfig;
  /**
   * Path of ONNX Runtime's shared library, 1.24 or newer; a process can use one. Default: the `ORT_DYLIB_PATH` variable,
   * then the set-up's cache. An installed library that was not named is never used.
   */
  onnxruntimeLibrary?: string;
  /** The providers to use. */
  providers?: ProvidersConfig;
  /**
   * Cache results of loading and running (the fastest provider, measured batch sizes, the vectors that a GPU is
   * checked against, its compiled kernels) for the next start: in isovec's cache folder, in a page in the
   * browser's cache. Default: true.
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
   * Whether a `DynamicBatcher` adjusts the size of its batches to measured times, below
   * `maxBatchTokens`. Default: true.
   */
  dynamicBatching?: boolean;
  /** Texts in a batch. Default: 32, or 128 on a GPU. */
  maxBatchSize?: number;
  /**
   * Rows of a batch times its longest row, in tokens. A single longer text is a batch of its own. Default: 256, which on CPUs is
   * faster than more, because sorted small batches have almost no padding and stay in the processor's cache, or
   * 8192 on a GPU; if the engine pads (ONNX Runtime), the measured size after half a minute of work.
   */
  maxBatchTokens?: number;
  /**
   * Texts that may wait in a batcher; a call past this is refused with `Overloaded`, which says when to try again.
   * Default: 8192.
   */
  maxQueue?: number;
  /** Tokens that may wait in a batcher; more are refused. Default: 1,048,576, or as many as 64 MiB of pictures have. */
  maxQueueTokens?: number;
  /**
   * How long a text waits for other texts while the engine is idle (`"5ms"`), at most 60 s. While the engine works,
   * texts gather anyway. Default: not at all, or 5 ms if `preferredBatchSize` is set.
   */
  maxWait?: string;
  /** Texts that an adjusted batch may always have, however long they take. Default: 1. */
  minBatchSize?: number;
  /** Number of texts that a batcher waits for, up to `maxWait`. Default: `maxBatchSize`. */
  preferredBatchSize?: number;
  /**
   * How long an answer may take; adjusted batches are as large as this allows (`"100ms"`). It does not limit the
   * queue; `maxQueue` does. Default: 100 ms.
   */
  targetLatency?: string;
  /** Whether batches are adjusted for more texts a second instead; a larger batch has to bring 2% more. Default: false. */
  throughputOptimization?: boolean;
}

/**
 * A cache of vectors by their text, so that a text that was embedded before is not computed again. Off if neither
 * `memory` nor `disk` is set. An entry belongs to one model, precision, engine and set of knobs that affect a
 * vector, and is used for no other. Sizes are in bytes.
 */
export interface EmbeddingCacheConfig {
  /**
   * Bytes of vectors that are cached for other embedders, processes and starts: natively a file for each text, in a
   * page entries of the browser's cache, for the site's other tabs and the next visit. Without such a cache (node,
   * pages without TLS) the value in effect is none. Default: no such cache.
   */
  disk?: number;
  /**
   * The folder of those files, which several processes may share; a page has none. Default: `embeddings` in isovec's
   * cache folder.
   */
  folder?: string;
  /**
   * Bytes of vectors that an embedder caches in memory; the least recently used are removed first. They do not
   * count towards `memory.memoryLimit`. Default: no cache in memory.
   */
  memory?: number;
}

/**
 * Which engine to use.
 *
 * - `auto`: ONNX Runtime if its library was named (see `onnxruntimeLibrary`), else the portable engine.
 *   For `model.dtype = "int8-fast"` the portable engine, unless `onnxruntimeLibrary` is set.
 * - `onnxruntime`: ONNX Runtime, or an error.
 * - `portable`: The portable engine, which needs no shared library and also runs in browsers.
 */
export type EngineChoice = "auto" | "onnxruntime" | "portable";

/**
 * Where model ids are resolved. Without effect in a browser, where the page fetches. What is left out means the variable that
 * Hugging Face's own tools read, or their default.
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

/** How tensors reach an engine and return. A knob that is left out means the default that is stated there. */
export interface IoConfig {
  /**
   * Sort texts by length and cut batches by tokens, so that there is little padding. Default: true. Off, batches
   * follow the caller's order and hold `batching.maxBatchSize` rows. Measured on two cores with texts of 1 to
   * 256 tokens: 1.4 s against 15.5 s in one batch.
   */
  batchOptimization?: boolean;
  /**
   * Bind outputs to pooled buffers before a run, so that the engine writes into them. Default: true. Off, the
   * engine allocates its own outputs, and they are copied.
   */
  ioBinding?: boolean;
  /** Input buffers that are allocated when the model is loaded, ready for the first batches. Default: 4. */
  preAllocatedInputBuffers?: number;
  /** The same for outputs. Default: 4. */
  preAllocatedOutputBuffers?: number;
  /** Let the engine read inputs in place. Default: true. Off, they are copied first. */
  zeroCopy?: boolean;
}

/** The memory that an engine may use. A knob that is left out means the default that is stated there. Sizes are in bytes. */
export interface MemoryConfig {
  /** Bytes that wait in the pool. Default: 256 MiB. */
  maxPoolMemory?: number;
  /** Buffers that wait in the pool; the one unused for longest goes first. Default: 32. */
  maxPoolSize?: number;
  /**
   * The most bytes that one model may take: its weights and its batches. Default: the free memory of the machine,
   * up to the pressure threshold.
   */
  memoryLimit?: number;
  /** Hold buffers for inputs and outputs in a pool and reuse them. Default: true. */
  memoryPool?: boolean;
  /** Predict the memory of a batch, and split or refuse a batch that would not fit. Default: true. */
  memoryPrediction?: boolean;
  /**
   * Watch the free memory of the machine and of its control group, and free the pool's buffers when it is short.
   * Default: true.
   */
  memoryPressureDetection?: boolean;
  /** The share of memory in use from which memory counts as short: 0 to 1. Default: 0.8. */
  memoryPressureThreshold?: number;
  /**
   * Map the model's file into memory instead of reading it, so that processes share its pages and the system can
   * drop them. Default: true.
   */
  mmap?: boolean;
}

/** Which of a model's files are used. */
export interface ModelConfig {
  /** How the weights are stored. Default: as in the chosen file. */
  dtype?: Dtype;
  /**
   * Loads this ONNX file (such as `onnx/model_quantized.onnx`) instead of the default choice. Default: safetensors
   * of a family that isovec converts, else ONNX.
   */
  onnxFile?: string;
  /**
   * Hash the weights at every load. Else the hash of a checkpoint is kept in isovec's cache, and taken from there while its files
   * are of the same size, time and place on the disk. Default: false.
   */
  verify?: boolean;
}

/** The providers that an engine may use. */
export interface ProvidersConfig {
  /** Options of CUDA. */
  cuda?: CudaOptions;
  /**
   * The providers to try, best first. The first that works is used; those before it are reported with the
   * reason. Empty: the processor.
   */
  executionProviders?: readonly ExecutionProvider[];
  /** Look for the device before a driver is loaded. Default: true. */
  hardwareDetection?: boolean;
  /** Options of the others, by ONNX Runtime's own names. Empty: ONNX Runtime's defaults. */
  options?: Partial<Record<ExecutionProvider, Record<string, string>>>;
  /**
   * Measure every available provider in a short run and take the fastest. The result is cached per model and
   * machine. Default: false.
   */
  providerAutoSelection?: boolean;
  /**
   * A provider of the chain that does not work is an error, not a reason to go on to the next; a lost device is not
   * replaced. Default: false.
   */
  strictProviders?: boolean;
  /** Options of TensorRT. */
  tensorrt?: TensorRtOptions;
  /** Options of WebGPU. */
  webgpu?: WebGpuOptions;
}

/** How a session computes. A knob that is left out means the default that is stated there. */
export interface SessionConfig {
  /** Hold memory for intermediate tensors between runs. Default: true. */
  cpuArena?: boolean;
  /**
   * Make a text's vector bit-identical whatever else is computed at the same time. An engine that pads runs every text
   * alone, unpadded, on one thread. On the portable engine the bits are also the same in every build and on every
   * processor. Default: false.
   */
  deterministicCompute?: boolean;
  /**
   * 0: the graph as it is; 1: constants folded and dead operators dropped; 2: operators fused;
   * 3: data laid out for this machine as well. Default: 3.
   */
  graphOptimizationLevel?: number;
  /**
   * Threads that work on one operator. Default: the physical cores, at most 4; in a page half of the processors, 2
   * to 4, and 1 if its memory is not shared with workers.
   */
  intraOpThreads?: number;
  /**
   * Cache the optimised graph in this folder, so that the next start need not optimise again. Default: it is not
   * cached.
   */
  optimizedModelCache?: string;
  /**
   * Runs at the same time, on one copy of the weights. Default: as many as fit the cores with `intraOpThreads`
   * each, at least 1; where runs share the cores as many as there are, and of more than 8 cores 1 run for every few;
   * a page has 1.
   */
  poolSize?: number;
  /** Write the engine's own profile to a file whose name begins with this text. Default: no profile. */
  profiling?: string;
}

/** From text to vector. These knobs override the model's sentence-transformers files. */
export interface TextConfig {
  /**
   * Keep only the first components (matryoshka), cut before normalising. Default: all that the
   * model gives.
   */
  dimension?: number;
  /**
   * Tokens of a text that the model sees, special tokens included; the rest is cut off and reported. More than the
   * model has positions for is an error. Default: the model's files, else 512.
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
   * Prompts by name, added to the model's own or replacing them. A prompt is put before the text without change,
   * so end it with a space. Empty: the model's own.
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
 * - `auto`: The smallest published form of equal quality: `onnx/model_fp16.onnx` if it is smaller than the checkpoint,
 *   else the default. That file computes in 16 bits and is a model of its own: its vectors cannot be compared with
 *   the checkpoint's. Published files with quantised activations are never chosen. Nothing is made smaller at
 *   load.
 * - `f32`: As published.
 * - `f16`: 16-bit floats: half the bytes. Engines compute with them in f32.
 * - `bf16`: The upper halves of 32-bit floats: half the bytes and the same range, with fewer digits than `f16`. Checkpoints that are
 *   published in bfloat16 stay as they are, bit for bit. Engines compute with them in f32, and hold them so.
 * - `int8`: 8-bit integers with a scale for every output of a matrix: a quarter of the bytes. ONNX
 *   Runtime computes with them in f32, the portable engine in integers, against activations in
 *   13 to 15 bits.
 * - `int8-fast`: The same bytes as `int8`, and activations rounded to 8 bits, with a scale for every 128 of them. Faster than
 *   `int8` on processors that multiply bytes (AVX-512 VNNI, AVX-VNNI, ARM's dot products), as fast elsewhere. The
 *   portable engine on the processor computes so, and is chosen where no engine is named; so does ONNX Runtime on
 *   processors that multiply bytes. Others compute as with `int8`, and `effectiveConfig()` says so.
 */
export type Dtype = "auto" | "f32" | "f16" | "bf16" | "int8" | "int8-fast";

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
 * Hardware that computes, and the library that drives it. A list of providers is a chain: the first that works is used.
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
   * Store weights, and the inputs of products and attention, as 16-bit floats if the adapter has `shader-f16`;
   * sums stay 32-bit. Default: false, as vectors then leave the bound of fp32.
   */
  f16?: boolean;
  /** Of two adapters, take the one that uses less power. Default: false. */
  lowPower?: boolean;
  /** Use an adapter that emulates a GPU on the processor. It is slower than the processor itself. Default: false. */
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
