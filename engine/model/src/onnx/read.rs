//! Reading ONNX files. The file is untrusted. It is decoded, every tensor is brought to one form and compared with
//! its shape, and the graph is checked. Only then are the large initializers moved out of it, as slices of the file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::budget::{Budget, Resource};
use isovec_engine::bundle::WEIGHT_MIN_BYTES;
use isovec_engine::content::Content;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, TensorProto,
};
use isovec_engine::tensor::DType;
use isovec_engine::weights::{BytesWeights, WeightInfo, Weights, WeightsIdentity};
use prost::Message;

use super::check::check;
use super::shorten::shortened;
use super::skim::check_size;
use super::tensor::{Reading, data_type, normalise};
use super::{IDENTITY_KEY, TENSORS_KEY};
use crate::identity::IdentityHasher;
use crate::sniff;

/// What a lookup of external data came to.
#[derive(Debug)]
pub(crate) enum External {
    /// The file.
    Found(Content),
    /// The bundle has no such file.
    Missing,
    /// The place is not in the bundle.
    Outside,
}

/// Looks up external data by its path relative to the model's file, which stays below the model's folder.
pub(crate) type Resolve<'a> = &'a dyn Fn(&str) -> Result<External>;

/// A model as it was read.
#[derive(Debug)]
pub(crate) struct ReadModel {
    pub(crate) graph: ModelProto,
    pub(crate) weights: Weights,
    pub(crate) identity: WeightsIdentity,
}

/// Reads an ONNX file: the graph without its large initializers, and those apart.
///
/// `resolve` gives the contents of a file with external data, by its path relative to the model's file. It is called
/// only with paths that stay below the model's folder.
///
/// # Errors
/// [`EngineError::InvalidModel`] for anything that is not an intact ONNX model,
/// [`EngineError::OutsideBundle`] and [`EngineError::MissingFile`] for external data that is not
/// at hand, [`EngineError::OverBudget`] for one that would cost more than a file of its size may.
pub fn read_model(
    origin: &str,
    file: Bytes,
    resolve: &dyn Fn(&str) -> Option<Bytes>,
) -> Result<(ModelProto, Weights)> {
    let resolve = |location: &str| {
        let found = resolve(location).map(|file| External::Found(file.into()));
        Ok(found.unwrap_or(External::Missing))
    };
    let mut budget = Budget::for_files(0);
    let model = read(origin, &file.into(), &resolve, &mut budget)?;
    Ok((model.graph, model.weights))
}

/// As [`read_model`], with the identity, with lookups that can fail, and within a budget that others share. The file's
/// size is added to it here.
pub(crate) fn read(
    origin: &str,
    file: &Content,
    resolve: Resolve<'_>,
    budget: &mut Budget,
) -> Result<ReadModel> {
    budget.add_file(file.len() as u64);
    let invalid = |detail: String| EngineError::invalid_model(origin, detail);
    let unread = |error| EngineError::io(origin, error);
    let start = file.part(0..file.len().min(sniff::BYTES));
    let start = start.unwrap_or_else(|| file.clone());
    let start = start.bytes().map_err(unread)?;
    let kind = match start.get(8) {
        Some(b'{') => Some("it looks like a safetensors file"),
        _ => sniff::foreign(&start),
    };
    let shortened = shortened(file).map_err(unread)?;
    let (bytes, places) = match shortened {
        Some(shortened) => (shortened.bytes, shortened.places),
        None => (file.bytes().map_err(unread)?, Vec::new()),
    };
    check_size(origin, &bytes, budget)?;
    let mut model = ModelProto::decode(bytes).map_err(|error| match kind {
        Some(kind) => invalid(kind.to_owned()),
        None => invalid(format!("it is cut short, damaged or not ONNX: {error}")),
    })?;
    check(&model).map_err(|detail| match kind {
        // Other formats may decode by accident, but not to a graph.
        Some(kind) if model.graph.is_none() => invalid(kind.to_owned()),
        _ => invalid(detail),
    })?;

    let mut tensors = Tensors {
        reading: Reading {
            origin,
            resolve,
            budget,
            opened: HashSet::new(),
        },
        elsewhere: BTreeMap::new(),
    };
    for function in &mut model.functions {
        for default in &mut function.attribute_proto {
            tensors.attribute(default, &function.name)?;
        }
        tensors.nodes(&mut function.node)?;
    }
    let Some(graph) = model.graph.as_mut() else {
        return Err(invalid("it holds no graph".into()));
    };
    let raw = |index: usize| {
        let at = places.binary_search_by_key(&index, |(of, _)| *of).ok()?;
        // In range: the places are from this file.
        file.part(places[at].1.clone())
    };
    tensors.model_graph(graph, raw)?;
    let elsewhere = tensors.elsewhere;

    drop_default_inputs(graph);
    promote_constants(graph);
    let hash = hash_initializers(graph, &elsewhere, budget, unread)?;
    let weights = move_out(graph, elsewhere, unread)?;
    let identity = identity(&model, hash).map_err(invalid)?;
    Ok(ReadModel {
        graph: model,
        weights: Arc::new(weights),
        identity,
    })
}

