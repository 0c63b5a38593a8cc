//! `isovec_optimize::convolutions` on small graphs: what it takes, what it leaves, and what it refuses.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::onnx::proto::{AttributeProto, DataType, GraphProto, NodeProto};
use isovec_engine::tensor::DType;
use isovec_model::onnx::builder::{int, ints};
use isovec_model::onnx::write_model;
use isovec_optimize::OptimizeError;
use isovec_optimize::convolutions::{Convolutions, Ranges, quantise};
use isovec_optimize::int8::WeightBits;
use isovec_optimize::int8::{LEAST_SQNR, Product};
use isovec_test_models::convolutions::{Net, bottleneck, inverted};
use isovec_test_models::rng::Rng;

const PICTURE: [usize; 3] = [3, 8, 8];

/// As if the probe had run: seeded values for every name, those of `large` a hundred times as large.
fn seen(layers: &Convolutions, large: &[&str]) -> Ranges {
    let mut rng = Rng::new(3);
    // Divisible by every number of channels.
    let values: Vec<f32> = (0..1920).map(|_| rng.normal() as f32).collect();
    let many: Vec<f32> = values.iter().map(|value| value * 100.0).collect();
    let mut ranges = Ranges::new(layers);
    let of = |name: &str| {
        Some(if large.contains(&name) {
            &many[..]
        } else {
            &values
        })
    };
    ranges.add(of).unwrap();
    ranges
}

fn quantised(
    bundle: &ModelBundle,
    ranges: &Ranges,
    kept: &[&str],
) -> Result<(ModelBundle, Vec<Product>), OptimizeError> {
    with_bits(bundle, ranges, kept, WeightBits::Eight)
}

fn with_bits(
    bundle: &ModelBundle,
    ranges: &Ranges,
    kept: &[&str],
    bits: WeightBits,
) -> Result<(ModelBundle, Vec<Product>), OptimizeError> {
    let kept: BTreeSet<String> = kept.iter().map(ToString::to_string).collect();
    let layers = Convolutions::of(bundle).unwrap();
    pollster::block_on(quantise(
        bundle,
        &layers,
        ranges,
        &kept,
        bits,
        &Cancel::new(),
    ))
}

/// The operators of a graph, but for those that make numbers of whole numbers.
fn operators(bundle: &ModelBundle) -> Vec<&str> {
    let nodes = bundle.graph.graph.as_ref().unwrap().node.iter();
    let names = nodes.map(|node| node.op_type.as_str());
    names.filter(|name| *name != "DequantizeLinear").collect()
}

fn plain(outputs: usize, inputs: usize) -> [usize; 4] {
    [outputs, inputs, 1, 1]
}

#[test]
fn what_stands_between_layers_is_in_8_bits_and_norms_become_a_part_of_them() {
    let mut net = Net::new(1, PICTURE);
    let mut x = net.square("x", (8, 3), 3, 1, 1);
    x = net.norm(&x, 8);
    x = net.relu6(&x);
    x = inverted(&mut net, &x, 8, 16, 8, 1);
    x = bottleneck(&mut net, &x, 8, 4, 2);
    x = net.node("GlobalAveragePool", &[&x], vec![]);
    x = net.node("Flatten", &[&x], vec![int("axis", 1)]);
    let y = net.classifier(&x, (5, 16));
    let bundle = net.bundle(&[&y]);
    let layers = Convolutions::of(&bundle).unwrap();
    assert!(layers.any());
    let ranges = seen(&layers, &[]);
    let seven = with_bits(&bundle, &ranges, &[], WeightBits::Seven)
        .unwrap()
        .0;
    for (index, info) in seven.weights.weights().iter().enumerate() {
        if info.dtype == DType::I8 {
            let bytes = pollster::block_on(seven.weights.read(index)).unwrap();
            let largest = bytes.iter().map(|&byte| (byte as i8).abs()).max();
            assert_eq!(largest, Some(63), "{info:?}");
        }
    }
    let (made, told) = quantised(&bundle, &ranges, &[]).unwrap();
    assert!(
        told.iter()
            .all(|layer| layer.int8 && layer.reason.is_empty()),
        "{told:?}"
    );
    assert_eq!(told.len(), 9);
    // Every value is rounded once, behind its activation, and the last product is in f32.
    let wanted = [
        "QuantizeLinear",
        "Conv",
        "Clip",
        "QuantizeLinear",
        "Conv",
        "Clip",
        "QuantizeLinear",
        "Conv",
        "Clip",
        "QuantizeLinear",
        "Conv",
        "QuantizeLinear",
        "Add",
        "QuantizeLinear",
        "Conv",
        "Relu",
        "QuantizeLinear",
        "Conv",
        "Relu",
        "QuantizeLinear",
        "Conv",
        "QuantizeLinear",
        "Conv",
        "QuantizeLinear",
        "Add",
        "Relu",
        "QuantizeLinear",
        "GlobalAveragePool",
        "QuantizeLinear",
        "Flatten",
        "QuantizeLinear",
        "Gemm",
    ];
    assert_eq!(operators(&made), wanted);
    let infos = made.weights.weights();
    assert!(
        !infos
            .iter()
            .any(|info| info.dtype == DType::F32 && info.shape.len() > 1),
        "{infos:?}"
    );
    assert_ne!(made.identity, bundle.identity);
    // What is moved keeps its scale.
    let graph = made.graph.graph.as_ref().unwrap();
    let value = |name: &str| {
        let tensor = graph
            .initializer
            .iter()
            .find(|tensor| tensor.name == name)
            .unwrap();
        tensor.raw_data.clone()
    };
    let scales: Vec<_> = graph
        .node
        .iter()
        .filter(|node| node.op_type == "QuantizeLinear")
        .map(|node| value(&node.input[1]))
        .collect();
    assert_eq!(scales[scales.len() - 1], scales[scales.len() - 2]);
    // The same again: the same bytes. Of other values: others.
    let bytes = |bundle: &ModelBundle| pollster::block_on(write_model(bundle)).unwrap();
    let again = quantised(&bundle, &ranges, &[]).unwrap().0;
    assert_eq!(bytes(&made), bytes(&again));
    let other = quantised(&bundle, &seen(&layers, &["x"]), &[]).unwrap().0;
    assert_ne!(other.identity, made.identity);
    let error = Convolutions::of(&made).unwrap_err().to_string();
    assert!(error.contains("quantised already"), "{error}");
}

