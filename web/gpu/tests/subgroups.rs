//! Kernels that share by subgroups: as near to the reference as those that do not, for any size of a subgroup, and with
//! the same bits for a text in any company.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use common::{batch, config, factory, has_adapter, in_f16, options, run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Engine;
use isovec_gpu::GpuEngine;
use isovec_model::head::Pooling;
use isovec_test_models::bundles::bundle;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::models;
use isovec_test_models::reference::{last_hidden_state, mean_normalised};
use isovec_test_models::texts::{Text, texts};

/// The largest difference of a component of a unit vector in f32, and the L2 distance in f16.
const BOUND: f64 = 2e-6;
const BOUND_F16: f64 = 5e-3;

/// An engine that shares by subgroups or does not; `None`, aloud, where the adapter lacks what it wants.
fn load(bundle: &ModelBundle, subgroups: bool, tiles: bool, f16: bool) -> Option<GpuEngine> {
    if !has_adapter() {
        return None;
    }
    let options = if f16 { in_f16() } else { options() };
    let factory = factory().with_options(options);
    let factory = factory.with_subgroups(subgroups).with_tiles(tiles);
    let cancel = Cancel::new();
    let engine = pollster::block_on(factory.load_model(bundle, &config(), &cancel)).unwrap();
    let gpu = engine.stats().gpu.unwrap();
    if (gpu.subgroups, gpu.f16) != (subgroups, f16) {
        eprintln!("not run: {} has no subgroups, or no f16", gpu.adapter);
        return None;
    }
    Some(engine)
}

/// The largest difference of a component, and the largest L2 distance.
fn apart(model: &Checkpoint, texts: &[Text], found: &[f32]) -> (f64, f64) {
    let (mut component, mut l2) = (0f64, 0f64);
    for (text, found) in texts.iter().zip(found.chunks(found.len() / texts.len())) {
        let wanted = mean_normalised(&last_hidden_state(model, &text.0, &text.1));
        let differences = found
            .iter()
            .zip(wanted)
            .map(|(a, b)| (f64::from(*a) - b).abs());
        let differences: Vec<f64> = differences.collect();
        component = differences.iter().copied().fold(component, f64::max);
        l2 = l2.max(differences.iter().map(|x| x * x).sum::<f64>().sqrt());
    }
    (component, l2)
}

#[test]
fn every_family_agrees_with_the_reference() {
    agree(models::all());
}

/// In models whose rows are long enough for a group of threads to add them up together.
#[test]
fn heads_of_every_size_agree_with_the_reference() {
    let bert = |hidden, heads| {
        models::bert_of(5, models::VOCABULARY, hidden, 1).with("num_attention_heads", heads)
    };
    agree(vec![
        ("heads of 48", bert(96, 2)),
        ("heads of 6", bert(72, 12)),
        ("one head", bert(160, 1)),
    ]);
}

fn agree(models: Vec<(&str, Checkpoint)>) {
    for (name, model) in models {
        for f16 in [false, true] {
            let bundle = bundle(&model, Stored::F32, Pooling::Mean);
            let Some(engine) = load(&bundle, true, false, f16) else {
                return;
            };
            let texts = texts(&[64, 1, 2, 9, 33]);
            let padding = model.config["pad_token_id"].as_i64().unwrap_or(0);
            let together = run(&engine, batch(&engine, &texts, padding));
            let (component, l2) = apart(&model, &texts, &together);
            println!("{name}, f16 {f16}: component {component:.1e}, L2 {l2:.1e}");
            match f16 {
                true => assert!(l2 <= BOUND_F16, "{name}: {l2:e}"),
                false => assert!(component <= BOUND, "{name}: {component:e}"),
            }
            let width = together.len() / texts.len();
            for (text, found) in texts.iter().zip(together.chunks(width)) {
                let alone = run(&engine, batch(&engine, std::slice::from_ref(text), 0));
                assert_eq!(alone, found, "{name}: a text alone and in company");
            }
        }
    }
}

