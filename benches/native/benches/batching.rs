//! Measures the gain of joining calls: all-MiniLM-L6-v2, fp32, short texts, one caller for each thread. 64 callers
//! through a `DynamicBatcher` against the same callers each running its own text, and one caller through a batcher
//! against one without. Run it with `cargo xtask bench batching`.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use isovec::EmbeddingConfig;
use isovec::blocking::{DynamicBatcher, Embedder};
use isovec::config::EngineChoice;
use isovec_bench::{AnyError, TEXT, Texts, median, minilm, take_turns};

const CALLERS: usize = 64;
const ROUNDS: usize = 7;
/// What a contestant has of a round.
const TURN: Duration = Duration::from_millis(2500);
/// Words of a short text, at most.
const SHORT: usize = 12;
const ONE_CALLER_ROUNDS: usize = 1000;

fn main() -> Result<(), AnyError> {
    let model = minilm()?;
    let cores = thread::available_parallelism()?.get();
    let config = EmbeddingConfig::default()
        .with_engine(EngineChoice::OnnxRuntime)
        .with_intra_op_threads(1)
        .with_pool_size(cores);
    let embedder = Embedder::builder(model.as_path()).config(config).load()?;
    println!(
        "{}; {CALLERS} callers, one text of up to {SHORT} words each; {cores} runs at a time",
        embedder.provider()
    );
    let batcher = DynamicBatcher::new(&embedder);
    let alone = |text: &str| drop(black_box(embedder.embed_one(text).expect("a short text")));
    let joined = |text: &str| drop(black_box(batcher.embed_one(text).expect("a short text")));

    let mut ratios = Vec::new();
    let mut latencies = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        let (one, one_latencies) = take_turn(&alone);
        let (many, many_latencies) = take_turn(&joined);
        // The first round warms everything up.
        if round > 0 {
            println!("  alone {one:>7.1} texts/s, joined {many:>7.1} texts/s");
            ratios.push(many / one);
            latencies[0].extend(one_latencies);
            latencies[1].extend(many_latencies);
        }
    }
    println!(
        "throughput of the batcher to single calls: {:.2}x",
        median(ratios)
    );
    for (name, mut seconds) in ["alone", "joined"].into_iter().zip(latencies) {
        seconds.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| seconds[((seconds.len() - 1) as f64 * part) as usize] * 1e3;
        println!(
            "  {name:<7} p50 {:>7.2} ms  p99 {:>7.2} ms",
            at(0.5),
            at(0.99)
        );
    }
    let counts = batcher.counts();
    println!(
        "  {:.1} texts a batch; {} tokens may be in one now",
        counts.batched_texts as f64 / counts.batches.max(1) as f64,
        counts.batch_tokens
    );

    let embedder = isovec::Embedder::from(embedder.clone());
    let batcher = isovec::DynamicBatcher::new(&embedder);
    let waited = |call: isovec::BoxFuture<'static, isovec::Result<Vec<f32>>>| {
        drop(black_box(pollster::block_on(call).expect("a short text")));
    };
    let medians = take_turns(
        ONE_CALLER_ROUNDS,
        vec![
            (
                "one caller, Embedder::embed_one",
                Box::new(|| waited(embedder.embed_one(TEXT))),
            ),
            (
                "one caller, DynamicBatcher::embed_one",
                Box::new(|| waited(batcher.embed_one(TEXT))),
            ),
        ],
    );
    print!("{medians}");
    Ok(())
}

/// Texts a second, and the seconds that each took.
fn take_turn(call: &(dyn Fn(&str) + Sync)) -> (f64, Vec<f64>) {
    let start = Barrier::new(CALLERS);
    let texts: Vec<String> = Texts::new(SHORT, SHORT).take(1024).collect();
    let seconds: Vec<f64> = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (start, texts) = (&start, &texts);
                scope.spawn(move || {
                    let mut seconds = Vec::new();
                    start.wait();
                    let began = Instant::now();
                    for text in texts.iter().cycle().skip(caller * 16) {
                        if began.elapsed() >= TURN {
                            break;
                        }
                        let asked = Instant::now();
                        call(text);
                        seconds.push(asked.elapsed().as_secs_f64());
                    }
                    seconds
                })
            })
            .collect();
        callers
            .into_iter()
            .flat_map(|caller| caller.join().expect("a caller that does not panic"))
            .collect()
    });
    (seconds.len() as f64 / TURN.as_secs_f64(), seconds)
}
