//! `cargo xtask fuzz`: the targets under fuzz/ under libFuzzer, several at a time, and a table of the results.
//!
//! The growing corpus is stored in the cache, so that the next run continues from it. The committed files under
//! fuzz/corpus and fuzz/regressions are read as well, and never written. With `--again` a run begins with the
//! committed files alone. With a seed it tries the same inputs everywhere, as far as the time allows.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::cargo;
use crate::report;
use crate::workspace::Workspace;

/// The feature under which the targets have their mains.
const FEATURE: &str = "isovec-fuzz/libfuzzer";
/// What compiles isovec's own crates.
const WRAPPER: &str = "fuzz/rustc.sh";
/// The longest input: a file of that size is enough to nest, repeat and overlap what a target reads.
const LONGEST: usize = 64 << 10;
/// More than this is more than any input may take. The crate's own bound is stricter, and counts
/// isovec's memory alone.
const MEMORY_MIB: usize = 2048;

/// Seconds after which an input has failed: many, for a machine that does other things as well.
const TIMEOUT: u32 = 30;
/// Lines of a panic's message that are shown, and characters of each.
const LINES: usize = 12;
const WIDTH: usize = 2000;
/// The longest input that is printed, in bytes.
const PRINTED: usize = 4 << 10;
/// How much longer a program may take to end than it was told to run, beside an input's time.
const TO_END: Duration = Duration::from_secs(60);

/// What the user asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these targets (see --list); without names, all of them.
    names: Vec<String>,
    /// For how long all of it runs, compiling apart.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// How many targets run at the same time; as many as there are cores when left out.
    #[arg(long)]
    jobs: Option<usize>,
    /// An input that takes longer is a failure, in seconds.
    #[arg(long, default_value_t = TIMEOUT)]
    timeout: u32,
    /// The seed of what is made up; another one in every run when left out.
    #[arg(long)]
    seed: Option<u32>,
    /// Begin from the committed inputs alone, and not from what earlier runs found.
    #[arg(long)]
    again: bool,
    /// Name the targets and stop.
    #[arg(long)]
    list: bool,
}

impl Options {
    /// What CI runs: everything for two minutes, the same inputs each time. What nobody has tried yet is for those who look
    /// for it, and no reason why somebody's change fails.
    pub(crate) fn check() -> Self {
        Self {
            names: Vec::new(),
            minutes: 2.0,
            jobs: None,
            timeout: TIMEOUT,
            seed: Some(1),
            again: true,
            list: false,
        }
    }
}

/// What came of a target.
#[derive(Debug)]
struct Ran {
    name: String,
    executions: u64,
    per_second: u64,
    /// Whole seconds that the slowest input took.
    slowest: u64,
    peak_mib: u64,
    /// Why it ended, where it was not the time, and the input that did it.
    failure: Option<String>,
}

/// Runs targets; `true` where none failed.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let names = choose(&targets(workspace)?, &options.names)?;
    if options.list {
        for name in names {
            println!("{name}");
        }
        return Ok(true);
    }
    if !(options.minutes.is_finite() && options.minutes > 0.0) {
        bail!("--minutes {} is no time: give more than 0", options.minutes);
    }
    let programs = build(workspace, &names)?;

    let jobs = options
        .jobs
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get));
    let jobs = jobs.clamp(1, names.len());
    // Each of `jobs` lanes runs its share one after the other.
    let rounds = names.len().div_ceil(jobs);
    let each = Duration::from_secs_f64(options.minutes * 60.0 / rounds as f64);
    report::word(&format!(
        "{} targets, {jobs} at a time, {:.0} s each; logs in {}",
        names.len(),
        each.as_secs_f64(),
        folder(workspace).display()
    ));

    let queue = Mutex::new(names.into_iter().collect::<VecDeque<_>>());
    let ran = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let Some(name) = queue.lock().ok().and_then(|mut queue| queue.pop_front())
                    else {
                        return;
                    };
                    let result = one(workspace, &programs, &name, each, options);
                    if let Ok(mut ran) = ran.lock() {
                        ran.push(result.unwrap_or_else(|error| Ran::broken(name, &error)));
                    }
                }
            });
        }
    });
    let mut ran = ran.into_inner().unwrap_or_default();
    ran.sort_by(|a, b| a.name.cmp(&b.name));
    println!("{}", table(&ran));
    Ok(ran.iter().all(|ran| ran.failure.is_none()))
}

