//! Embeds on a small machine: shows the memory that the preset holds, and the effect of a hard limit.
//!
//! ```sh
//! cargo run --release --example memory_constrained
//! ```

mod common;

use common::print_knobs;
use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;

const MIB: f64 = (1 << 20) as f64;

fn main() -> isovec::Result<()> {
    let texts = common::texts(256, 120);

    // The preset keeps as little as it can between runs.
    let config = EmbeddingConfig::memory_constrained().build()?;
    let embedder = Embedder::builder(common::source()).config(config).load()?;
    embedder.embed(&texts)?;
    report("preset", &embedder);
    let weights = embedder.description().weights_bytes;
    drop(embedder);

    // A limit is a promise for the weights and the batches together. The engine foretells what a
    // batch takes, and one that would not fit is split before anything is allocated. Large
    // batches are asked for here, so that there is something to split.
    for (name, beside) in [("roomy", 1 << 30), ("tight", 24 << 20)] {
        let config = EmbeddingConfig::default()
            .with_pool_size(1)
            .with_max_batch_tokens(8192)
            .with_max_pool_memory(4 << 20)
            .with_memory_limit(weights + beside)
            .build()?;
        let embedder = Embedder::builder(common::source()).config(config).load()?;
        embedder.embed(&texts)?;
        report(name, &embedder);
    }

    // A limit that the weights alone are past is an error before the engine is asked.
    let config = EmbeddingConfig::default().with_memory_limit(weights / 2);
    let config = config.with_max_pool_memory(1 << 20).build()?;
    match Embedder::builder(common::source()).config(config).load() {
        Ok(embedder) => println!("{} fits", embedder.model_name()),
        Err(error) => println!("half of the weights: {error}"),
    }
    Ok(())
}

fn report(name: &str, embedder: &Embedder) {
    let stats = embedder.stats();
    let pool = &stats.engine.memory_pool;
    println!(
        "{name}: {} texts in {} batches; runs took {:.1} MiB at most (0: not counted), buffers \
         {:.2} MiB, of which {:.2} MiB are kept",
        stats.calls.texts,
        stats.calls.batches,
        stats.engine.sessions.peak_run_bytes as f64 / MIB,
        pool.peak_memory_bytes as f64 / MIB,
        pool.current_memory_bytes as f64 / MIB
    );
    print_knobs(
        embedder,
        &[
            "session.cpu_arena",
            "memory.memory_prediction",
            "memory.memory_limit",
        ],
    );
}
