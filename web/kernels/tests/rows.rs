//! What is computed row by row (norms, softmax, gates) against formulas in f64, and in the
//! documented order of sums.
#![cfg(not(target_arch = "wasm32"))] // Its random cases want a source of randomness.

mod common;

use common::{assert_close, bits, sum_in_lanes, values};
use isovec_kernels::{Activation, Columns, Norm, NormKind, l2_normalize, softmax};
use proptest::prelude::*;

const EPSILON: f32 = 1e-5;

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// The mean that a norm takes away from a row, and what it divides by.
fn moments(kind: NormKind, x: &[f64]) -> (f64, f64) {
    let count = x.len() as f64;
    let mean = match kind {
        NormKind::Layer => x.iter().sum::<f64>() / count,
        NormKind::RootMeanSquare => 0.0,
    };
    let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    (mean, (variance + f64::from(EPSILON)).sqrt())
}

/// The formula of a norm for one row.
fn exact_norm(kind: NormKind, x: &[f64], gamma: &[f32], beta: Option<&[f32]>) -> Vec<f64> {
    let (mean, root) = moments(kind, x);
    x.iter()
        .enumerate()
        .map(|(i, x)| {
            (x - mean) / root * f64::from(gamma[i]) + beta.map_or(0.0, |beta| f64::from(beta[i]))
        })
        .collect()
}

/// The same, one operation of f32 after another.
fn twin_norm(kind: NormKind, x: &[f32], gamma: &[f32], beta: Option<&[f32]>) -> Vec<f32> {
    let count = x.len() as f32;
    let mean = match kind {
        NormKind::Layer => sum_in_lanes(x.iter().copied()) / count,
        NormKind::RootMeanSquare => 0.0,
    };
    let squares = x.iter().map(|x| (x - mean) * (x - mean));
    let scale = 1.0 / (sum_in_lanes(squares) / count + EPSILON).sqrt();
    let scaled = x
        .iter()
        .zip(gamma)
        .map(|(x, gamma)| (x - mean) * scale * gamma);
    match beta {
        Some(beta) => scaled.zip(beta).map(|(x, beta)| x + beta).collect(),
        None => scaled.collect(),
    }
}

