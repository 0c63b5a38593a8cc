//! Every pooling head, run by a real engine, against plain f64 loops; ragged masks, any size.

#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::Dim;
use isovec_engine::engine::MASK;
use isovec_engine::onnx::proto::{GraphProto, ModelProto, OperatorSetIdProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::{BytesWeights, WeightsIdentity};
use isovec_engine::{EngineError, Result};
use isovec_model::head::{Activation, Dense, HeadSpec, OUTPUT, Pooling, attach_head};
use isovec_model::onnx::GraphBuilder;
use proptest::prelude::*;
use prost::Message as _;
use tract_onnx::prelude::*;

/// A "model" whose hidden states are its input, so that a test chooses them.
fn bundle(opset: i64, hidden: usize) -> ModelBundle {
    let mut graph = GraphProto {
        name: "given".into(),
        ..GraphProto::default()
    };
    let axes = [
        Dim::Symbolic("batch".into()),
        Dim::Symbolic("sequence".into()),
    ];
    let states = [axes[0].clone(), axes[1].clone(), Dim::Fixed(hidden)];
    let mut builder = GraphBuilder::new(&mut graph, "model.");
    builder.input("hidden", DType::F32, &states);
    builder.input(MASK, DType::I64, &axes);
    builder.named_node("Identity", &["hidden"], "last_hidden_state", Vec::new());
    builder.named_node("Neg", &["hidden"], "unused_output", Vec::new());
    builder.output("last_hidden_state", DType::F32, &states);
    builder.output("unused_output", DType::F32, &states);
    ModelBundle {
        graph: ModelProto {
            ir_version: 8,
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: opset,
            }],
            graph: Some(graph),
            ..ModelProto::default()
        },
        weights: Arc::new(BytesWeights::new()),
        identity: WeightsIdentity("test".into()),
        files: BTreeMap::new(),
        model_file: "model.onnx".into(),
        origin: "test".into(),
    }
}

/// One padded batch: hidden states (junk under the padding included) and row lengths.
#[derive(Debug, Clone)]
struct Case {
    lengths: Vec<usize>,
    sequence: usize,
    hidden: usize,
    values: Vec<f32>,
}

fn case() -> impl Strategy<Value = Case> {
    (1usize..4, 1usize..9, 1usize..7).prop_flat_map(|(rows, sequence, hidden)| {
        (
            prop::collection::vec(1..=sequence, rows),
            prop::collection::vec(-4.0f32..4.0, rows * sequence * hidden),
        )
            .prop_map(move |(lengths, values)| Case {
                lengths,
                sequence,
                hidden,
                values,
            })
    })
}

fn run(spec: &HeadSpec, opset: i64, case: &Case) -> Vec<f32> {
    let mut bundle = bundle(opset, case.hidden);
    attach_head(&mut bundle, spec).unwrap();
    let bytes = bundle.graph.encode_to_vec();
    let rows = case.lengths.len();
    let mask: Vec<i64> = case
        .lengths
        .iter()
        .flat_map(|&length| (0..case.sequence).map(move |column| i64::from(column < length)))
        .collect();
    let model = tract_onnx::onnx()
        .model_for_read(&mut &bytes[..])
        .unwrap()
        .into_optimized()
        .unwrap();
    let model = model.into_runnable().unwrap();
    let inputs = tvec![
        Tensor::from_shape(&[rows, case.sequence, case.hidden], &case.values)
            .unwrap()
            .into_tvalue(),
        Tensor::from_shape(&[rows, case.sequence], &mask)
            .unwrap()
            .into_tvalue()
    ];
    let outputs = model.run(inputs).unwrap();
    assert_eq!(outputs.len(), 1, "the head is the graph's one output");
    outputs[0]
        .to_plain_array_view::<f32>()
        .unwrap()
        .iter()
        .copied()
        .collect()
}

