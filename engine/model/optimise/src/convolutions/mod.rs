//! Convolutional networks whose layers multiply whole numbers of 8 bits, as ONNX Runtime computes them.
//!
//! 1. [`Convolutions`] finds the layers with constant kernels: `Conv` of pictures in any number of groups, and `Gemm`.
//! 2. [`Convolutions::probe`] is a model that gives the values which [`Ranges`] needs; the caller runs it on pictures, one at a time.
//! 3. [`quantise`] chooses the scales and writes the nodes.
//!
//! A kernel has a scale for each of its outputs. A value between two layers has one scale and a zero point, from the smallest and the
//! largest value that was observed, as `QuantizeLinear` and `DequantizeLinear` behind the node that makes it. ONNX Runtime joins a
//! layer that has them before it and behind it to one of whole numbers (`QLinearConv`), and a chain of such layers never leaves 8 bits.
//! So what stands between two layers is in 8 bits as well, where ONNX Runtime can compute it so: sums, products, sigmoids, pools.
//! Values are unsigned: with signed ones ONNX Runtime is slower than in f32. Layers below [`LEAST_SQNR`](crate::int8::LEAST_SQNR) stay
//! in f32, as products do.
//!
//! A batch normalisation behind a convolution becomes a part of it, as engines do it with one in f32:
//! `w'[o] = w[o] · f[o]` and `b'[o] = (b[o] - mean[o]) · f[o] + shift[o]`, with `f[o] = scale[o] / √(variance[o] + ε)`
//! (<https://onnx.ai/onnx/operators/onnx__BatchNormalization.html>).

mod constants;
mod folding;
mod layers;
mod noise;
mod observed;
mod regions;
mod rewrite;

use std::collections::BTreeSet;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;

use crate::error::{OptimizeError, Result};
use crate::history;
use crate::int8::{Product, WeightBits};

pub(crate) use folding::kernel;
pub use layers::Convolutions;
pub use observed::Ranges;

/// The same model with layers of whole numbers, and what became of each layer. `kept` are layers that stay in f32, by the names that
/// [`Product::node`] has; others in it are no fault. `bundle` is the model that `layers` were found in, or what
/// [`int8::quantise`](crate::int8::quantise()) made of it; `weights` are the bits of the kernels' values.
///
/// The identity is a new one, because vectors are others.
///
/// # Errors
/// [`OptimizeError::Texts`] where nothing was observed; [`OptimizeError::Unsuitable`] where all layers would stay in f32;
/// [`OptimizeError::NotFinite`]; those of reading weights.
pub async fn quantise(
    bundle: &ModelBundle,
    layers: &Convolutions,
    ranges: &Ranges,
    kept: &BTreeSet<String>,
    weights: WeightBits,
    cancel: &Cancel,
) -> Result<(ModelBundle, Vec<Product>)> {
    if ranges.runs() == 0 {
        return Err(OptimizeError::Texts(
            "there is no picture to calibrate with; give pictures like those that the model will see"
                .into(),
        ));
    }
    let (made, told) = rewrite::rewrite(bundle, layers, ranges, kept, weights, cancel).await?;
    let count = told.iter().filter(|layer| layer.int8).count();
    let step = format!("int8: static, {count} of {} layers", told.len());
    Ok((history::noted(made, &bundle.identity.0, step), told))
}

/// The same model with this layer alone in int8, as [`quantise`] makes it.
///
/// # Errors
/// Those of [`quantise`]; [`OptimizeError::Unsuitable`] for one that stays in f32.
pub async fn alone(
    bundle: &ModelBundle,
    layers: &Convolutions,
    ranges: &Ranges,
    weights: WeightBits,
    layer: &str,
    cancel: &Cancel,
) -> Result<ModelBundle> {
    let others = layers.names().filter(|name| *name != layer);
    let kept = others.map(str::to_owned).collect();
    let (made, _) = rewrite::rewrite(bundle, layers, ranges, &kept, weights, cancel).await?;
    Ok(made)
}
