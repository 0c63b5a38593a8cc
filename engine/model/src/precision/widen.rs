//! From small weights back to f32 ones, for engines that compute on those.

mod few_bits;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{DataType, GraphProto, NodeProto, TensorProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;

use self::few_bits::Blocks;
use super::half::Half;
use super::int8::Channels;
use super::source::{Form, Operand, Reformed};
use crate::bundle::prune;

/// The same model with f32 weights in the place of those that it stores in 16 bits or as 8-bit
/// integers behind a `Cast` or `DequantizeLinear`, or in [blocks of few bits](super::BlockTensor); each is widened when it is read.
///
/// With this bundle a runtime dequantises nothing while it runs, and packs and fuses as for a model that was stored
/// in f32. Files of other programs are supported as well: signed or unsigned integers, with a zero point or none, one
/// scale or one a channel. What is not understood (scales by blocks, scales that are computed) stays as it is, and so
/// do integers of a graph that quantises activations as well (`QuantizeLinear`): runtimes have integer kernels for the two
/// together.
#[must_use]
pub fn widened(bundle: &ModelBundle) -> ModelBundle {
    widen(bundle, true)
}

/// The same model with f32 weights in the place of [blocks of few bits](super::BlockTensor) and of bfloat16 alone: engines take neither.
#[must_use]
pub fn expanded(bundle: &ModelBundle) -> ModelBundle {
    widen(bundle, false)
}

/// Widens blocks of few bits and bfloat16, and `all` other small weights as well.
fn widen(bundle: &ModelBundle, all: bool) -> ModelBundle {
    let Some(graph) = &bundle.graph.graph else {
        return bundle.clone();
    };
    let mut nodes = graph.node.iter();
    let whole = nodes.any(|node| node.op_type == "QuantizeLinear");
    let constants = Constants::of(graph, bundle.weights.weights());
    let blocks = Blocks::of(graph);
    let found: HashMap<usize, (WeightInfo, Form)> = graph
        .node
        .iter()
        .enumerate()
        .filter(|(_, node)| !whole || node.op_type != "DequantizeLinear")
        .filter_map(|(at, node)| {
            let form = constants.widened(node);
            let form = form.filter(|(_, form)| {
                all || matches!(
                    form,
                    Form::FromHalf {
                        half: Half::Bf16,
                        ..
                    }
                )
            });
            Some((at, form.or_else(|| blocks.widened(node, &constants))?))
        })
        .collect();
    if found.is_empty() {
        return bundle.clone();
    }
    let mut widened = bundle.clone();
    let (mut infos, mut forms) = (bundle.weights.weights().to_vec(), Vec::new());
    forms.extend((0..infos.len()).map(Form::Same));
    if let Some(graph) = widened.graph.graph.as_mut() {
        let mut at = 0..;
        graph.node.retain(|_| {
            let known = at.next().and_then(|at| found.get(&at));
            if let Some((info, form)) = known {
                infos.push(info.clone());
                forms.push(form.clone());
            }
            known.is_none()
        });
    }
    widened.weights = Arc::new(Reformed {
        source: bundle.weights.clone(),
        infos,
        forms,
    });
    // The small forms, unless something else reads them.
    prune(&mut widened);
    widened
}

/// What has a value before a run.
pub(super) struct Constants<'b> {
    weights: HashMap<&'b str, (usize, &'b WeightInfo)>,
    small: HashMap<&'b str, &'b TensorProto>,
    /// A weight that is an output stays: runtimes look for weights where operators read.
    outputs: HashSet<&'b str>,
}

impl<'b> Constants<'b> {
    pub(super) fn of(graph: &'b GraphProto, weights: &'b [WeightInfo]) -> Self {
        let indexed = weights.iter().enumerate();
        Self {
            weights: indexed
                .map(|(index, info)| (info.name.as_str(), (index, info)))
                .collect(),
            small: graph
                .initializer
                .iter()
                .map(|tensor| (tensor.name.as_str(), tensor))
                .collect(),
            outputs: graph
                .output
                .iter()
                .map(|value| value.name.as_str())
                .collect(),
        }
    }

