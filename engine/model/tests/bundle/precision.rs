//! Weights stored in f16 and int8, and widened again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::error::EngineError;
use isovec_engine::fingerprint::Precision;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::onnx::proto::{DataType, GraphProto, ModelProto, NodeProto, TensorProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::{WeightInfo, WeightSource, Weights};
use isovec_model::onnx::builder::int;
use isovec_model::onnx::{GraphBuilder, write_model};
use isovec_model::precision::{NARROWED_KEY, Narrowed, widened};

use super::support::{assert_error, batch, encode, floats, graph, load, model, node, weights};

/// A tensor of these values.
fn tensor(name: &str, dims: &[i64], values: impl Iterator<Item = f32>) -> TensorProto {
    let raw: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    TensorProto {
        raw_data: raw.into(),
        ..floats(name, dims)
    }
}

/// Values like those of a trained matrix: a bell of sorts around 0, the same every time.
fn noise(count: usize) -> impl Iterator<Item = f32> {
    let mut state = 1u64;
    (0..count).map(move |_| {
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 24) as f32 - 0.5
        };
        (next() + next() + next() + next()) * 0.05
    })
}

fn with(op: NodeProto, attribute: (&str, i64)) -> NodeProto {
    NodeProto {
        attribute: vec![int(attribute.0, attribute.1)],
        ..op
    }
}

/// Every way in which a weight is read, and some that int8 is not for.
fn every_use() -> ModelProto {
    let mut graph = GraphProto::default();
    let matrix =
        |name: &str, dims: [i64; 2]| tensor(name, &dims, noise((dims[0] * dims[1]) as usize));
    let mut outliers = noise(64 * 32).collect::<Vec<_>>();
    outliers
        .iter_mut()
        .step_by(32 * 8 + 1)
        .for_each(|w| *w = 60.0);
    let mut wide = noise(64 * 32).collect::<Vec<_>>();
    wide[5] = 1e6;
    graph.initializer = vec![
        matrix("table", [300, 64]),
        matrix("positions", [32, 64]),
        matrix("product", [64, 32]),
        matrix("gemm", [64, 32]),
        matrix("turned", [32, 64]),
        tensor("outliers", &[64, 32], outliers.into_iter()),
        tensor("wide", &[64, 32], wide.into_iter()),
        tensor("counts", &[1, 2050], (0..2050).map(|n| n as f32)),
        matrix("little", [4, 8]),
    ];
    graph.node = vec![
        with(node("Gather", &["table", "ids"], "x"), ("axis", 0)),
        node("Add", &["x", "positions"], "y"),
        node("MatMul", &["y", "product"], "a"),
        node("Gemm", &["y", "gemm"], "b"),
        with(node("Gemm", &["y", "turned"], "c"), ("transB", 1)),
        node("MatMul", &["y", "outliers"], "d"),
        node("MatMul", &["y", "wide"], "e"),
        node("Sum", &["a", "b", "c", "d", "e", "counts", "little"], "out"),
    ];
    declared(graph, "ids", DType::I64, "out")
}

/// The model of a graph with this input and output.
fn declared(mut graph: GraphProto, input: &str, dtype: DType, output: &str) -> ModelProto {
    let mut builder = GraphBuilder::new(&mut graph, "test.");
    builder.input(input, dtype, &[batch()]);
    builder.output(output, DType::F32, &[batch(), Dim::Fixed(32)]);
    model(graph)
}

fn narrowed(bundle: &ModelBundle, to: Precision) -> Narrowed {
    pollster::block_on(isovec_model::precision::narrowed(
        bundle,
        to,
        &Cancel::new(),
    ))
    .unwrap()
}

fn stored(narrowed: &Narrowed) -> BTreeMap<&str, Precision> {
    let weights = narrowed.weights.iter();
    weights
        .map(|weight| (weight.name.as_str(), weight.stored))
        .collect()
}

fn f32s(data: &[u8]) -> Vec<f32> {
    let (values, _) = data.as_chunks::<4>();
    values
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect()
}

#[test]
fn what_is_read_decides_how_it_is_stored() {
    let bundle = load(encode(&every_use())).unwrap();
    let int8 = narrowed(&bundle, Precision::Int8);
    assert_eq!(
        stored(&int8),
        BTreeMap::from([
            ("table", Precision::Int8),
            // Added, not multiplied.
            ("positions", Precision::F16),
            ("product", Precision::Int8),
            ("gemm", Precision::Int8),
            ("turned", Precision::Int8),
            // Single values hide the others of their column.
            ("outliers", Precision::F16),
            // And one is past the range of f16.
            ("wide", Precision::F32),
        ])
    );
    let axis = |name: &str| {
        let graph = int8.bundle.graph.graph.as_ref().unwrap();
        let mut nodes = graph.node.iter();
        let found = nodes.find(|node| node.output == [name]).unwrap();
        assert_eq!(found.op_type, "DequantizeLinear");
        found.attribute[0].i
    };
    assert_eq!(
        ["table", "product", "gemm", "turned"].map(axis),
        [0, 1, 1, 0]
    );

    let f16 = narrowed(&bundle, Precision::F16);
    let halves = stored(&f16)
        .into_values()
        .filter(|&to| to == Precision::F16);
    assert_eq!(halves.count(), 6);
    // Which has the range of f32.
    let bf16 = narrowed(&bundle, Precision::Bf16);
    assert!(stored(&bf16).into_values().all(|to| to == Precision::Bf16));
    let f32 = narrowed(&bundle, Precision::F32);
    assert_eq!(f32.bundle.graph, bundle.graph);
}

