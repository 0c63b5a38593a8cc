//! Kernels that work row by row, or value by value.

use arbitrary::{Result, Unstructured};
use isovec_kernels::{Activation, Columns, Norm, NormKind, Pooling, l2_normalize, pool, softmax};

use super::{Matrix, U, Values, close, extent, place, some, sum_off};
use crate::guarded::Guarded;

pub(super) fn norm(u: &mut Unstructured<'_>) -> Result<()> {
    let (rows, width) = (extent(u, 6)?, some(u, 200)?);
    let mut values = Values::even(u)?;
    let x = values.many(rows * width);
    let residual = Guarded::new(place(u)?, &values.many(rows * width));
    let gamma = Guarded::new(place(u)?, &values.many(width));
    let beta = match u.arbitrary()? {
        true => Some(Guarded::new(place(u)?, &values.many(width))),
        false => None,
    };
    let epsilon = [1e-12_f32, 1e-5, 1e-3][u.int_in_range(0..=2)?];
    let kind = match u.arbitrary()? {
        true => NormKind::Layer,
        false => NormKind::RootMeanSquare,
    };
    let way = u.int_in_range(0..=5)?;
    let mut from = Guarded::new(place(u)?, &x);
    let mut out = Guarded::new(place(u)?, &vec![f32::NAN; rows * width]);
    let norm = Norm::new(
        kind,
        gamma.as_slice(),
        beta.as_ref().map(Guarded::as_slice),
        epsilon,
    );
    // Sums of two are rounded once, wherever that is done.
    let sums: Vec<f32> = x
        .iter()
        .zip(residual.as_slice())
        .map(|(a, b)| a + b)
        .collect();
    let (what, got, of) = match way {
        0 => {
            norm.apply(from.as_mut_slice());
            ("apply", &from, &x)
        }
        1 => {
            norm.apply_to(from.as_slice(), out.as_mut_slice());
            ("apply_to", &out, &x)
        }
        2 => {
            norm.add_apply(from.as_mut_slice(), residual.as_slice());
            ("add_apply", &from, &sums)
        }
        3 => {
            norm.add_apply_to(from.as_mut_slice(), residual.as_slice(), out.as_mut_slice());
            assert_eq!(from.as_slice(), sums, "add_apply_to carries the sum past");
            ("add_apply_to", &out, &sums)
        }
        4 => {
            softmax(from.as_mut_slice(), width);
            from.check("softmax");
            softmaxed(&x, from.as_slice(), width);
            return Ok(());
        }
        _ => {
            l2_normalize(from.as_mut_slice(), width, epsilon);
            from.check("l2_normalize");
            of_unit_length(&x, from.as_slice(), width, epsilon);
            return Ok(());
        }
    };
    from.check(what);
    out.check(what);
    for (row, (of, got)) in of
        .chunks_exact(width)
        .zip(got.as_slice().chunks_exact(width))
        .enumerate()
    {
        let count = width as f64;
        let of: Vec<f64> = of.iter().copied().map(f64::from).collect();
        let magnitude = of.iter().map(|x| x.abs()).sum::<f64>() / count;
        let (mean, mean_off) = match kind {
            NormKind::Layer => (
                of.iter().sum::<f64>() / count,
                sum_off(width + 1, magnitude),
            ),
            NormKind::RootMeanSquare => (0.0, 0.0),
        };
        let distances: Vec<f64> = of.iter().map(|x| x - mean).collect();
        let off = |distance: f64| mean_off + U * (distance.abs() + mean_off);
        let variance = distances.iter().map(|d| d * d).sum::<f64>() / count;
        let squares_off = |d: &f64| 2.0 * d.abs() * off(*d) + off(*d) * off(*d);
        let variance_off = distances.iter().map(squares_off).sum::<f64>() / count;
        let variance_off = variance_off + sum_off(width + 2, variance + variance_off);
        let under = variance + f64::from(epsilon);
        let relative = (variance_off + U * under) / under;
        // Where rounding is a good part of the variance, nothing is promised but a number.
        if relative > 0.1 {
            assert!(got.iter().all(|x| x.is_finite()), "{what}: {got:?}");
            continue;
        }
        let scale = 1.0 / under.sqrt();
        let scale_off = 0.6 * relative + 3.0 * U;
        for (at, distance) in distances.iter().enumerate() {
            let gamma = f64::from(gamma.as_slice()[at]);
            let scaled = distance * scale * gamma;
            let beta = beta
                .as_ref()
                .map_or(0.0, |beta| f64::from(beta.as_slice()[at]));
            let scaled_off = (gamma * scale).abs() * off(*distance) * (1.0 + scale_off)
                + scaled.abs() * (scale_off + 3.0 * U);
            let where_ = || format!("{what} {kind:?} of {width}, row {row}, value {at}");
            close(
                &where_,
                got[at],
                scaled + beta,
                scaled_off * 1.01 + U * scaled_off,
            );
        }
    }
    Ok(())
}

