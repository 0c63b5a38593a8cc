//! Convolutions, products, and the normalisations that are folded into them.

use std::sync::Arc;

use isovec_kernels::conv::{Map, Window, Windows};

use isovec_engine::onnx::axis;

use super::Lowerer;
use super::call::Call;
use super::windows::windows;
use crate::error::Why;
use crate::node::{Conv, Layout, NodeId, Op, Weight};
use crate::value::{Axis, Data, PLANAR, Value};

impl Lowerer<'_> {
    pub(super) fn conv(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?;
        let map = self.planar(data)?;
        let (weight, shape) = weight(call, 1)?;
        let [outputs, inputs, rows, columns] = shape[..] else {
            return Err(format!("a weight of {shape:?}: its kernel has not two axes").into());
        };
        if shape.iter().any(|&extent| extent == 0 || extent > 1 << 24) {
            return Err(format!("a weight of {shape:?}").into());
        }
        let groups = usize::try_from(call.node.int("group").unwrap_or(1)).unwrap_or(0);
        if groups == 0
            || inputs.checked_mul(groups) != Some(map.channels)
            || !outputs.is_multiple_of(groups)
        {
            let channels = map.channels;
            return Err(format!(
                "a weight of {shape:?} in {groups} groups for {channels} channels"
            )
            .into());
        }
        if let Some(own) = call.node.ints("kernel_shape")
            && *own != [rows as i64, columns as i64]
        {
            return Err(format!("kernel_shape {own:?} of a weight of {shape:?}").into());
        }
        let windows = windows(call, map, [rows, columns])?;
        let bias = self.bias(call, 2, outputs)?;
        let [height, width] = windows.places;
        let conv = Conv {
            x: data.node,
            windows,
            groups,
            weight,
            layout: Layout::Kernels,
            scale: None,
            bias,
        };
        let out = Map {
            height,
            width,
            channels: outputs,
        };
        let node = self.builder.push(Op::Conv(Box::new(conv)), out);
        Ok(self.data(node, &PLANAR))
    }

    /// A number for each channel of a result, which may be missing.
    pub(super) fn bias(
        &self,
        call: &Call<'_>,
        at: usize,
        channels: usize,
    ) -> Why<Option<Vec<f64>>> {
        if call.optional(at).is_none() {
            return Ok(None);
        }
        let numbers = call.numbers(at)?;
        match numbers.values.len() {
            1 => Ok(Some(vec![numbers.values[0]; channels])),
            count if count == channels => Ok(Some(numbers.values.clone())),
            count => Err(format!("a bias of {count} for {channels} channels").into()),
        }
    }

    /// Pixels times a matrix.
    pub(super) fn product(
        &mut self,
        x: NodeId,
        weight: Weight,
        layout: Layout,
        channels: usize,
        (scale, bias): (Option<Vec<f64>>, Option<Vec<f64>>),
    ) -> NodeId {
        let map = self.builder.map(x);
        let windows = Windows {
            map,
            window: Window::ONE,
            places: [map.height, map.width],
        };
        let conv = Conv {
            x,
            windows,
            groups: 1,
            weight,
            layout,
            scale,
            bias,
        };
        self.builder
            .push(Op::Conv(Box::new(conv)), Map { channels, ..map })
    }

    pub(super) fn gemm(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?;
        if !self.has(data, &[Axis::Batch, Axis::Channel])
            || call.node.int("transA").unwrap_or(0) != 0
        {
            return Err("its input is not a row of numbers for each picture".into());
        }
        let transposed = call.node.int("transB").unwrap_or(0) != 0;
        let (weight, shape) = weight(call, 1)?;
        let (steps, channels, layout) = match shape[..] {
            [n, k] if transposed => (k, n, Layout::Columns),
            [k, n] => (k, n, Layout::Rows),
            _ => return Err(format!("a matrix of {shape:?}").into()),
        };
        self.fits(data, steps, &shape)?;
        let (alpha, beta) = (
            call.node.float("alpha").unwrap_or(1.0),
            call.node.float("beta").unwrap_or(1.0),
        );
        let scale = (alpha != 1.0).then(|| vec![f64::from(alpha); channels]);
        let mut bias = self.bias(call, 2, channels)?;
        for value in bias.iter_mut().flatten() {
            *value *= f64::from(beta);
        }
        let node = self.product(data.node, weight, layout, channels, (scale, bias));
        Ok(self.data(node, &[Axis::Batch, Axis::Channel]))
    }

    pub(super) fn matmul(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?;
        let (weight, shape) = weight(call, 1)?;
        let [steps, channels] = shape[..] else {
            return Err(format!("a matrix of {shape:?}").into());
        };
        let map = self.builder.map(data.node);
        // Rows of pixels and columns, each where there are several.
        let own = data.axes.iter().copied();
        let own = own.filter(|axis| *axis != Axis::One);
        let order = [Axis::Batch, Axis::Row, Axis::Column, Axis::Channel];
        let order = order.into_iter().map(|axis| axis.plain(map));
        let last = data.axes.last().copied() == Some(Axis::Channel.plain(map));
        if !last || !own.eq(order.filter(|axis| *axis != Axis::One)) {
            return Err("its input is not [batch, rows, columns, channels]".into());
        }
        let mut axes = data.axes.clone();
        if let Some(last) = axes.last_mut() {
            *last = Axis::Channel;
        }
        self.fits(data, steps, &shape)?;
        let node = self.product(data.node, weight, Layout::Rows, channels, (None, None));
        Ok(self.data(node, &axes))
    }

    pub(super) fn fits(&self, data: &Data, steps: usize, shape: &[usize]) -> Why<()> {
        let channels = self.builder.map(data.node).channels;
        match channels == steps && shape.iter().all(|extent| (1..=1 << 24).contains(extent)) {
            true => Ok(()),
            false => Err(format!("a matrix of {shape:?} for {channels} channels").into()),
        }
    }

    /// `(x - mean) / sqrt(variance + epsilon) * scale + bias` by channel
    /// (<https://arxiv.org/abs/1502.03167>), all of it known.
    pub(super) fn batch_normalization(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        let map = self.builder.map(data.node);
        if call.node.int("training_mode").unwrap_or(0) != 0 {
            return Err("it is in training mode".into());
        }
        if data.axes.get(1).copied() != Some(Axis::Channel.plain(map)) {
            return Err("its channels are not the second axis".into());
        }
        let list = |at: usize| -> Why<Vec<f64>> {
            let numbers = call.numbers(at)?;
            match numbers.values.len() == map.channels {
                true => Ok(numbers.values.clone()),
                false => Err(format!("input {at} is not one number for each channel").into()),
            }
        };
        let (gamma, beta, mean, variance) = (list(1)?, list(2)?, list(3)?, list(4)?);
        let epsilon = f64::from(call.node.float("epsilon").unwrap_or(1e-5));
        let channels = 0..map.channels;
        let scale: Vec<f64> = channels
            .clone()
            .map(|at| gamma[at] / (variance[at] + epsilon).sqrt())
            .collect();
        let shift = channels.map(|at| beta[at] - mean[at] * scale[at]);
        let shift = shift.collect();
        let node = self.builder.affine(data.node, scale, shift);
        Ok(self.data(node, &data.axes))
    }

    pub(super) fn layer_normalization(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        let map = self.builder.map(data.node);
        let at = axis(call.node.int("axis").unwrap_or(-1), data.axes.len())?;
        if at + 1 != data.axes.len() || data.axes[at] != Axis::Channel {
            return Err("it normalises over other axes than the channels".into());
        }
        let list = |at: usize| -> Why<Vec<f32>> {
            let numbers = call.numbers(at)?;
            match numbers.values.len() == map.channels {
                true => Ok(numbers.values.iter().map(|&value| value as f32).collect()),
                false => Err(format!("input {at} is not one number for each channel").into()),
            }
        };
        let op = Op::Norm {
            x: data.node,
            gamma: list(1)?,
            beta: call.optional(2).map(|_| list(2)).transpose()?,
            epsilon: call.node.float("epsilon").unwrap_or(1e-5),
        };
        let node = self.builder.push(op, map);
        Ok(self.data(node, &data.axes))
    }
}

/// A weight and its extents.
pub(super) fn weight(call: &Call<'_>, at: usize) -> Why<(Weight, Vec<usize>)> {
    match call.input(at)? {
        Value::Weight { index, shape } => Ok((Weight::Stored(*index), shape.clone())),
        Value::Numbers(numbers) => {
            let values: Arc<[f32]> = numbers.values.iter().map(|&value| value as f32).collect();
            Ok((Weight::Known(values), numbers.shape.clone()))
        }
        other => Err(format!("input {at} is {}, not a weight", other.what()).into()),
    }
}
