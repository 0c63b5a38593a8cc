//! What follows a convolution channel by channel becomes a part of it: `f · (w * x + b) + s` is a convolution with the kernel `f · w` and
//! the bias `f · b + s`. A batch normalisation has `f = scale / √(variance + ε)` and `s = shift - f · mean`
//! (<https://onnx.ai/onnx/operators/onnx__BatchNormalization.html>).
//!
//! A factor before a convolution does so too, and the summand behind the factor is divided by it: `w * (f · x + s)` is
//! `f · w * (x + s / f)`. The summand itself cannot: it is not added to what a convolution pads with.

use isovec_engine::onnx::proto::NodeProto;
use isovec_engine::tensor::DType;

use super::net::{Constant, Net};
use super::value::{Numbers, Value};
use crate::error::Result;
use crate::source::{Form, scaled};

pub(super) async fn run(net: &mut Net<'_>) -> Result<usize> {
    let mut changes = 0;
    for at in 0..net.nodes().len() {
        // What follows a convolution that was just made.
        let mut place = at;
        while let Some(next) = folded(net, place).await? {
            place = next;
            changes += 1;
        }
        changes += usize::from(factor_before(net, place));
    }
    Ok(changes)
}

/// A factor and a summand for each channel.
struct Affine {
    factors: Vec<f64>,
    summands: Vec<f64>,
}

/// Makes the node behind a convolution a part of it, and returns the place of what is the convolution then.
async fn folded(net: &mut Net<'_>, at: usize) -> Result<Option<usize>> {
    let Some((axis, channels, rank)) = convolution(net, at) else {
        return Ok(None);
    };
    let node = net.nodes()[at].clone();
    let Some(next) = net.only_reader(&node.output[0]) else {
        return Ok(None);
    };
    let Some(affine) = affine(net, next, &node.output[0], channels, rank).await? else {
        return Ok(None);
    };
    let bias = match node.input.get(2).filter(|bias| !bias.is_empty()) {
        None => vec![0.0; channels],
        Some(bias) => match net.floats(bias).await? {
            Some(bias) if bias.len() == channels => bias,
            _ => return Ok(None),
        },
    };
    let both = affine.factors.iter().zip(&affine.summands);
    let bias: Vec<f32> = bias
        .iter()
        .zip(both)
        .map(|(&bias, (factor, summand))| (f64::from(bias) * factor + summand) as f32)
        .collect();
    let factors: Vec<f32> = affine.factors.iter().map(|&factor| factor as f32).collect();
    if !bias.iter().chain(&factors).all(|value| value.is_finite()) {
        return Ok(None);
    }
    let Some(kernel) = kernel(net, &node.input[1], axis, factors) else {
        return Ok(None);
    };
    let kernel = net.hold(&node.input[1], kernel);
    let bias = Value {
        shape: vec![channels],
        numbers: Numbers::F32(bias),
    };
    let bias = net.hold(&format!("{}.bias", node.output[0]), Net::held(&bias));
    let made = NodeProto {
        input: vec![node.input[0].clone(), kernel, bias],
        output: net.nodes()[next].output.clone(),
        ..node
    };
    net.put(next, made);
    Ok(Some(next))
}

/// Makes the factor that a convolution's input is multiplied with a part of the kernel.
fn factor_before(net: &mut Net<'_>, at: usize) -> bool {
    let Some((axis, channels, _)) = convolution(net, at) else {
        return false;
    };
    let node = net.nodes()[at].clone();
    let alone = |net: &Net<'_>, value: &str| {
        let maker = net.maker(value)?;
        net.only_reader(value).map(|_| maker)
    };
    let Some(before) = alone(net, &node.input[0]) else {
        return false;
    };
    // `f · x`, or `f · x + s`.
    let summand = net.with_float(before, "Add");
    let factored = match &summand {
        Some((value, _)) => alone(net, value),
        None => Some(before),
    };
    let Some((of, factor)) = factored.and_then(|place| net.with_float(place, "Mul")) else {
        return false;
    };
    let moved = summand.map(|(_, summand)| summand / factor);
    if !factor.is_normal() || moved.is_some_and(|summand| !summand.is_finite()) {
        return false;
    }
    let Some(kernel) = kernel(net, &node.input[1], axis, vec![factor; channels]) else {
        return false;
    };
    let kernel = net.hold(&node.input[1], kernel);
    net.reads(at, 1, &kernel);
    match moved {
        None => net.reads(at, 0, &of),
        Some(summand) => {
            let summand = Value {
                shape: Vec::new(),
                numbers: Numbers::F32(vec![summand]),
            };
            let summand = net.hold(&node.input[0], Net::held(&summand));
            let mut sum = net.nodes()[before].clone();
            sum.input = vec![of, summand];
            net.put(before, sum);
        }
    }
    true
}

