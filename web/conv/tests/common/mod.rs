//! Graphs with seeded weights, and their runs.
#![allow(dead_code, reason = "every test file uses some of it")]

pub(crate) mod reference;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use isovec_conv::{CompileError, Executable, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::engine::Batch;
use isovec_engine::onnx::proto::{
    AttributeProto, DataType, GraphProto, ModelProto, OperatorSetIdProto, TensorProto,
};
use isovec_engine::pause::NoTurns;
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::weights::{BytesWeights, WeightInfo, WeightsIdentity};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::{OneThread, Pool};
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{float, int, ints};
use isovec_test_models::rng::Rng;
use reference::Array;

/// Bytes from which on a tensor is stored beside the graph, as `isovec-model` does it.
const BESIDE: usize = 1024;

/// A graph that grows, with seeded weights. Its input is `x`.
pub(crate) struct Net {
    graph: GraphProto,
    weights: Vec<(String, Vec<usize>, Vec<f32>)>,
    rng: Rng,
    /// The extents of the picture.
    pub(crate) picture: [usize; 3],
    pub(crate) opset: i64,
}

impl Net {
    pub(crate) fn new(seed: u64, picture: [usize; 3]) -> Self {
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

    pub(crate) fn graph(&mut self) -> &mut GraphProto {
        &mut self.graph
    }

    pub(crate) fn node(
        &mut self,
        op: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
    ) -> String {
        self.builder().node(op, inputs, attributes)
    }

    pub(crate) fn ints(&mut self, values: &[i64]) -> String {
        self.builder().ints(values)
    }

    pub(crate) fn int(&mut self, value: i64) -> String {
        self.builder().i64s(&[], &[value])
    }

    pub(crate) fn number(&mut self, value: f32) -> String {
        self.builder().f32(value)
    }

    /// A weight of numbers around a mean.
    pub(crate) fn weight(&mut self, shape: &[usize], mean: f64, deviation: f64) -> String {
        let name = format!("w{}", self.weights.len());
        let count = shape.iter().product();
        let values = (0..count).map(|_| (mean + deviation * self.rng.normal()) as f32);
        let values = values.collect();
        self.weights.push((name.clone(), shape.to_vec(), values));
        name
    }

    /// A convolution of `[outputs, inputs of a group, rows, columns]`, with a bias where `bias`.
    pub(crate) fn conv(
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
    pub(crate) fn square(
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

    pub(crate) fn norm(&mut self, x: &str, channels: usize) -> String {
        let scale = self.weight(&[channels], 1.0, 0.1);
        let shift = self.weight(&[channels], 0.0, 0.2);
        let mean = self.weight(&[channels], 0.0, 0.2);
        let variance = self.weight(&[channels], 1.0, 0.05);
        let inputs = [x, &scale, &shift, &mean, &variance];
        self.node("BatchNormalization", &inputs, vec![float("epsilon", 1e-3)])
    }

    pub(crate) fn relu(&mut self, x: &str) -> String {
        self.node("Relu", &[x], vec![])
    }

    /// A product with a matrix and a bias, as a classifier has it.
    pub(crate) fn classifier(&mut self, x: &str, (outputs, inputs): (usize, usize)) -> String {
        let weight = self.weight(&[outputs, inputs], 0.0, (1.0 / inputs as f64).sqrt());
        let bias = self.weight(&[outputs], 0.0, 0.2);
        self.node("Gemm", &[x, &weight, &bias], vec![int("transB", 1)])
    }

    /// The graph as a model with these outputs.
    pub(crate) fn bundle(&mut self, outputs: &[&str]) -> ModelBundle {
        let mut graph = self.graph.clone();
        for output in outputs {
            // Shapes of outputs say nothing that is needed.
            GraphBuilder::new(&mut graph, "outputs.").output(output, DType::F32, &[]);
            let last = graph.output.last_mut().unwrap();
            last.r#type = None;
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
                    raw_data: Bytes::from(bytes),
                    ..TensorProto::default()
                });
                continue;
            }
            let info = WeightInfo {
                name: name.clone(),
                dtype: DType::F32,
                shape: shape.clone(),
            };
            beside.push(info, Bytes::from(bytes)).unwrap();
        }
        ModelBundle {
            graph: ModelProto {
                ir_version: 8,
                opset_import: vec![OperatorSetIdProto {
                    domain: String::new(),
                    version: self.opset,
                }],
                graph: Some(graph),
                ..ModelProto::default()
            },
            weights: Arc::new(beside),
            identity: WeightsIdentity("test".into()),
            files: BTreeMap::new(),
            model_file: "model.onnx".into(),
            origin: "a model of the tests".into(),
        }
    }