/// The definition, one row at a time and in f64.
fn plain(spec: &HeadSpec, case: &Case) -> Vec<f64> {
    let at = |row: usize, column: usize, h: usize| {
        f64::from(case.values[(row * case.sequence + column) * case.hidden + h])
    };
    let mut out = Vec::new();
    for (row, &length) in case.lengths.iter().enumerate() {
        let component = |h: usize| {
            let sum = |f: &dyn Fn(usize) -> f64| (0..length).map(f).sum::<f64>();
            let n = length as f64;
            match spec.pooling {
                Pooling::Mean => sum(&|c| at(row, c, h)) / n,
                Pooling::Cls => at(row, 0, h),
                Pooling::LastToken => at(row, length - 1, h),
                Pooling::Max => (0..length).map(|c| at(row, c, h)).fold(f64::MIN, f64::max),
                Pooling::WeightedMean => {
                    sum(&|c| (c + 1) as f64 * at(row, c, h)) / (n * (n + 1.0) / 2.0)
                }
                Pooling::MeanSqrtLen => sum(&|c| at(row, c, h)) / n.sqrt(),
                _ => unreachable!("a pooling without a definition here"),
            }
        };
        let mut vector: Vec<f64> = (0..case.hidden).map(component).collect();
        for dense in &spec.dense {
            vector = (0..dense.out_features)
                .map(|o| {
                    let bias = dense.bias.as_ref().map_or(0.0, |bias| f64::from(bias[o]));
                    let weights = &dense.weight[o * dense.in_features..][..dense.in_features];
                    let x = bias
                        + weights
                            .iter()
                            .zip(&vector)
                            .map(|(&w, x)| f64::from(w) * x)
                            .sum::<f64>();
                    match dense.activation {
                        Activation::Identity => x,
                        Activation::Tanh => x.tanh(),
                        Activation::Relu => x.max(0.0),
                        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
                        _ => unreachable!("an activation without a definition here"),
                    }
                })
                .collect();
        }
        if let Some(dim) = spec.truncate_dim {
            vector.truncate(dim);
        }
        if spec.normalize {
            let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
            vector.iter_mut().for_each(|x| *x /= norm);
        }
        out.extend(vector);
    }
    out
}

fn largest_difference(got: &[f32], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    got.iter()
        .zip(want)
        .map(|(&g, w)| (f64::from(g) - w).abs())
        .fold(0.0, f64::max)
}

const POOLINGS: [Pooling; 6] = [
    Pooling::Mean,
    Pooling::Cls,
    Pooling::LastToken,
    Pooling::Max,
    Pooling::WeightedMean,
    Pooling::MeanSqrtLen,
];

fn spec() -> impl Strategy<Value = HeadSpec> {
    (prop::sample::select(POOLINGS.to_vec()), any::<bool>())
        .prop_map(|(pooling, normalize)| HeadSpec::new(pooling, normalize))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn heads_equal_their_definition(
        spec in spec(),
        opset in prop::sample::select(vec![12i64, 13, 17, 18]),
        case in case(),
    ) {
        // A pooled vector of almost nothing has no stable direction to compare.
        let unnormalised = HeadSpec { normalize: false, ..spec.clone() };
        let norms_are_large = plain(&unnormalised, &case)
            .chunks(case.hidden)
            .all(|row| row.iter().map(|x| x * x).sum::<f64>().sqrt() > 1e-2);
        prop_assume!(!spec.normalize || norms_are_large);
        let got = run(&spec, opset, &case);
        prop_assert!(largest_difference(&got, &plain(&spec, &case)) < 4e-5);
    }
}

fn example() -> Case {
    let values = (0..2 * 5 * 4)
        .map(|i| ((i * 37 % 23) as f32 - 11.0) / 5.0)
        .collect();
    Case {
        lengths: vec![3, 5],
        sequence: 5,
        hidden: 4,
        values,
    }
}

