//! One method for every knob; each takes the configuration and gives it back.

use std::path::PathBuf;
use std::time::Duration;

use isovec_model::head::Pooling;

use super::{Dtype, EmbeddingConfig, EngineChoice, ExecutionProvider, Truncation};

/// The engine and its sessions.
impl EmbeddingConfig {
    /// Chooses the engine.
    #[must_use]
    pub fn with_engine(mut self, engine: EngineChoice) -> Self {
        self.runtime.engine = engine;
        self
    }

    /// Names ONNX Runtime's shared library.
    #[must_use]
    pub fn with_onnxruntime_library(mut self, path: impl Into<PathBuf>) -> Self {
        self.runtime.onnxruntime_library = Some(path.into());
        self
    }

    /// Sets whether results of loading and running are cached for the next start.
    #[must_use]
    pub fn with_remember(mut self, on: bool) -> Self {
        self.runtime.remember = Some(on);
        self
    }

    /// Sets the threads that work on one operator.
    #[must_use]
    pub fn with_intra_op_threads(mut self, threads: usize) -> Self {
        self.runtime.session.intra_op_threads = Some(threads);
        self
    }

    /// Sets how many runs may be under way at the same time.
    #[must_use]
    pub fn with_pool_size(mut self, runs: usize) -> Self {
        self.runtime.session.pool_size = Some(runs);
        self
    }

    /// Sets how far the graph is optimised, 0 to 3.
    #[must_use]
    pub fn with_graph_optimization_level(mut self, level: u8) -> Self {
        self.runtime.session.graph_optimization_level = Some(level);
        self
    }

    /// Sets whether memory for intermediate tensors is held between runs.
    #[must_use]
    pub fn with_cpu_arena(mut self, on: bool) -> Self {
        self.runtime.session.cpu_arena = Some(on);
        self
    }

    /// Sets whether a text's vector is bit-identical whatever else is computed.
    #[must_use]
    pub fn with_deterministic_compute(mut self, on: bool) -> Self {
        self.runtime.session.deterministic_compute = Some(on);
        self
    }

    /// Writes the engine's own profile to a file whose name begins with this text.
    #[must_use]
    pub fn with_profiling(mut self, prefix: impl Into<PathBuf>) -> Self {
        self.runtime.session.profiling = Some(prefix.into());
        self
    }

    /// Caches the optimised graph in this folder.
    #[must_use]
    pub fn with_optimized_model_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.runtime.session.optimized_model_cache = Some(folder.into());
        self
    }
}

/// Providers.
impl EmbeddingConfig {
    /// Sets the providers to try, best first.
    #[must_use]
    pub fn with_execution_providers(
        mut self,
        providers: impl IntoIterator<Item = ExecutionProvider>,
    ) -> Self {
        self.runtime.providers.execution_providers = providers.into_iter().collect();
        self
    }

    /// Puts the GPU before the processor, or removes it: CUDA, then isovec's own WebGPU path, then the processor.
    #[must_use]
    pub fn with_gpu_optimization(self, on: bool) -> Self {
        let gpu: &[ExecutionProvider] = if on {
            &[
                ExecutionProvider::Cuda,
                ExecutionProvider::WebGpu,
                ExecutionProvider::Cpu,
            ]
        } else {
            &[ExecutionProvider::Cpu]
        };
        self.with_execution_providers(gpu.iter().copied())
    }

    /// Sets whether the available providers are measured and the fastest is used.
    #[must_use]
    pub fn with_provider_auto_selection(mut self, on: bool) -> Self {
        self.runtime.providers.provider_auto_selection = Some(on);
        self
    }

    /// Sets whether the hardware is looked for before a provider is tried.
    #[must_use]
    pub fn with_hardware_detection(mut self, on: bool) -> Self {
        self.runtime.providers.hardware_detection = Some(on);
        self
    }

    /// Sets whether a provider that does not work is an error.
    #[must_use]
    pub fn with_strict_providers(mut self, on: bool) -> Self {
        self.runtime.providers.strict_providers = Some(on);
        self
    }

    /// Sets which GPU CUDA uses.
    #[must_use]
    pub fn with_cuda_device_id(mut self, device: u32) -> Self {
        self.runtime.providers.cuda.device_id = Some(device);
        self
    }

    /// Sets the bytes that CUDA's arena may take on the device.
    #[must_use]
    pub fn with_cuda_memory_limit(mut self, bytes: u64) -> Self {
        self.runtime.providers.cuda.memory_limit = Some(bytes);
        self
    }

