//! The whole corpus, a process a run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use isovec::EmbeddingConfig;
use isovec_bench::{AnyError, BANDS, Corpus, PART, export_unpooled, median, minilm};

use crate::contestants::{self, MODEL, NAMES, TEXTS, VECTORS};
use crate::results;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/_corpus.py");
const PYTHON: &str = "sentence-transformers";
/// What each round runs. fastembed's batches of 256 take minutes and 21 GiB: once is enough to see.
const ROUNDS: [&[&str]; 3] = [
    &[
        "isovec",
        "raw",
        "isovec-default",
        "sentence-transformers",
        "fastembed-rs",
    ],
    &["sentence-transformers", "isovec-default", "raw", "isovec"],
    &["isovec", "raw", "isovec-default", "sentence-transformers"],
];

#[derive(Debug, Default)]
struct Line {
    seconds: Vec<f64>,
    peaks: Vec<f64>,
    padding: Option<f64>,
    difference: f64,
}

impl Line {
    fn seconds(&self) -> f64 {
        median(self.seconds.iter().copied())
    }

    fn peak(&self) -> f64 {
        median(self.peaks.iter().copied())
    }
}

/// Runs everything and writes a table, or isovec and those chosen, and only prints it.
pub(crate) fn compare(chosen: &[String]) -> Result<(), AnyError> {
    let all: Vec<&str> = ROUNDS.concat();
    let some = all.iter().any(|name| chosen.iter().any(|one| one == name));
    let wanted = |name: &str| !some || name == "isovec" || chosen.iter().any(|one| one == name);
    let model = minilm()?;
    let folder = tempfile::tempdir()?;
    let corpus = {
        let embedder = contestants::embedder(&model, EmbeddingConfig::default())?;
        Corpus::load(&embedder)?
    };
    let tokens: usize = corpus.tokens.iter().sum();
    println!(
        "{} texts of {tokens} tokens; texts by length, up to {BANDS:?}: {:?}",
        corpus.texts.len(),
        corpus.histogram()
    );
    std::fs::write(folder.path().join("texts.txt"), corpus.texts.join("\n"))?;
    export_unpooled(&model, folder.path())?;

    let mut whats = BTreeMap::new();
    let mut lines: BTreeMap<&str, Line> = BTreeMap::new();
    let mut ours: Vec<f32> = Vec::new();
    for name in all.into_iter().filter(|name| wanted(name)) {
        let Ran {
            what,
            seconds,
            peak,
            padding,
        } = start(name, folder.path())?;
        println!("{what}: {seconds:.2} s, peak {peak:.0} MiB");
        whats.insert(name, what);
        let vectors = read(&folder.path().join("vectors"))?;
        if ours.is_empty() {
            ours.clone_from(&vectors);
        }
        if vectors.len() != ours.len() || vectors.iter().any(|value| !value.is_finite()) {
            return Err(format!("{name} did not give a vector for every text").into());
        }
        let pairs = ours.iter().zip(&vectors);
        let difference = pairs.map(|(a, b)| f64::from((a - b).abs()));
        let line = lines.entry(name).or_default();
        line.difference = difference.fold(line.difference, f64::max);
        line.seconds.push(seconds);
        line.peaks.push(peak);
        line.padding = padding;
    }
    let table = table(&lines, &whats, corpus.texts.len());
    println!("\n{table}");
    if some {
        return Ok(());
    }
    results::write("peers", &table)
}

/// A row for each contestant, the fastest first.
fn table(lines: &BTreeMap<&str, Line>, whats: &BTreeMap<&str, String>, texts: usize) -> String {
    let own = &lines["isovec"];
    let mut rows: Vec<_> = lines.iter().collect();
    rows.sort_by(|a, b| a.1.seconds().total_cmp(&b.1.seconds()));
    let mut table = "| | seconds (each run) | texts/s | isovec is | peak memory | isovec takes | padding | largest difference |\n\
        |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (name, line) in rows {
        let each: Vec<String> = line.seconds.iter().map(|run| format!("{run:.1}")).collect();
        let padding = line
            .padding
            .map_or_else(String::new, |part| format!("{:.2}%", part * 100.0));
        table += &format!(
            "| {} | {:.1} ({}) | {:.0} | {:.2}x | {:.0} MiB | {:.2}x | {padding} | {:.1e} |\n",
            whats.get(name).map_or(*name, String::as_str),
            line.seconds(),
            each.join(", "),
            texts as f64 / line.seconds(),
            line.seconds() / own.seconds(),
            line.peak(),
            own.peak() / line.peak(),
            line.difference
        );
    }
    table
}

/// What came of one run.
struct Ran {
    what: String,
    seconds: f64,
    /// MiB.
    peak: f64,
    padding: Option<f64>,
}

/// One run, in a process of its own.
fn start(name: &str, folder: &Path) -> Result<Ran, AnyError> {
    let (texts, vectors) = (folder.join("texts.txt"), folder.join("vectors"));
    let mut command = if NAMES.contains(&name) {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .env(PART, name)
            .env(TEXTS, texts)
            .env(VECTORS, vectors)
            .env(MODEL, folder);
        command
    } else if name == PYTHON {
        let program = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(program);
        command.arg(SCRIPT).arg(folder).arg(texts).arg(vectors);
        command
    } else {
        return Err(format!("there is no contestant {name}").into());
    };
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = process.stdin.take().ok_or("it has no input")?;
    let mut output = BufReader::new(process.stdout.take().ok_or("it has no output")?).lines();
    let mut next = || output.next().ok_or_else(|| format!("{name} has ended"));
    let ready = next()??;
    writeln!(input)?;
    let line = next()??;
    let status = process.wait()?;
    if !status.success() {
        return Err(format!("{name} ended with {status}").into());
    }
    let mut numbers = line.split_whitespace().map(str::parse::<f64>);
    let mut number = || numbers.next().ok_or("a number is missing");
    Ok(Ran {
        what: ready.trim_start_matches("ready ").to_owned(),
        seconds: number()??,
        peak: number()??,
        padding: numbers.next().transpose()?,
    })
}

fn read(path: &Path) -> Result<Vec<f32>, AnyError> {
    let bytes = std::fs::read(path)?;
    std::fs::remove_file(path)?;
    let (values, _) = bytes.as_chunks::<4>();
    Ok(values
        .iter()
        .map(|&value| f32::from_le_bytes(value))
        .collect())
}
