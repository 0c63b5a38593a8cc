//! all-MiniLM-L6-v2 on a GPU in f32 and in f16, with and without subgroups, by turns: how long runs take, how many
//! bytes the weights and the results take on the device, and how far the vectors are from those in f32. Run it with
//! `cargo xtask bench gpu`.

use std::hint::black_box;

use isovec_bench::{AnyError, Contestant, minilm, take_turns};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Batch, Engine, MASK};
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_gpu::{Alone, GpuEngine, Options, WebGpu};
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::head::{HeadSpec, Pooling, attach_head};

/// Texts and their tokens, and how often each way is run.
const SIZES: [(usize, usize, usize); 2] = [(1, 16, 40), (8, 64, 8)];

/// Whether f16 is computed with, and whether kernels share by subgroups.
const WAYS: [(&str, bool, bool); 4] = [
    ("f32", false, false),
    ("f32, subgroups", false, true),
    ("f16", true, false),
    ("f16, subgroups", true, true),
];

fn main() -> Result<(), AnyError> {
    let mut bundle = bundle::from_folder(minilm()?, &BundleOptions::default())?;
    attach_head(&mut bundle, &HeadSpec::new(Pooling::Mean, true))?;
    let mut engines = Vec::new();
    for (name, f16, subgroups) in WAYS {
        let engine = load(&bundle, f16, subgroups)?;
        let gpu = engine.stats().gpu.unwrap_or_default();
        if engines.is_empty() {
            println!("{}, {} dispatches", gpu.adapter, gpu.dispatches_per_run);
        }
        if (gpu.f16, gpu.subgroups) != (f16, subgroups) {
            println!("{name}: left out, the adapter does not have it");
            continue;
        }
        engines.push((name, engine));
    }
    for (rows, length, rounds) in SIZES {
        println!("{rows} texts of {length} tokens, {rounds} rounds:");
        let vectors = engines
            .iter()
            .map(|(_, engine)| vectors(engine, rows, length));
        let vectors = vectors.collect::<Result<Vec<_>, _>>()?;
        let turns = engines.iter().map(|(name, engine)| -> Contestant<'_> {
            let run = || drop(black_box(self::vectors(engine, rows, length)));
            (name, Box::new(run))
        });
        print!("{}", take_turns(rounds, turns.collect()));
        for ((name, engine), own) in engines.iter().zip(&vectors) {
            let gpu = engine.stats().gpu.unwrap_or_default();
            println!(
                "  {name}: weights of {} bytes, results of {}; L2 to f32 at most {:.1e}",
                gpu.weight_bytes,
                gpu.arena_bytes,
                apart(&vectors[0], own, rows)
            );
        }
    }
    Ok(())
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

/// The vectors of texts from all parts of the vocabulary.
fn vectors(engine: &GpuEngine, rows: usize, length: usize) -> Result<Vec<f32>, AnyError> {
    let mut batch = Batch {
        row_lengths: vec![length; rows],
        ..Batch::default()
    };
    for input in &engine.description().inputs {
        let value = |at: usize| match &*input.name {
            "input_ids" => (at * 7919 % 30_000) as i64,
            name => i64::from(name == MASK),
        };
        let values: Vec<i64> = (0..rows * length).map(value).collect();
        let tensor = Tensor::from_slice(&[rows, length], &values)?;
        batch.inputs.push(NamedTensor::new(&*input.name, tensor));
    }
    let output = engine.run_blocking(batch, &Cancel::new())?;
    Ok(output.outputs[0].tensor.as_slice::<f32>()?.to_vec())
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
