//! How late answers are when load comes and goes: all-MiniLM-L6-v2, fp32, real texts of up to 128
//! tokens that arrive by chance (a Poisson process), whatever the batcher does; a latency counts
//! from the moment at which a text was to arrive. Batches may have 4096 tokens, which take far
//! longer than the target; once they are steered, once not. Run it with `cargo xtask bench
//! adaptive`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use isovec::EmbeddingConfig;
use isovec::blocking::{DynamicBatcher, Embedder};
use isovec::config::EngineChoice;
use isovec_bench::{AnyError, Corpus, minilm};

/// Parts of what the machine can do, one after another.
const LOADS: [f64; 6] = [0.3, 0.7, 0.3, 0.8, 0.5, 0.7];
/// How long each of them lasts, and how much of that does not count, because load has just changed.
const STEP: Duration = Duration::from_secs(15);
const SETTLING: Duration = Duration::from_secs(3);
const TARGET: Duration = Duration::from_millis(150);
/// Threads that wait for arrivals: more than texts ever wait at a time.
const CALLERS: usize = 512;
const LONGEST: usize = 128;

fn main() -> Result<(), AnyError> {
    let model = minilm()?;
    let config = EmbeddingConfig::default()
        .with_engine(EngineChoice::OnnxRuntime)
        .with_intra_op_threads(1)
        .with_pool_size(thread::available_parallelism()?.get())
        .with_max_length(512)
        .with_max_batch_size(256);
    let base = Embedder::builder(model.as_path())
        .config(config.clone())
        .load()?;
    let corpus = Corpus::load(&base)?;
    let pairs = corpus.texts.iter().zip(&corpus.tokens);
    let short = pairs.filter(|&(_, &tokens)| tokens <= LONGEST);
    let texts: Vec<&str> = short.map(|(text, _)| text.as_str()).collect();

    let few = &texts[..512];
    base.embed(few)?;
    let started = Instant::now();
    base.embed(few)?;
    let capacity = few.len() as f64 / started.elapsed().as_secs_f64();
    println!(
        "{}; {capacity:.0} texts a second in one call; target {TARGET:?}",
        base.provider()
    );
    for steered in [true, false] {
        let config = config.clone().with_max_batch_tokens(4096);
        let config = match steered {
            true => config.with_target_latency(TARGET),
            false => config.with_dynamic_batching(false),
        };
        let embedder = Embedder::builder(model.as_path()).config(config).load()?;
        let batcher = DynamicBatcher::new(&embedder);
        batcher.embed(few)?;
        println!("{}", if steered { "steered" } else { "not steered" });
        let (mut late, mut all) = (0, 0);
        for load in LOADS {
            let mut milliseconds = serve(&batcher, &texts, capacity * load);
            milliseconds.sort_unstable_by(f64::total_cmp);
            let over = TARGET.as_secs_f64() * 1e3;
            let own = milliseconds.iter().filter(|&&took| took > over).count();
            let at = |part: f64| milliseconds[((milliseconds.len() - 1) as f64 * part) as usize];
            println!(
                "  load {:>3.0}%: p50 {:>6.1} ms, p99 {:>6.1} ms, late {:>5.2}%, a batch may have {} tokens",
                load * 100.0,
                at(0.5),
                at(0.99),
                own as f64 / milliseconds.len() as f64 * 100.0,
                batcher.counts().batch_tokens
            );
            late += own;
            all += milliseconds.len();
        }
        println!(
            "  late in all: {:.2}% of {all}",
            late as f64 / all as f64 * 100.0
        );
    }
    Ok(())
}

/// Milliseconds of the texts that arrived once load had settled.
fn serve(batcher: &DynamicBatcher, texts: &[&str], per_second: f64) -> Vec<f64> {
    let arrivals = arrivals(per_second);
    let next = AtomicUsize::new(0);
    let taken = Mutex::new(Vec::with_capacity(arrivals.len()));
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&arrival) = arrivals.get(at) else {
                        return;
                    };
                    thread::sleep(arrival.saturating_sub(began.elapsed()));
                    batcher
                        .embed_one(texts[at % texts.len()])
                        .expect("a real text");
                    let took = began.elapsed().saturating_sub(arrival);
                    if arrival >= SETTLING {
                        let mut taken = taken.lock().expect("nobody panics");
                        taken.push(took.as_secs_f64() * 1e3);
                    }
                }
            });
        }
    });
    taken.into_inner().expect("nobody panics")
}

/// When texts arrive, so many a second on average, the same ones every time.
fn arrivals(per_second: f64) -> Vec<Duration> {
    let mut state = 7u64;
    let mut at = 0.0;
    let mut arrivals = Vec::new();
    while at < STEP.as_secs_f64() {
        arrivals.push(Duration::from_secs_f64(at));
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let chance = ((state >> 33) as f64 + 0.5) / (1u64 << 31) as f64;
        at -= chance.ln() / per_second;
    }
    arrivals
}
