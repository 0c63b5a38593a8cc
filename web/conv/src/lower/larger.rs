//! Maps that become larger by a whole factor.

use isovec_kernels::conv::Map;

use super::Lowerer;
use super::call::Call;
use super::product::weight;
use crate::error::Why;
use crate::node::{Layout, Op};
use crate::value::{Extent, PLANAR, Value};

/// The largest factor.
const MOST: usize = 64;

impl Lowerer<'_> {
    /// Rows and columns that are repeated; other ways to resize are refused.
    pub(super) fn resize(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        let map = self.planar(&data)?;
        let text =
            |name: &str, usual: &'static str| call.node.text(name).unwrap_or(usual).to_owned();
        if text("mode", "nearest") != "nearest" {
            return Err(format!("mode {:?}", text("mode", "nearest")).into());
        }
        // Of a whole factor both take the pixel that the result's lies in. Before operator set 11 there was the first alone.
        let (from, nearest) = match call.opset {
            ..=10 => ("asymmetric".to_owned(), "floor".to_owned()),
            _ => (
                text("coordinate_transformation_mode", "half_pixel"),
                text("nearest_mode", "round_prefer_floor"),
            ),
        };
        let takes_its_own = match &*from {
            "asymmetric" => nearest == "floor",
            "half_pixel" | "pytorch_half_pixel" => nearest.starts_with("round_prefer_"),
            _ => false,
        };
        if !takes_its_own || call.node.ints("axes").is_some() {
            return Err(format!("coordinates {from:?} with {nearest:?}").into());
        }
        let by = self.factors(call, map)?;
        let node = self.builder.push(
            Op::Repeat { x: data.node, by },
            grown(map, map.channels, by),
        );
        Ok(self.data(node, &PLANAR))
    }

    /// By how much rows and columns grow: out of the scales, or of the extents of the result.
    fn factors(&self, call: &Call<'_>, map: Map) -> Why<[usize; 2]> {
        let scales = if call.opset > 10 { 2 } else { 1 };
        let extents = [map.channels, map.height, map.width];
        let given = match call.optional(scales) {
            Some(Value::Numbers(numbers)) if !numbers.values.is_empty() => numbers.values.clone(),
            _ => {
                let sizes = call.input(3)?.extents();
                // A number in the place of the batch would be another batch.
                let Some([Extent::Batch, sizes @ ..]) = sizes.as_deref() else {
                    return Err("sizes that do not begin with the batch".into());
                };
                let scales = sizes.iter().zip(extents).map(|(size, extent)| match size {
                    Extent::Known(size) => *size as f64 / extent as f64,
                    Extent::Batch => f64::NAN,
                });
                [1.0].into_iter().chain(scales).collect()
            }
        };
        let whole = |scale: f64| {
            let is_one = scale.fract() == 0.0 && (1.0..=MOST as f64).contains(&scale);
            is_one.then_some(scale as usize)
        };
        match given[..] {
            [1.0, 1.0, rows, columns]
                if let (Some(rows), Some(columns)) = (whole(rows), whole(columns)) =>
            {
                Ok([rows, columns])
            }
            _ => Err(format!("scales {given:?}").into()),
        }
    }

    /// A transposed convolution whose windows lie side by side: a product of each pixel with all taps of the kernel, which become
    /// pixels.
    pub(super) fn conv_transpose(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        let map = self.planar(&data)?;
        let (weight, shape) = weight(call, 1)?;
        let [inputs, channels, rows, columns] = shape[..] else {
            return Err(format!("a weight of {shape:?}: its kernel has not two axes").into());
        };
        self.fits(&data, inputs, &shape)?;
        let is =
            |name: &str, wanted: &[i64]| call.node.ints(name).is_none_or(|ints| ints == wanted);
        let kernel = [rows as i64, columns as i64];
        let apart = call.node.ints("strides").unwrap_or(&[1, 1]) != kernel
            || !is("kernel_shape", &kernel)
            || !is("pads", &[0; 4])
            || !is("dilations", &[1, 1])
            || !is("output_padding", &[0, 0])
            || call.node.ints("output_shape").is_some()
            || !matches!(
                call.node.text("auto_pad").unwrap_or("NOTSET"),
                "NOTSET" | "VALID"
            )
            || call.node.int("group").unwrap_or(1) != 1
            || rows.max(columns) > MOST;
        if apart {
            return Err("its windows do not lie side by side".into());
        }
        let by = [rows, columns];
        let bias = self.bias(call, 2, channels)?;
        let bias = bias.map(|bias| {
            bias.iter()
                .flat_map(|&value| vec![value; rows * columns])
                .collect()
        });
        let taps = channels.checked_mul(rows * columns);
        let taps = taps.ok_or_else(|| format!("a weight of {shape:?}"))?;
        let x = self.product(data.node, weight, Layout::Rows, taps, (None, bias));
        let node = self
            .builder
            .push(Op::Spread { x, by }, grown(map, channels, by));
        Ok(self.data(node, &PLANAR))
    }
}

/// A larger map.
fn grown(map: Map, channels: usize, by: [usize; 2]) -> Map {
    Map {
        height: map.height.saturating_mul(by[0]),
        width: map.width.saturating_mul(by[1]),
        channels,
    }
}
