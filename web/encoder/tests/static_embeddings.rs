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
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{int, ints};
use isovec_model::precision::narrowed;
use isovec_test_models::static_embedding::{StaticModel, Stored, plain, quantised};
use isovec_test_models::texts::{batch, texts};

/// The largest difference of a component of a unit vector.
const BOUND: f64 = 1e-6;

/// Columns in a tile, and beside one.
const WIDTH: usize = 45;
/// Tokens, and rows that they share: tables that are large enough to be looked up in as they are stored.
const TOKENS: usize = 2000;
const ROWS: usize = 1600;

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
    let shared = quantised(TOKENS, ROWS, WIDTH);
    let factors = StaticModel {
        mapping: None,
        ..plain(TOKENS, WIDTH)
    };
    let factors = StaticModel {
        weights: shared.weights.clone(),
        ..factors
    };
    [plain(TOKENS, WIDTH), shared, factors]
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
            // A token's row in a shared table is looked up before.
            let gathers = operators.matches("gather").count();
            assert_eq!(gathers, usize::from(model.mapping.is_some()), "{operators}");
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
        let mut most = graph.output[0].clone();
        most.name = "most".into();
        graph.output.push(most);
        let attributes = vec![ints("axes", &[1]), int("keepdims", 0)];
        let mut builder = GraphBuilder::new(graph, "");
        builder.named_node("ReduceMax", &["last_hidden_state"], "most", attributes);
        let (fused, apart) = (compiled(&fused), compiled(&apart));
        let gathers =
            |program: &Executable| program.operators().join(" ").matches("gather").count();
        assert!(gathers(&apart) > gathers(&fused));
        let texts = some_texts();
        assert_eq!(run(&fused, &texts, None), run(&apart, &texts, None));
    }
}

#[test]
fn other_poolings_read_the_rows() {
    let model = plain(TOKENS, WIDTH);
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
            assert!(small.weight_bytes() < full.weight_bytes() * 6 / 10);
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
        for id in [TOKENS as i64, -1] {
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
