//! What of a graph can be computed with whole numbers of 8 bits.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::default_opset;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{
    DataType, GraphProto, NodeProto, TensorType, TypeProto, TypeValue, ValueInfoProto,
};
use isovec_engine::tensor::DType;
use isovec_model::bundle::prune;

use super::Product;
use crate::error::{OptimizeError, Result};

/// The first operator set whose `DequantizeLinear` has scales along an axis.
const OPSET: i64 = 13;

/// Matrices of fewer bytes stay as they are: they take no time.
const LEAST_MATRIX: usize = 4096;

/// Tables of fewer bytes stay as they are.
const LEAST_TABLE: usize = 1 << 16;

/// The products and tables of a graph.
#[derive(Debug, Clone)]
pub struct Products {
    /// The inputs of products, in the order of the graph, each with its products.
    pub(super) inputs: Vec<Input>,
    pub(super) tables: Vec<Table>,
    /// What cannot be changed, with the reason.
    pub(super) kept: Vec<Product>,
}

/// A value that products read.
#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) name: String,
    /// Its last extent.
    pub(super) width: usize,
    pub(super) matrices: Vec<Matrix>,
}

/// A product with a constant matrix `[width, columns]`.
#[derive(Debug, Clone)]
pub(super) struct Matrix {
    /// The index of its node.
    pub(super) node: usize,
    pub(super) shown: String,
    pub(super) output: String,
    /// The index of its weight.
    pub(super) weight: usize,
    pub(super) columns: usize,
}

/// A table that rows are looked up in.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) node: usize,
    pub(super) shown: String,
    /// The name of the rows that are looked up.
    pub(super) rows: String,
    pub(super) output: String,
    pub(super) weight: usize,
}

impl Products {
    /// Those of a model.
    ///
    /// # Errors
    /// Those of [`check`]; [`OptimizeError::Unsuitable`] for a model that has no such product.
    pub fn of(bundle: &ModelBundle) -> Result<Self> {
        let empty = GraphProto::default();
        let graph = bundle.graph.graph.as_ref().unwrap_or(&empty);
        check(bundle)?;
        let infos = bundle.weights.weights();
        let weights: HashMap<&str, usize> = (0..)
            .zip(infos)
            .filter(|(_, info)| info.dtype == DType::F32 && info.shape.len() == 2)
            .map(|(index, info)| (info.name.as_str(), index))
            .collect();
        let users = users(graph);
        let constants: BTreeSet<&str> = infos
            .iter()
            .map(|info| info.name.as_str())
            .chain(graph.initializer.iter().map(|tensor| tensor.name.as_str()))
            .collect();
        let mut inputs: Vec<Input> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut tables, mut kept) = (Vec::new(), Vec::new());
        for (at, node) in graph.node.iter().enumerate() {
            let place = match (default_domain(&node.domain), node.op_type.as_str()) {
                ("", "MatMul") => 1,
                ("", "Gather") if matches!(node.int("axis"), None | Some(0)) => 0,
                _ => continue,
            };
            let ([first, second], [output]) = (node.input.as_slice(), node.output.as_slice())
            else {
                continue;
            };
            let (weight, other) = match place {
                1 => (second, first),
                _ => (first, second),
            };
            let Some(&index) = weights.get(weight.as_str()) else {
                continue;
            };
            let info = &infos[index];
            let least = if place == 1 {
                LEAST_MATRIX
            } else {
                LEAST_TABLE
            };
            if info.byte_len() < least || constants.contains(other.as_str()) {
                continue;
            }
            let count = users.get(weight.as_str()).copied().unwrap_or(0);
            if count > 1 {
                let reason = format!("{weight} is shared: it is read {count} times");
                kept.push(Product::in_f32(shown(node), reason));
                continue;
            }
            if place == 0 {
                tables.push(Table {
                    node: at,
                    shown: shown(node),
                    rows: other.clone(),
                    output: output.clone(),
                    weight: index,
                });
                continue;
            }
            let matrix = Matrix {
                node: at,
                shown: shown(node),
                output: output.clone(),
                weight: index,
                columns: info.shape[1],
            };
            let known = *places.entry(first.as_str()).or_insert_with(|| {
                inputs.push(Input {
                    name: first.clone(),
                    width: info.shape[0],
                    matrices: Vec::new(),
                });
                inputs.len() - 1
            });
            // Two matrices of one input have as many rows, in a graph that any engine runs.
            if inputs[known].width == info.shape[0] {
                inputs[known].matrices.push(matrix);
            }
        }
        if inputs.is_empty() {
            return Err(OptimizeError::Unsuitable {
                origin: bundle.origin.clone(),
                reason: "it has no product (MatMul) with a matrix of its own that is large enough"
                    .into(),
                hint: "Leave it as it is".into(),
            });
        }
        Ok(Self {
            inputs,
            tables,
            kept,
        })
    }

    /// A model that gives what [`Observed`](super::Observed) adds: the inputs of products, but for the model's own, and the products.
    #[must_use]
    pub fn probe(&self, bundle: &ModelBundle) -> ModelBundle {
        let inputs = self.inputs.iter().map(|input| &input.name);
        let matrices = self.inputs.iter().flat_map(|input| &input.matrices);
        let outputs = matrices.map(|matrix| &matrix.output);
        // A product may read another one.
        probe(bundle, inputs.chain(outputs).collect())
    }

    /// The inputs of products: the name of each, the values of its rows, and the indices of the matrices that it is multiplied with.
    pub(crate) fn inputs(
        &self,
    ) -> impl Iterator<Item = (&str, usize, impl Iterator<Item = usize>)> {
        self.inputs.iter().map(|input| {
            let weights = input.matrices.iter().map(|matrix| matrix.weight);
            (input.name.as_str(), input.width, weights)
        })
    }

    /// The names of all products and tables, those that cannot be changed among them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let matrices = self.inputs.iter().flat_map(|input| &input.matrices);
        let matrices = matrices.map(|matrix| matrix.shown.as_str());
        let tables = self.tables.iter().map(|table| table.shown.as_str());
        let kept = self.kept.iter().map(|product| product.node.as_str());
        matrices.chain(tables).chain(kept)
    }

    /// Whether a name is a table's.
    pub(super) fn is_table(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.shown == name)
    }

    /// Bytes of what the probe gives for a token.
    pub fn bytes_per_token(&self) -> usize {
        let widths = self.inputs.iter().map(|input| {
            let columns = input.matrices.iter().map(|matrix| matrix.columns);
            input.width + columns.sum::<usize>()
        });
        widths.sum::<usize>() * size_of::<f32>()
    }
}

