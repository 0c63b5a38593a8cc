//! The pooling head as part of the graph.
//!
//! A model that ends in one vector per position is completed with pooling, an optional dense
//! layer, an optional matryoshka cut and L2 normalisation, so that every engine returns
//! `[batch, dim]` computed on its own device and all of them share one definition.
//!
//! Formulas: the sentence-transformers modules `Pooling`, `Dense` and `Normalize`. Weighted mean
//! and last position count real positions (by the mask) instead of columns, which is the same for
//! unpadded rows and, unlike columns, does not depend on the padding.

use std::collections::HashSet;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::{Dim, default_opset};
use isovec_engine::engine::MASK;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::onnx::proto::{
    AttributeProto, DataType, DimensionValue, GraphProto, StringStringEntryProto, TypeValue,
    ValueInfoProto,
};
use isovec_engine::tensor::DType;
use serde::{Deserialize, Serialize};

use crate::bundle::prune;
use crate::convert::NO_LOGITS;
use crate::onnx::GraphBuilder;
use crate::onnx::builder::{int, ints, value_info};

/// The name of the completed graph's one output.
pub const OUTPUT: &str = "sentence_embedding";

/// The output of a graph that classifies: a number for each label, `[batch, labels]`.
pub const LOGITS: &str = "logits";

/// The value of [`METADATA_KEY`] in a graph that gives its logits.
pub const CLASSIFIER: &str = "classifier";

/// The `metadata_props` key under which a graph remembers the head that it was given.
pub const METADATA_KEY: &str = "isovec.head";

/// How the vectors of a row's positions become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pooling {
    /// The average over real positions.
    Mean,
    /// The first position.
    Cls,
    /// The last real position.
    LastToken,
    /// The largest value of each component over real positions.
    Max,
    /// The average weighted by 1, 2, 3, ... along the real positions.
    WeightedMean,
    /// The sum divided by the square root of the number of real positions.
    MeanSqrtLen,
}

/// The activation after a dense layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Activation {
    Identity,
    Tanh,
    Relu,
    Sigmoid,
}

/// A dense layer after pooling: `activation(weight · x + bias)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dense {
    /// Extent of the layer's input.
    pub in_features: usize,
    /// Extent of its output.
    pub out_features: usize,
    /// `[out_features, in_features]`, row-major.
    pub weight: Vec<f32>,
    /// `[out_features]`, if there is one.
    pub bias: Option<Vec<f32>>,
    /// The activation after it.
    pub activation: Activation,
}

/// The head that is added to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadSpec {
    /// How positions become one vector.
    pub pooling: Pooling,
    /// Dense layers, in order.
    pub dense: Vec<Dense>,
    /// Keep only the first components (matryoshka), before normalising.
    pub truncate_dim: Option<usize>,
    /// Scale to unit L2 norm.
    pub normalize: bool,
}

impl HeadSpec {
    /// A head without dense layers that keeps all components.
    pub fn new(pooling: Pooling, normalize: bool) -> Self {
        Self {
            pooling,
            dense: Vec::new(),
            truncate_dim: None,
            normalize,
        }
    }

    /// A canonical text of the head, for metadata and fingerprints; dense weights by their hash.
    pub fn identity(&self) -> String {
        let dense: Vec<String> = self.dense.iter().map(Dense::identity).collect();
        format!(
            "pooling={};dense=[{}];truncate_dim={};normalize={}",
            serde_json::to_value(self.pooling)
                .ok()
                .and_then(|v| v.as_str().map(str::to_owned))
                .unwrap_or_default(),
            dense.join(","),
            self.truncate_dim
                .map_or_else(|| "none".into(), |dim| dim.to_string()),
            self.normalize
        )
    }
}

impl Dense {
    pub(crate) fn identity(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for values in std::iter::once(&self.weight).chain(&self.bias) {
            hasher.update(&(values.len() as u64).to_le_bytes());
            hasher.update(bytemuck::cast_slice(values));
        }
        format!(
            "{}x{}:{:?}:{}",
            self.out_features,
            self.in_features,
            self.activation,
            &hasher.finalize().to_hex()[..16]
        )
    }

