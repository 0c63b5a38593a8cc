//! What a job costs besides its model: ten million rows with an engine that only counts. A run is killed at about its half and
//! gone on with, and then there is a run that has nothing to do. Each is a process of its own, of which Linux says the peak of its
//! memory, and all settings have their defaults.
//!
//! `cargo bench -p isovec-jobs --bench rows [-- ROWS]`
#![allow(clippy::unwrap_used, reason = "a benchmark ends at the first surprise")]

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use isovec_jobs::{Compute, Refusal, Spec, run, status};
use parquet::arrow::ArrowWriter;
use serde_json::Value;

const ROWS: usize = 10_000_000;
const FILES: usize = 10;
/// Rows of a row group.
const GROUP: usize = 50_000;
/// Components of a vector: few, as what is measured is not the writing of vectors.
const DIM: usize = 8;

const JOB: &str = "ISOVEC_BENCH_JOB";

struct Counting;

impl Compute for Counting {
    fn fingerprint(&self) -> Value {
        "counting".into()
    }

    fn dim(&self) -> usize {
        DIM
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal> {
        Ok(texts
            .iter()
            .flat_map(|text| [text.len() as f32; DIM])
            .collect())
    }
}

fn main() {
    if let Ok(toml) = std::env::var(JOB) {
        return child(&Spec::parse(&toml).unwrap());
    }
    let rows = std::env::args().find_map(|argument| argument.parse().ok());
    let rows = rows.unwrap_or(ROWS);
    for ending in ["jsonl", "parquet"] {
        measure(rows, ending);
    }
}

fn child(spec: &Spec) {
    let begun = Instant::now();
    let report = run(spec, &Counting, Arc::new(())).unwrap();
    println!(
        "{} units, {} before; {} rows in {:.1} s; {:.1} MB of input read; peak {:.1} MB",
        report.units,
        report.before,
        report.rows,
        begun.elapsed().as_secs_f64(),
        report.bytes_read as f64 / 1e6,
        peak() / 1e6
    );
}

/// The most memory that this process had resident, in bytes.
fn peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.map_or(f64::NAN, |kib| kib.parse::<f64>().unwrap() * 1024.0)
}

fn measure(rows: usize, ending: &str) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    for file in 0..FILES {
        let path = input.join(file.to_string()).with_extension(ending);
        let ids = file * rows / FILES..(file + 1) * rows / FILES;
        match ending {
            "jsonl" => write_lines(&path, ids),
            _ => write_parquet(&path, ids),
        }
    }
    let size: u64 = fs::read_dir(&input)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    println!("{rows} rows, {ending}, {:.1} MB", size as f64 / 1e6);
    let toml = format!(
        "input = '{0}/in/*.{ending}'\noutput = '{0}/out'\nkeep = ['id']",
        folder.path().display()
    );
    let spec = Spec::parse(&toml).unwrap();
    let mut killed = start(&toml, Stdio::null());
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let status = status(&spec).unwrap();
        if status.done >= status.units / 2 {
            break;
        }
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let done = status(&spec).unwrap();
    println!(
        "killed when {} of {} units were done",
        done.done, done.units
    );
    for _ in 0..2 {
        assert!(start(&toml, Stdio::inherit()).wait().unwrap().success());
    }
    assert_eq!(status(&spec).unwrap().rows, rows as u64);
}

fn start(toml: &str, stdout: Stdio) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(JOB, toml).stdout(stdout).spawn().unwrap()
}

fn text(id: usize) -> String {
    format!("passage number {id} of a long book about vectors")
}

fn write_lines(path: &Path, ids: std::ops::Range<usize>) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for id in ids {
        writeln!(file, "{{\"id\": {id}, \"text\": \"{}\"}}", text(id)).unwrap();
    }
    file.flush().unwrap();
}

fn write_parquet(path: &Path, ids: std::ops::Range<usize>) {
    let batch = |ids: std::ops::Range<usize>| {
        let texts: StringArray = ids.clone().map(|id| Some(text(id))).collect();
        let ids: Int64Array = ids.map(|id| Some(id as i64)).collect();
        let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(ids)), ("text", Arc::new(texts))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let schema = batch(0..0).schema();
    let mut file = ArrowWriter::try_new(File::create(path).unwrap(), schema, None).unwrap();
    for from in ids.clone().step_by(GROUP) {
        file.write(&batch(from..ids.end.min(from + GROUP))).unwrap();
        file.flush().unwrap();
    }
    file.close().unwrap();
}
