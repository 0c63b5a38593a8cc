//! Pools and means.

use isovec_kernels::conv::{Average, Map};

use isovec_engine::onnx::axis;

use super::Lowerer;
use super::call::Call;
use super::windows::{kernel, windows};
use crate::error::Why;
use crate::node::Op;
use crate::value::{Axis, Data, PLANAR, Step, Value};

impl Lowerer<'_> {
    pub(super) fn max_pool(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?;
        let map = self.planar(data)?;
        let windows = windows(
            call,
            map,
            kernel(call.node.ints("kernel_shape").unwrap_or(&[]))?,
        )?;
        let window = windows.window;
        // Else a window may see nothing.
        for (place, extent) in [(0, map.height), (1, map.width)] {
            let last = windows.places[place] - 1;
            if window.inside(place, 0, extent).is_empty()
                || window.inside(place, last, extent).is_empty()
            {
                return Err("a window that lies outside its map".into());
            }
        }
        let [height, width] = windows.places;
        let x = data.node;
        let out = Map {
            height,
            width,
            ..map
        };
        let node = self.builder.push(Op::MaxPool { x, windows }, out);
        Ok(self.data(node, &PLANAR))
    }

    pub(super) fn average_pool(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?;
        let map = self.planar(data)?;
        let windows = windows(
            call,
            map,
            kernel(call.node.ints("kernel_shape").unwrap_or(&[]))?,
        )?;
        if call.node.int("ceil_mode").unwrap_or(0) != 0 {
            return Err("averages with ceil_mode".into());
        }
        let average = match call.node.int("count_include_pad").unwrap_or(0) {
            0 => Average::Inside,
            _ => Average::All,
        };
        for (place, extent) in [(0, map.height), (1, map.width)] {
            let last = windows.places[place] - 1;
            let window = windows.window;
            if window.inside(place, 0, extent).is_empty()
                || window.inside(place, last, extent).is_empty()
            {
                return Err("a window that lies outside its map".into());
            }
        }
        let [height, width] = windows.places;
        let out = Map {
            height,
            width,
            ..map
        };
        let x = data.node;
        let op = Op::AveragePool {
            x,
            windows,
            average,
        };
        let node = self.builder.push(op, out);
        Ok(self.data(node, &PLANAR))
    }

    pub(super) fn global_average_pool(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?;
        self.planar(data)?;
        Ok(self.mean(data, &PLANAR))
    }

    /// The mean of all pixels; `axes` as if it kept the other axes.
    fn mean(&mut self, data: &Data, axes: &[Axis]) -> Value {
        let map = self.builder.map(data.node);
        let out = Map {
            height: 1,
            width: 1,
            ..map
        };
        let node = self.builder.push(Op::Mean { x: data.node }, out);
        self.data(node, axes)
    }

    pub(super) fn reduce_mean(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?;
        let rank = data.axes.len();
        let axes = call
            .whole_numbers("axes", 1)?
            .ok_or("a mean over all axes")?;
        let axes = axes
            .iter()
            .map(|&at| Ok(axis(at, rank)?))
            .collect::<Why<Vec<_>>>()?;
        let keep = call.node.int("keepdims").unwrap_or(1) != 0;
        if let Some(mean) = self.mean_of_channels(data, &axes, keep) {
            return Ok(mean);
        }
        let over = |wanted: Axis| axes.iter().any(|&at| data.axes[at] == wanted);
        let map = self.builder.map(data.node);
        let all = [Axis::Row, Axis::Column].map(|axis| axis.plain(map));
        let all = all.into_iter().all(|axis| axis == Axis::One || over(axis));
        if !all || over(Axis::Batch) || over(Axis::Channel) {
            return Err("a mean over other axes than rows and columns".into());
        }
        let left = data.axes.iter().enumerate();
        let left = left.filter(|(at, _)| keep || !axes.contains(at));
        let left: Vec<Axis> = left.map(|(_, axis)| *axis).collect();
        Ok(self.mean(data, &left))
    }

    /// The sum of a vector's squares.
    pub(super) fn reduce_sum(&mut self, call: &Call<'_>) -> Why<Value> {
        let Value::Length {
            of,
            step: Step::Squares,
        } = call.input(0)?
        else {
            return Err("a sum of other numbers than a vector's squares".into());
        };
        let axes = call.whole_numbers("axes", 1)?.unwrap_or_default();
        let (1, Some(&at)) = (axes.len(), axes.first()) else {
            return Err(format!("a sum over axes {axes:?}").into());
        };
        let over = axis(at, of.axes.len())?;
        if call.node.int("keepdims").unwrap_or(1) == 0 || of.axes[over] != Axis::Channel {
            return Err("a sum over another axis than the channels".into());
        }
        Ok(Value::Length {
            of: of.clone(),
            step: Step::Sum,
        })
    }
}
