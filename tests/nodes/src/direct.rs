//! A test's graph as it is, for engines that take any graph.
//!
//! A batch of the contract carries six element types and one number of rows. What it carries is fed,
//! and so is what a carried type holds exactly, with a node behind it that casts it back; the other
//! inputs become initializers of the graph, which every engine has to read as well. An output of another
//! type is cast to one that is carried; what its type has to be stays written in the graph, where engines
//! check it.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::engine::{Batch, RunOutput};
use isovec_engine::onnx::proto::{
    DataType, ModelProto, OperatorSetIdProto, TensorProto, TypeValue, ValueInfoProto,
};
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::int;
use prost::Message;

use crate::cases::Case;
use crate::compare::compare;
use crate::values::Numbers;

/// What stands before the names of everything that is not the test's own.
pub(crate) const OWN: &str = "isovec.";

/// A graph to load, and what to feed it.
#[derive(Debug)]
pub struct Direct {
    /// The graph.
    pub bundle: ModelBundle,
    /// Its inputs.
    pub batch: Batch,
    /// The outputs as they have to be, in the types that are carried.
    wanted: Vec<(String, Numbers)>,
}

/// Makes the graph of a test. `feeds` says which inputs may be fed.
///
/// # Errors
/// In words, why there is none.
pub fn direct(case: &Case, feeds: &dyn Fn(&TensorProto) -> bool) -> Result<Direct, String> {
    let mut model = case.model.clone();
    let mut batch = Batch::default();
    let mut rows = None;
    for given in &case.inputs {
        let Some(tensor) = &given.tensor else {
            return Err("an input is no tensor".into());
        };
        let first = tensor.dims.first();
        let fits = first.is_none() || rows.is_none_or(|rows| Some(rows) == first);
        match fed(tensor).filter(|_| fits && !tensor.dims.contains(&0) && feeds(tensor)) {
            Some(value) => {
                rows = rows.or(first);
                let carrier = DataType::from(value.dtype());
                let name = match carrier as i32 == tensor.data_type {
                    true => given.name.clone(),
                    false => cast_input(&mut model, &given.name, carrier),
                };
                batch.inputs.push(NamedTensor::new(name, value));
            }
            None => {
                let graph = model.graph.get_or_insert_default();
                graph.input.retain(|input| input.name != given.name);
                graph.initializer.push(TensorProto {
                    name: given.name.clone(),
                    ..tensor.clone()
                });
            }
        }
    }
    // A batch has as many rows as its first tensor.
    batch
        .inputs
        .sort_by_key(|input| input.tensor.shape().is_empty());
    let mut wanted = Vec::new();
    let declared = model.graph.get_or_insert_default().output.clone();
    for (given, output) in case.outputs.iter().zip(&declared) {
        let Some(tensor) = &given.tensor else {
            return Err("an output is no tensor".into());
        };
        let numbers = Numbers::of(tensor)?;
        let carrier = carrier(numbers.data_type).ok_or("an output is of texts")?;
        if carrier == numbers.data_type {
            wanted.push((given.name.clone(), numbers));
            continue;
        }
        let name = cast(&mut model, output, carrier);
        wanted.push((name, as_carried(numbers, tensor, carrier)?));
    }
    let bundle = bundle(&model)?;
    Ok(Direct {
        bundle,
        batch,
        wanted,
    })
}

impl Direct {
    /// Whether the outputs are what they have to be.
    ///
    /// # Errors
    /// In words, what differs.
    pub fn compare(&self, output: &RunOutput) -> Result<(), String> {
        for (name, wanted) in &self.wanted {
            let tensor = output.output(name).ok_or("an output did not come")?;
            let (data_type, shape) = (DataType::from(tensor.dtype()), tensor.shape().to_vec());
            let found = Numbers::from_bytes(data_type, shape, tensor.bytes())?;
            compare(&found, wanted)?;
        }
        Ok(())
    }
}

/// A model as it would lie on the disk.
pub(crate) fn bundle(model: &ModelProto) -> Result<ModelBundle, String> {
    let file = Bytes::from(model.encode_to_vec());
    let files = BTreeMap::from([("model.onnx".to_owned(), file)]);
    bundle::from_bytes("the test", files, &BundleOptions::default())
        .map_err(|error| error.to_string())
}

