//! Every family of encoders on the GPU agrees with an independent implementation at f64, and gives a
//! text the same bits in any company.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::reference::{last_hidden_state, mean_normalised};
use isovec_test_models::texts::texts;
use isovec_test_models::{models, pictures};
use std::sync::Arc;

use common::{batch, config, factory, has_adapter, load, run};
use isovec_encoder::{Executable, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, Engine};
use isovec_engine::fingerprint::Precision;
use isovec_gpu::Alone;
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::convert::{Half, PatchGrid};
use isovec_model::head::Pooling;
use isovec_model::precision::{narrowed, widened};
use isovec_test_models::bundles::{bundle, half};

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
    assert_eq!(together.len(), texts.len() * models::HIDDEN, "{name}");
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
    if !has_adapter() {
        return;
    }
    for (name, model) in models::all() {
        agrees(name, &model);
    }
}

#[test]
fn models_of_pictures_agree_with_the_reference() {
    if !has_adapter() {
        return;
    }
    let seen: Vec<Vec<f32>> = (0..3).map(pictures::picture).collect();
    for (name, model) in pictures::all() {
        let bundle = half(&model, Stored::F32, Pooling::Cls, Half::Pictures);
        let grid = PatchGrid::of(&bundle.graph).unwrap();
        let engine = load(&bundle);
        let together = run(&engine, pictures::batch(&grid, &seen));
        let each = together.len() / seen.len();
        for (picture, found) in seen.iter().zip(together.chunks(each)) {
            let wanted = pictures::vector(&model, picture);
            assert_eq!(found.len(), wanted.len(), "{name}");
            for (found, wanted) in found.iter().zip(wanted) {
                let difference = (f64::from(*found) - wanted).abs();
                assert!(difference <= BOUND, "{name}: {difference:e}");
            }
            let alone = run(
                &engine,
                pictures::batch(&grid, std::slice::from_ref(picture)),
            );
            assert_eq!(alone, found, "{name}: a picture alone and in company");
        }
    }
}

#[test]
fn texts_of_models_of_pictures_agree_with_the_reference() {
    if !has_adapter() {
        return;
    }
    for (model, lengths) in [
        (pictures::clip(), &[pictures::POSITIONS, 1, 2, 9, 33][..]),
        (pictures::siglip(), &[pictures::FILLED; 3]),
    ] {
        let texts = texts(lengths);
        let engine = load(&half(&model, Stored::F32, Pooling::Cls, Half::Texts));
        let together = run(&engine, batch(&engine, &texts, 0));
        let each = together.len() / texts.len();
        for (text, found) in texts.iter().zip(together.chunks(each)) {
            let wanted = pictures::text_vector(&model, &text.0);
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(wanted) {
                let difference = (f64::from(*found) - wanted).abs();
                assert!(difference <= BOUND, "{difference:e}");
            }
        }
    }
}

#[test]
fn every_activation_agrees_with_the_reference() {
    if !has_adapter() {
        return;
    }
    for activation in ["gelu", "gelu_new", "quick_gelu", "relu", "silu"] {
        agrees(activation, &models::bert().with("hidden_act", activation));
    }
}

/// Tiles, which processors that play GPUs do not get by themselves, in products of all extents and of
/// fewer and more rows than a tile has.
#[test]
fn tiles_agree_with_the_reference() {
    if !has_adapter() {
        return;
    }
    let model = models::bert();
    let bundle = bundle(&model, Stored::F32, Pooling::Mean);
    let tiled = factory().with_tiles(true);
    let engine = pollster::block_on(tiled.load_model(&bundle, &config(), &Cancel::new())).unwrap();
    for lengths in [&[3][..], &[64, 1, 9, 33], &[61; 40]] {
        let texts = texts(lengths);
        let found = run(&engine, batch(&engine, &texts, 0));
        assert_eq!(found.len(), texts.len() * models::HIDDEN, "{lengths:?}");
        for (text, found) in texts.iter().zip(found.chunks(models::HIDDEN)) {
            let wanted = mean_normalised(&last_hidden_state(&model, &text.0, &text.1));
            for (found, wanted) in found.iter().zip(wanted) {
                let difference = (f64::from(*found) - wanted).abs();
                assert!(difference <= BOUND, "{lengths:?}: {difference:e}");
            }
        }
    }
}

/// Weights that are stored as f16 are computed with as they are.
#[test]
fn small_weights_agree_with_the_processor() {
    if !has_adapter() {
        return;
    }
    for stored in [Stored::F16, Stored::F32] {
        let bundle = bundle(&models::bert(), stored, Pooling::Mean);
        agrees_with(&bundle, &bundle, &format!("{stored:?}"));
    }
}

/// The processor rounds activations where weights are int8, and the device does not: it gives what the same weights
/// give in f32.
#[test]
fn int8_weights_agree_with_what_they_stand_for() {
    if !has_adapter() {
        return;
    }
    // Of a size at which tables stay int8.
    let model = models::bert_of(5, 400, 256, 1);
    let whole = bundle(&model, Stored::F32, Pooling::Mean);
    let cancel = Cancel::new();
    let int8 = narrowed(&whole, Precision::Int8, &cancel);
    let int8 = pollster::block_on(int8).unwrap().bundle;
    let bytes = |bundle: &ModelBundle| load(bundle).stats().gpu.unwrap().weight_bytes;
    assert!(bytes(&int8) < bytes(&whole), "nothing is stored small");
    agrees_with(&int8, &widened(&int8), "int8");
}

/// Compares a bundle's vectors with those that the processor computes of another.
fn agrees_with(bundle: &ModelBundle, other: &ModelBundle, name: &str) {
    let engine = load(bundle);
    let texts = texts(&[40, 1, 11]);
    let found = run(&engine, batch(&engine, &texts, 0));
    let wanted = on_the_processor(other, &batch(&engine, &texts, 0));
    assert_eq!(found.len(), wanted.len(), "{name}");
    for (found, wanted) in found.iter().zip(&wanted) {
        let apart = (f64::from(*found) - f64::from(*wanted)).abs();
        assert!(apart <= BOUND, "{name}: {found} for {wanted}");
    }
}

#[test]
fn every_pooling_agrees_with_the_processor() {
    if !has_adapter() {
        return;
    }
    for pooling in [
        Pooling::Mean,
        Pooling::Cls,
        Pooling::LastToken,
        Pooling::Max,
        Pooling::WeightedMean,
        Pooling::MeanSqrtLen,
    ] {
        let bundle = bundle(&models::bert(), Stored::F32, pooling);
        agrees_with(&bundle, &bundle, &format!("{pooling:?}"));
    }
}

fn on_the_processor(bundle: &ModelBundle, batch: &Batch) -> Vec<f32> {
    let mut never = Alone;
    let cancel = Cancel::new();
    let executable = Executable::compile(bundle, Arithmetic::Fast, &cancel, &mut never);
    let executable = Arc::new(pollster::block_on(executable).unwrap());
    let mut run = Run::new(executable, batch).unwrap();
    while run.step(None, &OneThread).unwrap().is_some() {}
    run.finish().remove(0).2
}
