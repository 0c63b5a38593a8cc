//! Measures the cost and the accuracy of observing: a profile beside none, a trace of a million events, trials of an
//! embedder against itself, and tuning from the worst preset. Run it with `cargo xtask bench observing`; `--
//! profile`, `trace`, `trials` or `tune` behind it picks one.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec::profile::ProfileOptions;
use isovec_bench::{AnyError, Corpus, TEXT, median, minilm};
use isovec_insight::advisor::{Trial, TuneOptions, Verdict};

/// Pairs of calls with a profile and without.
const CALLS: usize = 3000;
/// Events of the trace.
const EVENTS: usize = 1_000_000;
/// Trials of an embedder against itself.
const TRIALS: usize = 50;
/// Texts that are tuned with.
const TEXTS: usize = 400;

fn main() -> Result<(), AnyError> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |name: &str| {
        let named = asked.iter().any(|asked| asked == name);
        named || !asked.iter().any(|asked| !asked.starts_with('-'))
    };
    if is_asked("profile") {
        profile()?;
    }
    if is_asked("trace") {
        trace()?;
    }
    if is_asked("trials") {
        trials()?;
    }
    if is_asked("tune") {
        tune()?;
    }
    Ok(())
}

/// One embedder, one call after the other: with a session that records, without one, in turns.
fn profile() -> Result<(), AnyError> {
    let model = minilm()?;
    for engine in [EngineChoice::OnnxRuntime, EngineChoice::Portable] {
        for operators in [true, false] {
            let config = EmbeddingConfig::default()
                .with_engine(engine)
                .with_intra_op_threads(1);
            let embedder = Embedder::builder(model.as_path()).config(config).load()?;
            let call = || -> Result<f64, AnyError> {
                let started = Instant::now();
                black_box(embedder.embed_one(TEXT)?);
                Ok(started.elapsed().as_secs_f64())
            };
            let recorded = || -> Result<f64, AnyError> {
                let options = ProfileOptions::default().with_operators(operators);
                let session = embedder.profile(options)?;
                let seconds = call()?;
                drop(session);
                Ok(seconds)
            };
            for _ in 0..50 {
                call()?;
                recorded()?;
            }
            let mut ratios = Vec::with_capacity(CALLS);
            for pair in 0..CALLS {
                let (on, off) = if pair % 2 == 0 {
                    let on = recorded()?;
                    (on, call()?)
                } else {
                    let off = call()?;
                    (recorded()?, off)
                };
                ratios.push(on / off);
            }
            println!(
                "{}: a profile{} takes {:+.2} % of a call of 1 x 16 (median of {CALLS} pairs)",
                embedder.provider(),
                if operators { " with operators" } else { "" },
                (median(ratios) - 1.0) * 100.0,
            );
        }
    }
    Ok(())
}

/// How long `isovec trace` takes for a million events, and its memory at the peak.
fn trace() -> Result<(), AnyError> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace.json");
    write_trace(&path)?;
    let program = std::env::var_os("ISOVEC_PROGRAM")
        .ok_or("ISOVEC_PROGRAM does not name the program; `cargo xtask bench` does that")?;
    let mut times = Vec::new();
    let mut peak = 0;
    for _ in 0..5 {
        let started = Instant::now();
        let mut child = Command::new(&program)
            .args(["trace", "--json"])
            .arg(&path)
            .stdout(File::create(folder.path().join("out.json"))?)
            .spawn()?;
        let memory = format!("/proc/{}/status", child.id());
        let ended = loop {
            if let Some(ended) = child.try_wait()? {
                break ended;
            }
            // The peak is told as long as the process is there.
            if let Ok(text) = std::fs::read_to_string(&memory)
                && let Some(line) = text.lines().find(|line| line.starts_with("VmHWM"))
                && let Some(kilobytes) = line.split_whitespace().nth(1)
            {
                peak = peak.max(kilobytes.parse::<u64>().unwrap_or(0));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        times.push(started.elapsed().as_secs_f64());
        if !ended.success() {
            // What it said stands above: its standard error is this one's.
            return Err(format!(
                "{} trace: {ended}; a program that fails has no time",
                program.display()
            )
            .into());
        }
    }
    println!(
        "isovec trace, {EVENTS} events, {:.0} MB: {:.2} s (median of {}), {:.0} MB at the peak",
        std::fs::metadata(&path)?.len() as f64 / 1e6,
        median(times.iter().copied()),
        times.len(),
        peak as f64 * 1024.0 / 1e6
    );
    Ok(())
}

/// A trace as the portable engine's profiles are: batches of a run with some sixty operators.
fn write_trace(path: &Path) -> Result<(), AnyError> {
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"otherData\":{\"producer\":\"isovec\",\"seconds\":60.0,\"dropped\":0},\"traceEvents\":[\n")?;
    let (mut written, mut at, mut batch) = (0, 0.0, 0);
    let names = ["linear", "attention", "norm", "gather", "map"];
    while written < EVENTS {
        batch += 1;
        let comma = if written == 0 { "" } else { ",\n" };
        write!(
            out,
            "{comma}{{\"name\":\"batch\",\"cat\":\"batch\",\"ph\":\"X\",\"ts\":{at:.3},\"dur\":6000.0,\"pid\":1,\"tid\":2000000,\"args\":{{\"request\":{batch},\"batch\":{batch},\"rows\":8,\"tokens\":250,\"positions\":256,\"requests\":[{batch}]}}}}"
        )?;
        write!(
            out,
            ",\n{{\"name\":\"run\",\"cat\":\"run\",\"ph\":\"X\",\"ts\":{:.3},\"dur\":5900.0,\"pid\":1,\"tid\":2,\"args\":{{\"request\":{batch},\"batch\":{batch}}}}}",
            at + 50.0
        )?;
        written += 2;
        for operator in 0..62 {
            let name = names[operator % names.len()];
            write!(
                out,
                ",\n{{\"name\":\"{name}\",\"cat\":\"operator\",\"ph\":\"X\",\"ts\":{:.3},\"dur\":80.123,\"pid\":1,\"tid\":2,\"args\":{{\"request\":{batch},\"batch\":{batch},\"rows\":256,\"width\":384,\"multiplyAdds\":196608,\"bytes\":393216}}}}",
                at + 60.0 + 90.0 * operator as f64
            )?;
            written += 1;
        }
        at += 6100.0;
    }
    out.write_all(b"\n]}\n")?;
    Ok(out.flush()?)
}

