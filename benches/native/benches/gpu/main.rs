//! all-MiniLM-L6-v2 on a GPU in f32 and in f16, with and without subgroups, by turns: how long runs take, how many
//! bytes the weights and the results take on the device, and how far the vectors are from those in f32. With a library
//! of ONNX Runtime that has CUDA, and a GPU for it, that computes the same behind them, by turns of its own: by isovec's
//! engine, with and without TF32, and by a session as a careful user runs it. Then other models, without that session.
//! Run it with `cargo xtask bench gpu`, or a part of it by its name: `cargo xtask bench gpu -- models`.

mod models;

use std::hint::black_box;
use std::sync::Arc;

use isovec_bench::{AnyError, Contestant, Raw, Wanted, minilm, take_turns};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Batch, Engine, EngineFactory, MASK};
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_gpu::{Alone, GpuEngine, Options, WebGpu};
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::head::{HeadSpec, Pooling, attach_head};
use isovec_native::{CudaOptions, OnnxRuntime, Provider};

/// Texts and their tokens, and how often each way is run, on a processor that plays a GPU.
const SIZES: [(usize, usize, usize); 2] = [(1, 16, 40), (8, 64, 8)];

/// The same on a GPU.
const GPU_SIZES: [(usize, usize, usize); 6] = [
    (1, 16, 200),
    (8, 64, 100),
    (32, 128, 40),
    (128, 64, 20),
    (128, 256, 10),
    (512, 128, 10),
];

/// Whether f16 is computed with, and whether kernels share by subgroups.
const WAYS: [(&str, bool, bool); 4] = [
    ("f32", false, false),
    ("f32, subgroups", false, true),
    ("f16", true, false),
    ("f16, subgroups", true, true),
];

fn main() -> Result<(), AnyError> {
    let wanted = Wanted::named();
    if wanted.has("minilm") {
        of_minilm()?;
    }
    if wanted.has("models") {
        models::all()?;
    }
    Ok(())
}

fn of_minilm() -> Result<(), AnyError> {
    let model = minilm()?;
    let mut bundle = bundle::from_folder(&model, &BundleOptions::default())?;
    attach_head(&mut bundle, &HeadSpec::new(Pooling::Mean, true))?;
    let mut engines: Vec<(&str, Arc<dyn Engine>)> = Vec::new();
    let mut sizes = &SIZES[..];
    for (name, f16, subgroups) in WAYS {
        let engine = load(&bundle, f16, subgroups)?;
        let gpu = engine.stats().gpu.unwrap_or_default();
        if engines.is_empty() {
            println!("{}, {} dispatches", gpu.adapter, gpu.dispatches_per_run);
            if !gpu.software {
                sizes = &GPU_SIZES;
            }
        }
        if (gpu.f16, gpu.subgroups) != (f16, subgroups) {
            println!("{name}: left out, the adapter does not have it");
            continue;
        }
        engines.push((name, Arc::new(engine)));
    }
    let mut by_cuda: Vec<(&str, Arc<dyn Engine>)> = Vec::new();
    let mut raw = None;
    let (config, cancel) = (EngineConfig::default(), Cancel::new());
    match cuda(false).check(&config) {
        Err(reason) => println!("CUDA is left out: {reason}"),
        Ok(()) => {
            for (name, tf32) in [("ONNX Runtime, CUDA", false), ("the same, TF32", true)] {
                let engine = pollster::block_on(cuda(tf32).load(&bundle, &config, &cancel))?;
                println!("{name}: {}", engine.provider());
                by_cuda.push((name, engine));
            }
            let environment = ort::init().build()?;
            raw = Some(Raw::load_on_cuda(&model, &environment)?);
        }
    }
    for &(rows, length, rounds) in sizes {
        println!("{rows} texts of {length} tokens, {rounds} rounds:");
        let reference = vectors(&*engines[0].1, rows, length)?;
        print!("{}", take_turns(rounds, turns(&engines, rows, length)));
        // Not in turn with the others: a GPU that goes from Vulkan to CUDA or back loses half a millisecond.
        let mut by_hand: Vec<Contestant<'_>> = Vec::new();
        if let Some(raw) = &raw {
            let ids: Vec<i64> = (0..rows * length).map(id).collect();
            let run = move || drop(black_box(raw.run(&ids, rows)));
            by_hand.push(("a session by hand, CUDA", Box::new(run)));
        }
        by_hand.extend(turns(&by_cuda, rows, length));
        print!("{}", take_turns(rounds, by_hand));
        for (name, engine) in engines.iter().chain(&by_cuda) {
            let own = vectors(&**engine, rows, length)?;
            let bytes = engine.stats().gpu.map_or_else(String::new, |gpu| {
                let (weights, results) = (gpu.weight_bytes, gpu.arena_bytes);
                format!("weights of {weights} bytes, results of {results}; ")
            });
            let l2 = apart(&reference, &own, rows);
            println!("  {name}: {bytes}L2 to f32 at most {l2:.1e}");
        }
    }
    Ok(())
}

