//! Some layers of larger models, fp32, one thread: the portable engine against ONNX Runtime on the same graph. Run it with `cargo xtask
//! bench decoder`.
//!
//! Four of the 28 layers of the shape of Qwen3-Embedding-0.6B. All layers are alike, so the ratio is that of the whole model, apart from
//! its table of words, which is only read. And of nomic-embed-text-v2-moe the first layer, which has none of the experts, and the first
//! two, of which the second has them.

use std::sync::Arc;

use isovec_bench::{AnyError, take_turns};
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Batch, Engine, EngineFactory};
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_model::head::Pooling;
use isovec_native::OnnxRuntime;
use isovec_test_models::bundles;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::full_size;
use isovec_test_models::rng::Rng;
use isovec_web::Portable;
use isovec_web::executor::threads::Threads;

/// Tokens of a text, and rounds.
const TEXTS: [(usize, usize); 3] = [(16, 30), (128, 15), (1024, 5)];
/// The largest difference of a component of a unit vector.
const NEAR: f32 = 1e-5;

fn main() -> Result<(), AnyError> {
    let (last, mean) = (Pooling::LastToken, Pooling::Mean);
    compare("Qwen3-0.6B, 4 layers", &full_size::qwen3_of(4), last)?;
    let experts = "nomic-embed-text-v2-moe, ";
    compare(
        &format!("{experts}1 layer"),
        &full_size::nomic_moe_of(1),
        mean,
    )?;
    compare(
        &format!("{experts}2 layers"),
        &full_size::nomic_moe_of(2),
        mean,
    )
}

fn compare(name: &str, model: &Checkpoint, pooling: Pooling) -> Result<(), AnyError> {
    let bundle = bundles::bundle(model, Stored::F32, pooling);
    let mut config = EngineConfig::default();
    config.session.intra_op_threads = Some(1);
    config.session.pool_size = Some(1);
    let cancel = Cancel::new();
    let load =
        |factory: &dyn EngineFactory| pollster::block_on(factory.load(&bundle, &config, &cancel));
    let onnxruntime = load(&OnnxRuntime::default())?;
    let portable = load(&Portable::new(Arc::new(Threads)))?;
    println!(
        "{name}; {} and {}",
        onnxruntime.provider(),
        portable.provider()
    );
    let graph = bundle.graph.graph.iter();
    let mut inputs = graph.flat_map(|graph| &graph.input);
    let has_kinds = inputs.any(|input| input.name == "token_type_ids");
    for (tokens, rounds) in TEXTS {
        let run = |engine: &dyn Engine| -> Result<Vec<f32>, AnyError> {
            let output = engine.run_blocking(text(tokens, has_kinds)?, &cancel)?;
            Ok(output.outputs[0].tensor.as_slice::<f32>()?.to_vec())
        };
        let (theirs, own) = (run(&*onnxruntime)?, run(&*portable)?);
        let apart = theirs.iter().zip(&own).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0.0, f32::max);
        if apart > NEAR {
            return Err(format!("the vectors differ by {apart:e}").into());
        }
        println!("1 x {tokens} tokens; the vectors differ by {apart:.0e}");
        let turns = take_turns(
            rounds,
            vec![
                ("ONNX Runtime", Box::new(|| drop(run(&*onnxruntime)))),
                ("portable", Box::new(|| drop(run(&*portable)))),
            ],
        );
        print!("{turns}");
    }
    Ok(())
}

/// One text of so many tokens.
fn text(tokens: usize, has_kinds: bool) -> Result<Batch, AnyError> {
    let mut rng = Rng::new(78);
    let ids: Vec<i64> = (0..tokens).map(|_| rng.below(15_000) as i64).collect();
    let mut batch = Batch {
        row_lengths: vec![tokens],
        ..Batch::default()
    };
    let (seen, kinds) = (vec![1; tokens], vec![0; tokens]);
    let mut inputs = vec![("input_ids", &ids), ("attention_mask", &seen)];
    if has_kinds {
        inputs.push(("token_type_ids", &kinds));
    }
    for (name, values) in inputs {
        let tensor = Tensor::from_slice(&[1, tokens], values)?;
        batch.inputs.push(NamedTensor::new(name, tensor));
    }
    Ok(batch)
}
