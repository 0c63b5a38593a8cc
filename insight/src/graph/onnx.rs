//! The nodes of an ONNX graph: that of a file, or ONNX Runtime's optimised one.

use std::collections::{HashMap, HashSet};

use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{DataType, GraphProto, ModelProto, NodeProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;

use super::infer::{Attributes, Sizes, Values, infer};
use super::{Dim, GraphForm, GraphNode, INPUT, ModelGraph};

/// Operators that only say where numbers are, or move them.
const MOVES: &[&str] = &[
    "Cast",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "EmbedLayerNormalization",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "Range",
    "Reshape",
    "Shape",
    "Slice",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
];

/// Operators that take many multiply-adds for a number: functions, norms.
const FUNCTIONS: &[&str] = &[
    "BiasGelu",
    "BiasSoftmax",
    "Cos",
    "Erf",
    "Exp",
    "FastGelu",
    "Gelu",
    "LayerNormalization",
    "Log",
    "Pow",
    "QuickGelu",
    "RMSNormalization",
    "Sigmoid",
    "SimplifiedLayerNormalization",
    "Sin",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    "Softmax",
    "Sqrt",
    "Tanh",
];

/// Multiply-adds that stand for a number of a function's result, as in isovec's own programs.
const OF_FUNCTION: u64 = 8;

/// Of other arithmetic.
const OF_OTHERS: u64 = 2;

impl ModelGraph {
    /// Takes the nodes of a graph, whose large weights lie elsewhere.
    pub(super) fn take_onnx(&mut self, model: &ModelProto, large: &[WeightInfo], form: GraphForm) {
        self.form = form;
        let Some(graph) = &model.graph else {
            return;
        };
        let values = infer(graph, large);
        let sizes = Sizes::new(graph, self.rows, self.tokens);
        let weights = weights(graph, large);
        let mut from: HashMap<&str, usize> = HashMap::new();
        let mut counted = HashSet::new();
        for input in &graph.input {
            if weights.contains_key(input.name.as_str()) {
                continue;
            }
            from.insert(&input.name, self.nodes.len());
            self.nodes.push(GraphNode {
                operator: INPUT.into(),
                name: input.name.clone(),
                shape: values.dims(&input.name).map(<[Dim]>::to_vec),
                result_bytes: sizes.bytes(&values, &input.name),
                flops: Some(0),
                ..GraphNode::default()
            });
        }
        for node in sorted(graph) {
            let mut inputs: Vec<usize> = reads(node)
                .into_iter()
                .filter_map(|name| from.get(name).copied())
                .collect();
            inputs.sort_unstable();
            inputs.dedup();
            let mut shown = GraphNode {
                operator: operator(node),
                name: node.name.clone(),
                detail: detail(node, &values),
                inputs,
                shape: node
                    .output
                    .first()
                    .and_then(|name| values.dims(name))
                    .map(<[Dim]>::to_vec),
                flops: flops(node, &values, &sizes),
                ..GraphNode::default()
            };
            for name in reads(node) {
                if let Some(&(numbers, bytes)) = weights.get(name)
                    && counted.insert(name)
                {
                    shown.parameters = shown.parameters.saturating_add(numbers);
                    shown.weight_bytes = shown.weight_bytes.saturating_add(bytes);
                }
            }
            let mut bytes = results(node).map(|name| sizes.bytes(&values, name));
            shown.result_bytes =
                bytes.try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)));
            for output in results(node) {
                from.insert(output, self.nodes.len());
            }
            self.nodes.push(shown);
        }
    }
}

/// What a node computes; a result that is left out has the empty name, and is none.
fn results(node: &NodeProto) -> impl Iterator<Item = &str> {
    named(&node.output)
}

fn named(names: &[String]) -> impl Iterator<Item = &str> {
    names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
}

/// What a node reads, graphs inside it included.
fn reads(node: &NodeProto) -> Vec<&str> {
    let mut names: Vec<&str> = named(&node.input).collect();
    for attribute in &node.attribute {
        for inner in attribute.g.iter().chain(&attribute.graphs) {
            names.extend(inner.node.iter().flat_map(reads));
        }
    }
    names
}

