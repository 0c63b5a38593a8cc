//! Models of the sizes that people load, with seeded weights: how far the GPU's vectors are from ONNX Runtime's, and
//! both from plain loops at f64. It needs three times the memory of the largest model, some 4 GB. Run it with `cargo
//! xtask bench shapes`.

use std::time::Instant;

use isovec_bench::AnyError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Batch, Engine, EngineFactory, MASK};
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_gpu::{Alone, Options, WebGpu};
use isovec_model::head::Pooling;
use isovec_native::OnnxRuntime;
use isovec_test_models::bundles;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::full_size;
use isovec_test_models::reference::{last_hidden_state, mean_normalised};
use isovec_test_models::rng::Rng;

/// Tokens of the texts.
const LENGTHS: [usize; 3] = [5, 33, 128];

fn main() -> Result<(), AnyError> {
    println!(
        "texts of {LENGTHS:?} tokens: the largest difference of a component, the largest L2 distance"
    );
    for (name, make) in full_size::ALL {
        let model = make();
        let texts = texts(&model);
        let bundle = bundles::bundle(&model, Stored::F32, Pooling::Mean);
        let (onnxruntime, _) = run(&OnnxRuntime::default(), &bundle, &texts)?;
        let gpu = WebGpu::new(Box::new(Alone)).with_options(Options {
            software_adapter: true,
            ..Options::default()
        });
        let (gpu, on) = run(&gpu, &bundle, &texts)?;
        drop(bundle);
        // The longest is left out: plain loops take their time.
        let exact: Vec<Vec<f64>> = texts[..2]
            .iter()
            .map(|ids| mean_normalised(&last_hidden_state(&model, ids, &vec![0; ids.len()])))
            .collect();
        println!("{name}, {on}");
        println!("  GPU to ONNX Runtime  {}", apart(&gpu, &onnxruntime));
        println!("  GPU to f64           {}", apart(&gpu, &exact));
        println!("  ONNX Runtime to f64  {}", apart(&onnxruntime, &exact));
    }
    Ok(())
}

/// Ids from all parts of the table.
fn texts(model: &Checkpoint) -> [Vec<i64>; 3] {
    let vocabulary = model.config["vocab_size"].as_u64().unwrap_or(2);
    let mut rng = Rng::new(77);
    LENGTHS.map(|length| {
        (0..length)
            .map(|_| 2 + rng.below(vocabulary - 2) as i64)
            .collect()
    })
}

/// The texts' vectors, and on what and how fast they were computed.
fn run(
    factory: &dyn EngineFactory,
    bundle: &ModelBundle,
    texts: &[Vec<i64>],
) -> Result<(Vec<Vec<f64>>, String), AnyError> {
    let (config, cancel) = (EngineConfig::default(), Cancel::new());
    let started = Instant::now();
    let engine = pollster::block_on(factory.load(bundle, &config, &cancel))?;
    let loaded = started.elapsed();
    let started = Instant::now();
    let output = engine.run_blocking(batch(&*engine, texts)?, &cancel)?;
    let ran = started.elapsed();
    let values = output.outputs[0].tensor.as_slice::<f32>()?;
    let rows = values.chunks(values.len() / texts.len());
    let rows = rows.map(|row| row.iter().copied().map(f64::from).collect());
    let on = format!(
        "{}: loaded in {loaded:.1?}, ran in {ran:.1?}",
        engine.provider()
    );
    Ok((rows.collect(), on))
}

fn batch(engine: &dyn Engine, texts: &[Vec<i64>]) -> Result<Batch, AnyError> {
    let length = texts.iter().map(Vec::len).max().unwrap_or(0);
    let mut batch = Batch {
        row_lengths: texts.iter().map(Vec::len).collect(),
        ..Batch::default()
    };
    for input in &engine.description().inputs {
        let mut values = Vec::new();
        for ids in texts {
            let real = ids.iter().map(|id| match &*input.name {
                "input_ids" => *id,
                name => i64::from(name == MASK),
            });
            values.extend(real);
            values.resize(values.len() + length - ids.len(), 0);
        }
        let tensor = Tensor::from_slice(&[texts.len(), length], &values)?;
        batch.inputs.push(NamedTensor::new(&*input.name, tensor));
    }
    Ok(batch)
}

fn apart(some: &[Vec<f64>], others: &[Vec<f64>]) -> String {
    let pairs = || some.iter().zip(others);
    let component = pairs().flat_map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()));
    let l2 = pairs().map(|(a, b)| {
        a.iter()
            .zip(b)
            .map(|(a, b)| (a - b).powi(2))
            .sum::<f64>()
            .sqrt()
    });
    format!(
        "{:.1e}, {:.1e}",
        component.fold(0.0, f64::max),
        l2.fold(0.0, f64::max)
    )
}
