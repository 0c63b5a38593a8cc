//! Convolutional networks of the sizes that people load, with seeded weights and pictures of 224 x 224: the portable engine's
//! program against ONNX Runtime and tract, one thread each. Run it with `cargo xtask bench conv`.

use std::hint::black_box;
use std::sync::Arc;

use isovec_bench::{AnyError, take_turns};
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Engine, EngineFactory};
use isovec_model::onnx::builder::float;
use isovec_native::OnnxRuntime;
use isovec_test_models::convolutions::{Net, efficientnet_b0, mobilenet_v2, resnet_50};
use isovec_web::Portable;
use isovec_web::executor::threads::Threads;

/// Rounds of each network.
const ROUNDS: usize = 40;

fn main() -> Result<(), AnyError> {
    network("ResNet-50", resnet_50())?;
    network("MobileNetV2", mobilenet_v2())?;
    network("EfficientNet-B0", efficientnet_b0())
}

fn network(name: &str, (mut net, output): (Net, String)) -> Result<(), AnyError> {
    let mut config = EngineConfig::default();
    config.session.intra_op_threads = Some(1);
    let load = |factory: &dyn EngineFactory, net: &mut Net, output: &str| {
        let bundle = net.bundle(&[output]);
        pollster::block_on(factory.load(&bundle, &config, &Cancel::new()))
    };
    let portable = Portable::new(Arc::new(Threads));
    let onnxruntime = load(&OnnxRuntime::default(), &mut net, &output)?;
    let program = load(&portable, &mut net, &output)?;
    // An operator that no program has, and that changes nothing, makes it tract's.
    let same = net.node("LeakyRelu", &[&output], vec![float("alpha", 1.0)]);
    let tract = load(&portable, &mut net, &same)?;
    let pixels = net.pictures(1, 1);
    let run = |engine: &dyn Engine, output: &str| -> Result<Vec<f32>, AnyError> {
        let mut answer = engine.run_blocking(net.batch(&pixels), &Cancel::new())?;
        let tensor = answer.take(output).ok_or("the output is missing")?;
        Ok(tensor.as_slice::<f32>()?.to_vec())
    };
    let engines = [
        ("onnxruntime", &onnxruntime, &output),
        ("portable", &program, &output),
        ("tract", &tract, &same),
    ];
    let wanted = run(&**engines[0].1, &output)?;
    let most = wanted.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    println!("{name}, a picture, one thread, {ROUNDS} rounds");
    for (name, engine, output) in &engines[1..] {
        let got = run(&***engine, output)?;
        let pairs = got.iter().zip(&wanted);
        let apart = pairs.fold(0.0_f32, |apart, (got, wanted)| {
            apart.max((got - wanted).abs())
        });
        let version = &engine.provider().version;
        println!(
            "  {name}, {version}: {:.1e} of the largest value apart",
            apart / most
        );
    }
    let contestants = engines.iter().map(|(name, engine, output)| {
        let turn: Box<dyn FnMut()> = Box::new(|| {
            let _ = black_box(run(&***engine, output));
        });
        (*name, turn)
    });
    print!("{}", take_turns(ROUNDS, contestants.collect()));
    Ok(())
}
