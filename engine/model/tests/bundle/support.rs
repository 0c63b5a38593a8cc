//! Small models, made by hand.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::Dim;
use isovec_engine::error::EngineError;
use isovec_engine::onnx::proto::{
    DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
};
use isovec_engine::tensor::DType;
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::onnx::GraphBuilder;
use prost::Message;

/// Features that go into the model and come out.
pub(crate) const FEATURES: (usize, usize) = (16, 32);

/// `y = x · weight + bias`, with a weight that is large enough to live apart (2 KiB) and a bias
/// that is not (128 bytes).
pub(crate) fn linear() -> ModelProto {
    let (rows, columns) = FEATURES;
    let mut graph = GraphProto {
        name: "linear".into(),
        ..GraphProto::default()
    };
    graph.initializer = vec![
        floats("weight", &[rows as i64, columns as i64]),
        floats("bias", &[columns as i64]),
    ];
    let mut builder = GraphBuilder::new(&mut graph, "test.");
    builder.input("x", DType::F32, &[batch(), Dim::Fixed(rows)]);
    let product = builder.node("MatMul", &["x", "weight"], Vec::new());
    builder.named_node("Add", &[&product, "bias"], "y", Vec::new());
    builder.output("y", DType::F32, &[batch(), Dim::Fixed(columns)]);
    model(graph)
}

/// A model around a graph.
pub(crate) fn model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: 8,
        producer_name: "tests".into(),
        producer_version: "1".into(),
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: 17,
        }],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

/// The model's graph.
pub(crate) fn graph(model: &mut ModelProto) -> &mut GraphProto {
    model.graph.as_mut().unwrap()
}

/// A tensor of f32 in raw bytes, every element its own.
pub(crate) fn floats(name: &str, dims: &[i64]) -> TensorProto {
    let count: i64 = dims.iter().product();
    let raw: Vec<u8> = (0..count)
        .flat_map(|index| (index as f32 * 0.25 - 3.0).to_le_bytes())
        .collect();
    TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: DataType::Float as i32,
        raw_data: raw.into(),
        ..TensorProto::default()
    }
}

/// A node with plain inputs and one output.
pub(crate) fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: op.into(),
        input: inputs.iter().map(|&name| name.into()).collect(),
        output: vec![output.into()],
        ..NodeProto::default()
    }
}

/// The open first extent.
pub(crate) fn batch() -> Dim {
    Dim::Symbolic("batch".into())
}

/// The file of a model.
pub(crate) fn encode(model: &ModelProto) -> Bytes {
    model.encode_to_vec().into()
}

/// A bundle of one ONNX file and nothing else.
pub(crate) fn load(file: impl Into<Bytes>) -> Result<ModelBundle, EngineError> {
    load_all([("model.onnx", file.into())])
}

/// A bundle of files in memory.
pub(crate) fn load_all<const N: usize>(
    files: [(&str, Bytes); N],
) -> Result<ModelBundle, EngineError> {
    let files = files.map(|(name, bytes)| (name.to_owned(), bytes));
    bundle::from_bytes("test", BTreeMap::from(files), &BundleOptions::default())
}

/// All weights of a bundle by name.
pub(crate) fn weights(bundle: &ModelBundle) -> BTreeMap<String, (DType, Vec<usize>, Bytes)> {
    let infos = bundle.weights.weights().iter().enumerate();
    infos
        .map(|(index, info)| {
            let bytes = pollster::block_on(bundle.weights.read(index)).unwrap();
            (info.name.clone(), (info.dtype, info.shape.clone(), bytes))
        })
        .collect()
}

/// Asserts the error's kind and that its message has all the parts.
#[track_caller]
pub(crate) fn assert_error<T>(result: Result<T, EngineError>, kind: &str, parts: &[&str]) {
    let error = match result {
        Ok(_) => panic!("nothing was wrong, expected {kind} with {parts:?}"),
        Err(error) => error,
    };
    let message = error.to_string();
    assert_eq!(error.kind(), kind, "{message}");
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}
