//! Embeds many texts, with the default configuration and with the preset for throughput, and says
//! where the difference comes from.
//!
//! ```sh
//! cargo run --release --example high_throughput
//! cargo run --release --example high_throughput -- ./my-model
//! ```

mod common;

use std::time::Instant;

use common::{percent, print_knobs};
use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;

fn main() -> isovec::Result<()> {
    // One long list: the planner sorts it by length, so that batches carry almost no padding, and
    // runs as many batches at a time as there are slots.
    let texts = common::texts(1024, 60);
    for (name, config) in [
        ("default", EmbeddingConfig::default()),
        ("high_throughput", EmbeddingConfig::high_throughput()),
    ] {
        let embedder = Embedder::builder(common::source())
            .config(config.build()?)
            .load()?;
        // The first batches find cold caches and an empty buffer pool.
        embedder.embed(&texts[..64])?;
        let before = embedder.stats();

        let started = Instant::now();
        let vectors = embedder.embed(&texts)?;
        let seconds = started.elapsed().as_secs_f64();

        let stats = embedder.stats();
        let tokens = stats.tokens.real - before.tokens.real;
        println!(
            "{name}, on {}: {:.0} texts/s, {:.0} tokens/s",
            embedder.provider(),
            vectors.len() as f64 / seconds,
            tokens as f64 / seconds
        );
        print_knobs(
            &embedder,
            &[
                "session.pool_size",
                "session.intra_op_threads",
                "batching.max_batch_tokens",
            ],
        );
        let (sessions, engine) = (&stats.engine.sessions, &stats.engine);
        println!(
            "  {} batches, padding {}, at most {} at the same time; a run took {:.1} ms (p50), \
             {:.1} ms (p99)",
            stats.calls.batches,
            percent(stats.tokens.padding_ratio()),
            sessions.peak_in_use,
            sessions.run.p50 * 1e3,
            sessions.run.p99 * 1e3
        );
        println!(
            "  pool hits {}, buffers reused {}, not copied {}",
            percent(engine.memory_pool.hit_ratio()),
            percent(engine.io_binding.buffer_reuse_ratio()),
            percent(engine.io_binding.zero_copy_ratio())
        );
    }
    Ok(())
}
