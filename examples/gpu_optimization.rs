//! Requests the GPU, and says whether it really computes, else why it was passed over, and how many bytes went to it
//! and back.
//!
//! ```sh
//! cargo run --release --example gpu_optimization
//! ```
//!
//! CUDA needs an ONNX Runtime that was built with it: name one in `ORT_DYLIB_PATH`. isovec's own path needs
//! `--features webgpu`.

mod common;

use std::time::Instant;

use common::{percent, print_knobs};
use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::ExecutionProvider;

fn main() -> isovec::Result<()> {
    // CUDA, else isovec's WebGPU path, else the processor; large batches, as a GPU idles in small
    // ones. The limit leaves room on the device for others.
    let config = EmbeddingConfig::gpu()
        .with_cuda_device_id(0)
        .with_cuda_memory_limit(4 << 30)
        .build()?;
    let embedder = Embedder::builder(common::source()).config(config).load()?;
    println!("computes: {}", embedder.provider());
    let stats = embedder.stats();
    for event in &stats.engine.provider.fallbacks {
        println!("  {} -> {}: {}", event.from, event.to, event.cause);
    }
    for (provider, nodes) in &stats.engine.provider.nodes {
        println!("  {nodes} nodes on {provider}");
    }
    print_knobs(
        &embedder,
        &[
            "providers.execution_providers",
            "providers.cuda.device_id",
            "providers.cuda.memory_limit",
            "io.io_binding",
            "batching.max_batch_tokens",
        ],
    );

    let texts = common::texts(256, 100);
    embedder.embed(&texts)?; // Kernels are chosen and compiled in the first runs.
    let before = embedder.stats().engine.io_binding;
    let started = Instant::now();
    embedder.embed(&texts)?;
    let seconds = started.elapsed().as_secs_f64();
    let io = embedder.stats().engine.io_binding;
    println!(
        "{:.0} texts/s; {} KiB to the device, {} KiB from it; not copied on the host {}",
        texts.len() as f64 / seconds,
        (io.to_device_bytes - before.to_device_bytes) >> 10,
        (io.from_device_bytes - before.from_device_bytes) >> 10,
        percent(io.zero_copy_ratio())
    );

    // A service that must not run on the processor says so, and gets an error with the cause.
    let strict = EmbeddingConfig::default()
        .with_execution_providers([ExecutionProvider::Cuda])
        .with_strict_providers(true)
        .build()?;
    match Embedder::builder(common::source()).config(strict).load() {
        Ok(embedder) => println!("strict: {}", embedder.provider()),
        Err(error) => println!("strict: {error}"),
    }
    Ok(())
}