/// The location as a path of plain names with `/` between them, if it stays below its folder.
pub(crate) fn inside(location: &str) -> Option<String> {
    let mut names = Vec::new();
    for component in Path::new(location).components() {
        match component {
            Component::Normal(name) => names.push(name.to_str()?),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => return None,
        }
    }
    (!names.is_empty()).then(|| names.join("/"))
}

/// Brings every tensor of a model to its one form, wherever it is: nothing that is handed to an
/// engine may still point at a file.
struct Tensors<'a> {
    reading: Reading<'a>,
    /// The large initializers that are stored elsewhere, by name. Here they have no bytes.
    elsewhere: BTreeMap<String, Content>,
}

impl Tensors<'_> {
    /// The model's own graph, whose large initializers become weights. (Those of graphs in
    /// attributes do not.) `raw` has the raw bytes of those that are without.
    fn model_graph(
        &mut self,
        graph: &mut GraphProto,
        raw: impl Fn(usize) -> Option<Content>,
    ) -> Result<()> {
        for (index, tensor) in graph.initializer.iter_mut().enumerate() {
            if let Some(content) = self.one_form(tensor, "", Some(raw(index)))? {
                self.elsewhere.insert(tensor.name.clone(), content);
            }
        }
        self.beside_initializers(graph)
    }

    fn graph(&mut self, graph: &mut GraphProto) -> Result<()> {
        for tensor in &mut graph.initializer {
            self.tensor(tensor, "")?;
        }
        self.beside_initializers(graph)
    }

    fn beside_initializers(&mut self, graph: &mut GraphProto) -> Result<()> {
        for sparse in &mut graph.sparse_initializer {
            for tensor in sparse.values.iter_mut().chain(&mut sparse.indices) {
                self.tensor(tensor, "")?;
            }
        }
        self.nodes(&mut graph.node)
    }

    fn nodes(&mut self, nodes: &mut [NodeProto]) -> Result<()> {
        for node in nodes {
            let place = node.output.first().map_or("", String::as_str);
            for attribute in &mut node.attribute {
                self.attribute(attribute, place)?;
            }
        }
        Ok(())
    }

    fn attribute(&mut self, attribute: &mut AttributeProto, place: &str) -> Result<()> {
        for tensor in attribute.t.iter_mut().chain(&mut attribute.tensors) {
            self.tensor(tensor, place)?;
        }
        let sparse = attribute.sparse_tensor.iter_mut();
        for sparse in sparse.chain(&mut attribute.sparse_tensors) {
            for tensor in sparse.values.iter_mut().chain(&mut sparse.indices) {
                self.tensor(tensor, place)?;
            }
        }
        for graph in attribute.g.iter_mut().chain(&mut attribute.graphs) {
            self.graph(graph)?;
        }
        Ok(())
    }

    /// `place` names a tensor that has no name of its own.
    fn tensor(&mut self, tensor: &mut TensorProto, place: &str) -> Result<()> {
        self.one_form(tensor, place, None).map(drop)
    }

    /// Returns what is kept elsewhere and may stay there, which is where `apart` says what was left out of the tensor.
    fn one_form(
        &mut self,
        tensor: &mut TensorProto,
        place: &str,
        apart: Option<Option<Content>>,
    ) -> Result<Option<Content>> {
        let stays = normalise(tensor, place, &mut self.reading, apart)?;
        if tensor.raw_data.len() < WEIGHT_MIN_BYTES {
            // A slice would keep the whole file in memory for as long as the graph lives.
            tensor.raw_data = Bytes::copy_from_slice(&tensor.raw_data);
        }
        Ok(stays)
    }
}

