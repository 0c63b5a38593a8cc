//! Measures the engine's memory, all-MiniLM-L6-v2, fp32: four sessions against one, and after many texts against
//! after few. Every figure comes from a process of its own: this program starts itself again. Run it with `cargo
//! xtask bench memory`.

use std::sync::Barrier;
use std::thread;

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec_bench::{AnyError, Memory, PART, Texts, median, memory, minilm, run_part};

/// Processes for each number of sessions, in turn.
const SAMPLES: usize = 3;
/// Calls that each caller makes while the others make theirs.
const CALLS: usize = 40;
/// When the memory is looked at.
const MILESTONES: [usize; 5] = [2_000, 20_000, 50_000, 100_000, 200_000];
/// Texts of a call.
const TEXTS_A_CALL: usize = 250;

fn main() -> Result<(), AnyError> {
    match std::env::var(PART) {
        Ok(part) if part == "texts" => many_texts(),
        Ok(part) => sessions(part.parse()?),
        Err(_) => {
            compare_sessions()?;
            run_part("texts").map(|report| print!("{report}"))
        }
    }
}

fn compare_sessions() -> Result<(), AnyError> {
    let mut peaks = [Vec::new(), Vec::new()];
    let counts = ["1", "4"];
    for _ in 0..SAMPLES {
        for (count, peaks) in counts.iter().zip(&mut peaks) {
            let report = run_part(count)?;
            print!("{report}");
            let peak = report.split_whitespace().rev().nth(1);
            peaks.push(peak.ok_or("a part wrote nothing")?.parse::<f64>()?);
        }
    }
    let [one, four] = peaks.map(median);
    println!(
        "peak of 4 sessions to that of 1, medians: {four:.1} MiB / {one:.1} MiB = {:.3}x",
        four / one
    );
    Ok(())
}

fn load(pool_size: usize) -> Result<Embedder, AnyError> {
    let config = EmbeddingConfig::default()
        .with_engine(EngineChoice::OnnxRuntime)
        .with_intra_op_threads(1)
        .with_pool_size(pool_size);
    Ok(Embedder::builder(minilm()?.as_path())
        .config(config)
        .load()?)
}

/// As many callers as sessions, all at once, with texts of every length up to the model's limit.
fn sessions(count: usize) -> Result<(), AnyError> {
    let embedder = load(count)?;
    let loaded = memory()?;
    let start = Barrier::new(count);
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                start.wait();
                for text in Texts::new(250, 250).take(CALLS) {
                    embedder.embed_one(text).expect("a text of plain words");
                }
            });
        }
    });
    let used = embedder.stats().engine.sessions.peak_in_use;
    if used != count {
        return Err(format!("{used} of {count} sessions were used at the same time").into());
    }
    let Memory {
        now,
        peak,
        of_files,
    } = memory()?;
    println!(
        "{count} sessions: {:.1} MiB when loaded (peak {:.1}), {now:.1} after {CALLS} texts of up \
         to 252 tokens each ({of_files:.1} of files); peak {peak:.1} MiB",
        loaded.now, loaded.peak
    );
    Ok(())
}

/// The memory in use after more and more texts.
fn many_texts() -> Result<(), AnyError> {
    let embedder = load(thread::available_parallelism()?.get())?;
    let mut texts = Texts::new(4, 200);
    let (mut done, mut first) = (0, None);
    for milestone in MILESTONES {
        while done < milestone {
            let call: Vec<String> = texts.by_ref().take(TEXTS_A_CALL).collect();
            embedder.embed(&call)?;
            done += call.len();
        }
        let Memory { now, of_files, .. } = memory()?;
        let first = *first.get_or_insert(now);
        println!(
            "after {done:>7} texts: {now:.1} MiB ({of_files:.1} of files), {:.3}x of that after {}",
            now / first,
            MILESTONES[0]
        );
    }
    let stats = embedder.stats();
    println!(
        "{} tokens; texts of 1 to 4 words, one in 32 of 1 to 200; {TEXTS_A_CALL} a call",
        stats.tokens.real
    );
    Ok(())
}
