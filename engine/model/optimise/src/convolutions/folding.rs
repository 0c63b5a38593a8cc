//! A layer's kernel and bias with the batch normalisation behind it, and in whole numbers.

use std::sync::Arc;

use isovec_engine::weights::Weights;
use isovec_model::precision::floats;

use super::constants::Constants;
use super::layers::{Kernel, Layer};
use crate::error::{OptimizeError, Result};
use crate::int8::WeightBits;

/// The largest magnitude of a kernel in whole numbers.
const LARGEST: f32 = 127.0;

/// The largest magnitude of a bias in whole numbers: the sum of products that it is added to has as much room again.
const LARGEST_BIAS: f64 = (1u64 << 30) as f64;

/// What a layer computes: a kernel, of which each output is multiplied by a factor, and a bias.
pub(super) struct Folded {
    /// The kernel as it is stored.
    pub(super) values: Vec<f32>,
    /// What each output's values are multiplied by; ones where no batch normalisation follows.
    pub(super) by: Arc<[f32]>,
    /// What is added to each output; none where nothing is.
    pub(super) bias: Option<Vec<f64>>,
}

impl Folded {
    /// Of a layer.
    pub(super) async fn of(layer: &Layer, constants: &Constants<'_>) -> Result<Self> {
        let values = constants.values(&layer.kernel.name).await?;
        let own = match &layer.bias {
            None => None,
            Some(name) => Some(constants.values(name).await?),
        };
        let own = own.map(|bias| bias.into_iter().map(f64::from).collect::<Vec<f64>>());
        let outputs = layer.kernel.outputs();
        let (by, bias) = match &layer.norm {
            None => (vec![1.0; outputs], own),
            Some(norm) => {
                let mut told = Vec::new();
                for name in &norm.constants {
                    told.push(constants.values(name).await?);
                }
                let at = |which: usize, output: usize| f64::from(told[which][output]);
                let factor = |output| at(0, output) / (at(3, output) + norm.epsilon).sqrt();
                let factors: Vec<f64> = (0..outputs).map(factor).collect();
                let own = own.unwrap_or_else(|| vec![0.0; outputs]);
                let bias = (0..outputs)
                    .map(|output| (own[output] - at(2, output)) * factors[output] + at(1, output));
                let bias = bias.collect();
                (factors.iter().map(|&by| by as f32).collect(), Some(bias))
            }
        };
        let finite = values.iter().chain(&by).all(|value| value.is_finite());
        if !finite || !bias.iter().flatten().all(|value| value.is_finite()) {
            return Err(OptimizeError::NotFinite {
                what: layer.shown.clone(),
            });
        }
        Ok(Self {
            values,
            by: by.into(),
            bias,
        })
    }

    /// The scale of each output's kernel, of whole numbers of so many bits, where the values that it is multiplied with have this step.
    ///
    /// A bias is stored in steps of both. A kernel that is next to nothing gets a scale that its bias has room in.
    pub(super) fn scales(&self, kernel: &Kernel, step: f32, weights: WeightBits) -> Arc<[f32]> {
        let mut scales = vec![0f32; kernel.outputs()];
        for (index, value) in self.values.iter().enumerate() {
            let (output, _) = kernel.place(index);
            let magnitude = (value * self.by[output]).abs() / weights.largest();
            scales[output] = scales[output].max(magnitude);
        }
        for (output, scale) in scales.iter_mut().enumerate() {
            let bias = self.bias.as_ref().map_or(0.0, |bias| bias[output].abs());
            let least = (bias / LARGEST_BIAS / f64::from(step)) as f32;
            *scale = match scale.max(least) {
                small if small < f32::MIN_POSITIVE => 1.0,
                scale => scale,
            };
        }
        scales.into()
    }

    /// The bias in whole numbers, in steps of the product of both scales.
    pub(super) fn whole_bias(&self, scales: &[f32], step: f32) -> Option<Vec<i32>> {
        let bias = self.bias.as_ref()?.iter().zip(scales);
        let whole = bias.map(|(bias, scale)| {
            // Steps as ONNX Runtime multiplies them. It cannot be past 32 bits: the scales leave room.
            (bias / f64::from(scale * step)).round_ties_even() as i32
        });
        Some(whole.collect())
    }
}

/// A kernel in whole numbers.
pub(crate) fn rounded(
    values: &[f32],
    shape: &[usize],
    axis: usize,
    by: &[f32],
    scales: &[f32],
) -> Vec<i8> {
    let inner: usize = shape[axis + 1..].iter().product();
    let whole = |(index, value): (usize, &f32)| {
        let output = index / inner % shape[axis];
        let steps = value * by[output] / scales[output];
        steps.round_ties_even().clamp(-LARGEST, LARGEST) as i8
    };
    values.iter().enumerate().map(whole).collect()
}

/// The same of a weight, when it is read.
pub(crate) async fn kernel(
    source: &Weights,
    weight: usize,
    axis: usize,
    by: &[f32],
    scales: &[f32],
) -> isovec_engine::error::Result<Vec<i8>> {
    let values = floats(source, weight).await?;
    Ok(rounded(
        &values,
        &source.weights()[weight].shape,
        axis,
        by,
        scales,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel_of(shape: &[usize], axis: usize, groups: usize) -> Kernel {
        Kernel {
            name: "w".into(),
            shape: shape.to_vec(),
            axis,
            groups,
        }
    }

    #[test]
    fn a_kernel_s_values_belong_to_outputs_and_channels() {
        // Two groups of one channel each, two outputs of each, kernels of 1 x 2.
        let grouped = kernel_of(&[4, 1, 1, 2], 0, 2);
        let places: Vec<_> = (0..8).map(|index| grouped.place(index)).collect();
        let wanted = [
            (0, 0),
            (0, 0),
            (1, 0),
            (1, 0),
            (2, 1),
            (2, 1),
            (3, 1),
            (3, 1),
        ];
        assert_eq!(places, wanted);
        assert_eq!(grouped.channels(), 2);
        let matrix = kernel_of(&[2, 3], 1, 1);
        assert_eq!((matrix.outputs(), matrix.channels()), (3, 2));
        assert_eq!(matrix.place(4), (1, 1));
    }

    #[test]
    fn each_output_has_its_scale_and_a_bias_has_room() {
        let kernel = kernel_of(&[3, 1, 1, 2], 0, 1);
        let folded = Folded {
            values: vec![1.0, -2.0, 1e-30, 0.0, 0.0, 0.0],
            by: vec![-127.0, 1.0, 1.0].into(),
            bias: Some(vec![0.5, 4.0, 0.0]),
        };
        let scales = folded.scales(&kernel, 0.25, WeightBits::Eight);
        assert_eq!((scales[0], scales[2]), (2.0, 1.0));
        let found = rounded(&folded.values, &kernel.shape, 0, &folded.by, &scales);
        // -63.5 goes to the even one.
        assert_eq!(found, [-64, 127, 0, 0, 0, 0]);
        let bias = folded.whole_bias(&scales, 0.25).unwrap();
        assert_eq!(bias[0], 1);
        let back = f64::from(bias[1]) * f64::from(scales[1]) * 0.25;
        assert!((back - 4.0).abs() < 1e-6, "{back}");
        assert_eq!(bias[2], 0);
    }
}
