//! Many callers at once: all-MiniLM-L6-v2, fp32, each call one text of 16 tokens. What more
//! callers bring, and how long the unlucky ones wait, against one session behind a mutex, which
//! is what `ort` asks for. Run it with `cargo xtask bench callers`.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec_bench::{AnyError, Raw, TEXT, median, minilm};

const CALLERS: usize = 8;
const ROUNDS: usize = 9;
/// What a contestant has of a round.
const TURN: Duration = Duration::from_millis(2500);

/// One contestant: what a call is, and how many make it at the same time.
struct Contestant<'a> {
    name: &'a str,
    callers: usize,
    call: &'a (dyn Fn() + Sync),
}

/// What a contestant did in one round.
struct Turn {
    calls_a_second: f64,
    /// Seconds, shortest first.
    latencies: Vec<f64>,
}

fn main() -> Result<(), AnyError> {
    let model = minilm()?;
    let cores = thread::available_parallelism()?.get();
    let config = EmbeddingConfig::default().with_engine(EngineChoice::OnnxRuntime);
    let load = |config: EmbeddingConfig| Embedder::builder(model.as_path()).config(config).load();
    let pooled = load(
        config
            .clone()
            .with_intra_op_threads(1)
            .with_pool_size(cores),
    )?;
    let default = load(config)?;
    let mutex = Raw::load(&model, 1, 256)?;
    let mutex_wide = Raw::load(&model, default.capabilities().intra_op_threads, 256)?;
    println!(
        "{}; {cores} cores; {} tokens; pooled: {cores} sessions of 1 thread; default: {} of {}",
        pooled.provider(),
        pooled.count_tokens(TEXT)?,
        default.capabilities().concurrent_runs,
        default.capabilities().intra_op_threads,
    );

    let ours = |embedder: &Embedder| {
        embedder
            .embed_one(TEXT)
            .expect("a text that was embedded before");
    };
    let theirs = |raw: &Raw| {
        raw.embed(TEXT).expect("a text that was embedded before");
    };
    let pooled_call = || ours(&pooled);
    let default_call = || ours(&default);
    let mutex_call = || theirs(&mutex);
    let mutex_wide_call = || theirs(&mutex_wide);
    let contestants = [
        (
            "isovec, pooled, 1 caller",
            1,
            &pooled_call as &(dyn Fn() + Sync),
        ),
        ("isovec, pooled, 8 callers", CALLERS, &pooled_call),
        ("Mutex<Session>, 1 thread, 8 callers", CALLERS, &mutex_call),
        ("isovec, default, 1 caller", 1, &default_call),
        ("isovec, default, 8 callers", CALLERS, &default_call),
        (
            "Mutex<Session>, threads of the default, 8 callers",
            CALLERS,
            &mutex_wide_call,
        ),
    ]
    .map(|(name, callers, call)| Contestant {
        name,
        callers,
        call,
    });

    let mut turns: Vec<Vec<Turn>> = contestants.iter().map(|_| Vec::new()).collect();
    // The first round warms everything up.
    for round in 0..=ROUNDS {
        for (contestant, turns) in contestants.iter().zip(&mut turns) {
            let turn = take_turn(contestant);
            if round > 0 {
                turns.push(turn);
            }
        }
    }
    println!("medians of {ROUNDS} rounds; percentiles over all of a contestant's calls");
    for (contestant, turns) in contestants.iter().zip(&turns) {
        let rate = median(turns.iter().map(|turn| turn.calls_a_second));
        let mut all: Vec<f64> = turns
            .iter()
            .flat_map(|turn| turn.latencies.clone())
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        println!(
            "{:<50} {rate:>7.1} calls/s  p50 {:>6.2} ms  p99 {:>6.2} ms  max {:>7.2} ms",
            contestant.name,
            at(&all, 0.5) * 1e3,
            at(&all, 0.99) * 1e3,
            at(&all, 1.0) * 1e3,
        );
    }
    let [
        one,
        eight,
        mutexed,
        default_one,
        default_eight,
        default_mutexed,
    ] = &turns[..]
    else {
        unreachable!("six contestants");
    };
    let throughput = |many: &[Turn], one: &[Turn]| {
        let pairs = many.iter().zip(one);
        median(pairs.map(|(many, one)| many.calls_a_second / one.calls_a_second))
    };
    let tail = |ours: &[Turn], theirs: &[Turn]| {
        let pairs = ours.iter().zip(theirs);
        median(pairs.map(|(ours, theirs)| at(&ours.latencies, 0.99) / at(&theirs.latencies, 0.99)))
    };
    println!("median of the rounds' ratios:");
    println!(
        "pooled, throughput of 8 callers to 1:   {:.2}x",
        throughput(eight, one)
    );
    println!(
        "pooled, p99 to Mutex<Session>:          {:.2}x",
        tail(eight, mutexed)
    );
    println!(
        "pooled, throughput to Mutex<Session>:   {:.2}x",
        throughput(eight, mutexed)
    );
    println!(
        "default, throughput of 8 callers to 1:  {:.2}x",
        throughput(default_eight, default_one)
    );
    println!(
        "default, p99 to its Mutex<Session>:     {:.2}x",
        tail(default_eight, default_mutexed)
    );
    println!(
        "pooled to default, throughput:          {:.2}x",
        throughput(eight, default_eight)
    );
    println!(
        "pooled to default, p99:                 {:.2}x",
        tail(eight, default_eight)
    );
    Ok(())
}

/// Has the callers call, all from the same moment on, until the turn is over.
fn take_turn(contestant: &Contestant<'_>) -> Turn {
    let start = Barrier::new(contestant.callers);
    let (mut latencies, mut longest) = (Vec::new(), Duration::ZERO);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..contestant.callers)
            .map(|_| {
                scope.spawn(|| {
                    let mut latencies = Vec::new();
                    start.wait();
                    let begun = Instant::now();
                    while begun.elapsed() < TURN {
                        let asked = Instant::now();
                        (contestant.call)();
                        latencies.push(asked.elapsed().as_secs_f64());
                    }
                    (latencies, begun.elapsed())
                })
            })
            .collect();
        for caller in callers {
            let (own, took) = caller.join().expect("a caller that does not panic");
            latencies.extend(own);
            longest = longest.max(took);
        }
    });
    latencies.sort_unstable_by(f64::total_cmp);
    Turn {
        calls_a_second: latencies.len() as f64 / longest.as_secs_f64(),
        latencies,
    }
}

/// The latency that this part of the calls stayed within.
fn at(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last as f64 * part).round() as usize)
        .copied()
        .unwrap_or(0.0)
}