/// An input as it crosses the contract, if a type that is carried holds its values exactly.
fn fed(tensor: &TensorProto) -> Option<Tensor> {
    let data_type = DataType::try_from(tensor.data_type).ok()?;
    let shape: Vec<usize> = tensor.dims.iter().map(|&extent| extent as usize).collect();
    let bytes = &tensor.raw_data;
    let values = || Numbers::of(tensor).map(|numbers| numbers.values).ok();
    match data_type {
        DataType::Bool => Tensor::from_bytes(DType::U8, &shape, bytes),
        // Those past 2^63 go as the whole numbers of the same bits.
        DataType::Uint64 => Tensor::from_bytes(DType::I64, &shape, bytes),
        DataType::Int16 | DataType::Uint16 | DataType::Uint32 => {
            let values: Vec<i64> = values()?.iter().map(|&value| value as i64).collect();
            Tensor::from_slice(&shape, &values)
        }
        DataType::Double => {
            let values = values()?;
            let exact = |&value: &f64| f64::from(value as f32) == value || value.is_nan();
            let all = values.iter().all(exact);
            let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            all.then(|| Tensor::from_slice(&shape, &values))?
        }
        other => Tensor::from_bytes(DType::try_from(other).ok()?, &shape, bytes),
    }
    .ok()
}

/// Has an input fed in another type, and cast back. Returns the new input's name.
fn cast_input(model: &mut ModelProto, name: &str, carrier: DataType) -> String {
    has_default_set(model);
    let graph = model.graph.get_or_insert_default();
    let fed = format!("{OWN}{name}");
    let mut to = 0;
    for input in graph.input.iter_mut().filter(|input| input.name == name) {
        input.name.clone_from(&fed);
        if let Some(TypeValue::Tensor(tensor)) =
            input.r#type.as_mut().and_then(|kind| kind.value.as_mut())
        {
            to = std::mem::replace(&mut tensor.elem_type, carrier as i32);
        }
    }
    let to = vec![int("to", i64::from(to))];
    GraphBuilder::new(graph, OWN).named_node("Cast", &[&fed], name, to);
    // Before whoever reads it.
    graph.node.rotate_right(1);
    fed
}

/// Casts are of the default operator set.
fn has_default_set(model: &mut ModelProto) {
    if !model.opset_import.iter().any(|set| set.domain.is_empty()) {
        model.opset_import.push(OperatorSetIdProto {
            domain: String::new(),
            version: 17,
        });
    }
}

/// The type that an output is cast to, if it is not carried itself.
fn carrier(data_type: DataType) -> Option<DataType> {
    Some(match data_type {
        carried if DType::try_from(carried).is_ok() => carried,
        DataType::Bool | DataType::Uint4 => DataType::Uint8,
        DataType::Int4 => DataType::Int8,
        DataType::Int16 | DataType::Uint16 | DataType::Uint32 | DataType::Uint64 => DataType::Int64,
        DataType::Double
        | DataType::Bfloat16
        | DataType::Float8e4m3fn
        | DataType::Float8e4m3fnuz
        | DataType::Float8e5m2
        | DataType::Float8e5m2fnuz
        | DataType::Float4e2m1 => DataType::Float,
        _ => return None,
    })
}

/// The numbers after the cast.
fn as_carried(
    numbers: Numbers,
    tensor: &TensorProto,
    carrier: DataType,
) -> Result<Numbers, String> {
    if numbers.data_type == DataType::Uint64 {
        // Those past 2^63 come out as the whole numbers of the same bits.
        return Numbers::from_bytes(carrier, numbers.shape, &tensor.raw_data);
    }
    Ok(Numbers {
        data_type: carrier,
        ..numbers
    })
}

/// Puts a cast behind an output, whose own type stays written. Returns the new output's name.
fn cast(model: &mut ModelProto, output: &ValueInfoProto, to: DataType) -> String {
    has_default_set(model);
    let graph = model.graph.get_or_insert_default();
    let name = format!("{OWN}{}", output.name);
    graph.value_info.push(output.clone());
    GraphBuilder::new(graph, OWN).named_node(
        "Cast",
        &[&output.name],
        &name,
        vec![int("to", i64::from(to as i32))],
    );
    for own in graph
        .output
        .iter_mut()
        .filter(|own| own.name == output.name)
    {
        own.name.clone_from(&name);
        if let Some(TypeValue::Tensor(tensor)) =
            own.r#type.as_mut().and_then(|kind| kind.value.as_mut())
        {
            tensor.elem_type = to as i32;
        }
    }
    name
}