fn kinds() -> impl Strategy<Value = NormKind> {
    prop_oneof![Just(NormKind::Layer), Just(NormKind::RootMeanSquare)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn norms_are_their_formulas(
        kind in kinds(), rows in 0usize..5, width in 1usize..100, with_beta in any::<bool>(),
        shift in -3f32..3.0, seed in 0u64..1000,
    ) {
        let x: Vec<f32> = values(seed, rows * width).iter().map(|x| x + shift).collect();
        let residual = values(seed + 1, rows * width);
        let (gamma, beta) = (values(seed + 2, width), values(seed + 3, width));
        let beta = with_beta.then_some(&beta[..]);
        let norm = Norm::new(kind, &gamma, beta, EPSILON);

        let exact: Vec<f64> = wide(&x)
            .chunks_exact(width)
            .flat_map(|row| exact_norm(kind, row, &gamma, beta))
            .collect();
        let twin = |x: &[f32]| -> Vec<f32> {
            x.chunks_exact(width).flat_map(|row| twin_norm(kind, row, &gamma, beta)).collect()
        };
        let mut out = vec![f32::NAN; x.len()];
        norm.apply_to(&x, &mut out);
        // A row whose values are close together loses digits with its mean: the rounding of a large
        // number is divided by a small one.
        let lost = wide(&x).chunks_exact(width).fold(0.0f64, |most, row| {
            let largest = row.iter().fold(0.0f64, |most, x| most.max(x.abs()));
            most.max(largest / moments(kind, row).1)
        });
        assert_close(&out, &exact, 5e-7 * (10.0 + lost));
        prop_assert_eq!(bits(&out), bits(&twin(&x)));
        let mut in_place = x.clone();
        norm.apply(&mut in_place);
        prop_assert_eq!(bits(&in_place), bits(&out));

        let sum: Vec<f32> = x.iter().zip(&residual).map(|(x, r)| x + r).collect();
        let mut added = x.clone();
        norm.add_apply(&mut added, &residual);
        prop_assert_eq!(bits(&added), bits(&twin(&sum)));
        let mut kept = x.clone();
        norm.add_apply_to(&mut kept, &residual, &mut out);
        prop_assert_eq!(bits(&kept), bits(&sum));
        prop_assert_eq!(bits(&out), bits(&added));
    }

    #[test]
    fn l2_normalisation_is_its_formula(rows in 0usize..5, width in 1usize..100, seed in 0u64..1000) {
        let x = values(seed, rows * width);
        let mut out = x.clone();
        l2_normalize(&mut out, width, 1e-12);
        let exact: Vec<f64> = wide(&x).chunks_exact(width).flat_map(|row| {
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
            row.iter().map(move |x| x / norm).collect::<Vec<_>>()
        }).collect();
        assert_close(&out, &exact, 3e-7);
        let twin: Vec<f32> = x.chunks_exact(width).flat_map(|row| {
            let norm = sum_in_lanes(row.iter().map(|x| x * x)).sqrt();
            row.iter().map(move |x| x / norm)
        }).collect();
        prop_assert_eq!(bits(&out), bits(&twin));
    }

    #[test]
    fn softmax_is_its_formula(rows in 0usize..5, width in 1usize..100, seed in 0u64..1000) {
        let x: Vec<f32> = values(seed, rows * width).iter().map(|x| x * 20.0).collect();
        let mut out = x.clone();
        softmax(&mut out, width);
        let exact: Vec<f64> = wide(&x).chunks_exact(width).flat_map(|row| {
            let max = row.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let weights: Vec<f64> = row.iter().map(|x| libm::exp(x - max)).collect();
            let sum: f64 = weights.iter().sum();
            weights.into_iter().map(move |weight| weight / sum)
        }).collect();
        assert_close(&out, &exact, 3e-7);
        let twin: Vec<f32> = x.chunks_exact(width).flat_map(|row| {
            let max = row.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
            let mut weights: Vec<f32> = row.iter().map(|x| x - max).collect();
            Activation::Exp.apply(&mut weights);
            let sum = sum_in_lanes(weights.iter().copied());
            weights.into_iter().map(move |weight| weight / sum)
        }).collect();
        prop_assert_eq!(bits(&out), bits(&twin));
    }

    #[test]
    fn gates_multiply(rows in 0usize..5, width in 0usize..40, seed in 0u64..1000) {
        // Both halves of one buffer, with a column more at the end.
        let stride = 2 * width + 1;
        let fused = values(seed, rows * stride);
        let mut out = vec![f32::NAN; rows * width];
        let (a, b) = (Columns::new(&fused, stride, 0, width), Columns::new(&fused, stride, width, width));
        Activation::Silu.gate(a, b, &mut out);
        let exact: Vec<f64> = wide(&fused).chunks_exact(stride).flat_map(|row| {
            (0..width).map(|i| row[i] / (1.0 + libm::exp(-row[i])) * row[width + i]).collect::<Vec<_>>()
        }).collect();
        assert_close(&out, &exact, 1e-7);
    }

    #[test]
    fn where_an_element_stands_does_not_matter(length in 1usize..70, at in 0usize..70, x in any::<f32>()) {
        let at = at % length;
        for activation in [
            Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::GeluSigmoid,
            Activation::Silu, Activation::Tanh, Activation::Sigmoid, Activation::Erf, Activation::Exp,
        ] {
            let (mut alone, mut among) = ([x], vec![0.5; length]);
            among[at] = x;
            activation.apply(&mut alone);
            activation.apply(&mut among);
            prop_assert_eq!(alone[0].to_bits(), among[at].to_bits());
        }
    }
}

#[test]
fn wide_rows_far_from_zero_keep_their_accuracy() {
    for width in [768, 1024, 4096] {
        let x: Vec<f32> = values(9, width).iter().map(|x| x + 10.0).collect();
        let (gamma, beta) = (values(10, width), values(11, width));
        let norm = Norm::new(NormKind::Layer, &gamma, Some(&beta), EPSILON);
        let mut out = vec![0.0; width];
        norm.apply_to(&x, &mut out);
        let exact = exact_norm(NormKind::Layer, &wide(&x), &gamma, Some(&beta));
        assert_close(&out, &exact, 2e-6);
    }
}

#[test]
fn nan_stays_and_stays_in_its_row() {
    let gamma = [1.0; 20];
    let norm = Norm::new(NormKind::Layer, &gamma, None, EPSILON);
    let spoilt = |function: &dyn Fn(&mut [f32])| {
        let mut x = values(3, 60);
        x[25] = f32::NAN;
        function(&mut x);
        for (index, x) in x.iter().enumerate() {
            assert_eq!(x.is_nan(), (20..40).contains(&index), "element {index}");
        }
    };
    spoilt(&|x| norm.apply(x));
    spoilt(&|x| l2_normalize(x, 20, 1e-12));
    spoilt(&|x| softmax(x, 20));
}

#[test]
fn a_row_of_zeros_has_a_direction_of_zeros() {
    let mut x = [0.0; 5];
    l2_normalize(&mut x, 5, 1e-12);
    assert_eq!(x, [0.0; 5]);
}

#[test]
fn hidden_scores_have_no_weight() {
    let mut x = [0.0, f32::NEG_INFINITY, 0.0, -200.0];
    softmax(&mut x, 4);
    assert_eq!(x, [0.5, 0.0, 0.5, 0.0]);
}
