//! Tests the counts of files with unknown shapes, or of hostile files.

use std::path::Path;

use isovec::config::EngineChoice;
use isovec_engine::onnx::proto::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, TensorProto,
};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;
use isovec_model::onnx::builder::{ints, value_info};

use super::*;

fn op(operator: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let names = |all: &[&str]| -> Vec<String> { all.iter().map(|&name| name.into()).collect() };
    NodeProto {
        op_type: operator.into(),
        input: names(inputs),
        output: names(outputs),
        ..NodeProto::default()
    }
}

/// A number is a fixed extent, all else is a name; the empty one stands for none.
fn dims(text: &[&str]) -> Vec<Dim> {
    let dim = |text: &&str| {
        text.parse()
            .map_or_else(|_| Dim::Symbolic((*text).into()), Dim::Fixed)
    };
    text.iter().map(dim).collect()
}

/// A graph of a file, counted for 3 texts of 5 tokens.
fn counted(graph: GraphProto, large: &[WeightInfo]) -> ModelGraph {
    let model = ModelProto {
        graph: Some(graph),
        ..ModelProto::default()
    };
    let mut counted = ModelGraph::empty("a model".into(), 3, 5);
    counted.take_onnx(&model, large, GraphForm::File);
    counted.finish();
    counted
}

/// The FLOPs of negating each of these inputs: 4 for each of its numbers.
fn negated(inputs: &[(&str, DType, &[&str])]) -> Vec<Option<u64>> {
    let mut graph = GraphProto::default();
    for (name, dtype, extents) in inputs {
        graph.input.push(value_info(name, *dtype, &dims(extents)));
        let output = format!("{name}.negated");
        graph.node.push(op("Neg", &[name], &[&output]));
    }
    let counted = counted(graph, &[]);
    counted.nodes[inputs.len()..]
        .iter()
        .map(|node| node.flops)
        .collect()
}

#[test]
fn extents_of_ids_are_texts_and_tokens_without_a_name_too_and_others_are_unknown() {
    let flops = negated(&[
        ("ids", DType::I64, &["", ""]),
        ("written as 0", DType::I32, &["0", "0"]),
        ("no ids", DType::F32, &["", "", "4"]),
        ("mask", DType::I64, &["1", ""]),
    ]);
    assert_eq!(flops, [Some(60), Some(60), None, Some(20)]);
}

#[test]
fn names_mean_what_they_mean_of_ids() {
    let flops = negated(&[
        ("first", DType::F32, &["tokens"]),
        ("ids", DType::I64, &["texts", "tokens"]),
        ("last", DType::F32, &["texts", "tokens", "4"]),
    ]);
    assert_eq!(flops, [Some(20), Some(60), Some(240)]);
}

#[test]
fn results_of_unknown_extents_have_no_cost() {
    for extents in [["", "", "8"], ["?", "?", "8"], ["0", "5", "8"]] {
        let mut graph = GraphProto::default();
        let ids = value_info("ids", DType::I64, &dims(&["?", ""]));
        graph.input.push(ids);
        graph.node.push(op("Unheard", &["ids"], &["x"]));
        let x = value_info("x", DType::F32, &dims(&extents));
        graph.value_info.push(x);
        let node = counted(graph, &[]).nodes.pop().unwrap();
        assert_eq!((node.flops, node.result_bytes), (None, None), "{extents:?}");
    }
}

#[test]
fn attention_is_counted_as_its_operator_set_has_it() {
    let attention = |domain: &str, q: &[&str], k: &[&str]| {
        let mut graph = GraphProto::default();
        let ids = value_info("ids", DType::I64, &dims(&["texts", "tokens"]));
        graph.input.push(ids);
        for (name, extents) in [("q", q), ("k", k)] {
            let input = value_info(name, DType::F32, &dims(extents));
            graph.input.push(input);
        }
        graph.output.push(value_info("y", DType::F32, &dims(q)));
        graph.node.push(NodeProto {
            domain: domain.into(),
            ..op("Attention", &["q", "k", "k"], &["y"])
        });
        counted(graph, &[]).nodes.pop().unwrap().flops
    };
    let x = ["texts", "tokens", "8"];
    // Each of 15 tokens meets 5, in 8 columns, twice.
    let meeting = 15 * 5 * 8 * 2;
    assert_eq!(attention("", &x, &x), Some(2 * meeting));
    assert_eq!(attention("ai.onnx", &x, &x), Some(2 * meeting));
    let heads = ["texts", "2", "tokens", "4"];
    assert_eq!(attention("", &heads, &heads), Some(2 * meeting));
    let fewer = ["texts", "1", "8"];
    assert_eq!(attention("", &x, &fewer), Some(2 * meeting / 5));
    let matrix = ["8", "24"];
    let with_product = meeting + 15 * 8 * 24;
    assert_eq!(
        attention("com.microsoft", &x, &matrix),
        Some(2 * with_product)
    );
    assert_eq!(attention("com.example", &x, &x), None);
}

