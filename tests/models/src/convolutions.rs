//! Convolutional networks with seeded weights as ONNX graphs, of any size and of the sizes that people load.

use std::collections::BTreeMap;
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::Dim;
use isovec_engine::engine::Batch;
use isovec_engine::onnx::proto::{
    AttributeProto, DataType, GraphProto, ModelProto, OperatorSetIdProto, TensorProto,
};
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::weights::{BytesWeights, WeightInfo, WeightsIdentity};
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{float, int, ints};
use prost::Message;

use crate::exact::{Array, evaluate};
use crate::rng::Rng;

/// Bytes from which on a tensor is stored beside the graph, as `isovec-model` does it.
const BESIDE: usize = 1024;

/// A graph that grows, with seeded weights. Its input is `x`.
pub struct Net {
    graph: GraphProto,
    /// Name, extents and values of each weight.
    pub weights: Vec<(String, Vec<usize>, Vec<f32>)>,
    rng: Rng,
    /// The extents of the picture.
    pub picture: [usize; 3],
    /// The version of the operator set.
    pub opset: i64,
}

impl Net {
    /// A graph whose input `x` is a picture of these extents.
    pub fn new(seed: u64, picture: [usize; 3]) -> Self {
        let mut net = Self {
            graph: GraphProto::default(),
            weights: Vec::new(),
            rng: Rng::new(seed),
            picture,
            opset: 20,
        };
        let mut dims = vec![Dim::Symbolic("batch".into())];
        dims.extend(picture.map(Dim::Fixed));
        net.builder().input("x", DType::F32, &dims);
        net
    }