    pub(crate) fn check(&self, features: Option<usize>, origin: &str) -> Result<()> {
        let bias_fits = self
            .bias
            .as_ref()
            .is_none_or(|bias| bias.len() == self.out_features);
        let weight_fits =
            self.in_features.checked_mul(self.out_features) == Some(self.weight.len());
        let input_fits = features.is_none_or(|features| features == self.in_features);
        if bias_fits && weight_fits && input_fits && self.out_features > 0 {
            return Ok(());
        }
        Err(EngineError::invalid_model(
            origin,
            format!(
                "a dense layer of {} to {} features has {} weights and {} biases and follows {} features",
                self.in_features,
                self.out_features,
                self.weight.len(),
                self.bias.as_ref().map_or(0, Vec::len),
                features.unwrap_or(self.in_features)
            ),
        ))
    }
}

/// The output of a completed graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadInfo {
    /// The number of components of the output, where the graph says it.
    pub dim: Option<usize>,
    /// The graph pooled by itself; only the cut and the normalisation were added.
    pub pooled_by_graph: bool,
}

/// Adds a head to a bundle's graph and removes nodes that no longer lead to an output.
///
/// A graph that already carries this very head (an exported one) is left as it is.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] when the graph has no output to pool, no mask to pool by, another head than the
/// requested one, or too old an operator set; [`EngineError::InvalidModel`] when the sizes do not fit.
pub fn attach_head(bundle: &mut ModelBundle, spec: &HeadSpec) -> Result<HeadInfo> {
    let origin = bundle.origin.clone();
    let opset = default_opset(&bundle.graph);
    let unsupported = |reason: String, hint: &str| EngineError::UnsupportedModel {
        origin: origin.clone(),
        reason,
        hint: hint.into(),
    };
    let carried = carried(bundle).map(str::to_owned);
    let graph = graph_of(bundle)?;

    if let Some(carried) = carried {
        if carried != spec.identity() {
            return Err(unsupported(
                format!(
                    "its graph ends in the head `{carried}`, and `{}` was asked for",
                    spec.identity()
                ),
                "Export the model again with the head you want, or drop the overriding settings",
            ));
        }
        let dim = graph.output.first().and_then(fixed_last_dim);
        return Ok(HeadInfo {
            dim,
            pooled_by_graph: true,
        });
    }
    if opset < 11 {
        return Err(unsupported(
            format!("its operator set is version {opset}, and the pooling head needs at least 11"),
            "Export the model again with a newer opset",
        ));
    }

    let (source, pooled_by_graph) = find_source(graph).ok_or_else(|| {
        let outputs: Vec<&str> = graph
            .output
            .iter()
            .map(|output| output.name.as_str())
            .collect();
        unsupported(
            format!(
                "none of its outputs ({}) is [batch, sequence, hidden] or [batch, hidden]",
                outputs.join(", ")
            ),
            "Only models that give hidden states or sentence embeddings can embed",
        )
    })?;
    if source.name == LOGITS {
        return Err(unsupported(
            format!("its output {LOGITS} is a number for each label, and no vector"),
            "Load it with `Classifier`, or a model of pictures with `ImageClassifier`",
        ));
    }
    // A token at a fixed place is found without one: models of pictures have no padding.
    let wants_mask = !pooled_by_graph && spec.pooling != Pooling::Cls;
    if wants_mask {
        needs_mask(graph, &origin)?;
    }
    let mut features = fixed_last_dim(&source);
    let element = tensor_type(&source).map_or(DataType::Float as i32, |(element, _)| element);

    let mut head = Head {
        graph: GraphBuilder::new(graph, unused_prefix(graph)),
        opset,
    };
    let mut value = source.name.clone();
    if element != DataType::Float as i32 {
        value = head.cast(&value, DataType::Float);
    }
    if !pooled_by_graph {
        value = head.pool(&value, spec.pooling);
    }
    for dense in &spec.dense {
        dense.check(features, &origin)?;
        value = head.dense(&value, dense);
        features = Some(dense.out_features);
    }
    if let Some(dim) = spec.truncate_dim {
        if dim == 0 || features.is_some_and(|features| dim > features) {
            return Err(EngineError::Config(vec![format!(
                "dimension {dim} cannot be cut from the model's {} components",
                features.map_or_else(
                    || "unknown number of".into(),
                    |features| features.to_string()
                )
            )]));
        }
        value = head.cut(&value, dim);
        features = Some(dim);
    }
    if spec.normalize {
        value = head.normalize(&value, 1);
    }

    rename(graph, OUTPUT, &format!("{OUTPUT}.in_graph"));
    let value = if value == OUTPUT {
        format!("{OUTPUT}.in_graph")
    } else {
        value
    };
    GraphBuilder::new(graph, "").named_node("Identity", &[&value], OUTPUT, Vec::new());
    let batch = match tensor_type(&source)
        .and_then(|(_, dims)| dims)
        .and_then(|dims| dims.into_iter().next())
    {
        Some(Dim::Symbolic(name)) => name,
        _ => "batch".into(),
    };
    let last = features.map_or_else(|| Dim::Symbolic("embedding".into()), Dim::Fixed);
    graph.output = vec![value_info(
        OUTPUT,
        DType::F32,
        &[Dim::Symbolic(batch), last],
    )];
    remember(bundle, spec.identity());
    prune(bundle);
    Ok(HeadInfo {
        dim: features,
        pooled_by_graph,
    })
}