#[test]
fn what_is_left_out_joins_no_nodes() {
    let mut graph = GraphProto::default();
    for name in ["x", "most"] {
        let input = value_info(name, DType::F32, &dims(&["4"]));
        graph.input.push(input);
    }
    // Says nothing of the operands that are left out.
    let nameless = value_info("", DType::F32, &dims(&["4", "4"]));
    graph.value_info.push(nameless);
    graph.node = vec![
        op("LayerNormalization", &["x", "x"], &["y", "", "inverse"]),
        op("MultiHeadAttention", &["y"], &["z", ""]),
        op("Clip", &["x", "", "most"], &["clipped"]),
        op("Add", &["x", ""], &["sum"]),
    ];
    let graph = counted(graph, &[]);
    let nodes = graph.nodes.iter();
    let seen: Vec<_> = nodes
        .map(|node| (node.operator.as_str(), &node.inputs[..]))
        .collect();
    // The product is last: what reads nothing of it comes first.
    let wanted: [(&str, &[usize]); 6] = [
        (INPUT, &[]),
        (INPUT, &[]),
        ("LayerNormalization", &[0]),
        ("Clip", &[0, 1]),
        ("Add", &[0]),
        ("MultiHeadAttention", &[2]),
    ];
    assert_eq!(seen, wanted);
    assert_eq!(graph.nodes[4].shape, None);
}

#[test]
fn costs_of_a_batch_of_any_size_are_at_most_the_largest_number() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/tiny-bert");
    for file in [false, true] {
        let config = EmbeddingConfig::default().with_engine(EngineChoice::Portable);
        let options = GraphOptions::default()
            .with_size(usize::MAX, usize::MAX)
            .with_file(file);
        let graph = crate::blocking::graph(folder.as_path(), config, options).unwrap();
        assert_eq!(graph.totals.flops, u64::MAX);
        assert_eq!(graph.totals.result_bytes, u64::MAX);
        if file {
            continue;
        }
        for node in &graph.nodes {
            let flops = if node.operator == INPUT { 0 } else { u64::MAX };
            assert_eq!(node.flops, Some(flops), "{node:?}");
            assert_eq!(node.result_bytes, Some(u64::MAX), "{node:?}");
        }
    }
}

#[test]
fn sums_of_a_node_are_at_most_the_largest_number() {
    let large = ["a", "b", "c"].map(|name| WeightInfo {
        name: name.into(),
        dtype: DType::F32,
        shape: vec![usize::MAX],
    });
    let mut graph = GraphProto::default();
    let long = value_info("t", DType::F32, &[Dim::Fixed(i64::MAX as usize)]);
    graph.value_info.push(long);
    graph.node = vec![
        op("Add", &["a", "b"], &["s", "t"]),
        op("Add", &["a", "c"], &["u"]),
    ];
    let graph = counted(graph, &large);
    let first = &graph.nodes[0];
    assert_eq!(first.parameters, u64::MAX);
    assert_eq!(first.weight_bytes, u64::MAX);
    assert_eq!(first.result_bytes, Some(u64::MAX));
    assert_eq!(graph.operators[0].parameters, u64::MAX);
}

#[test]
fn no_chain_of_nodes_makes_up_axes_without_end() {
    let mut graph = GraphProto::default();
    let input = value_info("x0", DType::I64, &dims(&["2", "2"]));
    graph.input.push(input);
    for at in 0..12 {
        let (from, to) = (format!("x{at}"), format!("x{}", at + 1));
        graph.node.push(op("Gather", &[&from, &from], &[&to]));
    }
    let graph = counted(graph, &[]);
    let ranks = graph.nodes[1..].iter();
    let ranks: Vec<_> = ranks
        .map(|node| node.shape.as_ref().map(Vec::len))
        .collect();
    let mut wanted = [3_usize, 5, 9, 17, 33].map(Some).to_vec();
    wanted.resize(12, None);
    assert_eq!(ranks, wanted);
}

#[test]
fn more_axes_than_any_model_has_are_unknown_whatever_makes_them() {
    let mut graph = GraphProto::default();
    let many = ["1"; 65];
    for (name, extents) in [("x", &many[..1]), ("many", &many[..])] {
        let input = value_info(name, DType::F32, &dims(extents));
        graph.input.push(input);
    }
    graph.initializer.push(TensorProto {
        name: "ones".into(),
        data_type: DataType::Int64 as i32,
        dims: vec![65],
        int64_data: vec![1; 65],
        ..TensorProto::default()
    });
    let axes: Vec<i64> = (0..64).collect();
    let with = |attribute: AttributeProto, node: NodeProto| NodeProto {
        attribute: vec![attribute],
        ..node
    };
    graph.node = vec![
        with(ints("axes", &axes), op("Unsqueeze", &["x"], &["a"])),
        with(ints("perm", &[0; 65]), op("Transpose", &["x"], &["b"])),
        op("Reshape", &["x", "ones"], &["c"]),
        op("Neg", &["many"], &["d"]),
    ];
    let graph = counted(graph, &[]);
    for node in &graph.nodes[1..] {
        assert_eq!(node.shape, None, "{node:?}");
    }
}
