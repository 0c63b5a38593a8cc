//! Arithmetic in f16: how near it stays, what it takes of the device, and what becomes of numbers that an f16 cannot
//! say.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{batch, config, factory, has_adapter, in_f16, load, run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::engine::{Batch, Engine, MASK};
use isovec_engine::fingerprint::Precision;
use isovec_engine::onnx::proto::{GraphProto, ModelProto, OperatorSetIdProto};
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::weights::{BytesWeights, WeightsIdentity};
use isovec_gpu::{GpuEngine, Options, WebGpu};
use isovec_model::head::Pooling;
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::int;
use isovec_test_models::bundles::bundle;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::models;
use isovec_test_models::reference::{last_hidden_state, mean_normalised};
use isovec_test_models::texts::{Text, texts};

/// What the project promises of 16-bit arithmetic: the L2 distance of unit vectors.
const BOUND: f64 = 5e-3;

/// What arithmetic in f32 stays within.
const BOUND_F32: f64 = 5e-6;

fn load_with(factory: WebGpu, bundle: &ModelBundle) -> GpuEngine {
    let factory = factory.with_options(in_f16());
    pollster::block_on(factory.load_model(bundle, &config(), &Cancel::new())).unwrap()
}

/// An engine that computes in f16, which it says everywhere; `None`, aloud, where the adapter has no f16.
fn load_small(bundle: &ModelBundle) -> Option<GpuEngine> {
    if !has_adapter() {
        return None;
    }
    let engine = load_with(factory(), bundle);
    let knob = engine.effective().get("providers.webgpu.f16").unwrap();
    let f16 = engine.stats().gpu.unwrap().f16;
    assert_eq!(knob.honoured, f16, "{knob:?}");
    let precision = match f16 {
        true => Precision::F16,
        false => Precision::F32,
    };
    assert_eq!(engine.capabilities().precision, precision);
    if !f16 {
        assert!(knob.why.contains("shader-f16"), "{knob:?}");
        eprintln!("not run: {}", knob.why);
        return None;
    }
    Some(engine)
}

/// The largest L2 distance of a text's vector.
fn distance(model: &Checkpoint, texts: &[Text], found: &[f32]) -> f64 {
    let vectors = texts.iter().zip(found.chunks(models::HIDDEN));
    let distances = vectors.map(|(text, found)| {
        let wanted = mean_normalised(&last_hidden_state(model, &text.0, &text.1));
        let square = |(found, wanted): (&f32, f64)| (f64::from(*found) - wanted).powi(2);
        found.iter().zip(wanted).map(square).sum::<f64>().sqrt()
    });
    distances.fold(0.0, f64::max)
}

#[test]
fn every_family_stays_within_the_bound_of_f16() {
    for (name, model) in models::all() {
        let Some(engine) = load_small(&bundle(&model, Stored::F32, Pooling::Mean)) else {
            return;
        };
        let texts = texts(&[64, 1, 2, 9, 33]);
        let padding = model.config["pad_token_id"].as_i64().unwrap_or(0);
        let together = run(&engine, batch(&engine, &texts, padding));
        let apart = distance(&model, &texts, &together);
        println!("{name}: L2 {apart:.1e}");
        assert!(apart <= BOUND, "{name}: {apart:e}");
        // A bound that arithmetic in f32 keeps would see nothing.
        assert!(apart > BOUND_F32, "{name}: {apart:e}");
        for (text, found) in texts.iter().zip(together.chunks(models::HIDDEN)) {
            let alone = run(&engine, batch(&engine, std::slice::from_ref(text), 0));
            assert_eq!(alone, found, "{name}: a text alone and in company");
        }
    }
}

/// Weights that are f16 already lose nothing more by being held so, and ways to cut products up add in one order.
#[test]
fn tiles_and_stored_halves_give_the_same_bits() {
    let model = models::bert().rounded(Stored::F16);
    let bundles = [Stored::F32, Stored::F16].map(|stored| bundle(&model, stored, Pooling::Mean));
    let Some(engine) = load_small(&bundles[0]) else {
        return;
    };
    let others = [
        load_with(factory(), &bundles[1]),
        load_with(factory().with_tiles(true), &bundles[0]),
    ];
    for lengths in [&[3][..], &[64, 1, 9, 33], &[61; 40]] {
        let texts = texts(lengths);
        let expected = run(&engine, batch(&engine, &texts, 0));
        for other in &others {
            assert_eq!(run(other, batch(other, &texts, 0)), expected);
        }
    }
}

/// Columns that are no multiples of four go one by one.
#[test]
fn odd_extents_stay_within_the_bound() {
    let model = models::bert_of(7, models::VOCABULARY, 4 * 9, 2).with("intermediate_size", 72);
    let found = |engine: &GpuEngine| run(engine, batch(engine, &texts(&[5, 17]), 0));
    let odd = bundle(&model, Stored::F32, Pooling::Mean);
    let Some(engine) = load_small(&odd) else {
        return;
    };
    let (small, large) = (found(&engine), found(&load(&odd)));
    let rows = small.chunks(36).zip(large.chunks(36));
    for (small, large) in rows {
        let square = |(a, b): (&f32, &f32)| f64::from(a - b).powi(2);
        let apart = small.iter().zip(large).map(square).sum::<f64>().sqrt();
        assert!(apart <= BOUND && apart > BOUND_F32, "{apart:e}");
    }
}