/// Makes a classifier's logits the one output of its graph, f32 `[batch, labels]` under the name [`OUTPUT`], and
/// removes nodes that no longer lead there. Returns the number of labels.
///
/// A graph that already has this form is left as it is.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] when the graph has no output [`LOGITS`] with a fixed number of labels, or ends in a pooling
/// head.
pub fn keep_logits(bundle: &mut ModelBundle) -> Result<usize> {
    let origin = bundle.origin.clone();
    let unsupported = |reason: String, hint: &str| EngineError::UnsupportedModel {
        origin: origin.clone(),
        reason,
        hint: hint.into(),
    };
    let carried = carried(bundle).map(str::to_owned);
    let mut entries = bundle.graph.metadata_props.iter();
    let explained = entries.find(|entry| entry.key == NO_LOGITS);
    let explained = explained.map(|entry| entry.value.clone());
    let graph = graph_of(bundle)?;
    let name = match carried.as_deref() {
        None => LOGITS,
        Some(CLASSIFIER) => OUTPUT,
        Some(head) => {
            return Err(unsupported(
                format!("its graph ends in the head `{head}`, which gives vectors"),
                "Load it with `Embedder`, or load the model that it was exported from",
            ));
        }
    };
    let source = graph.output.iter().find(|output| output.name == name);
    let labels = source.and_then(|source| {
        let (element, dims) = tensor_type(source)?;
        match dims?.as_slice() {
            [batch, Dim::Fixed(labels)] if *labels > 0 => Some((element, batch.clone(), *labels)),
            _ => None,
        }
    });
    let Some((element, batch, labels)) = labels else {
        let outputs: Vec<&str> = graph.output.iter().map(|it| it.name.as_str()).collect();
        return Err(unsupported(
            explained.unwrap_or_else(|| {
                format!(
                    "none of its outputs ({}) is {LOGITS} of shape [batch, labels]",
                    outputs.join(", ")
                )
            }),
            "Labels and scores come of safetensors of a class that ends in ForSequenceClassification (of BERT, RoBERTa, XLM-R, CamemBERT, MPNet, DistilBERT, ModernBERT) or in ForImageClassification (of ViT, DeiT), and of ONNX files that give logits",
        ));
    };
    if carried.is_some() {
        return Ok(labels);
    }
    let mut head = Head {
        graph: GraphBuilder::new(graph, unused_prefix(graph)),
        opset: 0,
    };
    let value = match element == DataType::Float as i32 {
        true => LOGITS.to_owned(),
        false => head.cast(LOGITS, DataType::Float),
    };
    rename(graph, OUTPUT, &format!("{OUTPUT}.in_graph"));
    GraphBuilder::new(graph, "").named_node("Identity", &[&value], OUTPUT, Vec::new());
    graph.output = vec![value_info(OUTPUT, DType::F32, &[batch, Dim::Fixed(labels)])];
    remember(bundle, CLASSIFIER.into());
    prune(bundle);
    Ok(labels)
}

/// The graph of a bundle.
///
/// # Errors
/// [`EngineError::InvalidModel`] where the file holds none.
pub(crate) fn graph_of(bundle: &mut ModelBundle) -> Result<&mut GraphProto> {
    let origin = &bundle.origin;
    let graph = bundle.graph.graph.as_mut();
    graph.ok_or_else(|| EngineError::invalid_model(origin.clone(), "the file holds no graph"))
}

/// The head that a graph was given before.
pub(crate) fn carried(bundle: &ModelBundle) -> Option<&str> {
    let mut entries = bundle.graph.metadata_props.iter();
    let entry = entries.find(|entry| entry.key == METADATA_KEY)?;
    Some(&entry.value)
}