    /// Sets an option of a provider by the runtime's own name.
    #[must_use]
    pub fn with_provider_option(
        mut self,
        provider: ExecutionProvider,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let options = self.runtime.providers.options.entry(provider).or_default();
        options.insert(key.into(), value.into());
        self
    }
}

/// Input and output of tensors.
impl EmbeddingConfig {
    /// Sets whether outputs are bound to buffers before a run.
    #[must_use]
    pub fn with_io_binding(mut self, on: bool) -> Self {
        self.runtime.io.io_binding = Some(on);
        self
    }

    /// Sets whether the engine reads inputs in place.
    #[must_use]
    pub fn with_zero_copy(mut self, on: bool) -> Self {
        self.runtime.io.zero_copy = Some(on);
        self
    }

    /// Sets how many input buffers are made when the model is loaded.
    #[must_use]
    pub fn with_pre_allocated_input_buffers(mut self, buffers: usize) -> Self {
        self.runtime.io.pre_allocated_input_buffers = Some(buffers);
        self
    }

    /// Sets how many output buffers are made when the model is loaded.
    #[must_use]
    pub fn with_pre_allocated_output_buffers(mut self, buffers: usize) -> Self {
        self.runtime.io.pre_allocated_output_buffers = Some(buffers);
        self
    }

    /// Sets whether texts are sorted by length before they are batched.
    #[must_use]
    pub fn with_batch_optimization(mut self, on: bool) -> Self {
        self.runtime.io.batch_optimization = Some(on);
        self
    }
}

/// Memory.
impl EmbeddingConfig {
    /// Sets whether a pool holds buffers for reuse.
    #[must_use]
    pub fn with_memory_pool(mut self, on: bool) -> Self {
        self.runtime.memory.memory_pool = Some(on);
        self
    }

    /// Sets how many buffers the pool holds.
    #[must_use]
    pub fn with_max_pool_size(mut self, buffers: usize) -> Self {
        self.runtime.memory.max_pool_size = Some(buffers);
        self
    }

    /// Sets how many bytes the pool holds.
    #[must_use]
    pub fn with_max_pool_memory(mut self, bytes: u64) -> Self {
        self.runtime.memory.max_pool_memory = Some(bytes);
        self
    }

    /// Sets whether the pool frees its buffers when memory is short.
    #[must_use]
    pub fn with_memory_pressure_detection(mut self, on: bool) -> Self {
        self.runtime.memory.memory_pressure_detection = Some(on);
        self
    }

    /// Sets the share of memory in use from which memory counts as short, 0 to 1.
    #[must_use]
    pub fn with_memory_pressure_threshold(mut self, part: f64) -> Self {
        self.runtime.memory.memory_pressure_threshold = Some(part);
        self
    }

    /// Sets whether a batch that would not fit is split or refused.
    #[must_use]
    pub fn with_memory_prediction(mut self, on: bool) -> Self {
        self.runtime.memory.memory_prediction = Some(on);
        self
    }

    /// Sets the most bytes that the model and its batches may take.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: u64) -> Self {
        self.runtime.memory.memory_limit = Some(bytes);
        self
    }

    /// Sets whether the weights are hashed at every load.
    #[must_use]
    pub fn with_verify(mut self, on: bool) -> Self {
        self.model.verify = Some(on);
        self
    }

    /// Sets whether the model's file is mapped instead of read.
    #[must_use]
    pub fn with_mmap(mut self, on: bool) -> Self {
        self.runtime.memory.mmap = Some(on);
        self
    }
}

/// Texts, batches and models.
impl EmbeddingConfig {
    /// Sets how many tokens of a text the model sees.
    #[must_use]
    pub fn with_max_length(mut self, tokens: usize) -> Self {
        self.text.max_length = Some(tokens);
        self
    }

    /// Sets which part of a text that is too long the model sees.
    #[must_use]
    pub fn with_truncation(mut self, truncation: Truncation) -> Self {
        self.text.truncation = Some(truncation);
        self
    }

    /// Overrides the pooling.
    #[must_use]
    pub fn with_pooling(mut self, pooling: Pooling) -> Self {
        self.text.pooling = Some(pooling);
        self
    }

    /// Overrides whether vectors are scaled to unit length.
    #[must_use]
    pub fn with_normalize(mut self, normalize: bool) -> Self {
        self.text.normalize = Some(normalize);
        self
    }

    /// Keeps only the first components (matryoshka).
    #[must_use]
    pub fn with_dimension(mut self, dimension: usize) -> Self {
        self.text.dimension = Some(dimension);
        self
    }