    fn builder(&mut self) -> GraphBuilder<'_> {
        // Names go on counting.
        let next = self.graph.node.len() + self.graph.initializer.len();
        GraphBuilder::new(&mut self.graph, format!("{next}."))
    }

    /// The graph so far.
    pub fn graph(&mut self) -> &mut GraphProto {
        &mut self.graph
    }

    /// Adds an operator; the name of its output.
    pub fn node(&mut self, op: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        self.builder().node(op, inputs, attributes)
    }

    /// A list of whole numbers.
    pub fn ints(&mut self, values: &[i64]) -> String {
        self.builder().ints(values)
    }

    /// A whole number.
    pub fn int(&mut self, value: i64) -> String {
        self.builder().i64s(&[], &[value])
    }

    /// A number.
    pub fn number(&mut self, value: f32) -> String {
        self.builder().f32(value)
    }

    /// A list or a matrix of numbers.
    pub fn numbers(&mut self, shape: &[usize], values: &[f32]) -> String {
        let shape: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
        self.builder().f32s(&shape, values)
    }

    /// A weight of numbers around a mean.
    pub fn weight(&mut self, shape: &[usize], mean: f64, deviation: f64) -> String {
        let name = format!("w{}", self.weights.len());
        let count = shape.iter().product();
        let values = (0..count).map(|_| (mean + deviation * self.rng.normal()) as f32);
        let values = values.collect();
        self.weights.push((name.clone(), shape.to_vec(), values));
        name
    }

    /// A convolution of `[outputs, inputs of a group, rows, columns]`, with a bias where `bias`.
    pub fn conv(
        &mut self,
        x: &str,
        shape: [usize; 4],
        bias: bool,
        attributes: Vec<AttributeProto>,
    ) -> String {
        let steps = shape[1..].iter().product::<usize>() as f64;
        let weight = self.weight(&shape, 0.0, (2.0 / steps).sqrt());
        let bias = bias.then(|| self.weight(&shape[..1], 0.0, 0.2));
        let inputs: Vec<&str> = [x, &weight].into_iter().chain(bias.as_deref()).collect();
        self.node("Conv", &inputs, attributes)
    }

    /// A square convolution as networks have it, with padding that keeps the extents at stride 1.
    pub fn square(
        &mut self,
        x: &str,
        (outputs, inputs): (usize, usize),
        side: usize,
        stride: i64,
        groups: usize,
    ) -> String {
        let pad = (side / 2) as i64;
        let attributes = vec![
            ints("strides", &[stride; 2]),
            ints("pads", &[pad; 4]),
            int("group", groups as i64),
            ints("kernel_shape", &[side as i64; 2]),
        ];
        self.conv(x, [outputs, inputs / groups, side, side], false, attributes)
    }

    /// A batch normalisation.
    pub fn norm(&mut self, x: &str, channels: usize) -> String {
        let scale = self.weight(&[channels], 1.0, 0.1);
        let shift = self.weight(&[channels], 0.0, 0.2);
        let mean = self.weight(&[channels], 0.0, 0.2);
        let variance = self.weight(&[channels], 1.0, 0.05);
        let inputs = [x, &scale, &shift, &mean, &variance];
        self.node("BatchNormalization", &inputs, vec![float("epsilon", 1e-3)])
    }

    /// `max(x, 0)`.
    pub fn relu(&mut self, x: &str) -> String {
        self.node("Relu", &[x], vec![])
    }

    /// A Relu that ends at 6.
    pub fn relu6(&mut self, x: &str) -> String {
        let (least, most) = (self.number(0.0), self.number(6.0));
        self.node("Clip", &[x, &least, &most], vec![])
    }

    /// `x * sigmoid(x)`, as exporters write it.
    pub fn silu(&mut self, x: &str) -> String {
        let gate = self.node("Sigmoid", &[x], vec![]);
        self.node("Mul", &[x, &gate], vec![])
    }

    /// A product with a matrix and a bias, as a classifier has it.
    pub fn classifier(&mut self, x: &str, (outputs, inputs): (usize, usize)) -> String {
        let weight = self.weight(&[outputs, inputs], 0.0, (1.0 / inputs as f64).sqrt());
        let bias = self.weight(&[outputs], 0.0, 0.2);
        self.node("Gemm", &[x, &weight, &bias], vec![int("transB", 1)])
    }

    /// The graph as a model with these outputs.
    pub fn bundle(&mut self, outputs: &[&str]) -> ModelBundle {
        let mut graph = self.graph.clone();
        for output in outputs {
            // Shapes of outputs say nothing that is needed.
            GraphBuilder::new(&mut graph, "outputs.").output(output, DType::F32, &[]);
            if let Some(last) = graph.output.last_mut() {
                last.r#type = None;
            }
        }
        let mut beside = BytesWeights::new();
        for (name, shape, values) in &self.weights {
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            if bytes.len() < BESIDE {
                graph.initializer.push(TensorProto {
                    name: name.clone(),
                    data_type: DataType::Float as i32,
                    dims: shape.iter().map(|&extent| extent as i64).collect(),
                    raw_data: bytes.into(),
                    ..TensorProto::default()
                });
                continue;
            }
            let info = WeightInfo {
                name: name.clone(),
                dtype: DType::F32,
                shape: shape.clone(),
            };
            let pushed = beside.push(info, bytes);
            pushed.expect("the bytes are as many as the shape says");
        }
        ModelBundle {
            graph: self.model(graph),
            weights: Arc::new(beside),
            identity: WeightsIdentity("test".into()),
            files: BTreeMap::new(),
            model_file: "model.onnx".into(),
            origin: "a model of the tests".into(),
        }
    }

    /// The graph as an ONNX file with these outputs, which holds its weights.
    pub fn file(&mut self, outputs: &[(&str, Vec<Dim>)]) -> Vec<u8> {
        let mut graph = self.graph.clone();
        for (name, dims) in outputs {
            GraphBuilder::new(&mut graph, "outputs.").output(name, DType::F32, dims);
        }
        let weights = self.weights.iter();
        graph
            .initializer
            .extend(weights.map(|(name, shape, values)| {
                TensorProto {
                    name: name.clone(),
                    data_type: DataType::Float as i32,
                    dims: shape.iter().map(|&extent| extent as i64).collect(),
                    raw_data: values
                        .iter()
                        .flat_map(|value| value.to_le_bytes())
                        .collect::<Vec<_>>()
                        .into(),
                    ..TensorProto::default()
                }
            }));
        self.model(graph).encode_to_vec()
    }

    fn model(&self, graph: GraphProto) -> ModelProto {
        ModelProto {
            ir_version: 8,
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: self.opset,
            }],
            graph: Some(graph),
            ..ModelProto::default()
        }
    }

    /// One of its values for a picture, at f64.
    pub fn exact(&self, value: &str, picture: &[f32]) -> Vec<f64> {
        let mut values = BTreeMap::new();
        let shape = [&[1], &self.picture[..]].concat();
        values.insert("x".to_owned(), Array::of(&shape, picture));
        for (name, shape, weight) in &self.weights {
            values.insert(name.clone(), Array::of(shape, weight));
        }
        evaluate(&self.graph, &mut values);
        values[value].values.clone()
    }

    /// Pictures of a seed.
    pub fn pictures(&self, seed: u64, count: usize) -> Vec<f32> {
        let mut rng = Rng::new(seed);
        let len: usize = self.picture.iter().product();
        (0..count * len).map(|_| rng.normal() as f32).collect()
    }

    /// Pictures as engines take them.
    pub fn batch(&self, pictures: &[f32]) -> Batch {
        let len: usize = self.picture.iter().product();
        let mut shape = vec![pictures.len() / len];
        shape.extend(self.picture);
        Batch {
            inputs: vec![NamedTensor::new(
                "x",
                Tensor::from_slice(&shape, pictures).expect("whole pictures"),
            )],
            ..Batch::default()
        }
    }
}