/// An initializer that is also an input is that input's default (IR version 3); nobody feeds it.
fn drop_default_inputs(graph: &mut GraphProto) {
    let initializers: HashSet<&str> = graph
        .initializer
        .iter()
        .map(|tensor| tensor.name.as_str())
        .collect();
    graph
        .input
        .retain(|input| !initializers.contains(input.name.as_str()));
}

/// Some exporters write weights as `Constant` nodes; the large ones become initializers.
fn promote_constants(graph: &mut GraphProto) {
    let outputs: HashSet<&str> = graph
        .output
        .iter()
        .map(|value| value.name.as_str())
        .collect();
    let mut promoted = Vec::new();
    graph.node.retain_mut(|node| {
        let [output] = node.output.as_slice() else {
            return true;
        };
        let constant = node.op_type == "Constant" && default_domain(&node.domain).is_empty();
        if !constant || outputs.contains(output.as_str()) {
            return true;
        }
        let [attribute] = node.attribute.as_mut_slice() else {
            return true;
        };
        match &mut attribute.t {
            Some(tensor)
                if attribute.name == "value"
                    && carried(tensor, tensor.raw_data.len()).is_some() =>
            {
                let mut tensor = std::mem::take(tensor);
                tensor.name.clone_from(output);
                promoted.push(tensor);
                false
            }
            _ => true,
        }
    });
    graph.initializer.append(&mut promoted);
}

/// The type of a tensor of so many bytes that is large enough to be a weight, if engines carry it.
fn carried(tensor: &TensorProto, bytes: usize) -> Option<DType> {
    if bytes < WEIGHT_MIN_BYTES {
        return None;
    }
    DType::try_from(data_type(tensor)?).ok()
}

/// The hash of all initializers, in name order.
fn hash_initializers(
    graph: &GraphProto,
    elsewhere: &BTreeMap<String, Content>,
    budget: &mut Budget,
    unread: impl Fn(io::Error) -> EngineError,
) -> Result<WeightsIdentity> {
    let by_name: HashMap<&str, &TensorProto> = graph
        .initializer
        .iter()
        .map(|tensor| (tensor.name.as_str(), tensor))
        .collect();
    let mut names: Vec<&str> = by_name.keys().copied().collect();
    names.sort_unstable();
    let mut hasher = IdentityHasher::new();
    for name in names {
        let tensor = by_name[name];
        let content = elsewhere.get(name);
        // Many tensors may lie in one place of a file.
        let bytes = content.map_or(tensor.raw_data.len(), Content::len) as u64;
        budget.take(
            Resource::Steps,
            bytes,
            format_args!("hashing tensor {name}"),
        )?;
        match content {
            None => hash_tensor(&mut hasher, tensor),
            Some(content) => {
                let data_type = data_type(tensor).unwrap_or(DataType::Undefined);
                hasher
                    .content(name, source_name(data_type), extents(tensor), content)
                    .map_err(&unread)?;
            }
        }
    }
    Ok(hasher.finish())
}

/// The extents of a tensor in its one form, where none is negative.
fn extents(tensor: &TensorProto) -> impl ExactSizeIterator<Item = u64> {
    tensor.dims.iter().map(|&extent| extent as u64)
}

