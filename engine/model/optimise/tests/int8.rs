//! `isovec_optimize::int8` on small graphs: what it takes, what it leaves, and what it refuses.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::onnx::proto::{GraphProto, ModelProto, OperatorSetIdProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::{BytesWeights, WeightInfo, WeightsIdentity};
use isovec_model::onnx::{GraphBuilder, builder::float, write_model};
use isovec_optimize::OptimizeError;
use isovec_optimize::int8::{
    Activations, Int8Options, Observed, Product, Products, WeightBits, quantise,
};
use isovec_test_models::rng::Rng;

const WIDTH: usize = 64;

/// `y = norm(x) · a`, `z = norm(x) · b`, and whatever `more` adds. The norm's input `x` has a channel that is large.
fn bundle(more: impl FnOnce(&mut GraphBuilder<'_>)) -> ModelBundle {
    let mut graph = GraphProto::default();
    let mut build = GraphBuilder::new(&mut graph, "t/");
    let rows = Dim::Symbolic("rows".into());
    build.input("x", DType::F32, &[rows.clone(), Dim::Fixed(WIDTH)]);
    let norm = ["x", "gain", "bias"];
    build.named_node(
        "LayerNormalization",
        &norm,
        "n",
        vec![float("epsilon", 1e-5)],
    );
    build.named_node("MatMul", &["n", "a"], "y", Vec::new());
    build.named_node("MatMul", &["n", "b"], "z", Vec::new());
    for output in ["y", "z"] {
        build.output(output, DType::F32, &[rows.clone(), Dim::Fixed(WIDTH)]);
    }
    more(&mut build);
    let mut weights = BytesWeights::new();
    let mut rng = Rng::new(2);
    for (name, shape) in [
        ("a", vec![WIDTH, WIDTH]),
        ("b", vec![WIDTH, WIDTH]),
        ("gain", vec![WIDTH]),
        ("bias", vec![WIDTH]),
    ] {
        let count = shape.iter().product::<usize>();
        let values = (0..count).flat_map(|_| (rng.normal() as f32).to_le_bytes());
        let info = WeightInfo {
            name: name.into(),
            dtype: DType::F32,
            shape,
        };
        weights.push(info, values.collect::<Vec<u8>>()).unwrap();
    }
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
        weights: Arc::new(weights),
        identity: WeightsIdentity("original".into()),
        files: [].into(),
        model_file: "model.onnx".into(),
        origin: "a model".into(),
    }
}

/// As if the probe had run: seeded values for every name, of which those of products have this deviation.
fn seen(products: &Products, large: f32, deviation: f32) -> Observed {
    let mut rng = Rng::new(3);
    let mut values: Vec<f32> = (0..WIDTH * 100).map(|_| rng.normal() as f32).collect();
    let mut observed = Observed::new(products);
    values
        .iter_mut()
        .step_by(WIDTH)
        .for_each(|value| *value *= large);
    let wide: Vec<f32> = values.iter().map(|value| value * deviation).collect();
    let given = |name: &str| Some(if name == "n" { &values[..] } else { &wide });
    observed.add(products, given).unwrap();
    assert_eq!(observed.rows(), 100);
    observed
}

fn quantised(
    bundle: &ModelBundle,
    observed: Option<&Observed>,
    options: &Int8Options,
) -> Result<(ModelBundle, Vec<Product>), OptimizeError> {
    let products = Products::of(bundle).unwrap();
    pollster::block_on(quantise(
        bundle,
        &products,
        observed,
        options,
        &Cancel::new(),
    ))
}

fn operators(bundle: &ModelBundle) -> Vec<&str> {
    let graph = bundle.graph.graph.as_ref().unwrap();
    graph
        .node
        .iter()
        .map(|node| node.op_type.as_str())
        .collect()
}

