/** Times of one stage, in seconds. */
export interface Latency {
  count: number;
  total: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
}

/** A requested provider that does not compute. */
export interface Fallback {
  from: string;
  to: string;
  cause: string;
}

/** The statistics of an embedder since its model was loaded: Rust's `Stats` in camel case, the queue, and the module's memory. */
export interface Stats {
  memory: {
    /** Bytes of the WebAssembly memory, a worker's own or the page's, which all models in it share. It never shrinks, so this is its peak, loading included. The build `native` has none: 0. */
    wasmBytes: number;
  };
  /** Calls that wait for others, and are computed together with them. */
  queue: {
    texts: number;
    tokens: number;
    peakTexts: number;
    batches: number;
    batchedTexts: number;
    /** Calls that ran at once, because the engine was idle. */
    direct: number;
    overloaded: number;
    left: number;
    batchTokens: number;
  };
  sessions: {
    count: number;
    inUse: number;
    peakInUse: number;
    waiting: number;
    peakWaiting: number;
    peakRunBytes: number;
    wait: Latency;
    run: Latency;
    perSession: { runs: number; failed: number; cancelled: number; busySeconds: number }[];
  };
  memoryPool: {
    enabled: boolean;
    requests: number;
    poolHits: number;
    totalAllocations: number;
    evictions: number;
    pressureCleanups: number;
    currentBuffers: number;
    currentMemoryBytes: number;
    lentMemoryBytes: number;
    peakMemoryBytes: number;
  };
  ioBinding: {
    bound: boolean;
    fallback: string | null;
    inputs: number;
    inputsInPlace: number;
    outputs: number;
    outputsInPlace: number;
    copiedBytes: number;
    toDeviceBytes: number;
    fromDeviceBytes: number;
    buffers: number;
    buffersReused: number;
    averageAllocationSeconds: number;
  };
  provider: {
    engine: string;
    selected: string;
    nodes: [string, number][];
    fallbacks: Fallback[];
    /** The provider of batches with fewer tokens than that, if the processor computes them faster than the GPU. */
    beside?: { engine: string; provider: string; untilTokens: number; batches: number };
    runs: number;
    failed: number;
  };
  /** The statistics of the GPU, if it computes. */
  gpu?: {
    /** As it names itself. */
    adapter: string;
    backend: string;
    /** Whether it emulates a GPU on the processor. */
    software: boolean;
    dispatchesPerRun: number;
    dispatches: number;
    submissions: number;
    pipelines: number;
    weightBytes: number;
    arenaBytes: number;
    recreated: number;
    /** Whether it computes with 16-bit floats. */
    f16: boolean;
    /** Whether its kernels share by subgroups; not in browsers yet. */
    subgroups: boolean;
    /** Whether the vectors for its check were cached at an earlier visit. */
    checkRecalled: boolean;
    /** Whether kernels were chosen by their times on this device, and whether those were measured at an earlier visit. */
    tuned: boolean;
    tuningRecalled: boolean;
    /** Whether it tells how long its kernels take. */
    timestamps: boolean;
    /** The kernels of those runs that a profile recorded operators of. Browsers round each time to 0.1 ms. */
    kernels: { name: string; dispatches: number; seconds: number }[];
  };
  /** The embedding cache, if `embeddingCache` is set. The disk is the browser's Cache API. */
  embeddingCache?: {
    /** Texts that were not computed: cached, or repeated in one call. */
    hits: number;
    diskHits: number;
    /** Texts that had to be computed. */
    misses: number;
    entries: number;
    bytes: number;
    /** Vectors that had to go for others. */
    evictions: number;
    diskEntries: number;
    diskBytes: number;
    diskEvictions: number;
    diskRejected: number;
    diskFailures: number;
  };
  calls: { embedded: number; failed: number; cancelled: number; texts: number; truncated: number; batches: number };
  tokens: { real: number; padding: number };
  stages: { tokenize: Latency; queue: Latency; batch: Latency; embed: Latency };
}