/// A model that gives these values of f32s, but for its own inputs.
pub(crate) fn probe(bundle: &ModelBundle, names: BTreeSet<&String>) -> ModelBundle {
    let mut probe = bundle.clone();
    if let Some(graph) = probe.graph.graph.as_mut() {
        // Whoever runs it has what the model reads.
        let read: BTreeSet<&String> = graph.input.iter().map(|input| &input.name).collect();
        let names = names.difference(&read);
        graph.output = names.map(|name| of_any_shape(name)).collect();
        prune(&mut probe);
    }
    probe
}

/// Refuses what cannot be quantised, however its weights are stored.
///
/// # Errors
/// [`OptimizeError::Unsuitable`] for a model that is quantised already, or whose operator set is too old.
pub fn check(bundle: &ModelBundle) -> Result<()> {
    let unsuitable = |reason: String, hint: &str| {
        Err(OptimizeError::Unsuitable {
            origin: bundle.origin.clone(),
            reason,
            hint: hint.into(),
        })
    };
    let mut nodes = bundle.graph.graph.iter().flat_map(|graph| &graph.node);
    if let Some(node) = nodes.find(|node| quantises(node)) {
        return unsuitable(
            format!(
                "it is quantised already (node {}, {})",
                shown(node),
                node.op_type
            ),
            "Optimise the original model",
        );
    }
    let opset = default_opset(&bundle.graph);
    if opset < OPSET {
        return unsuitable(
            format!("it uses operator set {opset}, and products in int8 need at least {OPSET}"),
            "Export the model again with a newer operator set",
        );
    }
    Ok(())
}

/// A value of f32s.
fn of_any_shape(name: &str) -> ValueInfoProto {
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            value: Some(TypeValue::Tensor(TensorType {
                elem_type: DataType::Float as i32,
                shape: None,
            })),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}

/// A node by its name, or by its output's.
pub(crate) fn shown(node: &NodeProto) -> String {
    let mut names = [&node.name].into_iter().chain(&node.output);
    let named = names.find(|name| !name.is_empty());
    named.cloned().unwrap_or_default()
}

/// Whether a node belongs to a quantised graph.
fn quantises(node: &NodeProto) -> bool {
    let operator = node.op_type.as_str();
    [
        "QuantizeLinear",
        "DequantizeLinear",
        "MatMulInteger",
        "ConvInteger",
        "MatMulNBits",
        // As 4 bits are taken out of bytes.
        "BitShift",
    ]
    .contains(&operator)
        || ["DynamicQuantize", "QLinear", "QAttention"]
            .iter()
            .any(|start| operator.starts_with(start))
}

/// How often each value is read, by nodes, by the graphs in their attributes, and as an output.
pub(crate) fn users(graph: &GraphProto) -> HashMap<&str, usize> {
    fn count<'g>(graph: &'g GraphProto, users: &mut HashMap<&'g str, usize>) {
        for node in &graph.node {
            for name in &node.input {
                *users.entry(name).or_default() += 1;
            }
            for attribute in &node.attribute {
                let inner = attribute.g.iter().chain(&attribute.graphs);
                inner.for_each(|graph| count(graph, users));
            }
        }
        for output in &graph.output {
            *users.entry(&output.name).or_default() += 1;
        }
    }
    let mut users = HashMap::new();
    count(graph, &mut users);
    users
}