#[test]
fn an_input_is_quantised_once_and_a_norm_takes_its_scales() {
    let bundle = bundle(|_| ());
    let products = Products::of(&bundle).unwrap();
    let observed = seen(&products, 30.0, 8.0);
    let options = Int8Options::new(Activations::Static);
    let (made, told) = quantised(&bundle, Some(&observed), &options).unwrap();
    let wanted = [
        "LayerNormalization",
        "QuantizeLinear",
        "DequantizeLinear",
        "DequantizeLinear",
        "MatMul",
        "DequantizeLinear",
        "MatMul",
    ];
    assert_eq!(operators(&made), wanted);
    assert!(
        told.iter()
            .all(|product| product.int8 && product.smooth.is_some()),
        "{told:?}"
    );
    assert_ne!(made.identity, bundle.identity);
    let names = made.weights.weights().iter().map(|info| info.name.as_str());
    assert!(
        !names.clone().any(|name| name == "a" || name == "gain"),
        "what nothing reads is gone"
    );
    // The same again: the same bytes.
    let again = quantised(&bundle, Some(&observed), &options).unwrap().0;
    let bytes = |bundle: &ModelBundle| pollster::block_on(write_model(bundle)).unwrap();
    assert_eq!(bytes(&made), bytes(&again));
    // It is quantised already.
    let error = Products::of(&made).unwrap_err().to_string();
    assert!(error.contains("quantised already"), "{error}");
}

/// The largest magnitudes of weights in whole numbers of 8 bits.
fn largest(bundle: &ModelBundle) -> Vec<i8> {
    let infos = bundle.weights.weights().iter().enumerate();
    let whole = infos.filter(|(_, info)| info.dtype == DType::I8);
    let largest = whole.map(|(index, _)| {
        let bytes = pollster::block_on(bundle.weights.read(index)).unwrap();
        bytes.iter().map(|&byte| (byte as i8).abs()).max().unwrap()
    });
    largest.collect()
}

#[test]
fn weights_have_as_many_bits_as_are_asked_for() {
    let bundle = bundle(|_| ());
    let products = Products::of(&bundle).unwrap();
    let observed = seen(&products, 30.0, 8.0);
    for activations in [Activations::Static, Activations::Dynamic] {
        let mut options = Int8Options::new(activations);
        let (eight, before) = quantised(&bundle, Some(&observed), &options).unwrap();
        options.weights = WeightBits::Seven;
        let (seven, after) = quantised(&bundle, Some(&observed), &options).unwrap();
        assert_eq!(
            (largest(&eight), largest(&seven)),
            (vec![127; 2], vec![63; 2])
        );
        assert_ne!(eight.identity, seven.identity);
        for (before, after) in before.iter().zip(&after) {
            let lost = before.sqnr.unwrap() - after.sqnr.unwrap();
            assert!((0.5..6.2).contains(&lost), "{lost}");
        }
    }
}

#[test]
fn a_norm_that_something_else_reads_stays_and_a_factor_is_added() {
    let bundle = bundle(|build| build.named_node("Add", &["n", "y"], "sum", Vec::new()));
    let products = Products::of(&bundle).unwrap();
    let observed = seen(&products, 30.0, 8.0);
    let options = Int8Options::new(Activations::Dynamic);
    let made = quantised(&bundle, Some(&observed), &options).unwrap().0;
    let found = operators(&made);
    assert_eq!(
        found[..3],
        ["LayerNormalization", "Mul", "DynamicQuantizeLinear"]
    );
    assert!(
        made.weights
            .weights()
            .iter()
            .any(|info| info.name == "gain")
    );
    // Without texts nothing is smoothed, and nothing is known of the noise.
    let (made, told) = quantised(&bundle, None, &options).unwrap();
    assert_eq!(operators(&made)[1], "DynamicQuantizeLinear");
    assert!(
        told.iter()
            .all(|product| product.sqnr.is_none() && product.smooth.is_none())
    );
}

