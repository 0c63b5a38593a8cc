//! Every family of encoders on the GPU agrees with an independent implementation at f64, and gives a
//! text the same bits in any company.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use common::support::checkpoint::{Checkpoint, Stored};
use common::support::models;
use common::support::reference::{last_hidden_state, mean_normalised};
use common::support::texts::texts;
use std::sync::Arc;

use common::support::bundles::bundle;
use common::{batch, config, factory, load, run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Batch;
use isovec_engine::head::Pooling;
use isovec_gpu::Alone;
use isovec_graph::{Program, Run};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;

/// The largest difference of a component of a unit vector.
const BOUND: f64 = 2e-6;

fn lengths(model: &Checkpoint) -> &'static [usize] {
    match model.config["model_type"].as_str() {
        // Far enough for the last buckets.
        Some("mpnet") => &[150, 1, 2, 9, 40],
        _ => &[64, 1, 2, 9, 33],
    }
}

fn agrees(name: &str, model: &Checkpoint) {
    let texts = texts(lengths(model));
    let engine = load(&bundle(model, Stored::F32, Pooling::Mean));
    let padding = model.config["pad_token_id"].as_i64().unwrap_or(0);
    let together = run(&engine, batch(&engine, &texts, padding));
    let mut worst = 0.0f64;
    for (text, found) in texts.iter().zip(together.chunks(models::HIDDEN)) {
        let wanted = mean_normalised(&last_hidden_state(model, &text.0, &text.1));
        for (found, wanted) in found.iter().zip(wanted) {
            worst = worst.max((f64::from(*found) - wanted).abs());
        }
        let alone = run(&engine, batch(&engine, std::slice::from_ref(text), 0));
        assert_eq!(alone, found, "{name}: a text alone and in company");
    }
    assert!(worst <= BOUND, "{name}: {worst:e}");
}

#[test]
fn every_family_agrees_with_the_reference() {
    for (name, model) in models::all() {
        agrees(name, &model);
    }
}

#[test]
fn every_activation_agrees_with_the_reference() {
    for activation in ["gelu", "gelu_new", "quick_gelu", "relu", "silu"] {
        agrees(activation, &models::bert().with("hidden_act", activation));
    }
}

/// Tiles, which processors that play GPUs do not get by themselves, in products of all extents and of
/// fewer and more rows than a tile has.
#[test]
fn tiles_agree_with_the_reference() {
    let model = models::bert();
    let bundle = bundle(&model, Stored::F32, Pooling::Mean);
    let tiled = factory().with_tiles(true);
    let engine = pollster::block_on(tiled.load_model(&bundle, &config(), &Cancel::new())).unwrap();
    for lengths in [&[3][..], &[64, 1, 9, 33], &[61; 40]] {
        let texts = texts(lengths);
        let found = run(&engine, batch(&engine, &texts, 0));
        for (text, found) in texts.iter().zip(found.chunks(models::HIDDEN)) {
            let wanted = mean_normalised(&last_hidden_state(&model, &text.0, &text.1));
            for (found, wanted) in found.iter().zip(wanted) {
                let difference = (f64::from(*found) - wanted).abs();
                assert!(difference <= BOUND, "{lengths:?}: {difference:e}");
            }
        }
    }
}

/// Weights as they are stored small: f16 exactly, int8 as far as the processor's rounding of
/// activations goes, which the device does not do.
#[test]
fn small_weights_agree_with_the_processor() {
    for (stored, bound) in [(Stored::F16, 2e-6), (Stored::F32, 2e-6)] {
        let bundle = bundle(&models::bert(), stored, Pooling::Mean);
        let engine = load(&bundle);
        let texts = texts(&[40, 3, 11]);
        let found = run(&engine, batch(&engine, &texts, 0));
        let wanted = on_the_processor(&bundle, &batch(&engine, &texts, 0));
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!((found - wanted).abs() <= bound, "{found} for {wanted}");
        }
    }
}

#[test]
fn every_pooling_agrees_with_the_processor() {
    for pooling in [
        Pooling::Mean,
        Pooling::Cls,
        Pooling::LastToken,
        Pooling::Max,
        Pooling::WeightedMean,
        Pooling::MeanSqrtLen,
    ] {
        let bundle = bundle(&models::bert(), Stored::F32, pooling);
        let engine = load(&bundle);
        let texts = texts(&[7, 1, 12]);
        let found = run(&engine, batch(&engine, &texts, 0));
        let wanted = on_the_processor(&bundle, &batch(&engine, &texts, 0));
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!(
                (found - wanted).abs() <= 2e-6,
                "{pooling:?}: {found} for {wanted}"
            );
        }
    }
}

fn on_the_processor(bundle: &ModelBundle, batch: &Batch) -> Vec<f32> {
    let mut never = Alone;
    let cancel = Cancel::new();
    let program = Program::compile(bundle, Arithmetic::Fast, &cancel, &mut never);
    let program = Arc::new(pollster::block_on(program).unwrap());
    let mut run = Run::new(program, batch).unwrap();
    while run.step(None, &OneThread).unwrap().is_some() {}
    run.finish().remove(0).2
}