fn softmaxed(x: &[f32], got: &[f32], width: usize) {
    for (x, got) in x.chunks_exact(width).zip(got.chunks_exact(width)) {
        let most = x
            .iter()
            .copied()
            .map(f64::from)
            .fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = x.iter().map(|&x| (f64::from(x) - most).exp()).collect();
        let total: f64 = weights.iter().sum();
        for (at, weight) in weights.iter().enumerate() {
            // The difference is rounded, e^x is within 1.5 ULP, both of the value and of the sum.
            let own = 2.0 * (U * 20.0 + 3.0 * U) + sum_off(width + 2, 1.0);
            let where_ = || format!("softmax of {width}, value {at}");
            close(&where_, got[at], weight / total, own * weight / total);
        }
    }
}

fn of_unit_length(x: &[f32], got: &[f32], width: usize, epsilon: f32) {
    for (x, got) in x.chunks_exact(width).zip(got.chunks_exact(width)) {
        let squares: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let by = squares.sqrt().max(f64::from(epsilon));
        for (&x, &got) in x.iter().zip(got) {
            let want = f64::from(x) / by;
            let where_ = || format!("unit length of {width}");
            close(&where_, got, want, sum_off(width + 3, want.abs()));
        }
    }
}

/// The value in f64, and how far the kernel may be off by its own documentation.
fn activated(activation: Activation, x: f32) -> (f64, f64) {
    let x = f64::from(x);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    // `std` has no error function.
    let (y, ulps, least) = match activation {
        Activation::Relu => (x.max(0.0), 0.0, 0.0),
        Activation::Gelu => {
            let half = libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2) / 2.0;
            (x * half, 1.0, 2e-7)
        }
        Activation::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            (x * sigmoid(2.0 * inner), 1.0, 2e-7)
        }
        Activation::GeluSigmoid => (x * sigmoid(1.702 * x), 1.0, 2e-7),
        Activation::Silu => (x * sigmoid(x), 1.0, 2e-7),
        Activation::Tanh => (x.tanh(), 6.0, 0.0),
        Activation::Sigmoid => (sigmoid(x), 3.0, if x < -87.3 { 1.3e-38 } else { 0.0 }),
        Activation::Erf => (libm::erf(x), 6.0, 0.0),
        Activation::Exp => (x.exp(), 1.5, 1.5e-45),
        other => panic!("{other:?} has no formula here"),
    };
    (y, (ulps * ulp(y)).max(least))
}

/// The distance between the two f32 around a number.
fn ulp(y: f64) -> f64 {
    let least = f64::from(f32::MIN_POSITIVE);
    let exponent = y.abs().max(least).log2().floor() as i32;
    2.0_f64.powi(exponent - 23)
}