#[test]
fn what_is_shared_or_would_lose_too_much_stays_and_is_named() {
    let shared = bundle(|build| build.named_node("MatMul", &["y", "b"], "w", Vec::new()));
    let products = Products::of(&shared).unwrap();
    let observed = seen(&products, 1.0, 8.0);
    let (made, told) = quantised(
        &shared,
        Some(&observed),
        &Int8Options::new(Activations::Static),
    )
    .unwrap();
    let kept: Vec<_> = told.iter().filter(|product| !product.int8).collect();
    assert_eq!(kept.len(), 2);
    assert!(kept[0].reason.contains("b is shared"), "{kept:?}");
    assert!(made.weights.weights().iter().any(|info| info.name == "b"));
    // Terms that nearly cancel each other leave a signal as small as their noise.
    let plain = bundle(|_| ());
    let products = Products::of(&plain).unwrap();
    let observed = seen(&products, 1.0, 0.01);
    let options = Int8Options::new(Activations::Static);
    let error = quantised(&plain, Some(&observed), &options).unwrap_err();
    assert!(error.to_string().contains("keeps 30 dB"), "{error}");
}

#[test]
fn nodes_that_are_named_stay_in_f32_and_a_name_of_none_is_refused() {
    let bundle = bundle(|_| ());
    let products = Products::of(&bundle).unwrap();
    let observed = seen(&products, 30.0, 8.0);
    let mut options = Int8Options::new(Activations::Static);
    let (all, told) = quantised(&bundle, Some(&observed), &options).unwrap();
    let name = told[1].node.clone();
    options.kept.insert(name.clone());
    let (made, told) = quantised(&bundle, Some(&observed), &options).unwrap();
    assert!(told[0].int8 && !told[1].int8, "{told:?}");
    assert!(told[1].reason.contains("asked"), "{told:?}");
    let names = |bundle: &ModelBundle| -> Vec<String> {
        let infos = bundle.weights.weights().iter();
        infos.map(|info| info.name.clone()).collect()
    };
    assert!(names(&made).contains(&"b".to_owned()) && !names(&made).contains(&"a".to_owned()));
    assert!(!names(&all).contains(&"b".to_owned()));
    assert_ne!(made.identity, all.identity);
    let refused = |options: &Int8Options| {
        let error = quantised(&bundle, Some(&observed), options);
        error.unwrap_err().to_string()
    };
    options.kept.insert(told[0].node.clone());
    assert!(refused(&options).contains("none of its products is to be"));
    options.kept = ["no such node".to_owned()].into();
    assert!(refused(&options).contains("\"no such node\""));
}

#[test]
fn bad_input_is_refused_with_a_reason() {
    let plain = bundle(|_| ());
    let products = Products::of(&plain).unwrap();
    let refused = |observed: Option<&Observed>, smooth| {
        let mut options = Int8Options::new(Activations::Static);
        options.smooth = smooth;
        quantised(&plain, observed, &options)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(None, None).contains("no text to calibrate with"));
    let nothing = Observed::new(&products);
    assert!(refused(Some(&nothing), None).contains("no text to calibrate with"));
    for strength in [-0.1, 1.1, f64::NAN] {
        assert!(refused(None, Some(strength)).contains("strength"));
    }
    // Values that are no numbers name where they are, and values that are missing do.
    let mut observed = Observed::new(&products);
    let broken = [f32::NAN; WIDTH];
    let error = observed
        .add(&products, |_| Some(&broken))
        .unwrap_err()
        .to_string();
    assert!(error.contains("while calibrating"), "{error}");
    let error = observed
        .add(&products, |_| Some(&broken[..7]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("7 for n"), "{error}");
    assert!(observed.add(&products, |_| None).is_err());
    // An operator set without scales along an axis.
    let mut old = plain.clone();
    old.graph.opset_import[0].version = 12;
    let error = Products::of(&old).unwrap_err().to_string();
    assert!(error.contains("operator set 12"), "{error}");
    // Another vendor's product may compute anything.
    let mut foreign = plain.clone();
    for node in &mut foreign.graph.graph.as_mut().unwrap().node {
        node.domain = "com.example".into();
    }
    let error = Products::of(&foreign).unwrap_err().to_string();
    assert!(error.contains("no product"), "{error}");
    let stopped = Cancel::new();
    stopped.cancel();
    let options = Int8Options::new(Activations::Dynamic);
    let stopped = pollster::block_on(quantise(&plain, &products, None, &options, &stopped));
    assert_eq!(stopped.unwrap_err().kind(), "Cancelled");
}
