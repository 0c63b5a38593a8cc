//! Operators that move axes and change no number.

use isovec_engine::onnx::axis;
use isovec_engine::onnx::proto::DataType;
use isovec_kernels::conv::Map;

use super::Lowerer;
use super::call::Call;
use crate::error::Why;
use crate::node::{NodeId, Op};
use crate::value::{Axis, Data, Extent, Value};

impl Lowerer<'_> {
    pub(super) fn identity(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        if let Some(to) = call.node.int("to")
            && to != DataType::Float as i64
        {
            return Err("it makes another type than f32".into());
        }
        let training = call.optional(2).is_some() && call.node.op_type == "Dropout";
        if training && call.number(2)? != Some(0.0) {
            return Err("it is in training mode".into());
        }
        Ok(self.renamed(data.node, &data.axes))
    }

    pub(super) fn transpose(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        let rank = data.axes.len();
        let order = call.node.ints("perm").ok_or("it reverses all axes")?;
        let order = order
            .iter()
            .map(|&at| Ok(axis(at, rank)?))
            .collect::<Why<Vec<_>>>()?;
        let mut all = order.clone();
        all.sort_unstable();
        if order.first() != Some(&0) || !all.into_iter().eq(0..rank) {
            return Err(format!("it moves its axes to {order:?}").into());
        }
        let axes: Vec<Axis> = order.iter().map(|&at| data.axes[at]).collect();
        Ok(self.renamed(data.node, &axes))
    }

    pub(super) fn squeeze(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        let rank = data.axes.len();
        let axes = call.whole_numbers("axes", 1)?.ok_or("it names no axes")?;
        let axes = axes
            .iter()
            .map(|&at| Ok(axis(at, rank)?))
            .collect::<Why<Vec<_>>>()?;
        if axes.iter().any(|&at| data.axes[at] != Axis::One) {
            return Err("it drops an axis of several elements".into());
        }
        let left = data.axes.iter().enumerate();
        let left = left
            .filter(|(at, _)| !axes.contains(at))
            .map(|(_, axis)| *axis);
        let left: Vec<Axis> = left.collect();
        Ok(self.renamed(data.node, &left))
    }

    pub(super) fn unsqueeze(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        let axes = call.whole_numbers("axes", 1)?.ok_or("it names no axes")?;
        let rank = data.axes.len() + axes.len();
        if rank > 8 {
            return Err(format!("{rank} axes").into());
        }
        let axes = axes
            .iter()
            .map(|&at| Ok(axis(at, rank)?))
            .collect::<Why<Vec<_>>>()?;
        let mut own = data.axes.iter();
        let all = (0..rank).map(|at| match axes.contains(&at) {
            true => Some(Axis::One),
            false => own.next().copied(),
        });
        let all = all
            .collect::<Option<Vec<_>>>()
            .ok_or("it names an axis twice")?;
        Ok(self.renamed(data.node, &all))
    }

    pub(super) fn flatten(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        let at = call.node.int("axis").unwrap_or(1);
        if at != 1 && at + data.axes.len() as i64 != 1 {
            return Err(format!("it joins axes before {at}").into());
        }
        self.flat(&data)
    }

    /// A row of numbers for each picture, in the graph's order.
    fn flat(&mut self, data: &Data) -> Why<Value> {
        let Some((Axis::Batch, axes)) = data.axes.split_first() else {
            return Err("its first axis is not the batch".into());
        };
        let flat = [Axis::Batch, Axis::Channel];
        let map = self.builder.map(data.node);
        if map.pixels() == 1 {
            return Ok(self.renamed(data.node, &flat));
        }
        let node = self
            .in_order(data.node, axes)
            .ok_or("its axes are in another order")?;
        let node = self.as_row(node);
        Ok(self.data(node, &flat))
    }

    /// The same values as one pixel.
    fn as_row(&mut self, x: NodeId) -> NodeId {
        let map = self.builder.map(x);
        if map.pixels() == 1 {
            return x;
        }
        let row = Map {
            height: 1,
            width: 1,
            channels: map.len(),
        };
        self.builder.push(Op::Same { x }, row)
    }

    pub(super) fn reshape(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        let map = self.builder.map(data.node);
        let shape = call.input(1)?;
        let shape = shape
            .extents()
            .ok_or_else(|| format!("its shape is {}", shape.what()))?;
        let (first, rest) = shape.split_first().ok_or("it has no axes left")?;
        if shape.len() > 8 || call.node.int("allowzero").unwrap_or(0) != 0 {
            return Err(format!("a shape of {shape:?}").into());
        }
        let own = |at: usize| data.axes.get(at).and_then(|axis| axis.extent(map));
        let mut rest = rest.iter().enumerate().map(|(at, extent)| match *extent {
            Extent::Known(0) => own(at + 1).map(|own| own as i64),
            Extent::Known(known) => Some(known),
            Extent::Batch => None,
        });
        let mut rest = rest
            .by_ref()
            .collect::<Option<Vec<i64>>>()
            .ok_or_else(|| format!("a shape of {shape:?}"))?;
        let mut known = rest.iter().filter(|&&extent| extent != -1);
        let known = known.try_fold(1_i64, |all, &extent| all.checked_mul(extent));
        let known = known.filter(|&known| known > 0).ok_or("its extents")?;
        let len = map.len() as i64;
        let open = rest.iter().filter(|&&extent| extent == -1).count();
        if open == 1 && len % known == 0 {
            for extent in &mut rest {
                if *extent == -1 {
                    *extent = len / known;
                }
            }
        }
        let batch = self.is_batch(Some(first)) && (*first != Extent::Known(-1) || open == 0);
        let product = rest
            .iter()
            .try_fold(1_i64, |all, &extent| all.checked_mul(extent));
        if data.axes.first() != Some(&Axis::Batch) || !batch || product != Some(len) {
            return Err(format!("a shape of {shape:?}").into());
        }
        let several = |extent: &&i64| **extent != 1;
        let own = data.axes[1..]
            .iter()
            .copied()
            .filter(|axis| *axis != Axis::One);
        let own: Vec<Axis> = own.collect();
        let extents = own.iter().filter_map(|axis| axis.extent(map));
        if extents.eq(rest.iter().filter(several).map(|&extent| extent as usize)) {
            let mut own = own.into_iter();
            let axes = rest.iter().map(|&extent| match extent {
                1 => Some(Axis::One),
                _ => own.next(),
            });
            let axes = [Some(Axis::Batch)].into_iter().chain(axes);
            let axes = axes.collect::<Option<Vec<_>>>().unwrap_or_default();
            return Ok(self.renamed(data.node, &axes));
        }
        if let Some(heads) = self.heads(&data, &rest) {
            return Ok(heads);
        }
        if rest.iter().filter(several).count() != 1 {
            return Err(format!("a shape of {shape:?}").into());
        }
        let Value::Data(flat) = self.flat(&data)? else {
            return Err("a row that is not computed".into());
        };
        let axes = rest.iter().map(|&extent| match extent {
            1 => Axis::One,
            _ => Axis::Channel,
        });
        let axes: Vec<Axis> = [Axis::Batch].into_iter().chain(axes).collect();
        Ok(self.data(flat.node, &axes))
    }

    /// Whether an extent that is asked for is the number of pictures, if nothing else follows from the rest.
    pub(super) fn is_batch(&self, extent: Option<&Extent>) -> bool {
        match extent {
            Some(Extent::Batch | Extent::Known(0 | -1)) => true,
            Some(&Extent::Known(count)) => Some(count) == self.pictures,
            None => false,
        }
    }

    pub(super) fn concat(&mut self, call: &Call<'_>) -> Why<Value> {
        let first = call.data(0)?.clone();
        let at = axis(call.node.int("axis").unwrap_or(0), first.axes.len())?;
        let map = self.builder.map(first.node);
        let mut parts = Vec::new();
        let mut channels = 0;
        for input in 0..call.inputs.len() {
            let data = call.data(input)?;
            let own = self.builder.map(data.node);
            let rank = first.axes.len();
            let beside =
                (0..rank).all(|other| other == at || data.axes.get(other) == first.axes.get(other));
            let by_channel = data.axes.get(at).copied() == Some(Axis::Channel.plain(own));
            if data.axes.len() != rank
                || !beside
                || !by_channel
                || (own.height, own.width) != (map.height, map.width)
            {
                return Err("it joins other axes than channels".into());
            }
            channels += own.channels;
            parts.push(data.node);
        }
        let mut axes = first.axes;
        axes[at] = Axis::Channel;
        let node = self
            .builder
            .push(Op::Concat { parts }, Map { channels, ..map });
        Ok(self.data(node, &axes))
    }
}
