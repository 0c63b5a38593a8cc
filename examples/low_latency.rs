//! Answers one query after another, and says how long that takes and which stage takes it.
//!
//! ```sh
//! cargo run --release --example low_latency
//! ```

mod common;

use std::time::{Duration, Instant};

use common::print_knobs;
use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;

const QUERIES: usize = 300;

fn main() -> isovec::Result<()> {
    let config = EmbeddingConfig::low_latency().build()?;
    let embedder = Embedder::builder(common::source()).config(config).load()?;
    println!("{} on {}", embedder.model_name(), embedder.provider());
    print_knobs(
        &embedder,
        &["session.pool_size", "session.intra_op_threads"],
    );

    // A service does this before it takes traffic: the first runs page the weights in and fill
    // the buffer pool.
    let queries = common::texts(QUERIES, 16);
    for query in queries.iter().take(20) {
        embedder.embed_query(query)?;
    }

    let mut times = Vec::with_capacity(QUERIES);
    for query in &queries {
        let started = Instant::now();
        // On the calling thread, without a hand-over to another one.
        embedder.embed_query(query)?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let at = |part: f64| millis(times[((QUERIES - 1) as f64 * part) as usize]);
    println!(
        "{QUERIES} queries of up to 16 words: p50 {}, p90 {}, p99 {}, longest {}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );

    // The statistics hold the same for every stage, the warm-up included.
    let stats = embedder.stats();
    for (stage, latency) in [
        ("the whole call", stats.stages.embed),
        ("tokenising", stats.stages.tokenize),
        ("waiting for a session", stats.engine.sessions.wait),
        ("running the model", stats.engine.sessions.run),
    ] {
        println!(
            "  {stage}: p50 {:.3} ms, p99 {:.3} ms",
            latency.p50 * 1e3,
            latency.p99 * 1e3
        );
    }
    Ok(())
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