#[test]
fn sigmoids_and_products_between_layers_are_in_8_bits_and_what_leads_to_outputs_alone_is_not() {
    let mut net = Net::new(2, PICTURE);
    let x = net.conv("x", plain(8, 3), true, vec![]);
    let gated = net.silu(&x);
    let y = net.conv(&gated, plain(8, 8), false, vec![]);
    let sum = net.node("Add", &[&gated, &y], vec![]);
    // ONNX Runtime has no such function of whole numbers.
    let hard = net.node("HardSwish", &[&y], vec![]);
    let z = net.conv(&hard, plain(8, 8), true, vec![]);
    let bundle = net.bundle(&[&sum, &z]);
    let layers = Convolutions::of(&bundle).unwrap();
    let made = quantised(&bundle, &seen(&layers, &[]), &[]).unwrap().0;
    let wanted = [
        "QuantizeLinear",
        "Conv",
        "QuantizeLinear",
        "Sigmoid",
        "QuantizeLinear",
        "Mul",
        "QuantizeLinear",
        "Conv",
        "QuantizeLinear",
        "Add",
        "HardSwish",
        "QuantizeLinear",
        "Conv",
        "QuantizeLinear",
    ];
    assert_eq!(operators(&made), wanted);
    // Outputs have their names, and are in f32.
    let graph = made.graph.graph.as_ref().unwrap();
    let maker = |name: &str| {
        let mut nodes = graph.node.iter();
        nodes
            .find(|node| node.output[0] == name)
            .unwrap()
            .op_type
            .as_str()
    };
    assert_eq!((maker(&sum), maker(&z)), ("Add", "DequantizeLinear"));
    // Nodes in f32 read what the layers gave, which is in 8 bits.
    let reads: BTreeMap<&str, &str> = graph
        .node
        .iter()
        .map(|node| (node.op_type.as_str(), maker_of(graph, &node.input[0])))
        .collect();
    assert_eq!(
        (reads["HardSwish"], reads["Add"]),
        ("DequantizeLinear", "DequantizeLinear")
    );
}

fn maker_of<'g>(graph: &'g GraphProto, name: &str) -> &'g str {
    let mut nodes = graph.node.iter();
    nodes
        .find(|node| node.output[0] == name)
        .map_or("", |node| &node.op_type)
}

#[test]
fn constants_that_exporters_write_as_nodes_are_constants() {
    let mut net = Net::new(5, PICTURE);
    let x = net.conv("x", plain(8, 3), true, vec![]);
    let y = net.relu6(&x);
    let mut bundle = net.bundle(&[&y]);
    let graph = bundle.graph.graph.as_mut().unwrap();
    let constants = std::mem::take(&mut graph.initializer).into_iter();
    let constants = constants.map(|tensor| NodeProto {
        op_type: "Constant".into(),
        output: vec![tensor.name.clone()],
        attribute: vec![AttributeProto {
            name: "value".into(),
            t: Some(tensor),
            ..AttributeProto::default()
        }],
        ..NodeProto::default()
    });
    graph.node.splice(0..0, constants);
    let layers = Convolutions::of(&bundle).unwrap();
    let (made, told) = quantised(&bundle, &seen(&layers, &[]), &[]).unwrap();
    assert!(told[0].int8, "{told:?}");
    // The ends of the Clip stay nodes.
    let mut found = operators(&made);
    found.retain(|operator| *operator != "Constant");
    assert_eq!(found, ["QuantizeLinear", "Conv", "Clip", "QuantizeLinear"]);
    // The kernel and the bias are whole numbers.
    let graph = made.graph.graph.as_ref().unwrap();
    let whole = |dtype: DataType| {
        let mut all = graph.initializer.iter();
        all.any(|tensor| tensor.data_type == dtype as i32 && tensor.dims[..1] == [8])
    };
    assert!(whole(DataType::Int8) && whole(DataType::Int32));
}

