//! A model whose matrices are stored in 4 bits, for a download of a sixth of the bytes, about, and computed as f32.
//!
//! A matrix is stored as [`BlockTensor`] has it, along the axis that products sum over; a table along its rows. Standard operators of
//! ONNX make the f32 matrix of that, so every runtime reads the file:
//!
//! `Reshape((Cast(Concat(low, high)) - 8) · Cast(scales))`, with `high = bytes >> 4` and `low = (bytes << 4) >> 4`
//!
//! isovec expands the matrices when a model is loaded ([`widened`](isovec_model::precision::widened)), and ONNX Runtime when it folds
//! constants.

use std::collections::BTreeMap;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{DataType, GraphProto, NodeProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;
use isovec_model::onnx::builder::{int, string};
use isovec_model::precision::{BLOCK, BlockTensor, dequantize_blocks, floats, quantize_blocks};
use serde::Serialize;

use crate::error::{OptimizeError, Result};
use crate::history;
use crate::int8::check;
use crate::measure::sqnr;
use crate::rewriting::{Rewriting, node};
use crate::source::Form;

/// Matrices of fewer bytes stay as they are.
const LEAST: usize = 4096;

/// Matrices below this many decibels stay as they are: noise of a twentieth of the signal's power. A matrix of normal values has 20.
pub const LEAST_SQNR: f64 = 13.0;

/// What became of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Matrix {
    /// Its name.
    pub name: String,
    /// Whether it is stored in 4 bits now.
    pub int4: bool,
    /// The ratio of its signal to the noise of 4 bits, in decibels; `None`: it cannot be cut into blocks.
    pub sqnr: Option<f64>,
}

/// The same model with its matrices and tables in 4 bits, and what became of each: those that are not read by a product or a lookup,
/// those whose extent is no multiple of 32, and those that would lose too much stay as they are. The identity is a new one, because
/// vectors are others.
///
/// # Errors
/// [`OptimizeError::Unsuitable`] for a model that is quantised already, whose operator set is too old, or that has no such matrix;
/// those of reading weights.
pub async fn in_four_bits(
    bundle: &ModelBundle,
    cancel: &Cancel,
) -> Result<(ModelBundle, Vec<Matrix>)> {
    check(bundle)?;
    let empty = GraphProto::default();
    let graph = bundle.graph.graph.as_ref().unwrap_or(&empty);
    let axes = block_axes(graph);
    let mut writing = Writing {
        parts: Rewriting::new(bundle, graph, "isovec int4 1"),
        nodes: Vec::new(),
    };
    let mut told = Vec::new();
    for (index, info) in bundle.weights.weights().iter().enumerate() {
        cancel.check().map_err(OptimizeError::from)?;
        let axis = axes.get(info.name.as_str()).copied();
        let matrix = info.dtype == DType::F32 && info.shape.len() == 2 && info.byte_len() >= LEAST;
        let Some(axis) = axis.filter(|_| matrix) else {
            continue;
        };
        let mut found = Matrix {
            name: info.name.clone(),
            int4: false,
            sqnr: None,
        };
        if info.shape[axis] % BLOCK == 0 {
            let values = floats(&bundle.weights, index).await?;
            let tensor = quantize_blocks(&values, &info.shape, axis)?;
            let ratio = sqnr(&values, &dequantize_blocks(&tensor)?);
            found.sqnr = Some(ratio);
            found.int4 = ratio >= LEAST_SQNR;
            if found.int4 {
                writing.matrix(index, info, &tensor);
            }
        }
        told.push(found);
    }
    let count = told.iter().filter(|matrix| matrix.int4).count();
    if count == 0 {
        return Err(OptimizeError::Unsuitable {
            origin: bundle.origin.clone(),
            reason: format!(
                "none of its matrices has a multiple of {BLOCK} rows and keeps {LEAST_SQNR} dB of signal to noise in 4 bits"
            ),
            hint: "Store its weights in int8 (`--dtype int8`)".into(),
        });
    }
    let step = format!("int4: {count} of {} matrices and tables", told.len());
    Ok((
        history::noted(writing.finish(), &bundle.identity.0, step),
        told,
    ))
}