#[test]
fn dense_layers_then_the_cut_then_the_norm() {
    let case = example();
    for activation in [
        Activation::Identity,
        Activation::Tanh,
        Activation::Relu,
        Activation::Sigmoid,
    ] {
        let mut spec = HeadSpec::new(Pooling::Mean, true);
        spec.dense = vec![Dense {
            in_features: 4,
            out_features: 6,
            weight: (0..24).map(|i| ((i * 7 % 13) as f32 - 6.0) / 6.0).collect(),
            bias: Some(vec![0.5, -0.25, 0.125, 0.75, -0.5, 1.0]),
            activation,
        }];
        spec.truncate_dim = Some(3);
        let got = run(&spec, 17, &case);
        assert_eq!(got.len(), 2 * 3);
        assert!(largest_difference(&got, &plain(&spec, &case)) < 1e-6);
    }
}

#[test]
fn no_head_reads_a_padding_row() {
    let case = example();
    let mut junk = case.clone();
    for column in case.lengths[0]..case.sequence {
        for h in 0..case.hidden {
            junk.values[column * case.hidden + h] = 1e6;
        }
    }
    for pooling in POOLINGS {
        let spec = HeadSpec::new(pooling, false);
        assert_eq!(run(&spec, 17, &case), run(&spec, 17, &junk), "{pooling:?}");
    }
}

#[test]
fn what_leads_to_no_output_is_removed() -> Result<()> {
    let mut bundle = bundle(17, 4);
    let info = attach_head(&mut bundle, &HeadSpec::new(Pooling::Mean, true))?;
    assert_eq!((info.dim, info.pooled_by_graph), (Some(4), false));
    let graph = bundle.graph.graph.unwrap();
    assert!(graph.node.iter().all(|node| node.op_type != "Neg"));
    assert_eq!(
        graph
            .output
            .iter()
            .map(|output| output.name.as_str())
            .collect::<Vec<_>>(),
        [OUTPUT]
    );
    Ok(())
}

#[test]
fn the_same_head_twice_is_once_and_another_is_refused() {
    let mut bundle = bundle(17, 4);
    let spec = HeadSpec::new(Pooling::Mean, true);
    attach_head(&mut bundle, &spec).unwrap();
    let before = bundle.graph.clone();
    assert!(attach_head(&mut bundle, &spec).unwrap().pooled_by_graph);
    assert_eq!(bundle.graph, before);
    let other = attach_head(&mut bundle, &HeadSpec::new(Pooling::Cls, true));
    assert!(matches!(other, Err(EngineError::UnsupportedModel { .. })));
}

#[test]
fn heads_that_cannot_fit_are_refused() {
    let mut wide = HeadSpec::new(Pooling::Mean, true);
    wide.truncate_dim = Some(5);
    assert!(matches!(
        attach_head(&mut bundle(17, 4), &wide),
        Err(EngineError::Config(_))
    ));
    wide.truncate_dim = Some(0);
    assert!(matches!(
        attach_head(&mut bundle(17, 4), &wide),
        Err(EngineError::Config(_))
    ));

    let mut crooked = HeadSpec::new(Pooling::Mean, true);
    crooked.dense = vec![Dense {
        in_features: 5,
        out_features: 2,
        weight: vec![0.0; 10],
        bias: None,
        activation: Activation::Identity,
    }];
    assert!(matches!(
        attach_head(&mut bundle(17, 4), &crooked),
        Err(EngineError::InvalidModel { .. })
    ));

    let mut maskless = bundle(17, 4);
    maskless
        .graph
        .graph
        .as_mut()
        .unwrap()
        .input
        .retain(|input| input.name != MASK);
    let refused = attach_head(&mut maskless, &HeadSpec::new(Pooling::Mean, true));
    assert!(matches!(refused, Err(EngineError::UnsupportedModel { .. })));
    assert!(attach_head(&mut bundle(10, 4), &HeadSpec::new(Pooling::Mean, true)).is_err());
}
