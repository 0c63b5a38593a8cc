//! Brings the large weights into their final form, one at a time.
//!
//! The optimiser has seen them as inputs of known shape. The operations on a weight before it meets an activation
//! (transposing, widening, packing for a kernel) are therefore still in the graph, as nodes that depend on weights
//! alone. Here each weight is read, sent through those nodes and stored as a constant in its last form. The original
//! is dropped before the next weight is read, so the model is in memory once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::{EngineError, Result};
use tract_linalg::mmm::{MMMInputValue, PackedMatrixStorage};
use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::*;
use tract_onnx::tract_core::ops::konst::Const;
use tract_onnx::tract_core::ops::matmul::optimized::OptMatMul;
use tract_onnx::tract_core::ops::matmul::pack::{DynPackedExoticFact, OptMatMulPack};

use super::phase;
use super::tensors;
use crate::executor::Pacer;

/// What a node of the optimised model depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// On the batch, or on nothing that concerns us here. Products of weights with weights are
    /// left to the run as well: their kernels compute nowhere else.
    Live,
    /// A constant that is there already.
    Constant,
    /// A promised weight, by its index in the source.
    Weight(usize),
    /// Weights and constants alone.
    Derived,
}

/// Reads a weight and checks its length.
pub(super) async fn read(bundle: &ModelBundle, index: usize) -> Result<Bytes> {
    let info = &bundle.weights.weights()[index];
    let data = bundle.weights.read(index).await?;
    if data.len() == info.byte_len() {
        return Ok(data);
    }
    Err(EngineError::Weight {
        name: info.name.clone(),
        detail: format!(
            "its source gives {} bytes, but {} {:?} takes {}",
            data.len(),
            info.dtype,
            info.shape,
            info.byte_len()
        ),
    })
}

/// Replaces the promised weights of `model`, its last inputs, by constants.
pub(super) async fn fold(
    mut model: TypedModel,
    bundle: &ModelBundle,
    deferred: &[usize],
    cancel: &Cancel,
    pacer: &mut Pacer,
) -> Result<TypedModel> {
    let origin = bundle.origin.as_str();
    let own_inputs = model.inputs.len().saturating_sub(deferred.len());
    let order = phase(origin, "an order of its nodes", || model.eval_order())?;
    let mut cone = Cone::new(&model, &order, own_inputs, deferred);
    while let Some(target) = cone.next_target() {
        for node in cone.path_to(&model, target) {
            if let Role::Weight(index) = cone.roles[node] {
                let tensor = read_tensor(bundle, index).await?;
                cone.values.insert(node, tvec!(tensor.into_tvalue()));
            } else {
                phase(origin, "the final form of a weight", || {
                    cone.evaluate(&model, node)
                })?;
            }
            cancel.check()?;
            pacer.step().await;
        }
        phase(origin, "a place for a weight", || {
            cone.settle(&mut model, target)
        })?;
    }
    phase(origin, "its graph without weights among the inputs", || {
        let own = model.inputs[..own_inputs].to_vec();
        model.set_input_outlets(&own)?;
        model.compact()
    })?;
    Ok(model)
}

async fn read_tensor(bundle: &ModelBundle, index: usize) -> Result<Tensor> {
    let info = &bundle.weights.weights()[index];
    let data = read(bundle, index).await?;
    tensors::from_bytes(info.dtype, &info.shape, &data).map_err(|detail| EngineError::Weight {
        name: info.name.clone(),
        detail,
    })
}

/// The part of the graph that depends on weights alone, and how far its evaluation has come.
struct Cone {
    roles: Vec<Role>,
    /// Position of each node in the order of evaluation.
    rank: Vec<usize>,
    /// Nodes of the cone that something outside it reads, last first.
    targets: Vec<usize>,
    /// Values on their way, dropped when nothing more needs them.
    values: HashMap<usize, TVec<TValue>>,
    /// How many readers of each node's value are still to come.
    readers: Vec<usize>,
}