/// The axis of the blocks of every weight that a product or a lookup reads, by its name.
fn block_axes(graph: &GraphProto) -> BTreeMap<&str, usize> {
    let mut axes = BTreeMap::new();
    for node in graph
        .node
        .iter()
        .filter(|node| default_domain(&node.domain).is_empty())
    {
        let number = |name: &str| node.int(name).unwrap_or(0);
        let (input, axis) = match node.op_type.as_str() {
            "MatMul" => (1, 0),
            "Gemm" if number("transB") == 0 => (1, 0),
            "Gemm" => (1, 1),
            "Gather" if number("axis") == 0 => (0, 1),
            _ => continue,
        };
        if let Some(name) = node.input.get(input) {
            axes.entry(name.as_str()).or_insert(axis);
        }
    }
    axes
}

/// The graph that is being written.
struct Writing<'b> {
    parts: Rewriting<'b>,
    nodes: Vec<NodeProto>,
}

impl Writing<'_> {
    /// Stores a matrix in blocks, and writes the nodes that make it of them.
    fn matrix(&mut self, index: usize, info: &WeightInfo, tensor: &BlockTensor) {
        let parts = &mut self.parts;
        let name = &info.name;
        let axis = tensor.axis;
        let form = Form::Blocks {
            weight: index,
            axis,
        };
        let bytes = format!("{name}.int4");
        let bytes = parts.replace(index, &bytes, DType::U8, &tensor.bytes_shape(), form);
        parts.identify(&tensor.bytes);
        let scales: Vec<u8> = tensor
            .scales
            .iter()
            .flat_map(|scale| scale.to_le_bytes())
            .collect();
        let scales = parts.constant(
            &format!("{name}.scale"),
            DType::F16,
            &tensor.scales_shape(),
            scales,
        );
        let four = parts.constant(&format!("{name}.four"), DType::U8, &[], vec![4]);
        let eight = parts.f32s(&format!("{name}.eight"), &[], &[8.0]);
        let extents = tensor.shape.map(|extent| extent as i64);
        let extents = extents
            .iter()
            .flat_map(|extent| extent.to_le_bytes())
            .collect();
        let extents = parts.constant(&format!("{name}.shape"), DType::I64, &[2], extents);
        let [left, low, high, all, wide, whole, scaled, factors] = [
            "left", "low", "high", "all", "wide", "whole", "scaled", "factors",
        ]
        .map(|what| parts.fresh(&format!("{name}.{what}")));
        let (to_left, to_right) = (string("direction", "LEFT"), string("direction", "RIGHT"));
        let along = int("axis", 1 + axis as i64);
        let float = int("to", DataType::Float as i64);
        for (op, inputs, output, attribute) in [
            (
                "BitShift",
                [bytes.as_str(), &four].as_slice(),
                &left,
                Some(to_left),
            ),
            ("BitShift", &[&left, &four], &low, Some(to_right.clone())),
            ("BitShift", &[&bytes, &four], &high, Some(to_right)),
            ("Concat", &[&low, &high], &all, Some(along)),
            ("Cast", &[&all], &wide, Some(float.clone())),
            ("Sub", &[&wide, &eight], &whole, None),
            ("Cast", &[&scales], &factors, Some(float)),
            ("Mul", &[&whole, &factors], &scaled, None),
            ("Reshape", &[&scaled, &extents], name, None),
        ] {
            self.nodes.push(node(op, inputs, &[output], attribute));
        }
    }

    fn finish(self) -> ModelBundle {
        // They read nothing but weights, so they may come first.
        self.parts
            .finish(|graph| drop(graph.node.splice(0..0, self.nodes)))
    }
}
