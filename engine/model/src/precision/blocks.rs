//! Products that round their activations to 8 bits, block by block: ONNX Runtime's `MatMulNBits`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{NodeProto, OperatorSetIdProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;

use super::source::{Form, Operand, Reformed};
use super::widen::Constants;
use crate::bundle::prune;
use crate::onnx::builder::int;

/// The operator set of ONNX Runtime's own operators.
const CONTRIB: &str = "com.microsoft";

/// Values of a row that share a scale, as a model that asks for rounded activations has it
/// ([`EIGHT_BITS`](isovec_engine::bundle::EIGHT_BITS)).
const BLOCK: usize = 128;

/// The same model with a `MatMulNBits` of `com.microsoft` in the place of every `MatMul` whose matrix is stored in int8 with a
/// scale for each column, if its rows are whole blocks of 128 and the model
/// [asks](ModelBundle::rounds_activations) for rounded activations. The operator rounds the values of a block to 8 bits with a
/// scale of their own, and multiplies whole numbers. Rows do not depend on each other, and weights stay in 8 bits in memory.
///
/// Everything else stays as it is; [`widened`](super::widened) makes f32 weights of the rest
/// (<https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md>).
#[must_use]
pub fn in_blocks(bundle: &ModelBundle) -> ModelBundle {
    let graph = bundle.graph.graph.as_ref();
    let Some(graph) = graph.filter(|_| bundle.rounds_activations()) else {
        return bundle.clone();
    };
    let constants = Constants::of(graph, bundle.weights.weights());
    let makers: HashMap<&str, &NodeProto> = graph
        .node
        .iter()
        .filter(|node| node.op_type == "DequantizeLinear")
        .filter_map(|node| Some((node.output.first()?.as_str(), node)))
        .collect();
    let (mut infos, mut forms) = (bundle.weights.weights().to_vec(), Vec::new());
    forms.extend((0..infos.len()).map(Form::Same));
    let mut made = HashSet::new();
    let mut nodes = graph.node.clone();
    for node in &mut nodes {
        let [input, matrix] = node.input.as_slice() else {
            continue;
        };
        if node.op_type != "MatMul" || !default_domain(&node.domain).is_empty() {
            continue;
        }
        let stored = makers.get(matrix.as_str());
        let Some(stored) = stored.and_then(|maker| stored_by_column(&constants, maker)) else {
            continue;
        };
        let (rows, columns) = (stored.rows, stored.columns);
        if rows % BLOCK != 0 {
            continue;
        }
        let [ints, scales] = ["blocks", "scales"].map(|what| format!("{matrix}.{what}"));
        // A matrix of several products is one weight.
        if made.insert(matrix.clone()) {
            infos.push(WeightInfo {
                name: ints.clone(),
                dtype: DType::U8,
                shape: vec![columns, rows / BLOCK, BLOCK],
            });
            forms.push(Form::Turned {
                weight: stored.weight,
                rows,
            });
            infos.push(WeightInfo {
                name: scales.clone(),
                dtype: DType::F32,
                shape: vec![columns * (rows / BLOCK)],
            });
            forms.push(Form::Repeated {
                scales: stored.scales,
                times: rows / BLOCK,
            });
        }
        let of = |value: usize| value as i64;
        *node = NodeProto {
            op_type: "MatMulNBits".into(),
            domain: CONTRIB.into(),
            input: vec![input.clone(), ints, scales],
            attribute: vec![
                int("K", of(rows)),
                int("N", of(columns)),
                int("bits", 8),
                int("block_size", of(BLOCK)),
                // Activations in 8 bits.
                int("accuracy_level", 4),
            ],
            ..node.clone()
        };
    }
    if made.is_empty() {
        return bundle.clone();
    }
    let mut blocked = bundle.clone();
    if let Some(graph) = blocked.graph.graph.as_mut() {
        graph.node = nodes;
    }
    let sets = &mut blocked.graph.opset_import;
    if !sets.iter().any(|set| set.domain == CONTRIB) {
        sets.push(OperatorSetIdProto {
            domain: CONTRIB.into(),
            version: 1,
        });
    }
    blocked.weights = Arc::new(Reformed {
        source: bundle.weights.clone(),
        infos,
        forms,
    });
    prune(&mut blocked);
    blocked
}

/// A matrix `[rows, columns]` in int8 with a scale for each column.
struct Stored {
    weight: usize,
    scales: Operand,
    rows: usize,
    columns: usize,
}

fn stored_by_column(constants: &Constants<'_>, maker: &NodeProto) -> Option<Stored> {
    let (info, form) = constants.widened(maker)?;
    let Form::FromInts {
        weight,
        scales,
        zeros: None,
        channels,
    } = form
    else {
        return None;
    };
    let [rows, columns] = info.shape[..] else {
        return None;
    };
    let signed = constants.dtype(maker.input.first()?) == Some(DType::I8);
    (signed && channels.are_columns(rows, columns)).then_some(Stored {
        weight,
        scales,
        rows,
        columns,
    })
}