impl Cone {
    fn new(model: &TypedModel, order: &[usize], own_inputs: usize, deferred: &[usize]) -> Self {
        let mut roles = vec![Role::Live; model.nodes.len()];
        let mut rank = vec![usize::MAX; model.nodes.len()];
        for (outlet, &index) in model.inputs[own_inputs..].iter().zip(deferred) {
            roles[outlet.node] = Role::Weight(index);
        }
        for (position, &node) in order.iter().enumerate() {
            rank[node] = position;
            let op = &model.nodes[node];
            if op.op_is::<Const>() {
                // An extent of the batch is constant to the optimiser, by its name; its value
                // comes with the run.
                if op.outputs[0].fact.datum_type != DatumType::TDim {
                    roles[node] = Role::Constant;
                }
            } else if !op.op_is::<OptMatMul>()
                && op.outputs.iter().all(|o| o.fact.shape.is_concrete())
                && op.inputs.iter().all(|i| roles[i.node] != Role::Live)
                && op
                    .inputs
                    .iter()
                    .any(|i| matches!(roles[i.node], Role::Weight(_) | Role::Derived))
            {
                roles[node] = Role::Derived;
            }
        }
        let mut cone = Self {
            readers: vec![0; roles.len()],
            roles,
            rank,
            targets: Vec::new(),
            values: HashMap::new(),
        };
        for &node in order {
            if cone.roles[node] == Role::Derived {
                for input in &model.nodes[node].inputs {
                    cone.readers[input.node] += 1;
                }
            }
            if cone.in_cone(node) && cone.is_read_outside(model, node) {
                cone.targets.push(node);
                cone.readers[node] += 1;
            }
        }
        cone.targets.reverse();
        cone
    }

    fn in_cone(&self, node: usize) -> bool {
        matches!(self.roles[node], Role::Weight(_) | Role::Derived)
    }

    fn is_read_outside(&self, model: &TypedModel, node: usize) -> bool {
        model.outputs.iter().any(|outlet| outlet.node == node)
            || model.nodes[node]
                .outputs
                .iter()
                .flat_map(|output| &output.successors)
                .any(|inlet| self.roles[inlet.node] == Role::Live)
    }

    fn next_target(&mut self) -> Option<usize> {
        self.targets.pop()
    }

    /// The nodes that must be evaluated for `target` to have a value, in order.
    fn path_to(&self, model: &TypedModel, target: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut ahead = vec![target];
        while let Some(node) = ahead.pop() {
            if self.in_cone(node) && !self.values.contains_key(&node) && !path.contains(&node) {
                path.push(node);
                ahead.extend(model.nodes[node].inputs.iter().map(|input| input.node));
            }
        }
        path.sort_by_key(|&node| self.rank[node]);
        path
    }

    /// Computes a node from its inputs' values, and drops those that were needed for it alone.
    fn evaluate(&mut self, model: &TypedModel, node: usize) -> TractResult<()> {
        let op = &model.nodes[node];
        let mut inputs: TVec<TValue> = tvec!();
        for input in &op.inputs {
            inputs.push(match model.nodes[input.node].op_as::<Const>() {
                Some(constant) => Arc::clone(constant.val()).into_tvalue(),
                None => self
                    .values
                    .get(&input.node)
                    .and_then(|values| values.get(input.slot))
                    .cloned()
                    .with_context(|| format!("{op} has no value for input {}", input.slot))?,
            });
        }
        for input in &op.inputs {
            self.release(input.node);
        }
        let values = match op.op_as::<OptMatMulPack>() {
            Some(_) => pack(model, node, &inputs)?,
            None => None,
        };
        let values = match values {
            Some(packed) => packed,
            None => op
                .op
                .eval_out_of_plan(inputs)?
                .with_context(|| format!("{op} cannot be computed ahead of a run"))?,
        };
        self.values.insert(node, values);
        Ok(())
    }