/// The names of the targets: a program each.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.root.join("fuzz/fuzz_targets");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.context("a fuzz target cannot be read")?.path();
        if let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn choose(all: &[String], names: &[String]) -> Result<Vec<String>> {
    if let Some(name) = names.iter().find(|name| !all.contains(name)) {
        bail!(
            "there is no target {name:?}; the targets are {}",
            all.join(", ")
        );
    }
    let chosen = all
        .iter()
        .filter(|name| names.is_empty() || names.contains(name));
    Ok(chosen.cloned().collect())
}

/// Where corpora, logs and failing inputs are kept.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.cache.join("fuzz")
}

/// Compiles the targets with the counters that libFuzzer watches, and says where the programs are.
///
/// As `cargo fuzz build --sanitizer none` does, but for two things: only isovec's own crates have
/// counters (`fuzz/rustc.sh`), and what others wrote is compiled once for tests and for this. It
/// needs no nightly compiler: the targets' code is safe Rust, or checks its own edges by guard
/// pages. The profile is the one of tests, whose arithmetic is checked.
fn build(workspace: &Workspace, names: &[String]) -> Result<PathBuf> {
    let programs = names.iter().flat_map(|name| ["--bin", name]);
    cargo(workspace)?
        // The whole workspace, for the features that the checks build with.
        .args(["build", "--workspace", "--features", FEATURE])
        .args(programs)
        .env("RUSTC_WORKSPACE_WRAPPER", workspace.root.join(WRAPPER))
        .show()?;
    Ok(workspace.target.join("debug"))
}

/// Runs one target for so long.
fn one(
    workspace: &Workspace,
    programs: &Path,
    name: &str,
    time: Duration,
    options: &Options,
) -> Result<Ran> {
    let kept = folder(workspace);
    let corpus = match options.again {
        false => kept.join("corpus").join(name),
        true => kept.join("again").join(name),
    };
    if options.again && corpus.exists() {
        fs::remove_dir_all(&corpus)
            .with_context(|| format!("cannot empty {}", corpus.display()))?;
    }
    let found = kept.join("found").join(name);
    for folder in [&corpus, &found] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let log = kept.join(format!("{name}.log"));
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let committed =
        ["corpus", "regressions"].map(|folder| workspace.root.join("fuzz").join(folder).join(name));
    let mut child = Command::new(programs.join(name))
        .envs(workspace.environment()?)
        .arg(format!("-max_total_time={}", time.as_secs().max(1)))
        .arg(format!("-timeout={}", options.timeout))
        .arg(format!("-max_len={LONGEST}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-artifact_prefix={}/", found.display()))
        .arg(format!("-seed={}", options.seed.unwrap_or(0)))
        .arg("-print_final_stats=1")
        // What takes seconds is kept, to be looked at.
        .arg("-report_slow_units=1")
        .arg(&corpus)
        .args(committed.iter().filter(|folder| folder.is_dir()))
        .stdin(Stdio::null())
        .stdout(file.try_clone().context("cannot share the log file")?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("the target {name} cannot be started"))?;
    let most = time + Duration::from_secs(u64::from(options.timeout)) + TO_END;
    let status = ended(&mut child, most)
        .with_context(|| format!("the target {name} cannot be waited for"))?;
    let text = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let text = String::from_utf8_lossy(&text);
    let failure = match status {
        Some(status) if status.success() => None,
        Some(_) => Some(why(&text, &log)),
        None => Some(format!(
            "it did not end by itself\n  log: {}",
            log.display()
        )),
    };
    Ok(Ran {
        name: name.to_owned(),
        executions: number(&text, "number_of_executed_units").unwrap_or(0),
        per_second: number(&text, "average_exec_per_sec").unwrap_or(0),
        slowest: number(&text, "slowest_unit_time_sec").unwrap_or(0),
        peak_mib: number(&text, "peak_rss_mb").unwrap_or(0),
        failure,
    })
}