/// Makes a graph remember the head that it was given.
pub(crate) fn remember(bundle: &mut ModelBundle, head: String) {
    bundle.graph.metadata_props.push(StringStringEntryProto {
        key: METADATA_KEY.into(),
        value: head,
    });
}

/// Refuses a graph that ends in a head.
pub(crate) fn needs_no_head(bundle: &ModelBundle) -> Result<()> {
    let Some(head) = carried(bundle) else {
        return Ok(());
    };
    Err(EngineError::UnsupportedModel {
        origin: bundle.origin.clone(),
        reason: format!("its graph ends in the head `{head}`"),
        hint: "Load the model that it was exported from".into(),
    })
}

/// Refuses a graph that is not told which positions are padding.
pub(crate) fn needs_mask(graph: &GraphProto, origin: &str) -> Result<()> {
    if graph.input.iter().any(|input| input.name == MASK) {
        return Ok(());
    }
    Err(EngineError::UnsupportedModel {
        origin: origin.into(),
        reason: format!("it has no input {MASK}"),
        hint: "Export the model with its attention mask".into(),
    })
}

/// 1 where the last real position of each row is, f32 `[batch, sequence]`, by the input [`MASK`].
fn last_of_each(graph: &mut GraphBuilder<'_>) -> String {
    // Counted from the right, the last real position is the one whose running count of real positions is 1 and which is
    // real itself.
    let to_float = || vec![int("to", DataType::Float as i64)];
    let mask = graph.node("Cast", &[MASK], to_float());
    let axis = graph.i64s(&[], &[1]);
    let from_right = graph.node("CumSum", &[&mask, &axis], vec![int("reverse", 1)]);
    let one = graph.f32(1.0);
    let is_one = graph.node("Equal", &[&from_right, &one], Vec::new());
    let is_one = graph.node("Cast", &[&is_one], to_float());
    graph.node("Mul", &[&is_one, &mask], Vec::new())
}

/// The mean over the real positions of each row: `[batch, sequence, hidden]` to `[batch, hidden]`. For graphs of operator set 13
/// and later.
pub(crate) fn mean(graph: &mut GraphBuilder<'_>, hidden: &str) -> String {
    let mask = vec![int("to", DataType::Float as i64)];
    let mask = graph.node("Cast", &[MASK], mask);
    let axis = graph.ints(&[1]);
    let row = graph.node("Unsqueeze", &[&mask, &axis], Vec::new());
    let sum = graph.node("MatMul", &[&row, hidden], Vec::new());
    let sum = graph.node("Squeeze", &[&sum, &axis], Vec::new());
    let keep = vec![int("keepdims", 1)];
    let count = graph.node("ReduceSum", &[&mask, &axis], keep);
    graph.node("Div", &[&sum, &count], Vec::new())
}

/// The last real position of each row: `[batch, sequence, hidden]` to `[batch, hidden]`. For graphs of operator set 13 and
/// later.
pub(crate) fn last_token(graph: &mut GraphBuilder<'_>, hidden: &str) -> String {
    let last = last_of_each(graph);
    let axis = graph.ints(&[1]);
    let row = graph.node("Unsqueeze", &[&last, &axis], Vec::new());
    let sum = graph.node("MatMul", &[&row, hidden], Vec::new());
    graph.node("Squeeze", &[&sum, &axis], Vec::new())
}

/// Writes the head's nodes.
pub(crate) struct Head<'g> {
    pub(crate) graph: GraphBuilder<'g>,
    pub(crate) opset: i64,
}

