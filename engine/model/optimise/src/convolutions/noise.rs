//! How much noise quantising adds to a layer, predicted from what was observed.
//!
//! A value rounded to steps of `d` is off by `d² / 12` in the mean square, and by no more than its own square where all become zero.
//! Output `o` of a layer is the sum of products of the kernel's values `w[o]` with values of the channels `c`, so its noise is
//!
//! `Σ_w min(d² / 12, E x[c]²) · w² + e[o]² / 12 · Σ_w E x[c]²`
//!
//! with steps of `d` for the input and of `e[o]` for the kernel. What the layer gives is rounded once more, behind its activation.
//! Zeros around a picture are counted as its values are, which makes the prediction a little too large.

use super::folding::Folded;
use super::layers::Kernel;

/// The noise of a layer's outputs, on average. `powers` are those of its input's channels.
pub(super) fn of_layer(
    kernel: &Kernel,
    folded: &Folded,
    scales: &[f32],
    step: f32,
    powers: &[f64],
) -> f64 {
    let rounded = f64::from(step).powi(2) / 12.0;
    let noise = folded.values.iter().enumerate().map(|(index, &value)| {
        let (output, channel) = kernel.place(index);
        let value = f64::from(value * folded.by[output]);
        let power = powers.get(channel).copied().unwrap_or_default();
        rounded.min(power) * value * value + f64::from(scales[output]).powi(2) / 12.0 * power
    });
    noise.sum::<f64>() / kernel.outputs() as f64
}

/// The noise of rounding a value of this power.
pub(super) fn of_rounding(step: f32, power: f64) -> f64 {
    (f64::from(step).powi(2) / 12.0).min(power)
}

/// The ratio of signal to noise in decibels, where noise is added twice, each to a signal of its own.
pub(super) fn decibels(inside: (f64, f64), behind: (f64, f64)) -> f64 {
    let share = |(noise, signal): (f64, f64)| match noise > 0.0 {
        true => noise / signal.max(f64::MIN_POSITIVE),
        false => 0.0,
    };
    match share(inside) + share(behind) {
        0.0 => f64::INFINITY,
        share => -10.0 * share.log10(),
    }
}

#[cfg(test)]
mod tests {
    use isovec_test_models::rng::Rng;

    use super::*;
    use crate::calibrate::Histogram;
    use crate::convolutions::folding::rounded;
    use crate::int8::WeightBits;

    /// Two groups of two channels, one of which is much larger than the others.
    #[test]
    fn the_predicted_noise_is_the_one_that_is_measured() {
        let kernel = Kernel {
            name: "w".into(),
            shape: vec![6, 2, 3, 3],
            axis: 0,
            groups: 2,
        };
        let mut rng = Rng::new(8);
        let mut normal =
            |count: usize| -> Vec<f32> { (0..count).map(|_| rng.normal() as f32).collect() };
        let folded = Folded {
            values: normal(6 * 2 * 9),
            by: normal(6).into(),
            bias: None,
        };
        // Patches: 9 values of each of 4 channels.
        let mut patches = normal(3000 * 4 * 9);
        let by_channel = [1.0, 12.0, 1.0, 0.5];
        for patch in patches.chunks_exact_mut(36) {
            for (plane, by) in patch.chunks_exact_mut(9).zip(by_channel) {
                plane.iter_mut().for_each(|value| *value *= by);
            }
        }
        let mut seen = Histogram::new();
        seen.add(&patches).unwrap();
        let (step, zero) = seen
            .range(crate::calibrate::Calibrator::MinMax)
            .unwrap()
            .to_u8();
        let powers: Vec<f64> = (0..4)
            .map(|channel| {
                let planes = patches
                    .chunks_exact(36)
                    .map(|patch| &patch[channel * 9..][..9]);
                let squares = planes.flatten().map(|&value| f64::from(value).powi(2));
                squares.sum::<f64>() / (3000.0 * 9.0)
            })
            .collect();
        let scales = folded.scales(&kernel, step, WeightBits::Eight);
        let predicted = of_layer(&kernel, &folded, &scales, step, &powers);
        let whole = rounded(&folded.values, &kernel.shape, 0, &folded.by, &scales);
        let product =
            |values: &dyn Fn(usize) -> f64, patch: &dyn Fn(usize) -> f64, output: usize| {
                let group = output / 3;
                (0..18)
                    .map(|at| values(output * 18 + at) * patch(group * 18 + at))
                    .sum::<f64>()
            };
        let mut measured = 0.0;
        for patch in patches.chunks_exact(36) {
            for output in 0..6 {
                let exact = |at: usize| f64::from(folded.values[at] * folded.by[output]);
                let coarse = |at: usize| f64::from(whole[at]) * f64::from(scales[output]);
                let quantised = |at: usize| {
                    let steps = (patch[at] / step).round_ties_even() + f32::from(zero);
                    f64::from((steps.clamp(0.0, 255.0) - f32::from(zero)) * step)
                };
                let wanted = product(&exact, &|at| f64::from(patch[at]), output);
                let found = product(&coarse, &quantised, output);
                measured += (wanted - found).powi(2) / 6.0 / 3000.0;
            }
        }
        let quotient = predicted / measured;
        assert!(
            (0.85..1.15).contains(&quotient),
            "{predicted} for {measured}"
        );
    }

    #[test]
    fn shares_of_noise_add_up() {
        assert!((decibels((1.0, 200.0), (0.5, 100.0)) - 20.0).abs() < 1e-12);
        assert_eq!(decibels((0.0, 0.0), (0.0, 1.0)), f64::INFINITY);
        assert_eq!(of_rounding(1.0, 0.01), 0.01);
    }
}
