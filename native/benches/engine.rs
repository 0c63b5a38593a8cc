//! What the engine adds to ONNX Runtime: time over a raw `session.run`, and memory.
//!
//! `cargo bench -p isovec-native --bench engine -- [FOLDER]` with a checkpoint or ONNX model in
//! FOLDER (default: the MiniLM of set-up). Rounds of the ways to run alternate, so that what
//! else the machine does meets them all; where the system tells it, the calling thread's own
//! time is shown as well. `-- --memory ours|raw [FOLDER]` loads one way only and prints the
//! process's memory.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use isovec_engine::bundle::{BundleOptions, ModelBundle};
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Batch, Engine, EngineFactory, Probe};
use isovec_engine::head::{HeadSpec, Pooling, attach_head};
use isovec_engine::onnx::write_model;
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_native::OnnxRuntime;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::TensorRef;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let memory = match arguments.first().map(String::as_str) {
        Some("--memory") => {
            arguments.remove(0);
            Some(arguments.remove(0))
        }
        _ => None,
    };
    let folder = arguments.first().map_or_else(
        || {
            let cache = std::env::var_os("ISOVEC_CACHE").map(PathBuf::from);
            let cache = cache.or_else(|| dirs::cache_dir().map(|folder| folder.join("isovec")));
            cache.unwrap_or_default().join("models/all-MiniLM-L6-v2")
        },
        PathBuf::from,
    );
    let mut config = EngineConfig::default();
    let threads = std::env::var("THREADS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    config.session.intra_op_threads = Some(threads);
    if let missing @ Probe::Unavailable { .. } = OnnxRuntime.probe(&config) {
        return Err(format!("{missing:?}").into());
    }
    let mut bundle = ModelBundle::from_folder(&folder, &BundleOptions::default())?;
    attach_head(&mut bundle, &HeadSpec::new(Pooling::Mean, true))?;
    match memory.as_deref() {
        Some(which) => show_memory(which, bundle, &config),
        None => show_time(&bundle, &config, threads),
    }
}

fn show_time(bundle: &ModelBundle, config: &EngineConfig, threads: usize) -> Result<()> {
    let engine = load(bundle, config)?;
    let mut raw = raw_session(&pollster::block_on(write_model(bundle))?, threads)?;
    println!("{}, {threads} thread(s); median and best of a call", engine.provider());
    println!("(own: the calling thread's time on a processor)");
    let names: Vec<String> =
        engine.description().inputs.iter().map(|input| input.name.clone()).collect();
    let cancel = Cancel::new();
    for (rows, length, runs) in [(1, 16, 400), (1, 128, 60), (8, 16, 60)] {
        let mut batch = Some(batch(&names, rows, length)?);
        let mut ways = [Way::new("raw"), Way::new("run_blocking"), Way::new("run")];
        // The first calls size arenas and are not what is asked.
        for run in 0..runs + 5 {
            let kept = run >= 5;
            ways[0].time(kept, || raw_run(&mut raw, batch.as_ref().ok_or("no batch")?))?;
            ways[1].time(kept, || {
                let output = engine.run_blocking(batch.take().ok_or("no batch")?, &cancel)?;
                back(&mut batch, output)
            })?;
            ways[2].time(kept, || {
                let run = engine.run(batch.take().ok_or("no batch")?, &cancel);
                back(&mut batch, pollster::block_on(run)?)
            })?;
        }
        println!("{rows} x {length} tokens, {runs} calls");
        let base = ways[0].figures();
        for way in &mut ways {
            way.print(base);
        }
    }
    Ok(())
}

/// One way to run, and its times.
struct Way {
    name: &'static str,
    wall: Vec<Duration>,
    own: Vec<Duration>,
    first: f32,
}

impl Way {
    fn new(name: &'static str) -> Self {
        Self { name, wall: Vec::new(), own: Vec::new(), first: 0.0 }
    }

    fn time(&mut self, kept: bool, work: impl FnOnce() -> Result<f32>) -> Result<()> {
        let (wall, own) = (Instant::now(), own_time());
        self.first = work()?;
        if kept {
            self.wall.push(wall.elapsed());
            self.own.push(own_time().saturating_sub(own));
        }
        Ok(())
    }

    /// Median and best, of the wall's and the thread's time.
    fn figures(&mut self) -> [Duration; 4] {
        self.wall.sort();
        self.own.sort();
        let middle = self.wall.len() / 2;
        [self.wall[middle], self.wall[0], self.own[middle], self.own[0]]
    }