impl Head<'_> {
    fn pool(&mut self, hidden: &str, pooling: Pooling) -> String {
        match pooling {
            Pooling::Cls => {
                let first = self.graph.i64s(&[], &[0]);
                self.graph
                    .node("Gather", &[hidden, &first], vec![int("axis", 1)])
            }
            Pooling::Mean => {
                let mask = self.cast(MASK, DataType::Float);
                self.weighted_average(hidden, &mask)
            }
            Pooling::WeightedMean => {
                let mask = self.cast(MASK, DataType::Float);
                let axis = self.graph.i64s(&[], &[1]);
                let rank = self.graph.node("CumSum", &[&mask, &axis], Vec::new());
                let weights = self.graph.node("Mul", &[&rank, &mask], Vec::new());
                self.weighted_average(hidden, &weights)
            }
            Pooling::MeanSqrtLen => {
                let mask = self.cast(MASK, DataType::Float);
                let sum = self.weighted_sum(hidden, &mask);
                let count = self.reduce_sum(&mask, 1, true);
                let root = self.graph.node("Sqrt", &[&count], Vec::new());
                self.divide(&sum, &root, 1e-9)
            }
            Pooling::LastToken => {
                let last = last_of_each(&mut self.graph);
                self.weighted_sum(hidden, &last)
            }
            Pooling::Max => {
                let mask = self.cast(MASK, DataType::Bool);
                let mask = self.unsqueeze(&mask, 2);
                let lowest = self.graph.f32(f32::MIN);
                let real = self
                    .graph
                    .node("Where", &[&mask, hidden, &lowest], Vec::new());
                if self.opset >= 18 {
                    let axes = self.graph.ints(&[1]);
                    self.graph
                        .node("ReduceMax", &[&real, &axes], vec![int("keepdims", 0)])
                } else {
                    self.graph.node(
                        "ReduceMax",
                        &[&real],
                        vec![ints("axes", &[1]), int("keepdims", 0)],
                    )
                }
            }
        }
    }

    /// `[batch, sequence, hidden]` and weights `[batch, sequence]` to `[batch, hidden]`. A matrix
    /// product, so that no engine materialises the weighted hidden states.
    fn weighted_sum(&mut self, hidden: &str, weights: &str) -> String {
        let row = self.unsqueeze(weights, 1);
        let sum = self.graph.node("MatMul", &[&row, hidden], Vec::new());
        self.squeeze(&sum, 1)
    }

    fn weighted_average(&mut self, hidden: &str, weights: &str) -> String {
        let sum = self.weighted_sum(hidden, weights);
        let total = self.reduce_sum(weights, 1, true);
        self.divide(&sum, &total, 1e-9)
    }

    fn dense(&mut self, value: &str, dense: &Dense) -> String {
        let dims = [dense.out_features as i64, dense.in_features as i64];
        let weight = self.graph.f32s(&dims, &dense.weight);
        let bias = dense
            .bias
            .as_ref()
            .map(|bias| self.graph.f32s(&[bias.len() as i64], bias));
        let inputs: Vec<&str> = [value, &weight]
            .into_iter()
            .chain(bias.as_deref())
            .collect();
        let out = self.graph.node("Gemm", &inputs, vec![int("transB", 1)]);
        self.activate(out, dense.activation)
    }

    /// The same layer of every token's vector, `[batch, sequence, in]` to `[batch, sequence, out]`.
    pub(crate) fn dense_of_tokens(&mut self, value: &str, dense: &Dense) -> String {
        let (out, inner) = (dense.out_features, dense.in_features);
        let transposed: Vec<f32> = (0..inner * out)
            .map(|at| dense.weight[at % out * inner + at / out])
            .collect();
        let weight = self.graph.f32s(&[inner as i64, out as i64], &transposed);
        let mut value = self.graph.node("MatMul", &[value, &weight], Vec::new());
        if let Some(bias) = &dense.bias {
            let bias = self.graph.f32s(&[out as i64], bias);
            value = self.graph.node("Add", &[&value, &bias], Vec::new());
        }
        self.activate(value, dense.activation)
    }

    fn activate(&mut self, value: String, activation: Activation) -> String {
        let activation = match activation {
            Activation::Identity => return value,
            Activation::Tanh => "Tanh",
            Activation::Relu => "Relu",
            Activation::Sigmoid => "Sigmoid",
        };
        self.graph.node(activation, &[&value], Vec::new())
    }

    fn cut(&mut self, value: &str, dim: usize) -> String {
        let start = self.graph.ints(&[0]);
        let end = self.graph.ints(&[dim as i64]);
        let axis = self.graph.ints(&[1]);
        self.graph
            .node("Slice", &[value, &start, &end, &axis], Vec::new())
    }

    /// Vectors of unit length along an axis.
    pub(crate) fn normalize(&mut self, value: &str, axis: i64) -> String {
        let square = self.graph.node("Mul", &[value, value], Vec::new());
        let sum = self.reduce_sum(&square, axis, true);
        let norm = self.graph.node("Sqrt", &[&sum], Vec::new());
        self.divide(value, &norm, 1e-12)
    }

    fn divide(&mut self, value: &str, by: &str, at_least: f32) -> String {
        let floor = self.graph.f32(at_least);
        let by = self.graph.node("Max", &[by, &floor], Vec::new());
        self.graph.node("Div", &[value, &by], Vec::new())
    }

    pub(crate) fn cast(&mut self, value: &str, to: DataType) -> String {
        self.graph
            .node("Cast", &[value], vec![int("to", to as i64)])
    }

    fn reduce_sum(&mut self, value: &str, axis: i64, keep: bool) -> String {
        self.with_axes(
            "ReduceSum",
            value,
            axis,
            vec![int("keepdims", i64::from(keep))],
        )
    }

    fn unsqueeze(&mut self, value: &str, axis: i64) -> String {
        self.with_axes("Unsqueeze", value, axis, Vec::new())
    }

    fn squeeze(&mut self, value: &str, axis: i64) -> String {
        self.with_axes("Squeeze", value, axis, Vec::new())
    }

    /// Operators whose axes became an input with opset 13.
    fn with_axes(
        &mut self,
        op: &str,
        value: &str,
        axis: i64,
        mut attributes: Vec<AttributeProto>,
    ) -> String {
        if self.opset >= 13 {
            let axes = self.graph.ints(&[axis]);
            return self.graph.node(op, &[value, &axes], attributes);
        }
        attributes.push(ints("axes", &[axis]));
        self.graph.node(op, &[value], attributes)
    }
}

