//! One text of 16 tokens against Python fastembed, all-MiniLM-L6-v2, fp32, warmed. Python runs
//! beside this program and measures its own calls, so that no pipe is in its figures; the two
//! take turns. Run it with `cargo xtask bench python`; `PYTHON` names an interpreter that has the
//! package fastembed.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec_bench::{AnyError, TEXT, export_unpooled, median, minilm};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/_fastembed.py");
const ROUNDS: usize = 1000;
const WARM_UP: usize = 50;

fn main() -> Result<(), AnyError> {
    let model = minilm()?;
    let folder = tempfile::tempdir()?;
    export_unpooled(&model, folder.path())?;
    let config = EmbeddingConfig::default().with_engine(EngineChoice::OnnxRuntime);
    // As many threads on either side; then what each of them takes by itself.
    for threads in [Some(1), None] {
        let config = match threads {
            Some(threads) => config.clone().with_intra_op_threads(threads),
            None => config.clone(),
        };
        let embedder = Embedder::builder(model.as_path()).config(config).load()?;
        let mut python = Python::start(folder.path(), threads.unwrap_or(0))?;
        let (_, theirs) = python.embed(TEXT)?;
        let ours = embedder.embed_one(TEXT)?;
        let pairs = ours.iter().zip(&theirs);
        let difference = pairs.map(|(a, b)| (f64::from(*a) - b).abs());
        println!(
            "{} threads; {}; {}; {} tokens; largest difference {:.1e}",
            threads.map_or_else(|| "default".to_owned(), |threads| threads.to_string()),
            embedder.provider(),
            python.version,
            embedder.count_tokens(TEXT)?,
            difference.fold(0.0, f64::max)
        );
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for round in 0..WARM_UP + ROUNDS {
            let started = Instant::now();
            embedder.embed_one(TEXT)?;
            let seconds = started.elapsed().as_secs_f64();
            let (theirs, _) = python.embed(TEXT)?;
            if round >= WARM_UP {
                own.push(seconds);
                other.push(theirs);
            }
        }
        let ratio = median(other.iter().zip(&own).map(|(other, own)| other / own));
        println!(
            "isovec {:.3} ms, fastembed {:.3} ms; median of {ROUNDS} ratios {ratio:.2}x",
            median(own) * 1e3,
            median(other) * 1e3
        );
    }
    Ok(())
}

/// fastembed in a process of its own.
struct Python {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    version: String,
}

impl Python {
    fn start(folder: &Path, threads: usize) -> Result<Self, AnyError> {
        let program = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let mut process = Command::new(&program)
            .arg(SCRIPT)
            .arg(folder)
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().ok_or("Python has no input")?;
        let output = process.stdout.take().ok_or("Python has no output")?;
        let mut output = BufReader::new(output).lines();
        let version = output.next().ok_or(
            "Python has ended: set PYTHON to an interpreter that has the package fastembed",
        )??;
        Ok(Self {
            process,
            input,
            output,
            version,
        })
    }

    /// The seconds that a text took, and its vector.
    fn embed(&mut self, text: &str) -> Result<(f64, Vec<f64>), AnyError> {
        writeln!(self.input, "{text}")?;
        let line = self.output.next().ok_or("Python has ended")??;
        let mut numbers = line.split_whitespace().map(str::parse::<f64>);
        let seconds = numbers.next().ok_or("Python wrote an empty line")??;
        Ok((seconds, numbers.collect::<Result<_, _>>()?))
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