    /// The f32 weight that a node makes of a small one.
    pub(super) fn widened(&self, node: &NodeProto) -> Option<(WeightInfo, Form)> {
        let [output] = node.output.as_slice() else {
            return None;
        };
        if !default_domain(&node.domain).is_empty() || self.outputs.contains(output.as_str()) {
            return None;
        }
        let &(index, info) = self.weights.get(node.input.first()?.as_str())?;
        let form = match node.op_type.as_str() {
            "Cast" => {
                let half = match info.dtype {
                    DType::F16 => Half::F16,
                    DType::BF16 => Half::Bf16,
                    _ => return None,
                };
                let to = node.int("to")?;
                (to == DataType::Float as i64).then_some(Form::FromHalf {
                    weight: index,
                    half,
                })?
            }
            "DequantizeLinear" if matches!(info.dtype, DType::I8 | DType::U8) => {
                self.dequantised(node, index, info)?
            }
            _ => return None,
        };
        let info = WeightInfo {
            name: output.clone(),
            dtype: DType::F32,
            shape: info.shape.clone(),
        };
        Some((info, form))
    }

    /// How a weight is stored.
    pub(super) fn dtype(&self, name: &str) -> Option<DType> {
        self.weights.get(name).map(|(_, info)| info.dtype)
    }

    /// <https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html>
    fn dequantised(&self, node: &NodeProto, weight: usize, info: &WeightInfo) -> Option<Form> {
        let number = |name: &str| node.int(name);
        if number("block_size").is_some_and(|size| size != 0)
            || number("output_dtype").is_some_and(|to| to != 0 && to != DataType::Float as i64)
        {
            return None;
        }
        let (scales, scale_type, scale_shape) = self.operand(node.input.get(1)?)?;
        if scale_type != DType::F32 {
            return None;
        }
        let channels = match scale_shape.as_slice() {
            [] | [1] => Channels::one(&info.shape)?,
            [count] => {
                let rank = info.shape.len() as i64;
                let axis = number("axis").unwrap_or(1);
                let axis = if axis < 0 { axis + rank } else { axis };
                let channels = Channels::along(&info.shape, usize::try_from(axis).ok()?)?;
                (channels.count == *count).then_some(channels)?
            }
            _ => return None,
        };
        let zeros = match node.input.get(2).filter(|name| !name.is_empty()) {
            None => None,
            Some(name) => {
                let (zeros, dtype, shape) = self.operand(name)?;
                (dtype == info.dtype && shape == scale_shape).then_some(())?;
                Some(zeros)
            }
        };
        Some(Form::FromInts {
            weight,
            scales,
            zeros,
            channels,
        })
    }

    /// The bytes of a small constant.
    fn constant(&self, name: &str) -> Option<&[u8]> {
        Some(&self.small.get(name)?.raw_data)
    }

    /// Whether a small constant is this one f32.
    fn is_f32(&self, name: &str, wanted: f32) -> bool {
        self.constant(name) == Some(&wanted.to_le_bytes())
    }

    /// A small constant of 64-bit integers, as extents.
    fn extents(&self, name: &str) -> Option<Vec<usize>> {
        let (extents, rest) = self.constant(name)?.as_chunks::<8>();
        let extents = extents
            .iter()
            .map(|extent| usize::try_from(i64::from_le_bytes(*extent)));
        rest.is_empty()
            .then(|| extents.collect::<Result<_, _>>().ok())?
    }

    fn operand(&self, name: &str) -> Option<(Operand, DType, Vec<usize>)> {
        if let Some(&(index, info)) = self.weights.get(name) {
            return Some((Operand::Weight(index), info.dtype, info.shape.clone()));
        }
        let tensor = self.small.get(name)?;
        let dtype = DType::try_from(DataType::try_from(tensor.data_type).ok()?).ok()?;
        let shape: Option<Vec<usize>> = tensor
            .dims
            .iter()
            .map(|&extent| usize::try_from(extent).ok())
            .collect();
        let data = tensor.raw_data.clone();
        Some((Operand::Constant { dtype, data }, dtype, shape?))
    }
}
