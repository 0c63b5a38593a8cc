//! `session.deterministic_compute`: what a text's bits come from depends neither on the texts beside it nor on the clock.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use common::{batch, config, factory, has_adapter, run};
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Engine;
use isovec_gpu::GpuEngine;
use isovec_model::head::Pooling;
use isovec_test_models::bundles::bundle;
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::models;
use isovec_test_models::texts::texts;

/// An engine with all kernels that there are for products.
fn load(deterministic: bool, tuning: bool) -> GpuEngine {
    let mut config = config();
    config.session.deterministic_compute = Some(deterministic);
    let bundle = bundle(&models::bert(), Stored::F32, Pooling::Mean);
    let factory = factory().with_tiles(true).with_tuning(tuning);
    pollster::block_on(factory.load_model(&bundle, &config, &Cancel::new())).unwrap()
}

/// What it says of the knob, and whether that is what was asked for.
fn said(engine: &GpuEngine) -> (String, bool) {
    let knob = engine.effective().get("session.deterministic_compute");
    let knob = knob.unwrap();
    (knob.used.clone(), knob.honoured)
}

#[test]
fn a_text_has_the_same_bits_alone_and_among_many() {
    if !has_adapter() {
        return;
    }
    let engine = load(true, true);
    assert!(!engine.stats().gpu.unwrap().tuned, "the clock has no say");
    assert!(engine.capabilities().deterministic);
    assert_eq!(said(&engine), ("true".into(), true));
    // As many rows as large tiles are for.
    let many = texts(&[61; 40]);
    let together = run(&engine, batch(&engine, &many, 0));
    assert_eq!(together.len(), many.len() * models::HIDDEN);
    for (text, found) in many.iter().zip(together.chunks(models::HIDDEN)) {
        let alone = run(&engine, batch(&engine, std::slice::from_ref(text), 0));
        assert_eq!(alone, found);
    }
}

/// Without it products have a kernel for few rows and others for many, which nobody takes for a promise.
#[test]
fn bits_are_promised_only_where_that_is_asked_for() {
    if !has_adapter() {
        return;
    }
    let engine = load(false, false);
    assert!(!engine.capabilities().deterministic);
    assert_eq!(said(&engine), ("false".into(), true));
}