/// Squeeze and excite (<https://arxiv.org/abs/1709.01507>), with SiLU and a sigmoid.
fn squeeze(net: &mut Net, x: &str, channels: usize, inner: usize) -> String {
    let mut y = net.node("GlobalAveragePool", &[x], vec![]);
    y = net.conv(&y, [inner, channels, 1, 1], true, vec![]);
    y = net.silu(&y);
    y = net.conv(&y, [channels, inner, 1, 1], true, vec![]);
    y = net.node("Sigmoid", &[&y], vec![]);
    net.node("Mul", &[x, &y], vec![])
}

/// The mean of all pixels, and 1000 classes.
fn classes(net: &mut Net, x: &str, channels: usize) -> String {
    let x = net.node("GlobalAveragePool", &[x], vec![]);
    let x = net.node("Flatten", &[&x], vec![int("axis", 1)]);
    net.classifier(&x, (1000, channels))
}

/// ResNet-50 (<https://arxiv.org/abs/1512.03385>), the strides in the kernels of 3 x 3 as torchvision has it; the net and its
/// output.
pub fn resnet_50() -> (Net, String) {
    let mut net = Net::new(50, [3, 224, 224]);
    let mut x = net.square("x", (64, 3), 7, 2, 1);
    x = net.norm(&x, 64);
    x = net.relu(&x);
    let pool = vec![
        ints("kernel_shape", &[3, 3]),
        ints("strides", &[2, 2]),
        ints("pads", &[1; 4]),
    ];
    x = net.node("MaxPool", &[&x], pool);
    let mut channels = 64;
    for (stage, blocks) in [3, 4, 6, 3].into_iter().enumerate() {
        let inner = 64 << stage;
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            x = bottleneck(&mut net, &x, channels, inner, stride);
            channels = 4 * inner;
        }
    }
    let x = classes(&mut net, &x, channels);
    (net, x)
}

