//! Weights of which some are quantised when they are read, so that no second model is in memory.

use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::weights::{Sink, WeightInfo, WeightSource, Weights};
use isovec_model::precision::{QuantizedTensor, floats, quantize_weights};

use crate::convolutions::kernel;
use crate::int8::WeightBits;

/// What is made of the weights of a source.
#[derive(Debug, Clone)]
pub(crate) enum Form {
    /// The weight of this index as it is.
    Same(usize),
    /// A matrix whose rows are multiplied, in whole numbers with a scale for each column.
    Matrix {
        weight: usize,
        by: Arc<[f32]>,
        weights: WeightBits,
    },
    /// A table in whole numbers with a scale for each row.
    Table(usize),
    /// A kernel whose outputs, places of an axis, are multiplied, in whole numbers with these scales.
    Kernel {
        weight: usize,
        axis: usize,
        by: Arc<[f32]>,
        scales: Arc<[f32]>,
    },
    /// The values of a weight of f32s at these places of an axis.
    Kept {
        weight: usize,
        axis: usize,
        places: Arc<[usize]>,
    },
    /// The values of a weight of f32s, those at each place of an axis multiplied by a factor.
    Scaled {
        weight: usize,
        axis: usize,
        by: Arc<[f32]>,
    },
    /// A weight with its axes in another order.
    Turned { weight: usize, order: Arc<[usize]> },
    /// Other values.
    Bytes(Bytes),
}

/// A source's weights in these forms.
#[derive(Debug)]
pub(crate) struct Reformed {
    pub(crate) source: Weights,
    pub(crate) infos: Vec<WeightInfo>,
    pub(crate) forms: Vec<Form>,
}

impl WeightSource for Reformed {
    fn weights(&self) -> &[WeightInfo] {
        &self.infos
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        Box::pin(async move {
            let whole = match &self.forms[index] {
                Form::Same(weight) => return self.source.read(*weight).await,
                Form::Bytes(bytes) => return Ok(bytes.clone()),
                Form::Kept {
                    weight,
                    axis,
                    places,
                } => {
                    let values = floats(&self.source, *weight).await?;
                    let shape = &self.source.weights()[*weight].shape;
                    let kept = kept(&values, shape, *axis, places);
                    let bytes = kept.iter().flat_map(|value| value.to_le_bytes());
                    return Ok(bytes.collect::<Vec<u8>>().into());
                }
                Form::Scaled { weight, axis, by } => {
                    let mut values = floats(&self.source, *weight).await?;
                    scaled(&mut values, &self.infos[index].shape, *axis, by);
                    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
                    return Ok(bytes.collect::<Vec<u8>>().into());
                }
                Form::Turned { weight, order } => {
                    let info = &self.source.weights()[*weight];
                    let bytes = self.source.read(*weight).await?;
                    return Ok(turned(&bytes, &info.shape, order, info.dtype.size()).into());
                }
                Form::Matrix {
                    weight,
                    by,
                    weights,
                } => matrix(&self.source, *weight, by, *weights).await?.values,
                Form::Table(weight) => table(&self.source, *weight).await?.values,
                Form::Kernel {
                    weight,
                    axis,
                    by,
                    scales,
                } => kernel(&self.source, *weight, *axis, by, scales).await?,
            };
            let bytes: Vec<u8> = whole.into_iter().map(|value| value as u8).collect();
            Ok(bytes.into())
        })
    }

    fn read_pieces<'a>(&'a self, index: usize, sink: &'a mut dyn Sink) -> EngineFuture<'a, ()> {
        match &self.forms[index] {
            Form::Same(weight) => self.source.read_pieces(*weight, sink),
            _ => Box::pin(async move { sink.take(&self.read(index).await?) }),
        }
    }
}

/// The values of a tensor at some places of an axis.
pub(crate) fn kept(values: &[f32], shape: &[usize], axis: usize, places: &[usize]) -> Vec<f32> {
    let inner: usize = shape[axis + 1..].iter().product();
    let whole = shape[axis] * inner;
    let mut kept = Vec::with_capacity(values.len() / shape[axis].max(1) * places.len());
    for part in values.chunks_exact(whole.max(1)) {
        for place in places {
            kept.extend_from_slice(&part[place * inner..][..inner]);
        }
    }
    kept
}

/// Multiplies the values at each place of an axis by a factor.
pub(crate) fn scaled(values: &mut [f32], shape: &[usize], axis: usize, by: &[f32]) {
    let inner: usize = shape[axis + 1..].iter().product();
    let places = values.chunks_exact_mut(inner.max(1)).zip(by.iter().cycle());
    for (part, factor) in places {
        part.iter_mut().for_each(|value| *value *= factor);
    }
}

/// The bytes of a tensor with its axes in another order; `size` is that of a value.
fn turned(bytes: &[u8], shape: &[usize], order: &[usize], size: usize) -> Vec<u8> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    let mut made = Vec::with_capacity(bytes.len());
    let mut place = vec![0; order.len()];
    for _ in 0..bytes.len() / size.max(1) {
        let along = place.iter().zip(order);
        let from: usize = along.map(|(at, &axis)| at * strides[axis]).sum();
        made.extend_from_slice(&bytes[from * size..][..size]);
        for (at, &axis) in place.iter_mut().zip(order).rev() {
            *at += 1;
            if *at < shape[axis] {
                break;
            }
            *at = 0;
        }
    }
    made
}

/// A matrix whose rows are multiplied, in whole numbers with a scale for each column.
pub(crate) async fn matrix(
    source: &Weights,
    weight: usize,
    by: &[f32],
    weights: WeightBits,
) -> Result<QuantizedTensor> {
    let info = &source.weights()[weight];
    let mut values = floats(source, weight).await?;
    let width = info.shape.last().copied().unwrap_or(0).max(1);
    for (row, by) in values.chunks_exact_mut(width).zip(by) {
        row.iter_mut().for_each(|value| *value *= by);
    }
    let whole = quantize_weights(&values, &info.shape, Some(1));
    let mut whole = whole.map_err(|error| named(info, &error))?;
    if weights != WeightBits::default() {
        let by = WeightBits::default().largest() / weights.largest();
        let scales = &mut whole.channels.scales;
        scales.iter_mut().for_each(|scale| *scale *= by);
        let steps = values.iter().zip(scales.iter().cycle());
        let steps = steps.map(|(value, scale)| (value / scale).round_ties_even() as i8);
        whole.values = steps.collect();
    }
    Ok(whole)
}

/// A table in whole numbers with a scale for each row.
pub(crate) async fn table(source: &Weights, weight: usize) -> Result<QuantizedTensor> {
    let info = &source.weights()[weight];
    let values = floats(source, weight).await?;
    quantize_weights(&values, &info.shape, Some(0)).map_err(|error| named(info, &error))
}

fn named(info: &WeightInfo, error: &EngineError) -> EngineError {
    EngineError::Weight {
        name: info.name.clone(),
        detail: error.to_string(),
    }
}
