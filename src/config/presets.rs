//! Starting configurations. Each documents its use and its reasons. You can change every knob afterwards.

use isovec_engine::cores;

use super::{EmbeddingConfig, ExecutionProvider};

impl EmbeddingConfig {
    /// For indexing many texts: as many runs at the same time as there are cores, one thread
    /// each, so that no core waits for another within an operator. Measured on two cores with ONNX
    /// Runtime, 259 texts of 1 to 256 tokens: 1.4 s against 1.9 s with both cores in every
    /// operator. The portable engine's runs share the cores by default, so it needs this less.
    pub fn high_throughput() -> Self {
        Self::default()
            .with_intra_op_threads(1)
            .with_pool_size(cores::usable())
            .with_throughput_optimization(true)
    }

    /// For answering one query at a time: all the cores that an operator can use, and one run.
    /// Measured on two cores, 1 × 128 tokens: 16 ms against 30 ms with one thread.
    pub fn low_latency() -> Self {
        Self::default().with_pool_size(1)
    }

    /// For machines with a GPU: CUDA, else isovec's WebGPU path, else the processor; what was
    /// passed over is in the statistics. Batches are larger, because a GPU is idle in small ones.
    pub fn gpu() -> Self {
        Self::default()
            .with_gpu_optimization(true)
            .with_max_batch_size(128)
            .with_max_batch_tokens(8192)
    }

    /// For machines whose GPU is for others, and for results that no driver changes: the
    /// processor, or an error.
    pub fn cpu() -> Self {
        Self::default()
            .with_execution_providers([ExecutionProvider::Cpu])
            .with_strict_providers(true)
    }

    /// For small machines and full ones: one run at a time, nothing kept between runs but a few
    /// small buffers. An embedding costs some percent more time, and memory goes back at once.
    pub fn memory_constrained() -> Self {
        Self::default()
            .with_pool_size(1)
            .with_cpu_arena(false)
            .with_max_pool_size(8)
            .with_max_pool_memory(4 << 20)
            .with_pre_allocated_input_buffers(0)
            .with_pre_allocated_output_buffers(0)
            .with_max_batch_tokens(128)
    }

    /// For finding out why a vector is what it is: every text alone on one thread, the graph as
    /// it was written, nothing passed over in silence.
    pub fn debug() -> Self {
        Self::default()
            .with_deterministic_compute(true)
            .with_pool_size(1)
            .with_graph_optimization_level(0)
            .with_strict_providers(true)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::without;
    use super::*;

    /// The knobs that each preset sets, and no others. docs/configuration.md has them in words.
    #[test]
    fn every_preset_is_usable_and_sets_what_it_says() {
        let default = serde_json::to_value(EmbeddingConfig::default()).unwrap();
        for (preset, sets) in [
            (
                EmbeddingConfig::high_throughput(),
                json!({
                    "session": { "intra_op_threads": 1, "pool_size": cores::usable() },
                    "batching": { "throughput_optimization": true },
                }),
            ),
            (
                EmbeddingConfig::low_latency(),
                json!({ "session": { "pool_size": 1 } }),
            ),
            (
                EmbeddingConfig::gpu(),
                json!({
                    "providers": { "execution_providers": ["cuda", "webgpu", "cpu"] },
                    "batching": { "max_batch_size": 128, "max_batch_tokens": 8192 },
                }),
            ),
            (
                EmbeddingConfig::cpu(),
                json!({
                    "providers": { "execution_providers": ["cpu"], "strict_providers": true },
                }),
            ),
            (
                EmbeddingConfig::memory_constrained(),
                json!({
                    "session": { "pool_size": 1, "cpu_arena": false },
                    "memory": { "max_pool_size": 8, "max_pool_memory": 4 << 20 },
                    "io": { "pre_allocated_input_buffers": 0, "pre_allocated_output_buffers": 0 },
                    "batching": { "max_batch_tokens": 128 },
                }),
            ),
            (
                EmbeddingConfig::debug(),
                json!({
                    "session": {
                        "deterministic_compute": true,
                        "pool_size": 1,
                        "graph_optimization_level": 0,
                    },
                    "providers": { "strict_providers": true },
                }),
            ),
        ] {
            let built = preset.build().unwrap();
            let written = serde_json::to_value(&built).unwrap();
            let read: EmbeddingConfig = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(read, built);
            let mut set = written;
            without(&mut set, &default);
            assert_eq!(set, sets);
        }
    }
}