    fn release(&mut self, node: usize) {
        self.readers[node] = self.readers[node].saturating_sub(1);
        if self.readers[node] == 0 {
            self.values.remove(&node);
        }
    }

    /// Puts a target's value into the graph as a constant, which all its readers have from now
    /// on, those inside the cone included.
    fn settle(&mut self, model: &mut TypedModel, target: usize) -> TractResult<()> {
        let values = self.values.remove(&target).unwrap_or_default();
        for (slot, value) in values.into_iter().enumerate() {
            let outlet = OutletId::new(target, slot);
            let tensor = value.into_arc_tensor();
            let exotic = match tensor.try_storage_as::<PackedMatrixStorage>() {
                Ok(_) => model.outlet_fact(outlet)?.exotic_fact.clone(),
                Err(_) => None,
            };
            let mut patch = TypedModelPatch::default();
            let constant = Const::new_with_opt_exotic_fact(tensor, exotic)?;
            let name = format!("{}.weight.{slot}", model.nodes[target].name);
            let wire = patch.wire_node(name, constant, &[])?[0];
            patch.shunt_outside(model, outlet, wire)?;
            patch.apply(model)?;
        }
        self.roles.resize(model.nodes.len(), Role::Constant);
        self.rank.resize(model.nodes.len(), usize::MAX);
        self.readers.resize(model.nodes.len(), 0);
        Ok(())
    }
}

/// Packs a weight for the two kernels that will share it: one for a single column, one for
/// several. The node itself would choose a layout by the weight's own extent, which says nothing
/// about the columns to come; the layout that serves both is the stricter of the two.
fn pack(model: &TypedModel, node: usize, inputs: &[TValue]) -> TractResult<Option<TVec<TValue>>> {
    let op = &model.nodes[node];
    let fact = &op.outputs[0].fact;
    let Some(packed) = fact
        .exotic_fact()
        .and_then(|fact| fact.downcast_ref::<DynPackedExoticFact>())
    else {
        return Ok(None);
    };
    let (input, [one_column, columns]) = (&inputs[0], &*packed.packers) else {
        return Ok(None);
    };
    let layout = one_column
        .merge_with(&**columns)
        .with_context(|| format!("{op} feeds two kernels that cannot share a layout"))?;
    // The node keeps its axes to itself; the mapping that it gives the optimiser names them.
    let (input_facts, output_facts) = model.node_facts(node)?;
    let mapping = op.op.axes_mapping(&input_facts, &output_facts)?;
    let axis = |name: char| -> TractResult<usize> {
        let axis = mapping.axis(name)?;
        axis.inputs[0]
            .first()
            .copied()
            .with_context(|| format!("{op} has no axis {name}"))
    };
    let (k, mn) = (axis('K')?, axis('M')?);
    let batch: Vec<usize> = (0..input.rank())
        .filter(|&axis| axis != k && axis != mn)
        .collect();
    let batch_shape: TVec<usize> = batch.iter().map(|&axis| input.shape()[axis]).collect();
    let mut values: TVec<Box<dyn MMMInputValue>> = tvec!();
    let matrices: usize = batch_shape.iter().product();
    for matrix in 0..matrices {
        // One matrix of the stack, by its coordinates along the other axes.
        let mut slice = Cow::Borrowed(&**input);
        let mut rest = matrix;
        for (&axis, &extent) in batch.iter().zip(&batch_shape).rev() {
            let at = rest % extent;
            rest /= extent;
            slice = Cow::Owned(slice.slice(axis, at, at + 1)?);
        }
        values.push(layout.prepare_one_view(&slice.view(), k, mn)?);
    }
    let storage = PackedMatrixStorage::new_batched(&batch_shape, values);
    Ok(Some(tvec!(
        storage.into_tensor(input.datum_type()).into_tvalue()
    )))
}
