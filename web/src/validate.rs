//! Checks a graph before it is compiled.

use std::collections::HashSet;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::proto::{GraphProto, NodeProto};
use isovec_engine::{EngineError, Result};

use crate::ENGINE;

/// The operator sets that tables of operators speak for; some look operators up by name alone, so
/// a foreign operator that shares a name would be taken for the standard one.
const DOMAINS: [&str; 4] = ["", "ai.onnx", "ai.onnx.ml", "com.microsoft"];

/// Checks that every operator is known and every value is made exactly once before it is asked
/// for, in the graph and in the graphs inside it.
///
/// # Errors
/// [`EngineError::UnsupportedOperator`], [`EngineError::InvalidModel`].
pub(crate) fn validate(bundle: &ModelBundle, known: &dyn Fn(&NodeProto) -> bool) -> Result<()> {
    let invalid = |detail: String| EngineError::invalid_model(&bundle.origin, detail);
    let graph = bundle
        .graph
        .graph
        .as_ref()
        .ok_or_else(|| invalid("it holds no graph".into()))?;
    let mut unknown = Vec::new();
    unknown_operators(graph, known, &mut unknown);
    if !unknown.is_empty() {
        unknown.sort_unstable();
        unknown.dedup();
        return Err(EngineError::UnsupportedOperator {
            engine: ENGINE,
            operators: unknown,
        });
    }
    if graph.output.is_empty() {
        return Err(invalid("its graph has no outputs".into()));
    }
    let weights = bundle.weights.weights().iter().map(|w| w.name.as_str());
    check_values(graph, &weights.collect()).map_err(invalid)
}

fn subgraphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute
        .iter()
        .flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}

fn unknown_operators(
    graph: &GraphProto,
    known: &dyn Fn(&NodeProto) -> bool,
    unknown: &mut Vec<String>,
) {
    for node in &graph.node {
        if !DOMAINS.contains(&node.domain.as_str()) {
            unknown.push(format!("{}::{}", node.domain, node.op_type));
        } else if !known(node) {
            unknown.push(node.op_type.clone());
        }
        for inner in subgraphs(node) {
            unknown_operators(inner, known, unknown);
        }
    }
}

fn check_values(graph: &GraphProto, outer: &HashSet<&str>) -> Result<(), String> {
    let mut scope = outer.clone();
    scope.extend(graph.initializer.iter().map(|tensor| tensor.name.as_str()));
    scope.extend(graph.input.iter().map(|input| input.name.as_str()));
    let mut made = HashSet::new();
    for node in &graph.node {
        for input in node.input.iter().filter(|name| !name.is_empty()) {
            if !scope.contains(input.as_str()) {
                return Err(format!(
                    "node {:?} ({}) reads {input:?}, which nothing before it makes",
                    node.name, node.op_type
                ));
            }
        }
        for inner in subgraphs(node) {
            check_values(inner, &scope)?;
        }
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            if !made.insert(output.as_str()) {
                return Err(format!("two nodes make {output:?}"));
            }
            scope.insert(output);
        }
    }
    match graph
        .output
        .iter()
        .find(|output| !scope.contains(output.name.as_str()))
    {
        Some(output) => Err(format!("nothing makes its output {:?}", output.name)),
        None => Ok(()),
    }
}