    /// Pictures of a seed.
    pub(crate) fn pictures(&self, seed: u64, count: usize) -> Vec<f32> {
        let mut rng = Rng::new(seed);
        let len: usize = self.picture.iter().product();
        (0..count * len).map(|_| rng.normal() as f32).collect()
    }

    /// What the graph says of pictures, in double precision.
    pub(crate) fn exact(&self, outputs: &[&str], pictures: &[f32]) -> Vec<Array> {
        let len: usize = self.picture.iter().product();
        let mut shape = vec![pictures.len() / len];
        shape.extend(self.picture);
        let mut values = BTreeMap::new();
        values.insert("x".to_owned(), Array::of(&shape, pictures));
        for (name, shape, weight) in &self.weights {
            values.insert(name.clone(), Array::of(shape, weight));
        }
        reference::evaluate(&self.graph, &mut values);
        outputs
            .iter()
            .map(|output| values[*output].clone())
            .collect()
    }

    /// Compiles it.
    pub(crate) fn compile(&mut self, outputs: &[&str]) -> Result<Arc<Executable>, CompileError> {
        let bundle = self.bundle(outputs);
        let (cancel, mut turns) = (Cancel::new(), NoTurns);
        let compiled = Executable::compile(&bundle, Arithmetic::Fast, &cancel, &mut turns);
        pollster::block_on(compiled).map(Arc::new)
    }

    /// Runs pictures one by one, together, in slices and on two threads, which give the same bits, and compares them with the
    /// graph in double precision. Tells the program's operators.
    pub(crate) fn check(&mut self, outputs: &[&str]) -> Vec<&'static str> {
        let executable = self.compile(outputs).unwrap();
        let len: usize = self.picture.iter().product();
        let pictures = self.pictures(7, 3);
        let together = run(&executable, &self.batch(&pictures), None, &OneThread);
        for (number, exact) in self.exact(outputs, &pictures).into_iter().enumerate() {
            let (name, shape, got) = &together[number];
            assert_eq!((&**name, &shape[..]), (outputs[number], &exact.shape[..]));
            let scale = exact
                .values
                .iter()
                .fold(0.0_f64, |most, x| most.max(x.abs()));
            for (at, (got, exact)) in got.iter().zip(&exact.values).enumerate() {
                let error = (f64::from(*got) - exact).abs() / scale;
                assert!(
                    error <= 1e-6,
                    "{name}: value {at} is {got}, exactly {exact}: {error:e}"
                );
            }
        }
        let mut alone: Vec<Vec<f32>> = vec![Vec::new(); outputs.len()];
        for picture in pictures.chunks(len) {
            let own = run(&executable, &self.batch(picture), None, &OneThread);
            for (all, (_, _, values)) in alone.iter_mut().zip(own) {
                all.extend(values);
            }
        }
        let sliced = run(&executable, &self.batch(&pictures), Some(1000), &OneThread);
        let threads = run(&executable, &self.batch(&pictures), None, &Two);
        for (number, (name, _, values)) in together.iter().enumerate() {
            assert_eq!(bits(values), bits(&alone[number]), "{name}, alone");
            assert_eq!(bits(values), bits(&sliced[number].2), "{name}, in slices");
            assert_eq!(
                bits(values),
                bits(&threads[number].2),
                "{name}, on two threads"
            );
        }
        executable.operators()
    }

    pub(crate) fn batch(&self, pictures: &[f32]) -> Batch {
        let len: usize = self.picture.iter().product();
        let mut shape = vec![pictures.len() / len];
        shape.extend(self.picture);
        Batch {
            inputs: vec![NamedTensor::new(
                "x",
                Tensor::from_slice(&shape, pictures).unwrap(),
            )],
            ..Batch::default()
        }
    }
}

/// The outputs of a run: name, shape, values.
pub(crate) fn run(
    executable: &Arc<Executable>,
    batch: &Batch,
    budget: Option<u64>,
    pool: &dyn Pool,
) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let mut run = Run::new(Arc::clone(executable), batch).unwrap();
    while run.step(batch, budget, pool).unwrap().is_some() {}
    let pictures = run.pictures();
    let outputs = run.finish().into_iter().map(|(name, extents, values)| {
        let shape = [pictures].into_iter().chain(extents).collect();
        (name, shape, values)
    });
    outputs.collect()
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Two threads.
pub(crate) struct Two;

impl Pool for Two {
    fn threads(&self) -> usize {
        2
    }

    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            scope.spawn(|| (0..jobs).step_by(2).for_each(job));
            (1..jobs).step_by(2).for_each(job);
        });
    }
}