/// The axis of a convolution's outputs in its kernel, their number, and the axes of its result.
fn convolution(net: &Net<'_>, at: usize) -> Option<(usize, usize, usize)> {
    let node = &net.nodes()[at];
    let axis = match net.operator(at) {
        "Conv" => 0,
        "ConvTranspose" if node.int("group").unwrap_or(1) == 1 => 1,
        _ => return None,
    };
    let kernel = net.constant(node.input.get(1)?)?;
    let shape = kernel.shape();
    net.only_reader(&node.input[1])?;
    (kernel.is_f32() && shape.len() > 2).then_some((axis, shape[axis], shape.len()))
}

/// A kernel whose outputs are multiplied by these.
fn kernel(net: &Net<'_>, name: &str, axis: usize, by: Vec<f32>) -> Option<Constant> {
    match net.constant(name)? {
        Constant::Small(tensor) => {
            let mut value = Value::of(tensor)?;
            let shape = value.shape.clone();
            let Numbers::F32(numbers) = &mut value.numbers else {
                return None;
            };
            scaled(numbers, &shape, axis, &by);
            Some(Net::held(&value))
        }
        Constant::Weight { dtype, shape, form } => {
            let form = match form {
                Form::Same(weight) => Form::Scaled {
                    weight: *weight,
                    axis,
                    by: by.into(),
                },
                Form::Scaled {
                    weight, by: old, ..
                } => Form::Scaled {
                    weight: *weight,
                    axis,
                    by: old.iter().zip(&by).map(|(old, by)| old * by).collect(),
                },
                _ => return None,
            };
            (*dtype == DType::F32).then(|| Constant::Weight {
                dtype: *dtype,
                shape: shape.clone(),
                form,
            })
        }
    }
}

/// What a node does to each channel of a value.
async fn affine(
    net: &Net<'_>,
    at: usize,
    value: &str,
    channels: usize,
    rank: usize,
) -> Result<Option<Affine>> {
    let node = &net.nodes()[at];
    let operator = net.operator(at);
    if operator == "BatchNormalization" {
        let trains = node.int("training_mode").unwrap_or(0) != 0;
        if trains || node.input.len() != 5 || node.input[0] != value {
            return Ok(None);
        }
        let mut told = Vec::with_capacity(4);
        for name in &node.input[1..] {
            match net.floats(name).await? {
                Some(numbers) if numbers.len() == channels => told.push(numbers),
                _ => return Ok(None),
            }
        }
        let epsilon = node.float("epsilon").map_or(1e-5, f64::from);
        let told = |which: usize, channel: usize| f64::from(told[which][channel]);
        let factors: Vec<f64> = (0..channels)
            .map(|channel| told(0, channel) / (told(3, channel) + epsilon).sqrt())
            .collect();
        let summands = factors.iter().enumerate();
        let summands = summands
            .map(|(channel, factor)| told(1, channel) - factor * told(2, channel))
            .collect();
        return Ok(Some(Affine { factors, summands }));
    }
    let [a, b] = node.input.as_slice() else {
        return Ok(None);
    };
    let first = a == value;
    let other = if first { b } else { a };
    let Some(held) = net.constant(other) else {
        return Ok(None);
    };
    let Some(numbers) = net.floats(other).await? else {
        return Ok(None);
    };
    let Some(each) = of_channels(&held.shape(), &numbers, channels, rank) else {
        return Ok(None);
    };
    let (ones, zeros) = (vec![1.0; channels], vec![0.0; channels]);
    let affine = match operator {
        "Mul" => Affine {
            factors: each,
            summands: zeros,
        },
        "Div" if first => Affine {
            factors: each.iter().map(|by| 1.0 / by).collect(),
            summands: zeros,
        },
        "Add" => Affine {
            factors: ones,
            summands: each,
        },
        "Sub" if first => Affine {
            factors: ones,
            summands: each.iter().map(|summand| -summand).collect(),
        },
        _ => return Ok(None),
    };
    Ok(Some(affine))
}

/// A number for each channel, where a constant of this shape is spread so over a result of so many axes, the channels second.
fn of_channels(shape: &[usize], numbers: &[f32], channels: usize, rank: usize) -> Option<Vec<f64>> {
    if let ([one], true) = (numbers, shape.len() <= rank) {
        return Some(vec![f64::from(*one); channels]);
    }
    let missing = rank.checked_sub(shape.len())?;
    let wanted = (0..rank).map(|axis| if axis == 1 { channels } else { 1 });
    let spread = (0..rank).map(|axis| axis.checked_sub(missing).map_or(1, |axis| shape[axis]));
    wanted
        .eq(spread)
        .then(|| numbers.iter().map(|&number| number.into()).collect())
}
