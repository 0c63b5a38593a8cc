//! Recognises the nodes that make a matrix of blocks of few bits.

use std::collections::HashMap;

use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{DataType, GraphProto, NodeProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;

use super::Constants;
use crate::precision::planes::{BITS, Layout, Plane, planes};
use crate::precision::source::Form;

/// The nodes that make a matrix of blocks of few bits, as `isovec-optimize` writes them.
pub(super) struct Blocks<'b> {
    /// Nodes by their first output.
    makers: HashMap<&'b str, &'b NodeProto>,
}

impl<'b> Blocks<'b> {
    pub(super) fn of(graph: &'b GraphProto) -> Self {
        let nodes = graph.node.iter();
        let makers = nodes.filter(|node| default_domain(&node.domain).is_empty());
        Self {
            makers: makers
                .filter_map(|node| Some((node.output.first()?.as_str(), node)))
                .collect(),
        }
    }

    /// The f32 weight that a node makes of blocks: of one matrix, or a `Concat` of several along their rows.
    pub(super) fn widened(
        &self,
        node: &NodeProto,
        constants: &Constants<'b>,
    ) -> Option<(WeightInfo, Form)> {
        if node.op_type != "Concat" || !default_domain(&node.domain).is_empty() {
            return self.matrix(node, constants);
        }
        let output = node.output.first()?;
        if node.int("axis") != Some(0) || constants.outputs.contains(output.as_str()) {
            return None;
        }
        let parts = node.input.iter();
        let parts = parts.map(|part| self.matrix(self.maker(part)?, constants));
        let (infos, forms): (Vec<_>, Vec<_>) =
            parts.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        let columns = infos.first()?.shape[1];
        let info = WeightInfo {
            name: output.clone(),
            dtype: DType::F32,
            shape: vec![infos.iter().map(|info| info.shape[0]).sum(), columns],
        };
        let even = infos.iter().all(|info| info.shape[1] == columns);
        even.then_some((info, Form::Joined(forms)))
    }

    /// The f32 weight that `Reshape((n - zero) · Cast(scales))` makes, with `n` the sum of its planes.
    fn matrix(&self, node: &NodeProto, constants: &Constants<'b>) -> Option<(WeightInfo, Form)> {
        let (scaled, extents) = pair(node, "Reshape")?;
        let output = node.output.first()?;
        if constants.outputs.contains(output.as_str()) {
            return None;
        }
        let (whole, factors) = pair(self.maker(scaled)?, "Mul")?;
        let (sum, zero) = pair(self.maker(whole)?, "Sub")?;
        let terms = self.terms(sum)?.into_iter();
        let found: Option<Vec<Found<'_>>> = terms.map(|term| self.plane(term, constants)).collect();
        let found = found?;
        let bits: u8 = found.iter().map(|found| found.plane.bits).sum();
        let told = found.iter().map(|found| found.plane);
        if !BITS.contains(&bits) || !told.eq(planes(bits)) {
            return None;
        }
        let shape = constants.extents(extents)?;
        let axis = found.first()?.axis;
        let layout = Layout::new(&shape, axis, bits)?;
        let (scales, scale_type, scale_shape) = constants.operand(self.to_float(factors)?)?;
        let fits = found.iter().all(|found| {
            found.axis == axis
                && found.shape == layout.plane_shape(found.plane)
                && found.values == layout.blocks_shape()
        });
        if !fits
            || !constants.is_f32(zero, layout.zero())
            || scale_type != DType::F16
            || scale_shape != layout.scales_shape()
        {
            return None;
        }
        let info = WeightInfo {
            name: output.clone(),
            dtype: DType::F32,
            shape,
        };
        let form = Form::FromBlocks {
            planes: found.iter().map(|found| found.weight).collect(),
            scales,
            layout,
        };
        Some((info, form))
    }

    /// What a chain of `Add` sums, in order.
    fn terms(&self, mut sum: &'b str) -> Option<Vec<&'b str>> {
        let mut terms = Vec::new();
        while let Some((first, last)) = pair(self.maker(sum)?, "Add") {
            terms.push(last);
            sum = first;
        }
        terms.push(sum);
        terms.reverse();
        Some(terms)
    }

    /// The plane that `Cast(Reshape((bytes << left) >> right)) · 2^lowest` takes out of bytes, without the product where `lowest` is 0.
    fn plane(&self, term: &'b str, constants: &Constants<'b>) -> Option<Found<'b>> {
        let (wide, lowest) = match pair(self.maker(term)?, "Mul") {
            None => (term, 0),
            Some((wide, factor)) => {
                let is = |&lowest: &u8| constants.is_f32(factor, f32::from(1u8 << lowest));
                (wide, (1..8).find(is)?)
            }
        };
        let (fields, values) = pair(self.maker(self.to_float(wide)?)?, "Reshape")?;
        let (left, right) = self.shifted(fields, "RIGHT")?;
        let (bytes, lefts) = self.shifted(left, "LEFT")?;
        let &[right] = constants.constant(right)? else {
            return None;
        };
        let bits = 8u8
            .checked_sub(right)
            .filter(|bits| [1, 2, 4].contains(bits))?;
        let plane = Plane { bits, lowest };
        if constants.constant(lefts)? != plane.lefts().as_slice() {
            return None;
        }
        let (_, _, lefts_shape) = constants.operand(lefts)?;
        let axis = match lefts_shape.as_slice() {
            [count, 1, 1] if *count == plane.values() => 0,
            [count, 1] if *count == plane.values() => 1,
            _ => return None,
        };
        let &(weight, info) = constants.weights.get(bytes)?;
        (info.dtype == DType::U8).then_some(())?;
        Some(Found {
            plane,
            axis,
            weight,
            shape: &info.shape,
            values: constants.extents(values)?,
        })
    }

    fn maker(&self, name: &str) -> Option<&'b NodeProto> {
        self.makers.get(name).copied()
    }

    /// What a `Cast` to f32 reads.
    fn to_float(&self, name: &str) -> Option<&'b str> {
        let node = self.maker(name)?;
        let float = node.int("to") == Some(DataType::Float as i64);
        (node.op_type == "Cast" && float).then(|| node.input.first().map(String::as_str))?
    }

    /// What a `BitShift` in this direction reads, and by how much.
    fn shifted(&self, name: &str, direction: &str) -> Option<(&'b str, &'b str)> {
        let node = self.maker(name)?;
        (node.text("direction") == Some(direction)).then(|| pair(node, "BitShift"))?
    }
}

/// A plane that nodes take out of bytes.
struct Found<'b> {
    plane: Plane,
    axis: usize,
    /// The index of the bytes.
    weight: usize,
    /// Their extents.
    shape: &'b [usize],
    /// The extents of the values.
    values: Vec<usize>,
}

/// The two inputs of a node of this operator.
fn pair<'n>(node: &'n NodeProto, op: &str) -> Option<(&'n str, &'n str)> {
    match node.input.as_slice() {
        [first, second] if node.op_type == op && default_domain(&node.domain).is_empty() => {
            Some((first, second))
        }
        _ => None,
    }
}