    /// Adds or replaces a named prompt.
    #[must_use]
    pub fn with_prompt(mut self, name: impl Into<String>, prompt: impl Into<String>) -> Self {
        self.text.prompts.insert(name.into(), prompt.into());
        self
    }

    /// Sets the prompt of `embed_query`.
    #[must_use]
    pub fn with_query_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.text.query_prompt = Some(prompt.into());
        self
    }

    /// Sets the prompt of `embed_passage`.
    #[must_use]
    pub fn with_passage_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.text.passage_prompt = Some(prompt.into());
        self
    }

    /// Sets the largest number of texts in a batch.
    #[must_use]
    pub fn with_max_batch_size(mut self, texts: usize) -> Self {
        self.batching.max_batch_size = Some(texts);
        self
    }

    /// Sets the largest number of tokens in a batch, padding included.
    #[must_use]
    pub fn with_max_batch_tokens(mut self, tokens: usize) -> Self {
        self.batching.max_batch_tokens = Some(tokens);
        self
    }

    /// Sets whether a batcher adjusts the size of its batches.
    #[must_use]
    pub fn with_dynamic_batching(mut self, on: bool) -> Self {
        self.batching.dynamic_batching = Some(on);
        self
    }

    /// Sets how many texts an adjusted batch may always have, however long they take.
    #[must_use]
    pub fn with_min_batch_size(mut self, texts: usize) -> Self {
        self.batching.min_batch_size = Some(texts);
        self
    }

    /// Sets how many texts a batcher waits for, up to the longest wait.
    #[must_use]
    pub fn with_preferred_batch_size(mut self, texts: usize) -> Self {
        self.batching.preferred_batch_size = Some(texts);
        self
    }

    /// Sets how long a text waits for other texts while the engine is idle.
    #[must_use]
    pub fn with_max_wait(mut self, wait: Duration) -> Self {
        self.batching.max_wait = Some(wait);
        self
    }

    /// Sets how long an answer of a batcher may take.
    #[must_use]
    pub fn with_target_latency(mut self, target: Duration) -> Self {
        self.batching.target_latency = Some(target);
        self
    }

    /// Adjusts batches for texts a second instead of a latency.
    #[must_use]
    pub fn with_throughput_optimization(mut self, on: bool) -> Self {
        self.batching.throughput_optimization = Some(on);
        self
    }

    /// Sets how many texts may wait in a batcher.
    #[must_use]
    pub fn with_max_queue(mut self, texts: usize) -> Self {
        self.batching.max_queue = Some(texts);
        self
    }

    /// Sets how many tokens may wait in a batcher.
    #[must_use]
    pub fn with_max_queue_tokens(mut self, tokens: usize) -> Self {
        self.batching.max_queue_tokens = Some(tokens);
        self
    }

    /// Pins a branch, tag or commit of the model.
    #[must_use]
    pub fn with_revision(mut self, revision: impl Into<String>) -> Self {
        self.hub.revision = Some(revision.into());
        self
    }

    /// Sets the hub's address.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.hub.endpoint = Some(endpoint.into());
        self
    }

    /// Sets the hub's access token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.hub.token = Some(token.into());
        self
    }

    /// Sets the folder of the hub's cache.
    #[must_use]
    pub fn with_cache_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.hub.cache_dir = Some(folder.into());
        self
    }

    /// Sets whether isovec makes no requests to the network.
    #[must_use]
    pub fn with_offline(mut self, offline: bool) -> Self {
        self.hub.offline = Some(offline);
        self
    }

    /// Chooses the ONNX file by its path inside the model.
    #[must_use]
    pub fn with_onnx_file(mut self, file: impl Into<String>) -> Self {
        self.model.onnx_file = Some(file.into());
        self
    }

    /// Sets how the weights are stored.
    #[must_use]
    pub fn with_dtype(mut self, dtype: Dtype) -> Self {
        self.model.dtype = Some(dtype);
        self
    }

    /// Sets the bytes of vectors to cache in memory.
    #[must_use]
    pub fn with_embedding_cache_memory(mut self, bytes: u64) -> Self {
        self.embedding_cache.memory = Some(bytes);
        self
    }

    /// Sets the bytes of vectors to cache on disk.
    #[must_use]
    pub fn with_embedding_cache_disk(mut self, bytes: u64) -> Self {
        self.embedding_cache.disk = Some(bytes);
        self
    }

    /// Sets the folder of the vectors that are cached on disk.
    #[must_use]
    pub fn with_embedding_cache_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.embedding_cache.folder = Some(folder.into());
        self
    }
}