pub(super) fn activation(u: &mut Unstructured<'_>) -> Result<()> {
    let activation = [
        Activation::Relu,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::GeluSigmoid,
        Activation::Silu,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Erf,
        Activation::Exp,
    ][u.int_in_range(0..=8)?];
    let (rows, width) = (extent(u, 5)?, extent(u, 60)?);
    let mut values = Values::new(u)?;
    let any_bits: bool = u.arbitrary()?;
    if !any_bits && u.arbitrary::<bool>()? {
        // With a gate.
        let (a, b) = (
            Matrix::input(u, &mut values, (rows, width), true)?,
            Matrix::input(u, &mut values, (rows, width), true)?,
        );
        let mut out = Guarded::new(place(u)?, &vec![f32::NAN; rows * width]);
        activation.gate(
            Columns::new(a.values.as_slice(), a.stride, 0, width),
            Columns::new(b.values.as_slice(), b.stride, 0, width),
            out.as_mut_slice(),
        );
        out.check("gate");
        for row in 0..rows {
            for column in 0..width {
                let (y, off) = activated(activation, a.at(row, column));
                let by = f64::from(b.at(row, column));
                let got = out.as_slice()[row * width + column];
                let where_ = || format!("a gate of {activation:?} of {}", a.at(row, column));
                hold(&where_, got, y * by, off * by.abs() * (1.0 + U));
            }
        }
        return Ok(());
    }
    let x: Vec<f32> = (0..rows * width)
        .map(|_| match any_bits {
            true => f32::from_bits(values.bits() as u32),
            false => 8.0 * values.next(),
        })
        .collect();
    let mut y = Guarded::new(place(u)?, &x);
    activation.apply(y.as_mut_slice());
    y.check("an activation");
    for (&x, &y) in x.iter().zip(y.as_slice()) {
        if x.is_nan() {
            // max(NaN, 0) is either, by IEEE 754; the others keep it.
            assert!(
                y.is_nan() || activation == Activation::Relu,
                "{activation:?} of NaN: {y}"
            );
        } else if x.is_finite() {
            let (want, off) = activated(activation, x);
            hold(&|| format!("{activation:?} of {x:e}"), y, want, off);
        }
    }
    Ok(())
}

/// As `close`, where f32 ends in infinity.
fn hold(what: &dyn Fn() -> String, got: f32, want: f64, off: f64) {
    let most = f64::from(f32::MAX);
    if want.abs() + off >= most && got.is_infinite() {
        return assert_eq!(got.is_sign_negative(), want < 0.0, "{}", what());
    }
    close(what, got, want, off);
}

pub(super) fn pooling(u: &mut Unstructured<'_>) -> Result<()> {
    let kind = [
        Pooling::Mean,
        Pooling::Cls,
        Pooling::LastToken,
        Pooling::Max,
        Pooling::WeightedMean,
        Pooling::MeanSqrtLen,
    ][u.int_in_range(0..=5)?];
    let width = some(u, 100)?;
    // Some of a batch's texts: the first begins anywhere, and tokens of others are behind the last.
    let mut offsets = vec![extent(u, 4)?];
    for _ in 0..extent(u, 5)? {
        let length = extent(u, 30)?;
        offsets.push(offsets[offsets.len() - 1] + length);
    }
    let tokens = offsets[offsets.len() - 1] + extent(u, 2)?;
    let mut values = Values::new(u)?;
    let hidden = Guarded::new(place(u)?, &values.many(tokens * width));
    let texts = offsets.len() - 1;
    let mut out = Guarded::new(place(u)?, &vec![f32::NAN; texts * width]);
    pool(kind, hidden.as_slice(), width, &offsets, out.as_mut_slice());
    out.check("pooling");
    for (text, range) in offsets.windows(2).enumerate() {
        for column in 0..width {
            let all: Vec<f64> = (range[0]..range[1])
                .map(|token| f64::from(hidden.as_slice()[token * width + column]))
                .collect();
            let count = all.len() as f64;
            let got = out.as_slice()[text * width + column];
            let (mut sum, mut magnitudes) = (0.0, 0.0);
            for (at, x) in all.iter().enumerate() {
                let weight = if kind == Pooling::WeightedMean {
                    (at + 1) as f64
                } else {
                    1.0
                };
                sum += weight * x;
                magnitudes += weight * x.abs();
            }
            let by = match kind {
                Pooling::Mean => count,
                Pooling::MeanSqrtLen => count.sqrt(),
                _ => count * (count + 1.0) / 2.0,
            };
            let (want, off) = match (kind, all.as_slice()) {
                (_, []) => (0.0, 0.0),
                (Pooling::Cls, [first, ..]) => (*first, 0.0),
                (Pooling::LastToken, [.., last]) => (*last, 0.0),
                (Pooling::Max, all) => (all.iter().copied().fold(f64::NEG_INFINITY, f64::max), 0.0),
                _ => (sum / by, sum_off(all.len() + 3, magnitudes) / by),
            };
            let where_ = || format!("{kind:?} of {} tokens, text {text}", all.len());
            close(&where_, got, want, off);
        }
    }
    Ok(())
}
