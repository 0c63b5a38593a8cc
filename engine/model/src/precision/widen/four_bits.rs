//! Recognises the nodes that make a matrix of blocks of 4 bits.

use std::collections::HashMap;

use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{DataType, GraphProto, NodeProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;

use super::Constants;
use crate::precision::nibbles::Layout;
use crate::precision::source::Form;

/// The nodes that make a matrix of blocks of 4 bits, as `isovec-optimize` writes them.
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

    /// The f32 weight that `Reshape((Cast(Concat(low, high)) - 8) · Cast(scales))` makes.
    pub(super) fn widened(
        &self,
        node: &NodeProto,
        constants: &Constants<'_>,
    ) -> Option<(WeightInfo, Form)> {
        let (scaled, extents) = pair(node, "Reshape")?;
        let output = node.output.first()?;
        if constants.outputs.contains(output.as_str()) {
            return None;
        }
        let (whole, factors) = pair(self.maker(scaled)?, "Mul")?;
        let (wide, eight) = pair(self.maker(whole)?, "Sub")?;
        let all = self.maker(self.to_float(wide)?)?;
        let (low, high) = pair(all, "Concat")?;
        let (left, four) = self.shifted(low, "RIGHT")?;
        let (bytes, four_left) = self.shifted(left, "LEFT")?;
        let (again, four_right) = self.shifted(high, "RIGHT")?;
        let is = |name: &str, wanted: &[u8]| constants.constant(name) == Some(wanted);
        let fours = [four, four_left, four_right];
        if again != bytes
            || !fours.iter().all(|four| is(four, &[4]))
            || !is(eight, &8f32.to_le_bytes())
        {
            return None;
        }
        let extents = constants.constant(extents)?;
        let (extents, _) = extents.as_chunks::<8>();
        let extents = extents
            .iter()
            .map(|extent| usize::try_from(i64::from_le_bytes(*extent)));
        let shape: Vec<usize> = extents.collect::<Result<_, _>>().ok()?;
        let axis = usize::try_from(all.int("axis")?.checked_sub(1)?).ok()?;
        let layout = Layout::new(&shape, axis)?;
        let &(weight, info) = constants.weights.get(bytes)?;
        let (scales, scale_type, scale_shape) = constants.operand(self.to_float(factors)?)?;
        let fits = info.dtype == DType::U8 && info.shape == layout.bytes_shape();
        if !fits || scale_type != DType::F16 || scale_shape != layout.scales_shape() {
            return None;
        }
        let info = WeightInfo {
            name: output.clone(),
            dtype: DType::F32,
            shape,
        };
        Some((
            info,
            Form::FromBlocks {
                weight,
                scales,
                layout,
            },
        ))
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

/// The two inputs of a node of this operator.
fn pair<'n>(node: &'n NodeProto, op: &str) -> Option<(&'n str, &'n str)> {
    match node.input.as_slice() {
        [first, second] if node.op_type == op && default_domain(&node.domain).is_empty() => {
            Some((first, second))
        }
        _ => None,
    }
}
