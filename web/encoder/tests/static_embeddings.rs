//! Models of static embeddings: their programs agree with f64, look up and add up in one operator, and have the bits of a
//! program that does it in two.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::sync::Arc;

use isovec_encoder::{Executable, NoTurns, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::fingerprint::Precision;
use isovec_engine::weights::WeightsIdentity;
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::convert::convert;
use isovec_model::head::{HeadSpec, Pooling, attach_head};
use isovec_model::precision::narrowed;
use isovec_test_models::models::VOCABULARY;
use isovec_test_models::static_embedding::{StaticModel, Stored, plain, quantised};
use isovec_test_models::texts::{batch, texts};

/// The largest difference of a component of a unit vector.
const BOUND: f64 = 1e-6;

/// Columns in a tile, and beside one.
const WIDTH: usize = 45;

fn bundle(model: &StaticModel, pooling: Pooling) -> ModelBundle {
    let config = model.config().to_string();
    let tensors = model.tensor_set("embeddings", Stored::F32);
    let converted = convert(config.as_bytes(), tensors).unwrap();
    let mut bundle = ModelBundle {
        graph: converted.graph,
        weights: converted.weights,
        identity: WeightsIdentity("test".into()),
        files: Default::default(),
        model_file: "model.safetensors".into(),
        origin: "a model of the tests".into(),
    };
    attach_head(&mut bundle, &HeadSpec::new(pooling, model.normalize)).unwrap();
    bundle
}

fn compiled(bundle: &ModelBundle) -> Arc<Executable> {
    let (cancel, mut turns) = (Cancel::new(), NoTurns);
    let executable = Executable::compile(bundle, Arithmetic::Fast, &cancel, &mut turns);
    Arc::new(pollster::block_on(executable).unwrap())
}

fn run(executable: &Arc<Executable>, texts: &[Vec<i64>], budget: Option<u64>) -> Vec<f32> {
    let texts: Vec<_> = texts
        .iter()
        .map(|ids| (ids.clone(), vec![0; ids.len()]))
        .collect();
    let mut run = Run::new(Arc::clone(executable), &batch(&texts, 0)).unwrap();
    while run.step(budget, &OneThread).unwrap().is_some() {}
    run.finish().remove(0).2
}

fn some_texts() -> Vec<Vec<i64>> {
    let texts = texts(&[64, 1, 2, 9, 700]);
    texts.into_iter().map(|(ids, _)| ids).collect()
}

fn models() -> [StaticModel; 3] {
    let shared = quantised(VOCABULARY, 17, WIDTH);
    let factors = StaticModel {
        mapping: None,
        ..plain(VOCABULARY, WIDTH)
    };
    let factors = StaticModel {
        weights: shared.weights.clone(),
        ..factors
    };
    [plain(VOCABULARY, WIDTH), shared, factors]
}

#[test]
fn programs_agree_with_the_reference() {
    let texts = some_texts();
    for model in models() {
        for normalize in [true, false] {
            let model = StaticModel {
                normalize,
                ..model.clone()
            };
            let executable = compiled(&bundle(&model, Pooling::Mean));
            let operators = executable.operators().join(" ");
            assert!(!operators.contains("gather"), "{operators}");
            let together = run(&executable, &texts, None);
            for (ids, found) in texts.iter().zip(together.chunks(WIDTH)) {
                for (found, wanted) in found.iter().zip(model.vector(ids)) {
                    let difference = (f64::from(*found) - wanted).abs();
                    assert!(difference <= BOUND, "{difference:e}");
                }
                let alone = run(&executable, std::slice::from_ref(ids), None);
                assert_eq!(alone, found, "a text alone and in company");
            }
            assert_eq!(run(&executable, &texts, Some(1)), together, "in pieces");
        }
    }
}

/// A second reader keeps the rows of the tokens, so that both operators run.
#[test]
fn a_sum_of_looked_up_rows_has_the_bits_of_a_sum_of_rows() {
    for model in models() {
        let fused = bundle(&model, Pooling::Mean);
        let mut apart = fused.clone();
        let graph = apart.graph.graph.as_mut().unwrap();
        let mut rows = graph.output[0].clone();
        rows.name = "last_hidden_state".into();
        graph.output.push(rows);
        let (fused, apart) = (compiled(&fused), compiled(&apart));
        assert!(apart.operators().contains(&"gather"));
        let texts = some_texts();
        assert_eq!(run(&fused, &texts, None), run(&apart, &texts, None));
    }
}

#[test]
fn other_poolings_read_the_rows() {
    let model = plain(VOCABULARY, WIDTH);
    let executable = compiled(&bundle(&model, Pooling::Max));
    assert!(executable.operators().contains(&"gather"));
    let found = run(&executable, &[vec![3]], None);
    for (found, wanted) in found.iter().zip(model.vector(&[3])) {
        assert!((f64::from(*found) - wanted).abs() <= BOUND);
    }
}

/// Rows of f16 and int8 are read as they are stored.
#[test]
fn small_tables_stay_small() {
    let texts = some_texts();
    for (to, bound) in [(Precision::F16, 0.999_999), (Precision::Int8, 0.9995)] {
        for model in models() {
            let full = bundle(&model, Pooling::Mean);
            let small = pollster::block_on(narrowed(&full, to, &Cancel::new())).unwrap();
            let (full, small) = (compiled(&full), compiled(&small.bundle));
            // The shared table has fewer than 4 KiB.
            if model.mapping.is_none() {
                assert!(small.weight_bytes() < full.weight_bytes() * 6 / 10);
            }
            let [full, small] = [full, small].map(|program| run(&program, &texts, None));
            for (full, small) in full.chunks(WIDTH).zip(small.chunks(WIDTH)) {
                let cosine: f32 = full.iter().zip(small).map(|(a, b)| a * b).sum();
                assert!(cosine >= bound, "{to}: {cosine}");
            }
        }
    }
}

#[test]
fn ids_that_have_no_row_are_refused() {
    for model in models() {
        let executable = compiled(&bundle(&model, Pooling::Mean));
        for id in [VOCABULARY as i64, -1] {
            let text = (vec![2, id], vec![0; 2]);
            let mut run = Run::new(Arc::clone(&executable), &batch(&[text], 0)).unwrap();
            let error = loop {
                match run.step(None, &OneThread) {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("id {id} has no row"),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains(&id.to_string()), "{error}");
        }
    }
}