/// Each node behind those that it reads, else in the file's order, but what reads no product comes first: ONNX Runtime
/// writes a mask down where the first layer reads it, which would then be no layer like the others.
fn sorted(graph: &GraphProto) -> Vec<&NodeProto> {
    let nodes = &graph.node;
    let mut makers = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        for output in results(node) {
            makers.insert(output, at);
        }
    }
    let mut order = Vec::with_capacity(nodes.len());
    let mut begun = vec![false; nodes.len()];
    // A stack of its own: graphs may be deeper than the thread's.
    let mut stack: Vec<(usize, bool)> = Vec::new();
    for at in 0..nodes.len() {
        stack.push((at, false));
        while let Some((at, ready)) = stack.pop() {
            if ready {
                order.push(&nodes[at]);
            } else if !std::mem::replace(&mut begun[at], true) {
                stack.push((at, true));
                let before = reads(&nodes[at]).into_iter().rev();
                let before = before
                    .filter_map(|name| makers.get(name))
                    .filter(|&&maker| !begun[maker]);
                stack.extend(before.map(|&maker| (maker, false)));
            }
        }
    }
    let mut behind: HashSet<&str> = HashSet::new();
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for node in order {
        if is_product(node) || reads(node).iter().any(|name| behind.contains(name)) {
            behind.extend(results(node));
            later.push(node);
        } else {
            first.push(node);
        }
    }
    first.extend(later);
    first
}

fn is_product(node: &NodeProto) -> bool {
    let name = node.op_type.as_str();
    name.contains("MatMul") || name.contains("Gemm") || name.contains("Attention")
}

/// By name, how many numbers and bytes a weight has; whole numbers are no parameters.
fn weights<'b>(graph: &'b GraphProto, large: &'b [WeightInfo]) -> HashMap<&'b str, (u64, u64)> {
    let large = large.iter().map(|info| {
        let whole = matches!(info.dtype, DType::I64 | DType::I32);
        let numbers = if whole { 0 } else { info.elements() as u64 };
        (info.name.as_str(), (numbers, info.byte_len() as u64))
    });
    let small = graph.initializer.iter().map(|tensor| {
        let whole = [DataType::Int64 as i32, DataType::Int32 as i32].contains(&tensor.data_type);
        let numbers = tensor.dims.iter().map(|&extent| extent.max(0) as u64);
        let numbers = if whole {
            0
        } else {
            numbers.fold(1, u64::saturating_mul)
        };
        (
            tensor.name.as_str(),
            (numbers, tensor.raw_data.len() as u64),
        )
    });
    large.chain(small).collect()
}

fn operator(node: &NodeProto) -> String {
    match node.domain.as_str() {
        domain if default_domain(domain).is_empty() => node.op_type.clone(),
        domain => format!("{domain}.{}", node.op_type),
    }
}

/// What the operator leaves open: the extents of a product, the number of heads, a fused activation.
fn detail(node: &NodeProto, values: &Values) -> String {
    let attributes = Attributes(node);
    let mut parts = Vec::new();
    if let (Some(inner), Some(width)) = (inner(node, values), width(node, values)) {
        parts.push(format!("{inner} → {width}"));
    }
    parts.extend(
        attributes
            .int("num_heads")
            .map(|heads| format!("{heads} heads")),
    );
    parts.extend(attributes.text("activation"));
    if node.op_type == "Cast"
        && let Some(to) = attributes.int("to")
        && let Ok(to) = DataType::try_from(to as i32)
    {
        parts.push(format!("to {}", format!("{to:?}").to_lowercase()));
    }
    parts.join(", ")
}

/// Columns of a product's result.
fn width(node: &NodeProto, values: &Values) -> Option<usize> {
    match values.dims(node.output.first()?)?.last()? {
        Dim::Fixed(width) => Some(*width),
        Dim::Symbolic(_) => None,
    }
}