#[test]
fn weights_take_half_of_the_memory_and_no_dispatch_more() {
    let bundle = bundle(&models::bert(), Stored::F32, Pooling::Mean);
    let Some(small) = load_small(&bundle) else {
        return;
    };
    let large = load(&bundle).stats().gpu.unwrap();
    let small = small.stats().gpu.unwrap();
    assert_eq!(small.weight_bytes * 2, large.weight_bytes);
    assert_eq!(small.dispatches_per_run, large.dispatches_per_run);
    assert!(small.arena_bytes < large.arena_bytes);
}

/// A model of which one neuron of a layer becomes `size` for the token `odd` and hardly anything for others. Nothing
/// that comes after looks at it, so that in f32 it does no harm.
fn with_a_large_neuron(odd: Option<usize>, activation: &str, size: f32) -> Checkpoint {
    let mut model = models::bert().with("hidden_act", activation);
    let mut set = |name: &str, change: &dyn Fn(&mut [f32])| {
        change(&mut model.tensors.get_mut(name).unwrap().values);
    };
    let (hidden, wide) = (models::HIDDEN, models::WIDE);
    let ffn = "encoder.layer.0";
    match odd {
        Some(token) => {
            // Almost all of the token's row is one column, which the norm makes √hidden of.
            set("embeddings.word_embeddings.weight", &|values| {
                values[token * hidden + 3] = 100.0;
            });
            set(&format!("{ffn}.attention.output.dense.weight"), &|values| {
                values.fill(0.0);
            });
            set(&format!("{ffn}.intermediate.dense.weight"), &|values| {
                values[..hidden].fill(0.0);
                values[3] = size;
            });
            set(&format!("{ffn}.intermediate.dense.bias"), &|values| {
                values[0] = -3.5 * size;
            });
        }
        None => set(&format!("{ffn}.intermediate.dense.bias"), &|values| {
            values[0] = size;
        }),
    }
    set(&format!("{ffn}.output.dense.weight"), &|values| {
        values.chunks_mut(wide).for_each(|row| row[0] = 0.0);
    });
    model
}

/// What every text would run into is found when the model is loaded: it is computed in f32, and said.
#[test]
fn a_model_that_f16_is_too_small_for_is_computed_in_f32() {
    let model = with_a_large_neuron(None, "gelu", 1e5);
    let large = bundle(&model, Stored::F32, Pooling::Mean);
    if load_small(&bundle(&models::bert(), Stored::F32, Pooling::Mean)).is_none() {
        return;
    }
    let engine = load_with(factory(), &large);
    assert!(!engine.stats().gpu.unwrap().f16);
    assert_eq!(engine.capabilities().precision, Precision::F32);
    let knob = engine.effective().get("providers.webgpu.f16").unwrap();
    assert!(!knob.honoured && knob.used == "false", "{knob:?}");
    assert!(knob.why.contains("wrong vectors with f16"), "{knob:?}");
    let texts = texts(&[5, 9]);
    let found = run(&engine, batch(&engine, &texts, 0));
    assert!(distance(&model, &texts, &found) <= BOUND_F32);

    // Where what was asked for has to work, it is an error.
    let strict = factory().with_options(Options {
        strict: true,
        ..in_f16()
    });
    let error = pollster::block_on(strict.load_model(&large, &config(), &Cancel::new()));
    let error = error.unwrap_err();
    assert_eq!(error.kind(), "ProviderUnavailable", "{error}");
}

#[test]
fn a_weight_that_no_f16_can_say_is_kept_in_f32() {
    if !has_adapter() {
        return;
    }
    let mut model = models::bert();
    let table = "encoder.layer.1.output.dense.weight";
    model.tensors.get_mut(table).unwrap().values[0] = 7e4;
    let bundle = bundle(&model, Stored::F32, Pooling::Mean);
    let engine = load_with(factory(), &bundle);
    assert!(!engine.stats().gpu.unwrap().f16);
    let knob = engine.effective().get("providers.webgpu.f16").unwrap();
    assert!(
        knob.why.contains("70000") || knob.why.contains("shader-f16"),
        "{knob:?}"
    );
    let texts = texts(&[5, 9]);
    let found = run(&engine, batch(&engine, &texts, 0));
    assert_eq!(found, run(&load(&bundle), batch(&engine, &texts, 0)));
}