/// How often an embedder is said to be better than another one of the same configuration.
fn trials() -> Result<(), AnyError> {
    let model = minilm()?;
    let config = EmbeddingConfig::default().with_engine(EngineChoice::OnnxRuntime);
    let one = Embedder::builder(model.as_path())
        .config(config.clone())
        .load()?;
    let other = Embedder::builder(model.as_path()).config(config).load()?;
    let texts: Vec<String> = (0..64)
        .map(|text| format!("text {text} {}", "and so on ".repeat(text % 9)))
        .collect();
    let mut trial = Trial::default();
    trial.turn = Duration::from_millis(60);
    let mut verdicts = [0; 3];
    for _ in 0..TRIALS {
        let report = trial.run_blocking(&one, &other, &texts)?;
        verdicts[match report.verdict {
            Verdict::Better => 0,
            Verdict::Worse => 1,
            _ => 2,
        }] += 1;
    }
    println!(
        "{TRIALS} trials of two equal embedders: {} better, {} worse, {} no difference",
        verdicts[0], verdicts[1], verdicts[2]
    );
    Ok(())
}

/// From the slowest preset, how near tuning comes to the fastest.
fn tune() -> Result<(), AnyError> {
    let model = minilm()?;
    for engine in [EngineChoice::OnnxRuntime, EngineChoice::Portable] {
        let base = |config: EmbeddingConfig| config.with_engine(engine);
        let presets = [
            ("high_throughput", base(EmbeddingConfig::high_throughput())),
            ("low_latency", base(EmbeddingConfig::low_latency())),
            ("cpu", base(EmbeddingConfig::cpu())),
            (
                "memory_constrained",
                base(EmbeddingConfig::memory_constrained()),
            ),
            ("debug", base(EmbeddingConfig::debug())),
        ];
        let default = Embedder::builder(model.as_path())
            .config(base(EmbeddingConfig::default()))
            .load()?;
        let corpus = Corpus::load(&default)?;
        let texts: Vec<&str> = (0..6).flat_map(|band| corpus.band(band)).collect();
        let step = (texts.len() / TEXTS).max(1);
        let texts: Vec<&str> = texts.into_iter().step_by(step).take(TEXTS).collect();
        let mut trial = Trial::default();
        trial.turn = Duration::from_millis(700);
        // By how much each is faster than the default.
        let mut speeds = Vec::new();
        for (name, config) in presets {
            let embedder = Embedder::builder(model.as_path())
                .config(config.clone())
                .load()?;
            let report = trial.run_blocking(&default, &embedder, &texts)?;
            println!("{engine:?} {name}: {:.2} times the default", report.speedup);
            speeds.push((report.speedup, name, config));
        }
        speeds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(worst), Some(best)) = (speeds.first(), speeds.last()) else {
            continue;
        };
        let mut options = TuneOptions::default();
        options.trial = trial.clone();
        options.trial.gives_up = true;
        let started = Instant::now();
        let report =
            isovec_insight::blocking::tune(model.as_path(), worst.2.clone(), &texts, options)?;
        for step in &report.steps {
            let outcome = match &step.suggestion.verified {
                Some(trial) => trial.to_string(),
                None => step.failed.clone().unwrap_or_default(),
            };
            println!(
                "  {} {}: {outcome}",
                if step.kept { '+' } else { '-' },
                step.suggestion.title
            );
        }
        let best_embedder = Embedder::builder(model.as_path())
            .config(best.2.clone())
            .load()?;
        let tuned = Embedder::builder(model.as_path())
            .config(report.config.clone())
            .load()?;
        let against = trial.run_blocking(&best_embedder, &tuned, &texts)?;
        println!(
            "{engine:?}: tuned from {} in {:.0} s and {} tries: {:.2} times {} (the best preset), {} complete",
            worst.1,
            started.elapsed().as_secs_f64(),
            report.steps.len(),
            against.speedup,
            best.1,
            if report.complete { "and" } else { "not" }
        );
        println!("  {}", report.config.to_knobs());
    }
    Ok(())
}
