//! How often each constant is multiplied with while a graph runs once: of a picture its kernels go over pixels, and those in the first
//! layers over many more than those in the last.

use std::collections::HashMap;

use isovec_engine::description::{Dim, declared_extent};
use isovec_engine::onnx::proto::{GraphProto, NodeProto, TypeValue, ValueInfoProto};

use super::graph::Graph;
use super::region::Region;
use crate::operators::squeezes;

/// The extent of a picture where the graph leaves it open.
const SIDE: usize = 224;

/// The multiplications of a run with each constant.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// By the node and the place of the constant among its inputs.
    of: HashMap<(usize, usize), usize>,
}

impl Work {
    /// The work of one token, or of one picture. `None` where it cannot be known before a run.
    pub(super) fn of(graph: &Graph<'_>, proto: &GraphProto) -> Option<Self> {
        let mut pixels: HashMap<&str, [usize; 2]> = HashMap::new();
        for input in &proto.input {
            if graph.constant(&input.name).is_none() {
                pixels.insert(&input.name, extents(input));
            }
        }
        let mut work = Self::default();
        for (at, node) in graph.nodes.iter().enumerate() {
            let operator = graph.operator(at);
            let inputs = node
                .input
                .iter()
                .filter_map(|name| pixels.get(name.as_str()));
            // Of several the one that the others are spread over.
            let before = inputs
                .copied()
                .max_by_key(|[rows, columns]| rows.saturating_mul(*columns));
            let Some(before) = before else {
                continue;
            };
            let kernel = graph.constant(node.input.get(1).map_or("", String::as_str));
            let behind = match operator {
                "Conv" => window(node, kernel?.shape.get(2..)?, before)?,
                "MaxPool" | "AveragePool" => {
                    let sides = node.ints("kernel_shape")?.iter();
                    let sides: Option<Vec<usize>> =
                        sides.map(|&side| usize::try_from(side).ok()).collect();
                    window(node, &sides?, before)?
                }
                "ConvTranspose" | "Resize" | "Upsample" => return None,
                "Flatten" => [1, 1],
                _ if squeezes(operator) => [1, 1],
                "Reshape" if rows_alone(graph, node) => [1, 1],
                _ => before,
            };
            if matches!(operator, "Conv" | "Gemm" | "MatMul") {
                for (place, name) in node.input.iter().enumerate().take(2) {
                    if let Some(constant) = graph.constant(name) {
                        let times = behind[0].saturating_mul(behind[1]);
                        let all = constant.values().saturating_mul(times);
                        work.of.insert((at, place), all);
                    }
                }
            }
            for output in &node.output {
                pixels.insert(output, behind);
            }
        }
        Some(work)
    }

    /// Of a unit of a region.
    pub(super) fn of_unit(&self, region: &Region) -> usize {
        let cuts = region.cuts.iter().map(|cut| (cut.node, cut.place));
        let all = cuts.chain([(region.product, 1)]);
        let all = all.filter_map(|place| self.of.get(&place)).copied();
        all.fold(0, usize::saturating_add) / region.units
    }

    /// Of all constants.
    pub(super) fn all(&self) -> usize {
        self.of.values().copied().fold(0, usize::saturating_add)
    }
}

/// Whether a `Reshape` leaves one row for each picture.
fn rows_alone(graph: &Graph<'_>, node: &NodeProto) -> bool {
    let extents = node.input.get(1).and_then(|name| graph.ints(name));
    extents.is_some_and(|extents| extents.len() == 2)
}

/// Rows and columns of an input `[pictures, channels, rows, columns]`; 1 of every other, whose products go over tokens.
fn extents(input: &ValueInfoProto) -> [usize; 2] {
    let value = input.r#type.as_ref().and_then(|of| of.value.as_ref());
    let Some(TypeValue::Tensor(tensor)) = value else {
        return [1, 1];
    };
    let dims = tensor.shape.as_ref().map_or(&[][..], |shape| &shape.dim);
    let [_, _, rows, columns] = dims else {
        return [1, 1];
    };
    [rows, columns].map(|extent| match declared_extent(extent) {
        Some(Dim::Fixed(extent)) => extent,
        _ => SIDE,
    })
}

/// Pixels behind a window that goes over them (<https://onnx.ai/onnx/operators/onnx__Conv.html>).
fn window(node: &NodeProto, sides: &[usize], before: [usize; 2]) -> Option<[usize; 2]> {
    let [_, _] = sides else {
        return None;
    };
    let number = |name: &str, at: usize, default: i64| {
        let given = node.ints(name).and_then(|all| all.get(at)).copied();
        usize::try_from(given.unwrap_or(default)).ok()
    };
    let padding = node.text("auto_pad").unwrap_or("NOTSET");
    let mut behind = [0; 2];
    for (axis, behind) in behind.iter_mut().enumerate() {
        let stride = number("strides", axis, 1)?.max(1);
        if padding.starts_with("SAME") {
            *behind = before[axis].div_ceil(stride);
            continue;
        }
        let between = sides[axis].checked_sub(1)?;
        let reach = number("dilations", axis, 1)?
            .checked_mul(between)?
            .checked_add(1)?;
        let pads = match padding {
            "VALID" => 0,
            _ => number("pads", axis, 0)?.checked_add(number("pads", axis + 2, 0)?)?,
        };
        let room = before[axis].checked_add(pads)?.checked_sub(reach)?;
        *behind = match node.int("ceil_mode").unwrap_or(0) {
            0 => room / stride + 1,
            _ => room.div_ceil(stride) + 1,
        };
    }
    Some(behind)
}

#[cfg(test)]
mod tests {
    use isovec_model::onnx::builder::{int, ints, string};

    use super::*;

    #[test]
    fn a_window_leaves_as_many_pixels_as_it_has_places() {
        let behind = |attributes: Vec<_>, sides: &[usize]| {
            let node = NodeProto {
                attribute: attributes,
                ..NodeProto::default()
            };
            window(&node, sides, [13, 8])
        };
        let strides = || ints("strides", &[2, 3]);
        assert_eq!(behind(vec![], &[3, 2]), Some([11, 7]));
        assert_eq!(behind(vec![strides()], &[3, 2]), Some([6, 3]));
        assert_eq!(
            behind(vec![strides(), int("ceil_mode", 1)], &[4, 3]),
            Some([6, 3])
        );
        let pads = || ints("pads", &[1, 0, 2, 1]);
        assert_eq!(behind(vec![pads()], &[3, 2]), Some([14, 8]));
        assert_eq!(
            behind(vec![ints("dilations", &[2, 3])], &[3, 2]),
            Some([9, 5])
        );
        for (word, wanted) in [
            ("SAME_UPPER", [7, 3]),
            ("SAME_LOWER", [7, 3]),
            ("VALID", [6, 3]),
        ] {
            let found = behind(vec![string("auto_pad", word), strides(), pads()], &[3, 2]);
            assert_eq!(found, Some(wanted), "{word}");
        }
        assert_eq!(behind(vec![], &[14, 1]), None);
        assert_eq!(behind(vec![], &[3]), None);
    }
}
