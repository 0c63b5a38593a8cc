//! A small model with everything that a transformer's embedding takes (a table, wide matmuls with
//! biases, GELU by erf, softmax over a mask, layer norm, mean pooling, L2 norm), its weights from
//! a fixed seed, and the same computation written out in f64.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::Dim;
use isovec_engine::engine::Batch;
use isovec_engine::onnx::proto::{GraphProto, ModelProto, OperatorSetIdProto};
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::weights::{BytesWeights, WeightInfo, WeightSource, WeightsIdentity};
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{float, int, ints};

pub const VOCABULARY: usize = 300;
pub const WIDTH: usize = 64;
pub const INNER: usize = 320;

/// Weights by name, row-major.
pub struct Weights(BTreeMap<&'static str, (Vec<usize>, Vec<f32>)>);

impl Weights {
    pub fn seeded() -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1u64 << 24) as f32) - 0.5
        };
        let mut all = BTreeMap::new();
        for (name, shape, scale) in [
            ("table", vec![VOCABULARY, WIDTH], 2.0),
            ("query", vec![WIDTH, WIDTH], 0.6),
            ("up", vec![WIDTH, INNER], 0.6),
            ("up_bias", vec![INNER], 0.4),
            ("down", vec![INNER, WIDTH], 0.3),
            ("down_bias", vec![WIDTH], 0.4),
            ("gain", vec![WIDTH], 1.0),
            ("shift", vec![WIDTH], 0.5),
        ] {
            let values = (0..shape.iter().product())
                .map(|_| next() * scale)
                .collect();
            all.insert(name, (shape, values));
        }
        Self(all)
    }

    fn f64(&self, name: &str) -> Vec<f64> {
        self.0[name].1.iter().map(|&v| f64::from(v)).collect()
    }

    pub fn source(&self) -> BytesWeights {
        let mut source = BytesWeights::new();
        for (name, (shape, values)) in &self.0 {
            let info = WeightInfo {
                name: (*name).into(),
                dtype: DType::F32,
                shape: shape.clone(),
            };
            let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            source.push(info, Bytes::from(data)).unwrap();
        }
        source
    }
}

/// A bundle around a graph.
pub fn bundle(graph: GraphProto, weights: Arc<dyn WeightSource>) -> ModelBundle {
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
        identity: WeightsIdentity("test".into()),
        files: BTreeMap::new(),
        model_file: "model.onnx".into(),
        origin: "a model of the tests".into(),
    }
}

pub fn symbolic(names: &[&str]) -> Vec<Dim> {
    names
        .iter()
        .map(|&name| Dim::Symbolic(name.into()))
        .collect()
}

/// The name of the mask by which rows without padding are known.
pub const MASK: &str = "attention_mask";

/// The name of a mask like any other input: what reads it, no program can say, and tract runs it.
pub const OTHER_MASK: &str = "mask";

/// The model, with its weights from `weights`.
pub fn model(weights: Arc<dyn WeightSource>) -> ModelBundle {
    model_with_mask(weights, MASK)
}

/// The model, its mask under a name.
pub fn model_with_mask(weights: Arc<dyn WeightSource>, mask: &str) -> ModelBundle {
    let mut graph = GraphProto::default();
    let mut g = GraphBuilder::new(&mut graph, "t.");
    g.input("ids", DType::I64, &symbolic(&["batch", "sequence"]));
    g.input(mask, DType::I64, &symbolic(&["batch", "sequence"]));
    let x = g.node("Gather", &["table", "ids"], vec![int("axis", 0)]);
    let mask = g.node("Cast", &[mask], vec![int("to", 1)]);

    // One attention head: scores, masked, softmax, values.
    let q = g.node("MatMul", &[&x, "query"], vec![]);
    let keys = g.node("Transpose", &[&x], vec![ints("perm", &[0, 2, 1])]);
    let scores = g.node("MatMul", &[&q, &keys], vec![]);
    let scale = g.f32(0.125);
    let scores = g.node("Mul", &[&scores, &scale], vec![]);
    let (one, low, axis_1) = (g.f32(1.0), g.f32(-10_000.0), g.ints(&[1]));
    let hidden = g.node("Sub", &[&one, &mask], vec![]);
    let hidden = g.node("Mul", &[&hidden, &low], vec![]);
    let hidden = g.node("Unsqueeze", &[&hidden, &axis_1], vec![]);
    let scores = g.node("Add", &[&scores, &hidden], vec![]);
    let attention = g.node("Softmax", &[&scores], vec![int("axis", -1)]);
    let seen = g.node("MatMul", &[&attention, &x], vec![]);
    let x = g.node("Add", &[&x, &seen], vec![]);

    // Feed-forward with GELU.
    let up = g.node("MatMul", &[&x, "up"], vec![]);
    let up = g.node("Add", &[&up, "up_bias"], vec![]);
    let (root, half) = (g.f32(std::f32::consts::SQRT_2), g.f32(0.5));
    let scaled = g.node("Div", &[&up, &root], vec![]);
    let erf = g.node("Erf", &[&scaled], vec![]);
    let erf = g.node("Add", &[&erf, &one], vec![]);
    let gelu = g.node("Mul", &[&up, &erf], vec![]);
    let gelu = g.node("Mul", &[&gelu, &half], vec![]);
    let down = g.node("MatMul", &[&gelu, "down"], vec![]);
    let down = g.node("Add", &[&down, "down_bias"], vec![]);
    let x = g.node("Add", &[&x, &down], vec![]);
    let x = g.node(
        "LayerNormalization",
        &[&x, "gain", "shift"],
        vec![int("axis", -1), float("epsilon", 1e-12)],
    );

    // Mean over the mask, then unit length.
    let axis_2 = g.ints(&[2]);
    let wide = g.node("Unsqueeze", &[&mask, &axis_2], vec![]);
    let kept = g.node("Mul", &[&x, &wide], vec![]);
    let sum = g.node("ReduceSum", &[&kept, &axis_1], vec![int("keepdims", 0)]);
    let count = g.node("ReduceSum", &[&wide, &axis_1], vec![int("keepdims", 0)]);
    let mean = g.node("Div", &[&sum, &count], vec![]);
    let norm = g.node(
        "ReduceL2",
        &[&mean],
        vec![ints("axes", &[1]), int("keepdims", 1)],
    );
    g.named_node("Div", &[&mean, &norm], "vector", vec![]);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(WIDTH)];
    g.output("vector", DType::F32, &dims);
    bundle(graph, weights)
}

