//! Which output of an exported graph is wanted, and what is added or left out to make it features or labels.

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::{Dim, ValueDescription, describe_value};
use isovec_engine::error::Result;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{GraphProto, NodeProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;
use serde_json::Value;

use crate::bundle::prune;
use crate::head::{LOGITS, carried, graph_of, rename, unused_prefix};
use crate::onnx::GraphBuilder;
use crate::onnx::builder::{int, value_info};

/// Outputs that are features, the best first: the vector of a space that texts share, hidden states, and what was pooled of them.
const FEATURES: [&str; 3] = ["image_embeds", "last_hidden_state", "pooler_output"];

/// The same for CLIP and SigLIP, whose hidden states are no features before they are pooled.
const POOLED: [&str; 2] = ["image_embeds", "pooler_output"];

/// Nodes between an output and the layer that makes it: no exporter writes more.
const BETWEEN: usize = 8;

/// Leaves one output with a picture's features: `[batch, features]`, or `[batch, tokens, features]`, which are still to be pooled.
///
/// Maps `[batch, features, rows, columns]` are averaged over their places. A graph that ends in a number for each label loses its
/// last layer: one whose output is called `logits`, or has as many numbers as `config.json` names labels.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] if none of the outputs can be features.
pub fn keep_features(bundle: &mut ModelBundle) -> Result<()> {
    // It was exported with its head, which stays.
    if carried(bundle).is_some() {
        return Ok(());
    }
    let weights = bundle.weights.clone();
    let config = bundle.files.get("config.json");
    let config: Value = config.map_or(Value::Null, |file| {
        serde_json::from_slice(file).unwrap_or_default()
    });
    let labels = config["id2label"].as_object().map(|labels| labels.len());
    let kind = config["model_type"].as_str().unwrap_or_default();
    let is_pooled = kind.starts_with("clip") || kind.starts_with("siglip");
    let names: &[&str] = match is_pooled {
        true => &POOLED,
        false => &FEATURES,
    };
    let found = bundle.graph.graph.as_mut().and_then(|graph| {
        let wanted = output(graph, names)?;
        match &wanted.dims.as_ref()?[..] {
            [batch, Dim::Fixed(count)] if wanted.name == LOGITS || Some(*count) == labels => {
                let (name, features) = before_last_layer(graph, weights.weights(), &wanted.name)?;
                Some((name, vec![batch.clone(), Dim::Fixed(features)]))
            }
            [batch, features, _, _] => {
                let prefix = unused_prefix(graph);
                let mut builder = GraphBuilder::new(graph, prefix);
                let mean = builder.node("GlobalAveragePool", &[&wanted.name], vec![]);
                let flat = builder.node("Flatten", &[&mean], vec![int("axis", 1)]);
                Some((flat, vec![batch.clone(), features.clone()]))
            }
            [_, _, _] if is_pooled => None,
            dims @ ([_, _] | [_, _, _]) => Some((wanted.name.clone(), dims.to_vec())),
            _ => None,
        }
    });
    keep(
        bundle,
        found,
        "features: [batch, features], [batch, tokens, features] or [batch, features, rows, columns]",
    )
}

/// Leaves one output with a picture's [`LOGITS`], f32 `[batch, labels]`: the output of that name, else the first. Probabilities at
/// the end of a graph are left out, because scores are made of logits.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] if that output is no number for each label.
pub fn keep_scores(bundle: &mut ModelBundle) -> Result<()> {
    // It was exported with its head, which stays.
    if carried(bundle).is_some() {
        return Ok(());
    }
    let found = bundle.graph.graph.as_mut().and_then(|graph| {
        let wanted = output(graph, &[LOGITS])?;
        let dims = wanted.dims?;
        if !matches!(dims[..], [_, Dim::Fixed(_)]) {
            return None;
        }
        let mut last = producer(graph, &wanted.name)?;
        // As some exporters name outputs.
        for _ in 0..BETWEEN {
            let before = last.input.first().filter(|_| is(last, "Identity"));
            match before.and_then(|name| producer(graph, name)) {
                Some(before) => last = before,
                None => break,
            }
        }
        let logits = match is(last, "Softmax") {
            true => last.input.first()?.clone(),
            false => wanted.name,
        };
        if logits != LOGITS {
            rename(graph, LOGITS, &format!("{LOGITS}.in_graph"));
            GraphBuilder::new(graph, "").named_node("Identity", &[&logits], LOGITS, vec![]);
        }
        Some((LOGITS.to_owned(), dims))
    });
    keep(bundle, found, "number for each label: [batch, labels]")
}

/// Makes the found value the graph's one output.
fn keep(bundle: &mut ModelBundle, found: Option<(String, Vec<Dim>)>, wanted: &str) -> Result<()> {
    let origin = bundle.origin.clone();
    let graph = graph_of(bundle)?;
    let Some((name, dims)) = found else {
        let outputs = graph.output.iter().map(describe_value);
        let outputs: Vec<String> = outputs
            .map(|it| format!("{} {}", it.name, it.dims_text()))
            .collect();
        return Err(EngineError::UnsupportedModel {
            origin,
            reason: format!("its outputs ({}) have no {wanted}", outputs.join(", ")),
            hint: "Networks that give labels are loaded with `ImageClassifier`, and those that give features with `ImageEmbedder`".into(),
        });
    };
    graph.output = vec![value_info(&name, DType::F32, &dims)];
    prune(bundle);
    Ok(())
}

/// The first output that has one of these names, else the first of all.
fn output(graph: &GraphProto, names: &[&str]) -> Option<ValueDescription> {
    let named = |name: &&str| graph.output.iter().find(|output| output.name == *name);
    let output = names.iter().find_map(named).or(graph.output.first());
    output.map(describe_value)
}

/// What the last layer reads, `[batch, features]`, and the number of these features.
fn before_last_layer(
    graph: &GraphProto,
    weights: &[WeightInfo],
    output: &str,
) -> Option<(String, usize)> {
    let mut at = producer(graph, output)?;
    for _ in 0..BETWEEN {
        let [data, others @ ..] = &at.input[..] else {
            return None;
        };
        let weight = || shape(graph, weights, others.first()?);
        if is(at, "Gemm") && at.int("transA").unwrap_or(0) == 0 {
            let axis = usize::from(at.int("transB").unwrap_or(0) != 0);
            return Some((data.clone(), *weight()?.get(axis)?));
        }
        if is(at, "MatMul") {
            return Some((data.clone(), *weight()?.first()?));
        }
        // A bias stands before or behind what it is added to.
        let from = match is(at, "Add") && shape(graph, weights, data).is_some() {
            true => others.first()?,
            false if ["Add", "Softmax", "Identity"].iter().any(|op| is(at, op)) => data,
            false => return None,
        };
        at = producer(graph, from)?;
    }
    None
}

/// The extents of a weight. One that is stored small is a node that widens it.
fn shape(graph: &GraphProto, weights: &[WeightInfo], name: &str) -> Option<Vec<usize>> {
    let stored = match producer(graph, name) {
        Some(node) if is(node, "DequantizeLinear") || is(node, "Cast") => node.input.first()?,
        _ => name,
    };
    if let Some(weight) = weights.iter().find(|weight| weight.name == *stored) {
        return Some(weight.shape.clone());
    }
    let tensor = graph
        .initializer
        .iter()
        .find(|tensor| tensor.name == *stored)?;
    let extents = tensor
        .dims
        .iter()
        .map(|&extent| usize::try_from(extent).ok());
    extents.collect()
}

/// The node that computes a value.
fn producer<'g>(graph: &'g GraphProto, name: &str) -> Option<&'g NodeProto> {
    graph
        .node
        .iter()
        .find(|node| node.output.iter().any(|output| output == name))
}

fn is(node: &NodeProto, operator: &str) -> bool {
    node.op_type == operator && default_domain(&node.domain).is_empty()
}
