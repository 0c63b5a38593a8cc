//! Small graphs, and weights for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::Dim;
use isovec_engine::engine::Batch;
use isovec_engine::onnx::proto::{
    AttributeProto, AttributeType, DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    TypeValue,
};
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::weights::{BytesWeights, WeightInfo, Weights, WeightsIdentity};
use isovec_model::onnx::builder::{GraphBuilder, value_info};

pub(super) fn rows() -> Dim {
    Dim::Symbolic("rows".into())
}

/// A bundle around a graph that `build` writes.
pub(super) fn bundle(weights: Weights, build: impl FnOnce(&mut GraphBuilder<'_>)) -> ModelBundle {
    let mut graph = GraphProto {
        name: "test".into(),
        ..GraphProto::default()
    };
    build(&mut GraphBuilder::new(&mut graph, "t/"));
    ModelBundle {
        graph: ModelProto {
            ir_version: 8,
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: 17,
            }],
            graph: Some(graph),
            ..ModelProto::default()
        },
        weights,
        identity: WeightsIdentity("none".into()),
        files: BTreeMap::new(),
        model_file: "model.onnx".into(),
        origin: "test model".into(),
    }
}

pub(super) fn no_weights() -> Weights {
    Arc::new(BytesWeights::new())
}

pub(super) const IN: usize = 24;
pub(super) const OUT: usize = 48;

/// The matrix and the vector of [`affine`].
pub(super) fn affine_values() -> (Vec<f32>, Vec<f32>) {
    let matrix = (0..IN * OUT).map(|i| (i % 13) as f32 - 6.0).collect();
    let vector = (0..OUT).map(|i| i as f32 / 4.0).collect();
    (matrix, vector)
}

pub(super) fn bytes_of(values: &[f32]) -> Bytes {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect::<Vec<u8>>()
        .into()
}

/// Weights for [`affine`], out of the given memory.
pub(super) fn affine_weights(matrix: Bytes, vector: Bytes) -> Weights {
    let info = |name: &str, shape: &[usize]| WeightInfo {
        name: name.into(),
        dtype: DType::F32,
        shape: shape.to_vec(),
    };
    let mut weights = BytesWeights::new();
    weights.push(info("matrix", &[IN, OUT]), matrix).unwrap();
    weights.push(info("vector", &[OUT]), vector).unwrap();
    Arc::new(weights)
}

/// `y = x · matrix + vector`, with both from the weight source.
pub(super) fn affine(weights: Weights) -> ModelBundle {
    bundle(weights, |graph| {
        graph.input("x", DType::F32, &[rows(), Dim::Fixed(IN)]);
        let product = graph.node("MatMul", &["x", "matrix"], vec![]);
        graph.named_node("Add", &[&product, "vector"], "y", vec![]);
        graph.output("y", DType::F32, &[rows(), Dim::Fixed(OUT)]);
    })
}

pub(super) fn affine_model() -> ModelBundle {
    let (matrix, vector) = affine_values();
    affine(affine_weights(bytes_of(&matrix), bytes_of(&vector)))
}

/// Rows that are told apart by `seed`.
pub(super) fn affine_input(rows: usize, seed: usize) -> Vec<f32> {
    (0..rows * IN)
        .map(|i| ((i * 7 + seed * 31) % 17) as f32 - 8.0)
        .collect()
}

/// What [`affine`] must give. All values are small whole numbers or quarters: sums are exact.
pub(super) fn affine_output(x: &[f32]) -> Vec<f32> {
    let (matrix, vector) = affine_values();
    x.chunks(IN)
        .flat_map(|row| {
            let cell = |column: usize| {
                let dot: f32 = row
                    .iter()
                    .enumerate()
                    .map(|(i, value)| value * matrix[i * OUT + column])
                    .sum();
                dot + vector[column]
            };
            (0..OUT).map(cell).collect::<Vec<_>>()
        })
        .collect()
}

pub(super) fn batch(inputs: Vec<(&str, Tensor)>) -> Batch {
    Batch {
        inputs: inputs
            .into_iter()
            .map(|(name, tensor)| NamedTensor::new(name, tensor))
            .collect(),
        row_lengths: Vec::new(),
        ..Batch::default()
    }
}

pub(super) fn affine_batch(x: &[f32]) -> Batch {
    batch(vec![(
        "x",
        Tensor::from_slice(&[x.len() / IN, IN], x).unwrap(),
    )])
}

/// `y` is `x` after `trips` rounds of a loop: as long a run as one likes, that can end at once.
pub(super) fn looping() -> ModelBundle {
    let shape = [rows(), Dim::Fixed(4)];
    let mut body = GraphProto {
        name: "body".into(),
        ..GraphProto::default()
    };
    let bool_info = |name: &str| {
        let mut info = value_info(name, DType::U8, &[]);
        if let Some(TypeValue::Tensor(tensor)) = info.r#type.as_mut().and_then(|t| t.value.as_mut())
        {
            tensor.elem_type = DataType::Bool as i32;
        }
        info
    };
    body.input = vec![
        value_info("round", DType::I64, &[]),
        bool_info("go_in"),
        value_info("v_in", DType::F32, &shape),
    ];
    body.output = vec![bool_info("go_out"), value_info("v_out", DType::F32, &shape)];
    let node = |op: &str, input: &str, output: &str| NodeProto {
        op_type: op.into(),
        input: vec![input.into()],
        output: vec![output.into()],
        ..NodeProto::default()
    };
    body.node = vec![
        node("Identity", "go_in", "go_out"),
        node("Neg", "v_in", "v_out"),
    ];
    bundle(no_weights(), |graph| {
        graph.input("x", DType::F32, &shape);
        graph.input("trips", DType::I64, &[]);
        let body = AttributeProto {
            name: "body".into(),
            r#type: AttributeType::Graph as i32,
            g: Some(body),
            ..AttributeProto::default()
        };
        graph.named_node("Loop", &["trips", "", "x"], "y", vec![body]);
        graph.output("y", DType::F32, &shape);
    })
}

/// A run of [`looping`] that takes `trips` rounds.
pub(super) fn looping_batch(trips: i64) -> Batch {
    batch(vec![
        (
            "x",
            Tensor::from_slice(&[1, 4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap(),
        ),
        ("trips", Tensor::from_slice(&[], &[trips]).unwrap()),
    ])
}

/// More rounds than anyone waits for.
pub(super) const FOR_EVER: i64 = i64::MAX;