/// Rows of ids, padded on the right to the longest.
pub fn batch(rows: &[Vec<i64>]) -> Batch {
    batch_with_mask(rows, MASK)
}

/// The same for a model whose mask has a name of its own.
pub fn batch_with_mask(rows: &[Vec<i64>], name: &str) -> Batch {
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut ids = Vec::new();
    let mut mask = Vec::new();
    for row in rows {
        ids.extend(
            row.iter()
                .copied()
                .chain(std::iter::repeat_n(0, longest - row.len())),
        );
        mask.extend((0..longest).map(|at| i64::from(at < row.len())));
    }
    let shape = [rows.len(), longest];
    Batch {
        inputs: vec![
            NamedTensor::new("ids", Tensor::from_slice(&shape, &ids).unwrap()),
            NamedTensor::new(name, Tensor::from_slice(&shape, &mask).unwrap()),
        ],
        row_lengths: rows.iter().map(Vec::len).collect(),
        ..Batch::default()
    }
}

/// Rows of all sorts of lengths.
pub fn rows(count: usize) -> Vec<Vec<i64>> {
    (0..count)
        .map(|row| {
            (0..1 + (row * 7) % 23)
                .map(|at| ((row * 31 + at * 17 + 5) % VOCABULARY) as i64)
                .collect()
        })
        .collect()
}

/// The vector of one row, in f64.
pub fn reference(weights: &Weights, row: &[i64]) -> Vec<f64> {
    let matmul = |x: &[f64], w: &[f64], inner: usize, width: usize| -> Vec<f64> {
        x.chunks(inner)
            .flat_map(|x| {
                (0..width).map(move |j| (0..inner).map(|k| x[k] * w[k * width + j]).sum())
            })
            .collect()
    };
    let table = weights.f64("table");
    let mut x: Vec<f64> = row
        .iter()
        .flat_map(|&id| table[id as usize * WIDTH..][..WIDTH].to_vec())
        .collect();
    let n = row.len();
    let q = matmul(&x, &weights.f64("query"), WIDTH, WIDTH);
    let before = x.clone();
    for i in 0..n {
        let scores: Vec<f64> = (0..n)
            .map(|j| {
                (0..WIDTH)
                    .map(|k| q[i * WIDTH + k] * before[j * WIDTH + k])
                    .sum::<f64>()
                    * 0.125
            })
            .collect();
        let top = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        for k in 0..WIDTH {
            x[i * WIDTH + k] += (0..n)
                .map(|j| weights[j] / total * before[j * WIDTH + k])
                .sum::<f64>();
        }
    }
    let mut up = matmul(&x, &weights.f64("up"), WIDTH, INNER);
    let up_bias = weights.f64("up_bias");
    for (at, value) in up.iter_mut().enumerate() {
        *value += up_bias[at % INNER];
        *value *= 0.5 * (1.0 + libm::erf(*value / std::f64::consts::SQRT_2));
    }
    let down = matmul(&up, &weights.f64("down"), INNER, WIDTH);
    let (down_bias, gain, shift) = (
        weights.f64("down_bias"),
        weights.f64("gain"),
        weights.f64("shift"),
    );
    let mut mean = vec![0.0; WIDTH];
    for i in 0..n {
        let x: Vec<f64> = (0..WIDTH)
            .map(|k| x[i * WIDTH + k] + down[i * WIDTH + k] + down_bias[k])
            .collect();
        let centre = x.iter().sum::<f64>() / WIDTH as f64;
        let spread = x.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / WIDTH as f64;
        for k in 0..WIDTH {
            let value = (x[k] - centre) / (spread + 1e-12).sqrt() * gain[k] + shift[k];
            mean[k] += value / n as f64;
        }
    }
    let norm = mean.iter().map(|v| v * v).sum::<f64>().sqrt();
    mean.iter().map(|v| v / norm).collect()
}