/// Steps of the sums of a product with a matrix of the model.
fn inner(node: &NodeProto, values: &Values) -> Option<usize> {
    let attributes = Attributes(node);
    let of = |at: usize, axis: &dyn Fn(usize) -> usize| {
        let dims = values.dims(node.input.get(at)?)?;
        match dims.get(axis(dims.len()))? {
            Dim::Fixed(extent) => Some(*extent),
            Dim::Symbolic(_) => None,
        }
    };
    let last = |length: usize| length.wrapping_sub(1);
    match node.op_type.as_str() {
        "MatMul"
        | "FusedMatMul"
        | "MatMulInteger"
        | "DynamicQuantizeMatMul"
        | "MatMulIntegerToFloat" => match attributes.int("transA") {
            Some(1) => of(0, &|length| length.wrapping_sub(2)),
            _ => of(0, &last),
        },
        "QLinearMatMul" => of(0, &last),
        "Gemm" | "FusedGemm" => match attributes.int("transA") {
            Some(1) => of(0, &|_| 0),
            _ => of(0, &|_| 1),
        },
        "MatMulNBits" => attributes.int("K").and_then(|k| usize::try_from(k).ok()),
        _ => None,
    }
}

/// Floating-point operations; `None` where shapes are not known.
fn flops(node: &NodeProto, values: &Values, sizes: &Sizes) -> Option<u64> {
    let operator = node.op_type.as_str();
    if MOVES.contains(&operator) {
        return Some(0);
    }
    let numbers = |name: Option<&String>| sizes.numbers(values.dims(name?)?);
    let result = || numbers(node.output.first());
    let multiply_adds = match operator {
        "MatMul"
        | "FusedMatMul"
        | "Gemm"
        | "FusedGemm"
        | "MatMulInteger"
        | "DynamicQuantizeMatMul"
        | "MatMulIntegerToFloat"
        | "QLinearMatMul"
        | "MatMulNBits" => {
            let inner = match inner(node, values) {
                Some(inner) => inner as u64,
                // Scores times values: the sums run over the tokens.
                None => sizes.extent(values.dims(node.input.first()?)?.last()?)?,
            };
            result()?.saturating_mul(inner)
        }
        "MultiHeadAttention" => {
            let queries = values.dims(node.input.first()?)?;
            attention(queries, queries, sizes)?
        }
        // The default set's takes queries and keys that are computed already.
        "Attention" if default_domain(&node.domain).is_empty() => {
            let of = |at: usize| values.dims(node.input.get(at)?);
            attention(of(0)?, of(1)?, sizes)?
        }
        "Attention" | "QAttention" if node.domain != "com.microsoft" => return None,
        // Microsoft's computes them itself, with a matrix.
        "Attention" | "QAttention" => {
            let x = values.dims(node.input.first()?)?;
            let y = values.dims(node.output.first()?)?;
            let own = attention(y, y, sizes)?;
            let columns = sizes.extent(values.dims(node.input.get(1)?)?.last()?)?;
            own.saturating_add(sizes.numbers(x)?.saturating_mul(columns))
        }
        name if FUNCTIONS.contains(&name) => result()?.saturating_mul(OF_FUNCTION),
        name if name.starts_with("Reduce") || name == "CumSum" => {
            numbers(node.input.first())?.saturating_mul(OF_OTHERS)
        }
        _ => result()?.saturating_mul(OF_OTHERS),
    };
    Some(multiply_adds.saturating_mul(2))
}

/// Multiply-adds of attention between `[texts, tokens, width]` or `[texts, heads, tokens, size]`: every query meets
/// every key.
fn attention(queries: &[Dim], keys: &[Dim], sizes: &Sizes) -> Option<u64> {
    let ([_, tokens, _] | [_, _, tokens, _]) = keys else {
        return None;
    };
    let pairs = sizes
        .numbers(queries)?
        .saturating_mul(sizes.extent(tokens)?);
    Some(pairs.saturating_mul(2))
}
