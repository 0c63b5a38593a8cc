//! Products of whole numbers: what ONNX Runtime computes of int8 weights.

use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::engine::Engine;
use isovec_engine::fingerprint::Precision;
use isovec_engine::tensor::{DType, Tensor};
use isovec_engine::weights::{BytesWeights, WeightInfo, Weights};
use isovec_model::onnx::builder::int;

use super::models::*;
use super::{available, load};
use crate::factory::multiplies_bytes;

const DEEP: usize = 256;
const COLUMNS: usize = 48;

/// Whole numbers of -127 to 127, in no order.
fn whole(at: usize) -> i8 {
    ((at * 7919 + 13) % 255) as i16 as i8
}

fn scale(column: usize) -> f32 {
    0.01 + column as f32 / 1000.0
}

/// `y = x · (whole · scale)`.
fn stored() -> ModelBundle {
    let mut weights = BytesWeights::new();
    let info = |name: &str, dtype, shape: &[usize]| WeightInfo {
        name: name.into(),
        dtype,
        shape: shape.to_vec(),
    };
    let values: Vec<u8> = (0..DEEP * COLUMNS).map(|at| whole(at) as u8).collect();
    let scales: Vec<f32> = (0..COLUMNS).map(scale).collect();
    let matrix = info("whole", DType::I8, &[DEEP, COLUMNS]);
    weights.push(matrix, bytes::Bytes::from(values)).unwrap();
    let scale = info("scale", DType::F32, &[COLUMNS]);
    weights.push(scale, bytes_of(&scales)).unwrap();
    let weights: Weights = Arc::new(weights);
    bundle(weights, |graph| {
        graph.input("x", DType::F32, &[rows(), Dim::Fixed(DEEP)]);
        let inputs = ["whole", "scale"];
        let matrix = graph.node("DequantizeLinear", &inputs, vec![int("axis", 1)]);
        graph.named_node("MatMul", &["x", &matrix], "y", vec![]);
        graph.output("y", DType::F32, &[rows(), Dim::Fixed(COLUMNS)]);
    })
}

/// Rows whose values are of one size but for one, which is far larger.
fn input(rows: usize) -> Vec<f32> {
    let value = |at: usize| match at % DEEP {
        200 => 90.0,
        _ => ((at * 31 + 7) % 101) as f32 / 50.0 - 1.0,
    };
    (0..rows * DEEP).map(value).collect()
}

fn run(engine: &dyn Engine, x: &[f32]) -> Vec<f32> {
    let tensor = Tensor::from_slice(&[x.len() / DEEP, DEEP], x).unwrap();
    let batch = batch(vec![("x", tensor)]);
    let mut output = engine.run_blocking(batch, &Cancel::new()).unwrap();
    let y = output.take("y").unwrap();
    y.as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn activations_are_rounded_on_request_and_rows_stay_apart() {
    if !available() {
        return;
    }
    let x = input(5);
    let exact: Vec<f64> =
        x.chunks(DEEP)
            .flat_map(|row| {
                let cell = |column: usize| {
                    let terms = row.iter().enumerate().map(|(at, value)| {
                        f64::from(*value) * f64::from(whole(at * COLUMNS + column))
                    });
                    terms.sum::<f64>() * f64::from(scale(column))
                };
                (0..COLUMNS).map(cell).collect::<Vec<_>>()
            })
            .collect();
    let mut errors = Vec::new();
    for rounds in [false, true] {
        let engine = load(&stored().with_rounded_activations(rounds)).unwrap();
        let y = run(&*engine, &x);
        let off = y
            .iter()
            .zip(&exact)
            .map(|(y, exact)| (f64::from(*y) - exact).powi(2));
        let size: f64 = exact.iter().map(|exact| exact * exact).sum();
        errors.push((off.sum::<f64>() / size).sqrt());
        // A row does not depend on the rows beside it, but for the order of sums.
        for (row, y) in x.chunks(DEEP).zip(y.chunks(COLUMNS)) {
            let alone = run(&*engine, row);
            let off = alone.iter().zip(y).map(|(alone, y)| (alone - y).abs());
            let most = off.fold(0f32, f32::max);
            assert!(most <= 1e-3, "{most}");
        }
        let expected = match rounds && multiplies_bytes() {
            true => Precision::Int8Fast,
            false => Precision::F32,
        };
        assert_eq!(engine.capabilities().precision, expected);
    }
    let [wide, rounded] = errors[..] else {
        panic!("{errors:?}")
    };
    assert!(wide < 1e-5, "{errors:?}");
    match multiplies_bytes() {
        true => assert!((1e-5..2e-2).contains(&rounded), "{errors:?}"),
        false => assert!(rounded < 1e-5, "{errors:?}"),
    }
}
