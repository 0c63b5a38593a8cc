//! Measures the SDK's overhead over a raw `session.run` plus tokenising: all-MiniLM-L6-v2, fp32, one thread, one text
//! of 16 tokens. The same exported graph with its pooling head, the same library, the same process. Run it with
//! `cargo xtask bench overhead`.

use std::hint::black_box;

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec_bench::{AnyError, Raw, TEXT, minilm, take_turns};

/// Each is one run of either, some ten milliseconds together.
const ROUNDS: usize = 2000;

fn main() -> Result<(), AnyError> {
    let model = minilm()?;
    let config = EmbeddingConfig::default()
        .with_engine(EngineChoice::OnnxRuntime)
        .with_intra_op_threads(1);
    // First, so that the library is loaded by the time the raw session asks for it.
    let embedder = Embedder::builder(model.as_path()).config(config).load()?;
    let tokens = embedder.count_tokens(TEXT)?;
    let raw = Raw::load(&model, 1, 256)?;
    let ours = embedder.embed_one(TEXT)?;
    let theirs = raw.embed(TEXT)?;
    let difference = ours
        .iter()
        .zip(&theirs)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    println!(
        "{}; {tokens} tokens; largest difference {difference:.1e}; median time, and median of \
         the ratios of {ROUNDS} rounds",
        embedder.provider()
    );

    let medians = take_turns(
        ROUNDS,
        vec![
            (
                "tokenizers + raw session.run",
                Box::new(|| drop(black_box(raw.embed(TEXT)))),
            ),
            (
                "isovec, blocking",
                Box::new(|| drop(black_box(embedder.embed_one(TEXT)))),
            ),
        ],
    );
    print!("{medians}");
    let stats = embedder.stats();
    let (run, stages) = (stats.engine.sessions.run, stats.stages);
    for (stage, times) in [
        ("tokenising", stages.tokenize),
        ("session.run", run),
        ("the batch, the run in it", stages.batch),
        ("the call, all in it", stages.embed),
    ] {
        let mean = times.total / times.count.max(1) as f64 * 1e3;
        println!("  isovec's {stage:<36} {mean:>9.3} ms on average");
    }
    Ok(())
}
