//! Writes matrices in few bits as nodes of the standard operator set.

use std::collections::HashMap;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::proto::{AttributeProto, DataType, GraphProto, NodeProto};
use isovec_engine::tensor::DType;
use isovec_model::onnx::builder::{int, string};
use isovec_model::precision::BlockTensor;

use crate::rewriting::{Rewriting, node};
use crate::source::Form;

/// The graph that is being written.
pub(super) struct Writing<'b> {
    parts: Rewriting<'b>,
    nodes: Vec<NodeProto>,
    /// Names of constants that several matrices read, by their type, extents and bytes.
    shared: HashMap<(DType, Vec<usize>, Vec<u8>), String>,
}

impl<'b> Writing<'b> {
    pub(super) fn new(bundle: &'b ModelBundle, graph: &GraphProto) -> Self {
        Self {
            parts: Rewriting::new(bundle, graph, "isovec int4 2"),
            nodes: Vec::new(),
            shared: HashMap::new(),
        }
    }

    /// Stores the matrix of this index in blocks, its rows in parts, and writes the nodes that make it of them.
    pub(super) fn matrix(&mut self, index: usize, name: &str, parts: &[BlockTensor]) {
        // The first plane takes the place of the matrix, whose name a node has now.
        let mut place = Some(index);
        if let [whole] = parts {
            return self.part(&mut place, name, whole);
        }
        let mut made = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let output = self.parts.fresh(&format!("{name}.part{at}"));
            self.part(&mut place, &output, part);
            made.push(output);
        }
        let made: Vec<&str> = made.iter().map(String::as_str).collect();
        self.nodes
            .push(node("Concat", &made, &[name], Some(int("axis", 0))));
    }

    fn part(&mut self, place: &mut Option<usize>, name: &str, tensor: &BlockTensor) {
        let float = int("to", DataType::Float as i64);
        let values_shape = tensor.blocks_shape().map(|extent| extent as i64);
        let values_shape = self.i64s(&values_shape);
        let mut sum: Option<String> = None;
        for (plane, bytes) in tensor.planes().zip(&tensor.planes) {
            let shape = tensor.plane_shape(plane);
            let stored = format!("{name}.bits{}", plane.bits);
            let bytes = match place.take() {
                Some(index) => {
                    let form = Form::Bytes(bytes.clone().into());
                    self.parts.identify(bytes);
                    self.parts.replace(index, &stored, DType::U8, &shape, form)
                }
                None => self
                    .parts
                    .constant(&stored, DType::U8, &shape, bytes.clone()),
            };
            // They broadcast over the values of a byte, which are put before the bytes of a block.
            let lefts_shape = match tensor.axis {
                0 => vec![plane.values(), 1, 1],
                _ => vec![plane.values(), 1],
            };
            let lefts = self.shared(DType::U8, &lefts_shape, plane.lefts());
            let right = self.shared(DType::U8, &[], vec![8 - plane.bits]);
            let way = |direction: &str| Some(string("direction", direction));
            let left = self.node("BitShift", &[&bytes, &lefts], way("LEFT"));
            let fields = self.node("BitShift", &[&left, &right], way("RIGHT"));
            let blocks = self.node("Reshape", &[&fields, &values_shape], None);
            let mut term = self.node("Cast", &[&blocks], Some(float.clone()));
            if plane.lowest > 0 {
                let factor = self.f32(f32::from(1u8 << plane.lowest));
                term = self.node("Mul", &[&term, &factor], None);
            }
            sum = Some(match sum {
                None => term,
                Some(sum) => self.node("Add", &[&sum, &term], None),
            });
        }
        let sum = sum.unwrap_or_default();
        let scales = tensor.scales.iter().flat_map(|scale| scale.to_le_bytes());
        let (scales, shape) = (scales.collect(), tensor.scales_shape());
        let scales = self
            .parts
            .constant(&format!("{name}.scale"), DType::F16, &shape, scales);
        let zero = self.f32(tensor.zero());
        let whole = self.node("Sub", &[&sum, &zero], None);
        let factors = self.node("Cast", &[&scales], Some(float));
        let scaled = self.node("Mul", &[&whole, &factors], None);
        let extents = self.i64s(&tensor.shape.map(|extent| extent as i64));
        self.nodes
            .push(node("Reshape", &[&scaled, &extents], &[name], None));
    }

    pub(super) fn finish(self) -> ModelBundle {
        // They read nothing but weights, so they may come first.
        self.parts
            .finish(|graph| drop(graph.node.splice(0..0, self.nodes)))
    }

    /// Adds a node, and returns the name of its output, which is short: there are many.
    fn node(&mut self, op: &str, inputs: &[&str], attribute: Option<AttributeProto>) -> String {
        let output = self.parts.fresh(&format!("bits.{}", self.nodes.len()));
        self.nodes.push(node(op, inputs, &[&output], attribute));
        output
    }

    fn shared(&mut self, dtype: DType, shape: &[usize], bytes: Vec<u8>) -> String {
        let key = (dtype, shape.to_vec(), bytes);
        if let Some(name) = self.shared.get(&key) {
            return name.clone();
        }
        let name = format!("bits.constant{}", self.shared.len());
        let name = self.parts.constant(&name, dtype, shape, key.2.clone());
        self.shared.insert(key, name.clone());
        name
    }

    fn f32(&mut self, value: f32) -> String {
        self.shared(DType::F32, &[], value.to_le_bytes().to_vec())
    }

    fn i64s(&mut self, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.shared(DType::I64, &[values.len()], bytes.collect())
    }
}
