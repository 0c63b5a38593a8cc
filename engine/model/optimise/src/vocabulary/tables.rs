//! The tables that a graph looks token ids up in.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::proto::{GraphProto, NodeProto, TensorProto};

use crate::error::{OptimizeError, Result};

/// The input with the token ids.
const INPUT_IDS: &str = "input_ids";

/// Ids that a graph compares tokens with are kept in their place below this: padding is one of the first of a vocabulary.
const LARGEST_COMPARED: i64 = 1024;

/// What a graph does with token ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tables {
    /// Names of the tables, whose rows tokens are looked up in.
    pub(super) names: BTreeSet<String>,
    /// Ids that tokens are compared with: those of padding, where positions are counted from it.
    pub(super) compared: BTreeSet<u32>,
}

impl Tables {
    /// Those of a model.
    ///
    /// # Errors
    /// [`OptimizeError::Unsuitable`] for a graph that computes with ids in another way, or looks none up;
    /// [`OptimizeError::AlreadyQuantized`] and [`OptimizeError::SharedWeights`] for a table that is not the weight itself, or
    /// that other nodes use.
    pub(super) fn of(bundle: &ModelBundle) -> Result<Self> {
        let empty = GraphProto::default();
        let graph = bundle.graph.graph.as_ref().unwrap_or(&empty);
        let unsuitable = |reason: String| OptimizeError::Unsuitable {
            origin: bundle.origin.clone(),
            reason,
            hint: "Leave the vocabulary as it is".into(),
        };
        let stored: BTreeSet<&str> = bundle
            .weights
            .weights()
            .iter()
            .map(|info| info.name.as_str())
            .chain(graph.initializer.iter().map(|tensor| tensor.name.as_str()))
            .collect();
        let makers: HashMap<&str, &NodeProto> = graph
            .node
            .iter()
            .flat_map(|node| node.output.iter().map(move |name| (name.as_str(), node)))
            .collect();
        // Ids may be cast or renamed on their way. Nodes come in topological order.
        let mut ids = BTreeSet::from([INPUT_IDS]);
        let mut tables = Self::default();
        for node in &graph.node {
            if node.attribute.iter().any(|attribute| attribute.g.is_some()) {
                return Err(unsuitable(format!(
                    "node {} runs a graph of its own, which may read token ids",
                    shown(node)
                )));
            }
            let reads = |at: usize| {
                node.input
                    .get(at)
                    .is_some_and(|name| ids.contains(name.as_str()))
            };
            if !(0..node.input.len()).any(reads) {
                continue;
            }
            match node.op_type.as_str() {
                "Cast" | "Identity" => ids.extend(node.output.iter().map(String::as_str)),
                "Shape" | "Size" => {}
                "Gather" if reads(1) && !reads(0) && axis(node) == 0 => {
                    let table = node.input[0].as_str();
                    if !stored.contains(table) {
                        let maker = makers.get(table).map_or("nothing", |node| &node.op_type);
                        return Err(OptimizeError::AlreadyQuantized {
                            origin: bundle.origin.clone(),
                            tensor: table.to_owned(),
                            maker: maker.to_owned(),
                        });
                    }
                    tables.names.insert(table.to_owned());
                }
                "Equal" if reads(0) != reads(1) => {
                    let other = &node.input[usize::from(reads(0))];
                    let id = constant(graph, &makers, other)
                        .filter(|id| (0..LARGEST_COMPARED).contains(id));
                    let id = id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
                        unsuitable(format!(
                            "node {} compares token ids with {other}, which is no single id below {LARGEST_COMPARED}",
                            shown(node)
                        ))
                    })?;
                    tables.compared.insert(id);
                }
                _ => {
                    return Err(unsuitable(format!(
                        "node {} computes with token ids, which are others afterwards",
                        shown(node)
                    )));
                }
            }
        }
        if tables.names.is_empty() {
            return Err(unsuitable("its graph looks no token up in a table".into()));
        }
        let others = graph.node.iter().flat_map(|node| {
            let looks_up = |at: usize| {
                node.op_type == "Gather"
                    && at == 0
                    && node
                        .input
                        .get(1)
                        .is_some_and(|name| ids.contains(name.as_str()))
            };
            let names = node.input.iter().enumerate();
            names
                .filter(move |(at, _)| !looks_up(*at))
                .map(move |(_, name)| (node, name))
        });
        for (node, name) in others {
            if tables.names.contains(name) {
                return Err(OptimizeError::SharedWeights {
                    origin: bundle.origin.clone(),
                    tensor: name.clone(),
                    node: shown(node),
                });
            }
        }
        Ok(tables)
    }
}

/// A node by its name and operator.
fn shown(node: &NodeProto) -> String {
    format!("{:?} ({})", node.name, node.op_type)
}

/// The axis of a `Gather`, 0 where it is not said.
fn axis(node: &NodeProto) -> i64 {
    let axis = node
        .attribute
        .iter()
        .find(|attribute| attribute.name == "axis");
    axis.map_or(0, |axis| axis.i)
}