    fn print(&mut self, base: [Duration; 4]) {
        let figures = self.figures();
        let shown: Vec<String> = figures
            .iter()
            .zip(base)
            .map(|(time, base)| {
                let more = (time.as_secs_f64() / base.as_secs_f64().max(1e-9) - 1.0) * 100.0;
                format!("{time:.2?} ({more:+.1}%)")
            })
            .collect();
        println!(
            "  {:12} {} / {}, own {} / {}; first value {}",
            self.name, shown[0], shown[1], shown[2], shown[3], self.first
        );
    }
}

/// Time that this thread has had on a processor; zero where the system does not tell.
fn own_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn show_memory(which: &str, bundle: ModelBundle, config: &EngineConfig) -> Result<()> {
    print_memory("bundle made");
    let names = ["input_ids", "attention_mask", "token_type_ids"].map(String::from);
    let input = batch(&names, 1, 16)?;
    match which {
        "ours" => {
            let start = Instant::now();
            let engine = load(&bundle, config)?;
            println!("loaded in {:.0?}", start.elapsed());
            drop(bundle);
            print_memory("loaded");
            engine.run_blocking(input, &Cancel::new())?;
            print_memory("after a run");
        }
        "raw" => {
            let file = std::env::temp_dir().join("isovec-overhead.onnx");
            if !file.exists() {
                std::fs::write(&file, pollster::block_on(write_model(&bundle))?)?;
                println!("wrote {}; run again", file.display());
                return Ok(());
            }
            drop(bundle);
            let start = Instant::now();
            let mut session =
                builder(config.session.intra_op_threads.unwrap_or(1))?.commit_from_file(&file)?;
            println!("loaded in {:.0?}", start.elapsed());
            print_memory("loaded");
            raw_run(&mut session, &input)?;
            print_memory("after a run");
        }
        other => return Err(format!("{other}: ours or raw").into()),
    }
    Ok(())
}

fn load(bundle: &ModelBundle, config: &EngineConfig) -> Result<std::sync::Arc<dyn Engine>> {
    Ok(pollster::block_on(OnnxRuntime.load(
        bundle,
        config,
        &Cancel::new(),
    ))?)
}

/// The environment is `ort`'s own: that it can be made beside the engine's is part of the test.
fn builder(threads: usize) -> Result<ort::session::builder::SessionBuilder> {
    // Where the engine has loaded the library, `ort` has it.
    let environment = ort::init().build()?;
    Ok(Session::builder(&environment)?
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_intra_threads(threads)?)
}

fn raw_session(model: &[u8], threads: usize) -> Result<Session> {
    Ok(builder(threads)?.commit_from_memory(model)?)
}

fn raw_run(session: &mut Session, batch: &Batch) -> Result<f32> {
    let mut inputs = Vec::new();
    for input in &batch.inputs {
        let view = (input.tensor.shape(), input.tensor.as_slice::<i64>()?);
        inputs.push((input.name.as_str(), TensorRef::from_array_view(view)?));
    }
    let outputs = session.run(inputs)?;
    let (_, values) = outputs[0].try_extract_tensor::<f32>()?;
    // The engine's caller gets values to keep; so does this one.
    let kept = values.to_vec();
    Ok(kept[0])
}

fn back(batch: &mut Option<Batch>, mut output: isovec_engine::engine::RunOutput) -> Result<f32> {
    let first = output
        .outputs
        .pop()
        .ok_or("no output")?
        .tensor
        .as_slice::<f32>()?[0];
    *batch = Some(Batch {
        inputs: output.inputs,
        row_lengths: Vec::new(),
    });
    Ok(first)
}

fn batch(names: &[String], rows: usize, length: usize) -> Result<Batch> {
    let mut batch = Batch::default();
    for name in names {
        let values: Vec<i64> = (0..rows * length)
            .map(|i| match name.as_str() {
                "input_ids" => 1000 + (i as i64 * 37) % 20_000,
                "attention_mask" => 1,
                _ => 0,
            })
            .collect();
        batch.inputs.push(NamedTensor::new(
            name.clone(),
            Tensor::from_slice(&[rows, length], &values)?,
        ));
    }
    Ok(batch)
}

fn print_memory(when: &str) {
    // Where the system has no such file there is nothing to print.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line: Vec<String> = status
        .lines()
        .filter_map(|line| {
            let (name, size) = line.split_once(':')?;
            let mib = size.trim().strip_suffix(" kB")?.parse::<u64>().ok()? / 1024;
            ["VmRSS", "VmHWM", "RssAnon", "RssFile"]
                .contains(&name)
                .then(|| format!("{name} {mib} MiB"))
        })
        .collect();
    println!("{when}: {}", line.join(", "));
}