/// Whatever a product's operands come by, its sums have one order.
#[test]
fn products_have_the_same_bits_as_by_tiles() {
    let model = models::bert_of(5, models::VOCABULARY, 160, 2);
    let bundle = bundle(&model, Stored::F32, Pooling::Mean);
    for f16 in [false, true] {
        // Without tiles all products are by subgroups, with them none.
        let (Some(told), Some(tiled)) = (
            load(&bundle, true, false, f16),
            load(&bundle, true, true, f16),
        ) else {
            return;
        };
        for lengths in [&[3][..], &[64, 1, 9, 33], &[61; 40]] {
            let texts = texts(lengths);
            let found = run(&told, batch(&told, &texts, 0));
            assert_eq!(found, run(&tiled, batch(&tiled, &texts, 0)), "{lengths:?}");
        }
    }
}

/// Products by subgroups are among those whose times are compared, and whichever is the fastest, the vectors are right.
#[test]
fn what_is_measured_computes_the_same() {
    let model = models::bert_of(5, models::VOCABULARY, 160, 1);
    let bundle = bundle(&model, Stored::F32, Pooling::Mean);
    let Some(by_rule) = load(&bundle, true, true, false) else {
        return;
    };
    let factory = factory().with_subgroups(true).with_tiles(true);
    let (factory, cancel) = (factory.with_tuning(true), Cancel::new());
    let tuned = pollster::block_on(factory.load_model(&bundle, &config(), &cancel)).unwrap();
    let [rule, measured] = [&by_rule, &tuned].map(|engine| engine.stats().gpu.unwrap());
    assert!(measured.tuned && !rule.tuned);
    assert_eq!(measured.pipelines, rule.pipelines);
    let without = load(&bundle, false, true, false).unwrap();
    let shapes = 4;
    let others = without.stats().gpu.unwrap().pipelines;
    assert_eq!(
        measured.pipelines,
        others + shapes + 1,
        "one more for each shape, and attention's"
    );
    for lengths in [&[3][..], &[64, 1, 9, 33], &[61; 40]] {
        let texts = texts(lengths);
        let expected = run(&by_rule, batch(&by_rule, &texts, 0));
        let found = run(&tuned, batch(&tuned, &texts, 0));
        let apart = expected.iter().zip(&found).map(|(a, b)| (a - b).abs());
        let farthest = apart.fold(0.0, f32::max);
        assert!(f64::from(farthest) <= BOUND, "{lengths:?}: {farthest:e}");
    }
}

/// Of other sizes: Mesa's llvmpipe has as many threads in a subgroup as its vectors have numbers, for which it asks the
/// environment. (Other drivers run the same once more.)
#[test]
fn the_size_of_a_subgroup_does_not_matter() {
    let program = std::env::current_exe().unwrap();
    for bits in ["128", "512"] {
        let run = std::process::Command::new(&program)
            .args(["--exact", "products_have_the_same_bits_as_by_tiles"])
            .args(["heads_of_every_size_agree_with_the_reference"])
            .env("LP_NATIVE_VECTOR_WIDTH", bits)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{bits} bits: {said}");
        assert!(said.contains("2 passed"), "{bits} bits: {said}");
    }
}

/// They are other kernels, and no more of them.
#[test]
fn there_are_as_many_dispatches() {
    let model = models::bert_of(5, models::VOCABULARY, 96, 2);
    let bundle = bundle(&model, Stored::F32, Pooling::Max);
    let Some(with) = load(&bundle, true, true, false) else {
        return;
    };
    let without = load(&bundle, false, true, false).unwrap();
    let dispatches = |engine: &GpuEngine| engine.stats().gpu.unwrap().dispatches_per_run;
    assert_eq!(dispatches(&with), dispatches(&without));
    let texts = texts(&[7, 40]);
    let [with, without] = [&with, &without].map(|engine| run(engine, batch(engine, &texts, 0)));
    assert_ne!(
        with, without,
        "sums have the order of subgroups, if there are any"
    );
}