#[test]
fn widened_weights_are_the_original_ones_within_their_precision() {
    let bundle = load(encode(&every_use())).unwrap();
    let original = weights(&bundle);
    for precision in [Precision::F16, Precision::Bf16, Precision::Int8] {
        let narrowed = narrowed(&bundle, precision);
        let small = weights(&narrowed.bundle);
        let back = widened(&narrowed.bundle);
        assert_eq!(
            back.graph.graph, bundle.graph.graph,
            "nothing is left of it"
        );
        let back = weights(&back);
        assert_eq!(
            back.keys().collect::<Vec<_>>(),
            original.keys().collect::<Vec<_>>()
        );
        for weight in &narrowed.weights {
            let (dtype, shape, data) = &original[&weight.name];
            let (_, _, wide) = &back[&weight.name];
            assert_eq!(
                (&back[&weight.name].0, &back[&weight.name].1),
                (dtype, shape)
            );
            let (values, wide) = (f32s(data), f32s(wide));
            // Half a step of every value.
            let allowed: Vec<f32> = match weight.stored {
                Precision::F32 => vec![0.0; values.len()],
                Precision::F16 => {
                    // 2^-11 of the value, or of the smallest normal number.
                    let halves = values.iter().map(|value| value.abs().max(6.2e-5) / 2048.0);
                    halves.collect()
                }
                // 2^-8 of the value.
                Precision::Bf16 => values.iter().map(|value| value.abs() / 256.0).collect(),
                _ => {
                    let scales = f32s(&scales(&narrowed.bundle, &small, &weight.name));
                    let by_row = scales.len() == shape[0];
                    let channel = |at: usize| if by_row { at / shape[1] } else { at % shape[1] };
                    (0..values.len())
                        .map(|at| scales[channel(at)] * 0.50001)
                        .collect()
                }
            };
            for (at, ((value, wide), allowed)) in values.iter().zip(&wide).zip(allowed).enumerate()
            {
                let off = (value - wide).abs();
                assert!(
                    off <= allowed,
                    "{precision} {} {at}: {off:e} past {allowed:e}",
                    weight.name
                );
            }
        }
    }
}

/// The scales of a weight, from the weights or the graph.
fn scales(
    bundle: &ModelBundle,
    weights: &BTreeMap<String, (DType, Vec<usize>, Bytes)>,
    name: &str,
) -> Bytes {
    let name = format!("{name}.scale");
    if let Some((dtype, _, data)) = weights.get(&name) {
        assert_eq!(*dtype, DType::F32);
        return data.clone();
    }
    let graph = bundle.graph.graph.as_ref().unwrap();
    let mut tensors = graph.initializer.iter();
    tensors
        .find(|tensor| tensor.name == name)
        .unwrap()
        .raw_data
        .clone()
}

#[test]
fn a_small_model_is_written_and_read_as_the_same_model() {
    let bundle = load(encode(&every_use())).unwrap();
    let whole = pollster::block_on(write_model(&bundle)).unwrap().len();
    for (precision, share) in [
        (Precision::F16, 0.65),
        (Precision::Bf16, 0.55),
        (Precision::Int8, 0.5),
    ] {
        let small = narrowed(&bundle, precision).bundle;
        assert_eq!(small.identity, bundle.identity);
        let file = pollster::block_on(write_model(&small)).unwrap();
        let again = narrowed(&bundle, precision).bundle;
        assert!(file == pollster::block_on(write_model(&again)).unwrap());
        assert!(
            (file.len() as f64) < whole as f64 * share,
            "{} of {whole}",
            file.len()
        );

        let back = load(file.clone()).unwrap();
        assert_eq!(back.identity, bundle.identity);
        assert_eq!(weights(&widened(&back)), weights(&widened(&small)));
        let mut entries = back.graph.metadata_props.iter();
        let entry = entries.find(|entry| entry.key == NARROWED_KEY).unwrap();
        assert!(entry.value.starts_with(&precision.to_string()), "{entry:?}");
        // What is small already has nothing left to store smaller.
        let twice = narrowed(&back, precision).bundle;
        assert!(file == pollster::block_on(write_model(&twice)).unwrap());

        let mut damaged = file;
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        assert_error(load(damaged), "InvalidModel", &["damaged"]);
    }
}

