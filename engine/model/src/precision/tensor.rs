//! A tensor in whole numbers of 8 bits, for programs that quantise tensors themselves.

use isovec_engine::error::{EngineError, Result};

use super::int8::{Channels, dequantise, quantise, scales};

/// How a tensor's scales belong to its elements.
#[derive(Debug, Clone, PartialEq)]
pub struct PerChannel {
    /// The axis whose places each have a scale; `None`: all elements share one.
    pub axis: Option<usize>,
    /// The scale of each place of the axis, or the one scale.
    pub scales: Vec<f32>,
}

/// A tensor as symmetric whole numbers: element `i` stands for `scales[channel(i)] * values[i]`, and `values` lie in
/// -127..=127. -128 has no counterpart and is not used; there is no zero point, so 0 stays 0.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizedTensor {
    /// The extents, outermost first.
    pub shape: Vec<usize>,
    /// The elements, row-major; as many as the product of `shape`.
    pub values: Vec<i8>,
    /// Their scales.
    pub channels: PerChannel,
}

/// Quantises a tensor of these extents, row-major, with one scale for each place of `axis`, or one for all.
///
/// The scale of a channel is its largest magnitude / 127 (1 for a channel of zeros), and a value becomes `value / scale`,
/// rounded to nearest, ties to even. So the error of a value is at most half a scale. It is the form that `model.dtype =
/// "int8"` stores matrices in.
///
/// # Errors
/// [`EngineError::InvalidInput`] for values that are not as many as the extents ask for, an axis past the last one, a tensor
/// without elements, and values that are not finite.
pub fn quantize_weights(
    values: &[f32],
    shape: &[usize],
    axis: Option<usize>,
) -> Result<QuantizedTensor> {
    let channels = channels(shape, axis)?;
    let elements: usize = shape.iter().product();
    if values.len() != elements {
        return Err(wrong(format!(
            "{} values are there, and {shape:?} takes {elements}",
            values.len()
        )));
    }
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        return Err(wrong(format!("value {place} is {}", values[place])));
    }
    let scales = scales(values, channels);
    Ok(QuantizedTensor {
        shape: shape.to_vec(),
        values: quantise(values, 0, &scales, channels),
        channels: PerChannel { axis, scales },
    })
}

/// What a quantised tensor stands for, row-major: `scales[channel(i)] * values[i]`.
///
/// # Errors
/// [`EngineError::InvalidInput`] for parts that do not fit each other.
pub fn dequantize(tensor: &QuantizedTensor) -> Result<Vec<f32>> {
    let PerChannel { axis, scales } = &tensor.channels;
    let channels = channels(&tensor.shape, *axis)?;
    let elements: usize = tensor.shape.iter().product();
    if tensor.values.len() != elements || scales.len() != channels.count {
        return Err(wrong(format!(
            "{} values and {} scales are there, and {:?} takes {elements} and {}",
            tensor.values.len(),
            scales.len(),
            tensor.shape,
            channels.count
        )));
    }
    let values = tensor.values.iter().map(|&value| value.into());
    Ok(dequantise(values, scales, &[], channels))
}

fn channels(shape: &[usize], axis: Option<usize>) -> Result<Channels> {
    let channels = match axis {
        Some(axis) => Channels::along(shape, axis),
        None => Channels::one(shape),
    };
    channels.ok_or_else(|| {
        wrong(match axis {
            Some(axis) => format!("{shape:?} has no elements along axis {axis}"),
            None => format!("{shape:?} has no elements"),
        })
    })
}

fn wrong(detail: String) -> EngineError {
    EngineError::InvalidInput {
        name: "tensor".into(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_comes_back_within_half_a_step_of_its_channel() {
        let values = [0.012, -0.02, 0.005, 3.0, -127.0, 64.4];
        for (axis, count) in [(Some(0), 2), (Some(1), 3), (None, 1)] {
            let tensor = quantize_weights(&values, &[2, 3], axis).unwrap();
            assert_eq!(tensor.channels.scales.len(), count);
            let back = dequantize(&tensor).unwrap();
            for (at, (value, back)) in values.iter().zip(&back).enumerate() {
                let channel = match axis {
                    Some(0) => at / 3,
                    Some(_) => at % 3,
                    None => 0,
                };
                let step = tensor.channels.scales[channel];
                assert!(
                    (value - back).abs() <= step * 0.5001,
                    "{at}: {value} {back}"
                );
            }
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let refused = |values: &[f32], shape: &[usize], axis| {
            quantize_weights(values, shape, axis)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(&[1.0], &[2], None).contains("takes 2"));
        assert!(refused(&[1.0], &[1], Some(1)).contains("axis 1"));
        assert!(refused(&[], &[0], None).contains("no elements"));
        assert!(refused(&[1.0, f32::NAN], &[2], None).contains("value 1 is NaN"));
        let mut tensor = quantize_weights(&[1.0, 2.0], &[2], Some(0)).unwrap();
        tensor.channels.scales.pop();
        assert!(
            dequantize(&tensor)
                .unwrap_err()
                .to_string()
                .contains("scales")
        );
    }
}