/// The output to pool, and whether the graph has pooled it already.
pub(crate) fn find_source(graph: &GraphProto) -> Option<(ValueInfoProto, bool)> {
    let with_rank = |rank: usize| {
        graph.output.iter().filter(move |output| {
            tensor_type(output)
                .and_then(|(_, dims)| dims)
                .is_some_and(|dims| dims.len() == rank)
        })
    };
    let named = |name: &str| graph.output.iter().find(|output| output.name == name);
    let is_rank = |output: &&ValueInfoProto, rank: usize| {
        tensor_type(output)
            .and_then(|(_, dims)| dims)
            .is_none_or(|dims| dims.len() == rank)
    };
    ["last_hidden_state", "token_embeddings"]
        .iter()
        .find_map(|name| named(name).filter(|output| is_rank(output, 3)))
        .or_else(|| with_rank(3).next())
        .map(|output| (output.clone(), false))
        .or_else(|| {
            [OUTPUT, "pooler_output", "text_embeds"]
                .iter()
                .find_map(|name| named(name).filter(|output| is_rank(output, 2)))
                .or_else(|| with_rank(2).next())
                .map(|output| (output.clone(), true))
        })
}

/// Element type and extents, where the graph states them.
pub(crate) fn tensor_type(value: &ValueInfoProto) -> Option<(i32, Option<Vec<Dim>>)> {
    let TypeValue::Tensor(tensor) = value.r#type.as_ref()?.value.as_ref()? else {
        return None;
    };
    let dims = tensor.shape.as_ref().map(|shape| {
        let dims = shape.dim.iter().map(|dim| match &dim.value {
            Some(DimensionValue::Value(extent)) if *extent >= 0 => Dim::Fixed(*extent as usize),
            Some(DimensionValue::Param(name)) => Dim::Symbolic(name.clone()),
            _ => Dim::Symbolic(String::new()),
        });
        dims.collect()
    });
    Some((tensor.elem_type, dims))
}

pub(crate) fn fixed_last_dim(value: &ValueInfoProto) -> Option<usize> {
    match tensor_type(value)?.1?.last()? {
        Dim::Fixed(extent) => Some(*extent),
        Dim::Symbolic(_) => None,
    }
}

/// A name prefix that nothing in the graph begins with.
pub(crate) fn unused_prefix(graph: &GraphProto) -> String {
    let names: HashSet<&str> = graph
        .node
        .iter()
        .flat_map(|node| node.output.iter().map(String::as_str))
        .chain(graph.initializer.iter().map(|tensor| tensor.name.as_str()))
        .chain(graph.input.iter().map(|input| input.name.as_str()))
        .collect();
    let mut prefix = String::from("head.");
    while names.iter().any(|name| name.starts_with(&prefix)) {
        prefix.insert(0, '_');
    }
    prefix
}

/// Renames a value wherever the main graph writes or reads it.
pub(crate) fn rename(graph: &mut GraphProto, from: &str, to: &str) {
    for node in &mut graph.node {
        for name in node.input.iter_mut().chain(&mut node.output) {
            if name == from {
                *name = to.into();
            }
        }
    }
}