/// Adds a tensor in its one form to a hash.
pub(super) fn hash_tensor(hasher: &mut IdentityHasher, tensor: &TensorProto) {
    let shape = extents(tensor);
    let data_type = data_type(tensor).unwrap_or(DataType::Undefined);
    if data_type != DataType::String {
        hasher.tensor(
            &tensor.name,
            source_name(data_type),
            shape,
            &tensor.raw_data,
        );
        return;
    }
    let mut texts = Vec::new();
    for text in &tensor.string_data {
        texts.extend_from_slice(&(text.len() as u64).to_le_bytes());
        texts.extend_from_slice(text);
    }
    hasher.tensor(&tensor.name, source_name(data_type), shape, &texts);
}

/// The name that safetensors gives an element type, so that one tensor has one name in hashes.
pub(super) fn source_name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Undefined => "UNDEFINED",
        DataType::Float => "F32",
        DataType::Uint8 => "U8",
        DataType::Int8 => "I8",
        DataType::Uint16 => "U16",
        DataType::Int16 => "I16",
        DataType::Int32 => "I32",
        DataType::Int64 => "I64",
        DataType::String => "STRING",
        DataType::Bool => "BOOL",
        DataType::Float16 => "F16",
        DataType::Double => "F64",
        DataType::Uint32 => "U32",
        DataType::Uint64 => "U64",
        DataType::Complex64 => "C64",
        DataType::Complex128 => "C128",
        DataType::Bfloat16 => "BF16",
        DataType::Float8e4m3fn => "F8_E4M3",
        DataType::Float8e4m3fnuz => "F8_E4M3FNUZ",
        DataType::Float8e5m2 => "F8_E5M2",
        DataType::Float8e5m2fnuz => "F8_E5M2FNUZ",
        DataType::Uint4 => "U4",
        DataType::Int4 => "I4",
        DataType::Float4e2m1 => "F4",
    }
}

/// Moves the large initializers out of the graph. One that is an output of the graph stays: a
/// runtime that is handed weights apart looks for them where nodes read.
fn move_out(
    graph: &mut GraphProto,
    mut elsewhere: BTreeMap<String, Content>,
    unread: impl Fn(io::Error) -> EngineError,
) -> Result<BytesWeights> {
    let outputs: HashSet<&str> = graph
        .output
        .iter()
        .map(|value| value.name.as_str())
        .collect();
    let mut weights = BytesWeights::new();
    let mut kept = Vec::new();
    for mut tensor in std::mem::take(&mut graph.initializer) {
        let data = match elsewhere.remove(&tensor.name) {
            Some(content) => content,
            None => std::mem::take(&mut tensor.raw_data).into(),
        };
        match carried(&tensor, data.len()) {
            Some(dtype) if !outputs.contains(tensor.name.as_str()) => {
                let shape = tensor.dims.iter().map(|&extent| extent as usize).collect();
                let info = WeightInfo {
                    name: tensor.name,
                    dtype,
                    shape,
                };
                weights.push(info, data)?;
            }
            _ => {
                tensor.raw_data = data.bytes().map_err(&unread)?;
                kept.push(tensor);
            }
        }
    }
    graph.initializer = kept;
    Ok(weights)
}

/// The identity that the file carries, if it is one of ours and intact, else its own hash.
fn identity(model: &ModelProto, hash: WeightsIdentity) -> Result<WeightsIdentity, String> {
    let entry = |key: &str| {
        let mut entries = model.metadata_props.iter().filter(|entry| entry.key == key);
        entries.next().map(|entry| entry.value.as_str())
    };
    let Some(carried) = entry(IDENTITY_KEY) else {
        return Ok(hash);
    };
    if carried.len() != 64 || !carried.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!("its metadata {IDENTITY_KEY} is not a BLAKE3 hash"));
    }
    match entry(TENSORS_KEY) {
        Some(written) if written == hash.0 => Ok(WeightsIdentity(carried.to_ascii_lowercase())),
        Some(written) => Err(format!(
            "its tensors are not those that were written (hash {}, written {written}): it is \
             damaged, or another program changed it. To load it as a model of its own, remove \
             its metadata {IDENTITY_KEY}",
            hash.0
        )),
        // Written last, so it is the first thing that a file cut short has lost.
        None => Err(format!(
            "it has the metadata {IDENTITY_KEY} but not {TENSORS_KEY}: it is cut short"
        )),
    }
}