/// The one whole number that a name stands for.
fn constant(graph: &GraphProto, makers: &HashMap<&str, &NodeProto>, name: &str) -> Option<i64> {
    let stored = graph.initializer.iter().find(|tensor| tensor.name == name);
    if let Some(tensor) = stored {
        return single(tensor);
    }
    let maker = makers.get(name)?;
    match maker.op_type.as_str() {
        "Cast" | "Identity" => constant(graph, makers, maker.input.first()?),
        "Constant" => single(maker.attribute.iter().find_map(|one| one.t.as_ref())?),
        _ => None,
    }
}

fn single(tensor: &TensorProto) -> Option<i64> {
    if tensor.dims.iter().product::<i64>() != 1 {
        return None;
    }
    let raw: &[u8] = &tensor.raw_data;
    if let Ok(bytes) = raw.try_into() {
        return Some(i64::from_le_bytes(bytes));
    }
    if let Ok(bytes) = raw.try_into() {
        return Some(i32::from_le_bytes(bytes).into());
    }
    let narrow = tensor.int32_data.first().map(|&value| value.into());
    tensor.int64_data.first().copied().or(narrow)
}

/// The rows that a bundle's tables have, by their names.
pub(super) fn rows(bundle: &ModelBundle, tables: &Tables) -> BTreeMap<String, usize> {
    let weights = bundle.weights.weights().iter();
    let weights = weights.map(|info| (&info.name, info.shape.first().copied()));
    let graph = bundle.graph.graph.iter();
    let inline = graph.flat_map(|graph| &graph.initializer);
    let inline = inline.map(|tensor| {
        let rows = tensor
            .dims
            .first()
            .and_then(|&rows| usize::try_from(rows).ok());
        (&tensor.name, rows)
    });
    let named = weights
        .chain(inline)
        .filter(|(name, _)| tables.names.contains(*name));
    named
        .map(|(name, rows)| (name.clone(), rows.unwrap_or(0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use isovec_engine::onnx::proto::ModelProto;
    use isovec_engine::weights::{BytesWeights, WeightsIdentity};
    use isovec_model::onnx::GraphBuilder;
    use isovec_model::onnx::builder::int;

    use super::*;

    fn bundle(build: impl FnOnce(&mut GraphBuilder<'_>)) -> ModelBundle {
        let mut graph = GraphProto::default();
        build(&mut GraphBuilder::new(&mut graph, "t/"));
        let table = TensorProto {
            name: "table".into(),
            dims: vec![4, 2],
            ..TensorProto::default()
        };
        graph.initializer.push(table);
        ModelBundle {
            graph: ModelProto {
                graph: Some(graph),
                ..ModelProto::default()
            },
            weights: Arc::new(BytesWeights::new()),
            identity: WeightsIdentity("0".repeat(64)),
            files: BTreeMap::new(),
            model_file: "model.onnx".into(),
            origin: "test".into(),
        }
    }

    fn message(build: impl FnOnce(&mut GraphBuilder<'_>)) -> String {
        Tables::of(&bundle(build)).unwrap_err().to_string()
    }

    #[test]
    fn tables_are_found_behind_casts_and_compared_ids_are_known() {
        let found = Tables::of(&bundle(|graph| {
            let ids = graph.node("Cast", &["input_ids"], vec![int("to", 6)]);
            graph.node("Gather", &["table", &ids], vec![]);
            let padding = graph.i64s(&[], &[1]);
            graph.node("Equal", &["input_ids", &padding], vec![]);
            graph.node("Shape", &["input_ids"], vec![]);
        }));
        let found = found.unwrap();
        assert_eq!(found.names, BTreeSet::from(["table".to_owned()]));
        assert_eq!(found.compared, BTreeSet::from([1]));
    }

    #[test]
    fn what_cannot_be_trimmed_is_named() {
        let gather = |graph: &mut GraphBuilder<'_>| {
            graph.node("Gather", &["table", "input_ids"], vec![]);
        };
        let shared = message(|graph| {
            gather(graph);
            graph.node("MatMul", &["x", "table"], vec![]);
        });
        assert!(
            shared.contains("MatMul") && shared.contains("uses table"),
            "{shared}"
        );
        let computed = message(|graph| {
            gather(graph);
            graph.node("ArgMax", &["input_ids"], vec![]);
        });
        assert!(computed.contains("ArgMax"), "{computed}");
        let far = message(|graph| {
            gather(graph);
            let end = graph.i64s(&[], &[49_407]);
            graph.node("Equal", &["input_ids", &end], vec![]);
        });
        assert!(far.contains("Equal"), "{far}");
        let quantised = message(|graph| {
            let table = graph.node("DequantizeLinear", &["q", "s"], vec![]);
            graph.node("Gather", &[&table, "input_ids"], vec![]);
        });
        assert!(quantised.contains("DequantizeLinear"), "{quantised}");
        assert!(message(|_| {}).contains("no token"), "no table");
    }
}
