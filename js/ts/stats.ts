/** Times of one stage, in seconds. */
export interface Latency {
  count: number;
  total: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
}

/** A provider that was asked for and is not the one that computes. */
export interface Fallback {
  from: string;
  to: string;
  cause: string;
}

/** What an embedder did since its model was loaded: Rust's `Stats`, the same on the server, the queue, and the module's memory. */
export interface Stats {
  memory: {
    /** Bytes of the WebAssembly memory, a worker's own or the page's, which all models in it share. It never shrinks, so this is its peak, loading included. */
    wasm_bytes: number;
  };
  /** Calls that wait for others, and are computed together with them. */
  queue: {
    texts: number;
    tokens: number;
    peak_texts: number;
    batches: number;
    batched_texts: number;
    /** Calls that ran at once, because nobody else was there. */
    direct: number;
    overloaded: number;
    left: number;
    batch_tokens: number;
  };
  sessions: {
    count: number;
    in_use: number;
    peak_in_use: number;
    waiting: number;
    peak_waiting: number;
    peak_run_bytes: number;
    wait: Latency;
    run: Latency;
    per_session: { runs: number; failed: number; cancelled: number; busy_seconds: number }[];
  };
  memory_pool: {
    enabled: boolean;
    requests: number;
    pool_hits: number;
    total_allocations: number;
    evictions: number;
    pressure_cleanups: number;
    current_buffers: number;
    current_memory_bytes: number;
    lent_memory_bytes: number;
    peak_memory_bytes: number;
  };
  io_binding: {
    bound: boolean;
    fallback: string | null;
    inputs: number;
    inputs_in_place: number;
    outputs: number;
    outputs_in_place: number;
    copied_bytes: number;
    to_device_bytes: number;
    from_device_bytes: number;
    buffers: number;
    buffers_reused: number;
    average_allocation_seconds: number;
  };
  provider: {
    engine: string;
    selected: string;
    nodes: [string, number][];
    fallbacks: Fallback[];
    /** What computes batches of fewer tokens than that, where the processor is faster at them than the GPU. */
    beside?: { engine: string; provider: string; until_tokens: number; batches: number };
    runs: number;
    failed: number;
  };
  /** What the GPU did, where it computes. */
  gpu?: {
    /** As it names itself. */
    adapter: string;
    backend: string;
    /** Whether it is a processor that plays a GPU. */
    software: boolean;
    dispatches_per_run: number;
    dispatches: number;
    submissions: number;
    pipelines: number;
    weight_bytes: number;
    arena_bytes: number;
    recreated: number;
    /** Whether it computes with 16-bit floats. */
    f16: boolean;
    /** Whether its kernels share by subgroups; not in browsers yet. */
    subgroups: boolean;
    /** Whether what it was checked against at load was computed at an earlier visit. */
    check_recalled: boolean;
    /** Whether kernels were chosen by their times on this device, and whether those were measured at an earlier visit. */
    tuned: boolean;
    tuning_recalled: boolean;
    /** Whether it tells how long its kernels take. */
    timestamps: boolean;
    /** The kernels of those runs that a profile recorded operators of. Browsers round each time to 0.1 ms. */
    kernels: { name: string; dispatches: number; seconds: number }[];
  };
  /** Vectors that are kept by their text, where `embedding_cache` asks for that. The disk is the browser's Cache API. */
  embedding_cache?: {
    /** Texts that were not computed: kept, or again in one call. */
    hits: number;
    disk_hits: number;
    /** Texts that had to be computed. */
    misses: number;
    entries: number;
    bytes: number;
    /** Vectors that had to go for others. */
    evictions: number;
    disk_entries: number;
    disk_bytes: number;
    disk_evictions: number;
    disk_rejected: number;
    disk_failures: number;
  };
  calls: { embedded: number; failed: number; cancelled: number; texts: number; truncated: number; batches: number };
  tokens: { real: number; padding: number };
  stages: { tokenize: Latency; queue: Latency; batch: Latency; embed: Latency };
}