/// A bottleneck (<https://arxiv.org/abs/1512.03385>), its stride in the middle as torchvision has it.
pub fn bottleneck(net: &mut Net, x: &str, inputs: usize, inner: usize, stride: i64) -> String {
    let outputs = inner * 4;
    let mut y = x.to_owned();
    for (shape, side, stride) in [((inner, inputs), 1, 1), ((inner, inner), 3, stride)] {
        y = net.square(&y, shape, side, stride, 1);
        y = net.norm(&y, inner);
        y = net.relu(&y);
    }
    y = net.square(&y, (outputs, inner), 1, 1, 1);
    y = net.norm(&y, outputs);
    let mut beside = x.to_owned();
    if stride != 1 || inputs != outputs {
        beside = net.square(x, (outputs, inputs), 1, stride, 1);
        beside = net.norm(&beside, outputs);
    }
    let sum = net.node("Add", &[&y, &beside], vec![]);
    net.relu(&sum)
}

/// MobileNetV2 (<https://arxiv.org/abs/1801.04381>); the net and its output.
pub fn mobilenet_v2() -> (Net, String) {
    let mut net = Net::new(2, [3, 224, 224]);
    let mut x = net.square("x", (32, 3), 3, 2, 1);
    x = net.norm(&x, 32);
    x = net.relu6(&x);
    let mut channels = 32;
    for (factor, outputs, blocks, first) in [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ] {
        for block in 0..blocks {
            let stride = if block == 0 { first } else { 1 };
            x = inverted(&mut net, &x, channels, channels * factor, outputs, stride);
            channels = outputs;
        }
    }
    x = net.square(&x, (1280, channels), 1, 1, 1);
    x = net.norm(&x, 1280);
    x = net.relu6(&x);
    let x = classes(&mut net, &x, 1280);
    (net, x)
}

/// An inverted residual (<https://arxiv.org/abs/1801.04381>).
pub fn inverted(
    net: &mut Net,
    x: &str,
    inputs: usize,
    inner: usize,
    outputs: usize,
    stride: i64,
) -> String {
    let mut y = x.to_owned();
    if inner != inputs {
        y = net.square(&y, (inner, inputs), 1, 1, 1);
        y = net.norm(&y, inner);
        y = net.relu6(&y);
    }
    y = net.square(&y, (inner, inner), 3, stride, inner);
    y = net.norm(&y, inner);
    y = net.relu6(&y);
    y = net.square(&y, (outputs, inner), 1, 1, 1);
    y = net.norm(&y, outputs);
    match stride == 1 && inputs == outputs {
        true => net.node("Add", &[x, &y], vec![]),
        false => y,
    }
}

/// EfficientNet-B0 (<https://arxiv.org/abs/1905.11946>); the net and its output.
pub fn efficientnet_b0() -> (Net, String) {
    let mut net = Net::new(3, [3, 224, 224]);
    let mut x = net.square("x", (32, 3), 3, 2, 1);
    x = net.norm(&x, 32);
    x = net.silu(&x);
    let mut channels = 32;
    for (factor, side, outputs, blocks, first) in [
        (1, 3, 16, 1, 1),
        (6, 3, 24, 2, 2),
        (6, 5, 40, 2, 2),
        (6, 3, 80, 3, 2),
        (6, 5, 112, 3, 1),
        (6, 5, 192, 4, 2),
        (6, 3, 320, 1, 1),
    ] {
        for block in 0..blocks {
            let (stride, inner) = (if block == 0 { first } else { 1 }, channels * factor);
            let before = x.clone();
            if factor != 1 {
                x = net.square(&x, (inner, channels), 1, 1, 1);
                x = net.norm(&x, inner);
                x = net.silu(&x);
            }
            x = net.square(&x, (inner, inner), side, stride, inner);
            x = net.norm(&x, inner);
            x = net.silu(&x);
            x = squeeze(&mut net, &x, inner, channels / 4);
            x = net.square(&x, (outputs, inner), 1, 1, 1);
            x = net.norm(&x, outputs);
            if stride == 1 && channels == outputs {
                x = net.node("Add", &[&x, &before], vec![]);
            }
            channels = outputs;
        }
    }
    x = net.square(&x, (1280, channels), 1, 1, 1);
    x = net.norm(&x, 1280);
    x = net.silu(&x);
    let x = classes(&mut net, &x, 1280);
    (net, x)
}