#[test]
fn int8_and_bf16_need_an_operator_set_that_has_them() {
    let mut old = every_use();
    old.opset_import[0].version = 12;
    let bundle = load(encode(&old)).unwrap();
    for to in [Precision::Int8, Precision::Bf16] {
        let cancel = Cancel::new();
        let made = pollster::block_on(isovec_model::precision::narrowed(&bundle, to, &cancel));
        let said = ["operator set 12", &to.to_string(), "13", "f16"];
        assert_error(made, "UnsupportedModel", &said);
    }
    assert!(!narrowed(&bundle, Precision::F16).weights.is_empty());
}

#[test]
fn a_name_that_is_taken_is_not_taken_twice() {
    let mut taken = every_use();
    graph(&mut taken)
        .node
        .push(node("Identity", &["x"], "table.int8"));
    graph(&mut taken)
        .node
        .push(node("Identity", &["x"], "table.scale"));
    let bundle = narrowed(&load(encode(&taken)).unwrap(), Precision::Int8).bundle;
    load(pollster::block_on(write_model(&bundle)).unwrap()).unwrap();
}

#[test]
fn small_weights_of_other_programs_are_widened() {
    let ints = |name: &str, data_type: DataType, dims: &[i64], data: Vec<u8>| TensorProto {
        name: name.into(),
        data_type: data_type as i32,
        dims: dims.to_vec(),
        raw_data: data.into(),
        ..TensorProto::default()
    };
    let of = |zero: &[u8], scale: &[f32], dims: &[i64], last: (&str, i64)| {
        let mut graph = GraphProto::default();
        let values = (0..2048).map(|at| (at % 251) as u8).collect();
        graph.initializer = vec![
            ints("ints", DataType::Uint8, &[64, 32], values),
            ints("zero", DataType::Uint8, dims, zero.to_vec()),
            tensor("scale", dims, scale.iter().copied()),
        ];
        graph.node = vec![
            with(
                node("DequantizeLinear", &["ints", "scale", "zero"], "w"),
                last,
            ),
            node("MatMul", &["x", "w"], "y"),
        ];
        load(encode(&declared(graph, "x", DType::F32, "y"))).unwrap()
    };
    let one = widened(&of(&[128], &[0.5], &[], ("axis", 1)));
    let (dtype, shape, data) = &weights(&one)["w"];
    assert_eq!((*dtype, shape.as_slice()), (DType::F32, &[64, 32][..]));
    assert_eq!(f32s(data)[..3], [-64.0, -63.5, -63.0]);

    let zeros: Vec<u8> = (0..32).collect();
    let each: Vec<f32> = (0..32).map(|at| at as f32).collect();
    let by_column = widened(&of(&zeros, &each, &[32], ("axis", -1)));
    let (_, _, data) = &weights(&by_column)["w"];
    // Row 1 begins at 32: 32 - 0, times 0; 33 - 1, times 1.
    assert_eq!(f32s(data)[32..35], [0.0, 32.0, 64.0]);

    // Scales along the other axis would have to be 64; blocks are not understood.
    for left in [
        of(&zeros, &each, &[32], ("axis", 0)),
        of(&zeros, &each, &[32], ("block_size", 2)),
    ] {
        assert_eq!(widened(&left).graph, left.graph);
    }
    // With quantised activations a runtime has integer kernels.
    let mut both = of(&[128], &[0.5], &[], ("axis", 1));
    graph(&mut both.graph)
        .node
        .push(node("QuantizeLinear", &["y", "scale"], "q"));
    assert_eq!(widened(&both).graph, both.graph);
}

/// Hands out bytes that count how many of them are held.
#[derive(Debug)]
struct Counted {
    inner: Weights,
    held: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

struct Held(Bytes, Arc<AtomicUsize>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

impl WeightSource for Counted {
    fn weights(&self) -> &[WeightInfo] {
        self.inner.weights()
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        Box::pin(async move {
            let data = self.inner.read(index).await?;
            let held = self.held.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(held, Ordering::SeqCst);
            Ok(Bytes::from_owner(Held(data, Arc::clone(&self.held))))
        })
    }
}

#[test]
fn one_weight_is_in_memory_at_a_time() {
    let mut bundle = load(encode(&every_use())).unwrap();
    let (held, most) = (Arc::default(), Arc::default());
    bundle.weights = Arc::new(Counted {
        inner: bundle.weights.clone(),
        held: Arc::clone(&held),
        most: Arc::clone(&most),
    });
    for precision in [Precision::F16, Precision::Bf16, Precision::Int8] {
        let small = narrowed(&bundle, precision).bundle;
        assert_eq!(held.load(Ordering::SeqCst), 0, "{precision}");
        pollster::block_on(write_model(&small)).unwrap();
        assert_eq!(held.load(Ordering::SeqCst), 0, "{precision}");
        assert_eq!(most.load(Ordering::SeqCst), 1, "{precision}");
    }
}

#[test]
fn narrowing_stops_when_it_is_cancelled() {
    let bundle = load(encode(&every_use())).unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    let stopped = pollster::block_on(isovec_model::precision::narrowed(
        &bundle,
        Precision::Int8,
        &cancel,
    ));
    assert!(matches!(stopped, Err(EngineError::Cancelled)));
}