/// What only one text runs into is no number in its vector, whatever the activation makes of large numbers, and nothing
/// to the others. (The SDK turns such a vector into the error `NotFinite`.)
#[test]
fn an_overflow_is_never_a_wrong_vector() {
    if !has_adapter() {
        return;
    }
    let odd = 77;
    for (activation, pooling) in [
        ("gelu", Pooling::Mean),
        ("relu", Pooling::Max),
        ("gelu_new", Pooling::Cls),
        ("silu", Pooling::LastToken),
    ] {
        let model = with_a_large_neuron(Some(odd), activation, 6e4);
        let bundle = bundle(&model, Stored::F32, pooling);
        let large = load(&bundle);
        let Some(engine) = load_small(&bundle) else {
            return;
        };
        let mut texts = texts(&[12, 9, 30]);
        for (text, _) in &mut texts {
            text.iter_mut()
                .filter(|id| **id == odd as i64)
                .for_each(|id| *id = 2);
        }
        texts[1].0[4] = odd as i64;
        let found = run(&engine, batch(&engine, &texts, 0));
        let wanted = run(&large, batch(&large, &texts, 0));
        let rows = found
            .chunks(models::HIDDEN)
            .zip(wanted.chunks(models::HIDDEN));
        for (text, (found, wanted)) in rows.enumerate() {
            if text == 1 {
                assert!(
                    found.iter().all(|value| value.is_nan()),
                    "{activation}: {found:?}"
                );
                assert!(wanted.iter().all(|value| value.is_finite()));
                continue;
            }
            let square = |(a, b): (&f32, &f32)| f64::from(a - b).powi(2);
            let apart = found.iter().zip(wanted).map(square).sum::<f64>().sqrt();
            assert!(apart <= BOUND, "{activation}, text {text}: {apart:e}");
        }
    }
}

/// What makes numbers of what is none, in most languages for shaders: the largest of several, what is cut off below or
/// on both sides. Behind an overflow they must not.
#[test]
fn an_overflow_is_not_hidden_by_what_comes_after() {
    if !has_adapter() {
        return;
    }
    for (operator, constants) in [("Relu", 0), ("Clip", 2), ("Tanh", 0), ("Erf", 0)] {
        let engine = load_with(factory(), &with_an_overflow(operator, constants));
        let knob = engine.effective().get("providers.webgpu.f16").unwrap();
        if knob.why.contains("shader-f16") {
            return eprintln!("not run: {}", knob.why);
        }
        assert!(knob.honoured, "{operator}: {knob:?}");
        let texts = [vec![3, ODD, 5], vec![3, 4, 5]];
        let ids = Tensor::from_slice(&[2, 3], &texts.concat()).unwrap();
        let batch = Batch {
            inputs: vec![
                NamedTensor::new("ids", ids),
                NamedTensor::new(MASK, Tensor::from_slice(&[2, 3], &[1i64; 6]).unwrap()),
            ],
            row_lengths: vec![3, 3],
            ..Batch::default()
        };
        let found = run(&engine, batch);
        assert!(
            found[..4].iter().all(|value| value.is_nan()),
            "{operator}: {found:?}"
        );
        assert!(
            found[4..].iter().all(|value| value.is_finite()),
            "{operator}: {found:?}"
        );
    }
}

/// A token that the comparison at load does not meet.
const ODD: i64 = 501;

/// A graph whose first product is too large for an f16 where a text has the token, and minus that after the second.
fn with_an_overflow(operator: &str, constants: usize) -> ModelBundle {
    let mut graph = GraphProto::default();
    let mut g = GraphBuilder::new(&mut graph, "t.");
    for name in ["ids", MASK] {
        let dims = ["batch", "sequence"].map(|name| Dim::Symbolic(name.into()));
        g.input(name, DType::I64, &dims);
    }
    let mut rows: Vec<f32> = (0..4000).map(|at| (at % 7) as f32 / 7.0).collect();
    rows[ODD as usize * 4..][..4].fill(3e4);
    let table = g.f32s(&[1000, 4], &rows);
    let x = g.node("Gather", &[&table, "ids"], vec![int("axis", 0)]);
    let up = g.f32s(&[4, 4], &[2.0; 16]);
    let down = g.f32s(&[4, 4], &[-0.5; 16]);
    let large = g.node("MatMul", &[&x, &up], vec![]);
    let small = g.node("MatMul", &[&large, &down], vec![]);
    let bounds: Vec<String> = [-1.0, 1.0][..constants]
        .iter()
        .map(|&bound| g.f32(bound))
        .collect();
    let operands: Vec<&str> = [&small]
        .into_iter()
        .chain(&bounds)
        .map(String::as_str)
        .collect();
    let cut = g.node(operator, &operands, vec![]);
    let one = g.ints(&[1]);
    let most = g.node("ReduceMax", &[&cut, &one], vec![int("keepdims", 0)]);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(4)];
    g.output(&most, DType::F32, &dims);
    ModelBundle {
        graph: ModelProto {
            ir_version: 8,
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: 18,
            }],
            graph: Some(graph),
            ..ModelProto::default()
        },
        weights: Arc::new(BytesWeights::new()),
        identity: WeightsIdentity("test".into()),
        files: BTreeMap::new(),
        model_file: "model.onnx".into(),
        origin: "a model of the tests".into(),
    }
}
