//! The whole corpus, a process a run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use isovec::{EmbeddingConfig, ExportOptions};
use isovec_bench::{AnyError, BANDS, Corpus, median, minilm};

use crate::contestants::{self, MODEL, NAMES, TEXTS, VECTORS};
use crate::{MAX_TOKENS, PART};

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
    difference: f64,
}

/// Runs everything, or isovec and those chosen, and prints a line for each contestant.
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
    export(&model, folder.path())?;

    let mut lines: BTreeMap<&str, Line> = BTreeMap::new();
    let mut ours: Vec<f32> = Vec::new();
    for name in all.into_iter().filter(|name| wanted(name)) {
        let (seconds, peak) = start(name, folder.path())?;
        let vectors = read(&folder.path().join("vectors"))?;
        if ours.is_empty() {
            ours.clone_from(&vectors);
        }
        let pairs = ours.iter().zip(&vectors);
        let difference = pairs.map(|(a, b)| f64::from((a - b).abs()));
        let line = lines.entry(name).or_default();
        line.difference = difference.fold(line.difference, f64::max);
        line.seconds.push(seconds);
        line.peaks.push(peak);
        println!("  {name}: {seconds:.2} s, peak {peak:.0} MiB");
    }
    let of = |line: &Line| (median(line.seconds.clone()), median(line.peaks.clone()));
    let (own, own_peak) = of(&lines["isovec"]);
    println!("medians; how many times as long as isovec, whose memory is how many times theirs");
    for (name, line) in &lines {
        let (seconds, peak) = of(line);
        println!(
            "  {name:<22} {seconds:>7.2} s {:>7.0} texts/s {:>6.2}x; {peak:>6.0} MiB {:>5.2}x; largest difference {:.1e}",
            corpus.texts.len() as f64 / seconds,
            seconds / own,
            own_peak / peak,
            line.difference
        );
    }
    Ok(())
}

/// The model for those that pool and normalise by themselves; its tokenizer does not pad every
/// text to 128 tokens, as the model's own file has it.
fn export(model: &Path, folder: &Path) -> Result<(), AnyError> {
    isovec::blocking::export(
        model,
        folder,
        EmbeddingConfig::default().with_max_length(MAX_TOKENS),
        ExportOptions::default().with_head(false),
    )?;
    for file in [
        "config.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
    ] {
        std::fs::copy(model.join(file), folder.join(file))?;
    }
    let mut tokenizer = tokenizers::Tokenizer::from_file(model.join("tokenizer.json"))?;
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None)?;
    tokenizer.save(folder.join("tokenizer.json"), false)?;
    Ok(())
}

/// Seconds and peak MiB of one run.
fn start(name: &str, folder: &Path) -> Result<(f64, f64), AnyError> {
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
    println!("{}", ready.trim_start_matches("ready "));
    writeln!(input)?;
    let line = next()??;
    process.wait()?;
    let mut numbers = line.split_whitespace().map(str::parse::<f64>);
    let mut number = || numbers.next().ok_or("a number is missing");
    Ok((number()??, number()??))
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
