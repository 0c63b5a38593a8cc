//! Models of static embeddings: the graph on tract against f64, and what is refused.

mod convert_support;

use convert_support::{Batch, Runner, inlined};
use isovec_engine::EngineError;
use isovec_model::convert::{Converted, Family, VOCABULARY, architecture, convert, family};
use isovec_test_models::static_embedding::{
    StaticModel, Stored, Tensor, file, plain, quantised, set,
};
use safetensors::tensor::Dtype;
use serde_json::json;

const TOKENS: usize = 40;
const ROWS: usize = 11;
const WIDTH: usize = 9;

const MODEL2VEC: &[u8] = br#"{"model_type": "model2vec", "normalize": true}"#;

fn converted(model: &StaticModel, table: &str, stored: Stored) -> Converted {
    convert(MODEL2VEC, model.tensor_set(table, stored)).expect("it converts")
}

/// Rows of the graph's output are those of the table, times the tokens' factors.
fn agrees(model: &StaticModel, table: &str, stored: Stored) {
    let converted = converted(model, table, stored);
    let entry = |key: &str| {
        let mut entries = converted.graph.metadata_props.iter();
        let entry = entries.find(|entry| entry.key == key).expect(key);
        entry.value.clone()
    };
    assert_eq!(entry(VOCABULARY), model.tokens().to_string());
    let texts: Vec<Vec<i64>> = vec![(0..model.tokens() as i64).collect(), vec![5], vec![7, 7, 0]];
    let types: Vec<Vec<i64>> = texts.iter().map(|ids| vec![0; ids.len()]).collect();
    let runner = Runner::new(&inlined(&converted)).expect("tract takes the graph");
    let found = runner
        .run(&Batch::padded(&texts, &types, 0))
        .expect("it runs");
    let rounded = StaticModel {
        normalize: false,
        ..model.clone().rounded(stored)
    };
    for (ids, rows) in texts.iter().zip(found) {
        for (&id, row) in ids.iter().zip(rows) {
            for (found, wanted) in row.into_iter().zip(rounded.vector(&[id])) {
                let difference = (f64::from(found) - wanted).abs();
                assert!(difference <= 1e-6 * wanted.abs().max(1.0), "{difference:e}");
            }
        }
    }
}

#[test]
fn every_form_agrees_with_the_reference() {
    for model in [plain(TOKENS, WIDTH), quantised(TOKENS, ROWS, WIDTH)] {
        for table in ["embeddings", "embedding.weight"] {
            for stored in [Stored::F32, Stored::F16, Stored::I8] {
                agrees(&model, table, stored);
            }
        }
    }
    let factors = StaticModel {
        mapping: None,
        weights: quantised(TOKENS, ROWS, WIDTH).weights,
        ..plain(TOKENS, WIDTH)
    };
    agrees(&factors, "embeddings", Stored::F32);
}

#[test]
fn a_shared_table_stays_as_small_as_it_is() {
    let converted = converted(&quantised(TOKENS, ROWS, WIDTH), "embeddings", Stored::F32);
    let infos = isovec_engine::weights::WeightSource::weights(&*converted.weights);
    let all: usize = infos.iter().map(|info| info.byte_len()).sum();
    assert_eq!(all, (ROWS * WIDTH + TOKENS + TOKENS) * 4);
}

#[test]
fn the_family_is_told_by_its_type_and_unknown_tokens_decide() {
    let st = br#"{"model_type": "static_embedding"}"#;
    assert_eq!(family("m", MODEL2VEC).unwrap(), Family::Static);
    assert_eq!(family("m", st).unwrap(), Family::Static);
    let other = br#"{"model_type": "model2vec", "normalize": true, "seq_length": 5}"#;
    assert_eq!(architecture(MODEL2VEC), architecture(other));
    assert_ne!(architecture(MODEL2VEC), architecture(st));
}

fn floats(shape: &[usize]) -> Tensor<'static> {
    let count = shape.iter().product::<usize>();
    ("embeddings", Dtype::F32, shape.to_vec(), vec![0; 4 * count])
}

fn whole(name: &'static str, values: &[i32]) -> Tensor<'static> {
    let bytes = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    (name, Dtype::I32, vec![values.len()], bytes)
}

fn factors(count: usize) -> Tensor<'static> {
    ("weights", Dtype::F32, vec![count], vec![0; 4 * count])
}

#[test]
fn tensors_that_do_not_fit_are_named() {
    let renamed = |name, tensor: Tensor<'static>| (name, tensor.1, tensor.2, tensor.3);
    let far: Vec<u8> = [0i64, 1 << 40]
        .iter()
        .flat_map(|row| row.to_le_bytes())
        .collect();
    let cases: [(&[Tensor<'_>], &str, &str); 13] = [
        (&[], "embeddings", "does not hold it"),
        (
            &[renamed("words", floats(&[4, 3]))],
            "embeddings",
            "does not hold it",
        ),
        (&[floats(&[12])], "embeddings", "[12]"),
        (&[floats(&[2, 2, 3])], "embeddings", "[2, 2, 3]"),
        (&[floats(&[0, 3])], "embeddings", "[0, 3]"),
        (&[floats(&[3, 0])], "embeddings", "[3, 0]"),
        (
            &[("embeddings", Dtype::I64, vec![1, 1], vec![0; 8])],
            "embeddings",
            "I64",
        ),
        (
            &[floats(&[4, 3]), whole("mapping", &[0, 3, 4])],
            "mapping",
            "token 2 to row 4",
        ),
        (
            &[floats(&[4, 3]), whole("mapping", &[0, -1])],
            "mapping",
            "token 1 to row -1",
        ),
        (
            &[floats(&[4, 3]), ("mapping", Dtype::I64, vec![2], far)],
            "mapping",
            "1099511627776",
        ),
        (
            &[floats(&[4, 3]), renamed("mapping", factors(4))],
            "mapping",
            "F32",
        ),
        (&[floats(&[4, 3]), factors(3)], "weights", "[4] of floats"),
        (
            &[
                floats(&[4, 3]),
                whole("mapping", &[0, 1, 2, 3, 3]),
                factors(4),
            ],
            "weights",
            "[5] of floats",
        ),
    ];
    for (tensors, named, said) in cases {
        let error = convert(MODEL2VEC, set(file(tensors))).unwrap_err();
        let message = error.to_string();
        match error {
            EngineError::Weight { name, .. } => assert_eq!(name, named, "{message}"),
            other => panic!("{other}"),
        }
        assert!(message.contains(said), "{message} does not say {said}");
    }
    let config = json!({"model_type": "model2vec2"}).to_string();
    let error = convert(config.as_bytes(), set(file(&[floats(&[4, 3])]))).unwrap_err();
    assert_eq!(error.kind(), "UnsupportedModel");
}