/// Waits for a program, but not for ever: when an input takes too long, libFuzzer's report is written from a signal handler,
/// which stands still where the signal came in the middle of an allocation. `None`: it was ended.
fn ended(child: &mut Child, most: Duration) -> std::io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > most {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

impl Ran {
    fn broken(name: String, error: &anyhow::Error) -> Self {
        Self {
            name,
            executions: 0,
            per_second: 0,
            slowest: 0,
            peak_mib: 0,
            failure: Some(format!("{error:#}")),
        }
    }
}

/// A figure of libFuzzer's last lines, `stat::NAME: NUMBER`.
fn number(log: &str, name: &str) -> Option<u64> {
    let lines = log.lines().rev();
    let mut values = lines.filter_map(|line| {
        let rest = line.strip_prefix("stat::")?.strip_prefix(name)?;
        rest.strip_prefix(':')?.trim().parse().ok()
    });
    values.next()
}

/// What a log says of a failure: the panic with its message or libFuzzer's word, and the input, for those who have the log alone.
fn why(log: &str, path: &Path) -> String {
    let mut lines = log.lines();
    let word = lines.find(|line| line.contains("panicked at") || line.contains("ERROR: libFuzzer"));
    let message = lines
        .take_while(|line| !line.starts_with("note: ") && !line.starts_with("=="))
        .take(LINES)
        .filter(|_| word.is_some_and(|word| word.contains("panicked")));
    let input = log.lines().rev().find_map(|line| {
        line.split_once("Test unit written to ")
            .map(|(_, file)| file)
    });
    let mut all: Vec<String> = word.into_iter().chain(message).map(shortened).collect();
    if let Some(file) = input {
        all.push(format!("input: {file}"));
        if let Ok(bytes) = fs::read(file)
            && bytes.len() <= PRINTED
        {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            all.push(format!("the same for `xxd -r -p`: {digits}"));
        }
    }
    all.push(format!("log: {}", path.display()));
    all.join("\n  ")
}

/// A line's beginning, where it is very long.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn table(ran: &[Ran]) -> String {
    let mut text = format!(
        "{:16} {:>12} {:>9} {:>9} {:>9}",
        "target", "executions", "per s", "slowest s", "MiB"
    );
    for ran in ran {
        let (name, executions) = (&ran.name, ran.executions);
        let (per_second, slowest, peak) = (ran.per_second, ran.slowest, ran.peak_mib);
        text += &format!("\n{name:16} {executions:>12} {per_second:>9} {slowest:>9} {peak:>9}");
    }
    let all: u64 = ran.iter().map(|ran| ran.executions).sum();
    text += &format!("\n{:16} {all:>12}", "all");
    for ran in ran {
        if let Some(failure) = &ran.failure {
            text += &format!("\n\n{} failed:\n  {failure}", ran.name);
            text += &format!(
                "\n  to repeat it, put the input into fuzz/regressions/{}/ and run `cargo test -p isovec-fuzz`",
                ran.name
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
#2\tINITED cov: 12\n\
thread '<unnamed>' panicked at fuzz/src/targets/top_k.rs:38:5:\n\
assertion `left == right` failed: 3\n\
\x20 left: 1\n\
 right: 2\n\
note: run with `RUST_BACKTRACE=1`\n\
==1== ERROR: libFuzzer: deadly signal\n\
artifact_prefix='/tmp/'; Test unit written to /tmp/crash-1\n\
stat::number_of_executed_units: 1234\n\
stat::average_exec_per_sec:     617\n\
stat::slowest_unit_time_sec:    0\n\
stat::peak_rss_mb:              40\n";

    #[test]
    fn figures_and_reasons_are_read_from_the_log() {
        assert_eq!(number(LOG, "number_of_executed_units"), Some(1234));
        assert_eq!(number(LOG, "average_exec_per_sec"), Some(617));
        assert_eq!(number(LOG, "slowest_unit_time_sec"), Some(0));
        assert_eq!(number(LOG, "new_units_added"), None);
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("crash-1");
        fs::write(&input, [0, 255]).unwrap();
        let log = LOG.replace("/tmp/crash-1", &input.display().to_string());
        let why = why(&log, Path::new("a.log"));
        for part in [
            "top_k.rs:38",
            "left == right",
            "left: 1",
            "right: 2",
            "crash-1",
            "00ff",
            "a.log",
        ] {
            assert!(why.contains(part), "{part}: {why}");
        }
        assert!(!why.contains("RUST_BACKTRACE"), "{why}");
    }

    #[cfg(unix)]
    #[test]
    fn what_does_not_end_is_ended() {
        let sleep = |seconds| Command::new("sleep").arg(seconds).spawn().unwrap();
        let long = ended(&mut sleep("600"), Duration::ZERO).unwrap();
        assert!(long.is_none());
        let short = ended(&mut sleep("0"), Duration::from_secs(600)).unwrap();
        assert!(short.unwrap().success());
    }

    #[test]
    fn targets_are_chosen_by_name() {
        let all = ["a", "b"].map(str::to_owned);
        assert_eq!(choose(&all, &[]).unwrap(), all);
        assert_eq!(choose(&all, &["b".to_owned()]).unwrap(), ["b"]);
        let error = choose(&all, &["c".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("\"c\"") && error.contains("a, b"), "{error}");
    }
}