#[test]
fn what_is_shared_or_asked_for_or_would_lose_too_much_stays_and_is_named() {
    let mut net = Net::new(3, PICTURE);
    let w = net.weight(&plain(3, 3), 0.0, 1.0);
    let once = net.node("Conv", &["x", &w], vec![]);
    let twice = net.node("Conv", &[&once, &w], vec![]);
    let y = net.conv(&twice, plain(8, 3), true, vec![]);
    let z = net.conv(&y, plain(8, 8), true, vec![]);
    let last = net.conv(&z, plain(8, 8), true, vec![]);
    let bundle = net.bundle(&[&last]);
    let layers = Convolutions::of(&bundle).unwrap();
    let names: Vec<String> = layers.names().map(str::to_owned).collect();
    // The layer in the middle gives as little as its noise; the last one is asked for.
    let ranges = seen(&layers, &[&twice, &y]);
    let (made, told) = quantised(&bundle, &ranges, &[&names[2]]).unwrap();
    let of = |name: &str| told.iter().find(|layer| layer.node == name).unwrap();
    let shared: Vec<_> = told
        .iter()
        .filter(|layer| layer.reason.contains("is shared"))
        .collect();
    assert_eq!(shared.len(), 2);
    assert!(of(&names[0]).int8, "{told:?}");
    let middle = of(&names[1]);
    assert!(
        !middle.int8 && middle.sqnr.unwrap() < LEAST_SQNR,
        "{told:?}"
    );
    assert!(middle.reason.contains("dB"), "{told:?}");
    assert!(of(&names[2]).reason.contains("asked"), "{told:?}");
    // The one layer in 8 bits, and nothing else.
    let wanted = [
        "Conv",
        "Conv",
        "QuantizeLinear",
        "Conv",
        "QuantizeLinear",
        "Conv",
        "Conv",
    ];
    assert_eq!(operators(&made), wanted);
    let error = quantised(&bundle, &ranges, &[&names[0], &names[2]]).unwrap_err();
    assert!(error.to_string().contains("none of its layers"), "{error}");
}

#[test]
fn what_cannot_be_calibrated_or_quantised_is_refused() {
    let mut net = Net::new(4, PICTURE);
    let y = net.conv("x", plain(8, 3), true, vec![]);
    let bundle = net.bundle(&[&y]);
    let layers = Convolutions::of(&bundle).unwrap();
    let error = quantised(&bundle, &Ranges::new(&layers), &[]).unwrap_err();
    assert!(matches!(error, OptimizeError::Texts(_)), "{error}");
    let mut ranges = Ranges::new(&layers);
    let broken = [1.0, f32::NAN, 2.0];
    let error = ranges.add(|_| Some(&broken)).unwrap_err();
    assert!(
        matches!(&error, OptimizeError::NotFinite { what } if what.contains("while calibrating")),
        "{error}"
    );
    for values in [&[][..], &[1.0, 2.0]] {
        let error = ranges.add(|_| Some(values)).unwrap_err();
        assert!(matches!(error, OptimizeError::Size { .. }), "{error}");
    }
    assert_eq!(ranges.runs(), 0);
    net.weights[0].2[5] = f32::INFINITY;
    let error = quantised(&net.bundle(&[&y]), &seen(&layers, &[]), &[]).unwrap_err();
    assert!(matches!(error, OptimizeError::NotFinite { .. }), "{error}");
    net.opset = 12;
    let error = Convolutions::of(&net.bundle(&[&y]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("operator set 12"), "{error}");
    // Convolutions of sound are none of pictures.
    let mut net = Net::new(4, PICTURE);
    let w = net.weight(&[3, 8, 1], 0.0, 1.0);
    let line = net.ints(&[0, 0, -1]);
    let line = net.node("Reshape", &["x", &line], vec![]);
    let y = net.node("Conv", &[&line, &w], vec![ints("strides", &[1])]);
    let none = net.bundle(&[&y]);
    assert!(!Convolutions::of(&none).unwrap().any());
    let error = quantised(&none, &seen(&layers, &[]), &[]).unwrap_err();
    assert!(error.to_string().contains("no convolution"), "{error}");
}