fn turns<'a>(
    engines: &'a [(&'a str, Arc<dyn Engine>)],
    rows: usize,
    length: usize,
) -> Vec<Contestant<'a>> {
    let turns = engines.iter().map(|(name, engine)| -> Contestant<'a> {
        let run = move || drop(black_box(vectors(&**engine, rows, length)));
        (name, Box::new(run))
    });
    turns.collect()
}

fn cuda(tf32: bool) -> OnnxRuntime {
    OnnxRuntime::new(isovec_native::Options {
        provider: Provider::Cuda,
        cuda: CudaOptions {
            tf32: Some(tf32),
            ..CudaOptions::default()
        },
        ..isovec_native::Options::default()
    })
}

fn load(bundle: &ModelBundle, f16: bool, subgroups: bool) -> Result<GpuEngine, AnyError> {
    let options = Options {
        software_adapter: true,
        f16: Some(f16),
        ..Options::default()
    };
    let factory = WebGpu::new(Box::new(Alone)).with_options(options);
    let factory = factory.with_subgroups(subgroups);
    let (config, cancel) = (EngineConfig::default(), Cancel::new());
    Ok(pollster::block_on(
        factory.load_model(bundle, &config, &cancel),
    )?)
}

/// The vectors of texts whose tokens are from all over the vocabulary.
fn vectors(engine: &dyn Engine, rows: usize, length: usize) -> Result<Vec<f32>, AnyError> {
    outputs(engine, text(engine, rows, length)?)
}

/// What an engine makes of a batch.
fn outputs(engine: &dyn Engine, batch: Batch) -> Result<Vec<f32>, AnyError> {
    let output = engine.run_blocking(batch, &Cancel::new())?;
    Ok(output.outputs[0].tensor.as_slice::<f32>()?.to_vec())
}

/// So many texts of so many tokens.
fn text(engine: &dyn Engine, rows: usize, length: usize) -> Result<Batch, AnyError> {
    let mut batch = Batch {
        row_lengths: vec![length; rows],
        ..Batch::default()
    };
    for input in &engine.description().inputs {
        let value = |at: usize| match &*input.name {
            "input_ids" => id(at),
            name => i64::from(name == MASK),
        };
        let values: Vec<i64> = (0..rows * length).map(value).collect();
        let tensor = Tensor::from_slice(&[rows, length], &values)?;
        batch.inputs.push(NamedTensor::new(&*input.name, tensor));
    }
    Ok(batch)
}

/// The token at a place of a batch.
fn id(at: usize) -> i64 {
    (at * 7919 % 15_000) as i64
}

/// The largest L2 distance of two texts' vectors.
fn apart(some: &[f32], others: &[f32], rows: usize) -> f64 {
    let width = some.len() / rows;
    let rows = some.chunks(width).zip(others.chunks(width));
    let l2 = rows.map(|(a, b)| {
        let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
        squares.sum::<f64>().sqrt()
    });
    l2.fold(0.0, f64::max)
}
