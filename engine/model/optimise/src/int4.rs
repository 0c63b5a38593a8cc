//! A model whose matrices are stored in 4 bits, for a download of a sixth of the bytes, about, and computed as f32.
//!
//! A matrix is stored as [`BlockTensor`] has it, along the axis that products sum over; a table along its rows. Standard operators of
//! ONNX make the f32 matrix of that, so every runtime reads the file:
//!
//! `Reshape((Cast(Concat(low, high)) - 8) · Cast(scales))`, with `high = bytes >> 4` and `low = (bytes << 4) >> 4`
//!
//! isovec expands the matrices when a model is loaded ([`widened`](isovec_model::precision::widened)), and ONNX Runtime when it folds
//! constants.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::bundle::{ModelBundle, WEIGHT_MIN_BYTES};
use isovec_engine::cancel::Cancel;
use isovec_engine::error::Result as EngineResult;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{AttributeProto, DataType, GraphProto, NodeProto, TensorProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::{Sink, WeightInfo, WeightSource, Weights, WeightsIdentity};
use isovec_model::bundle::prune;
use isovec_model::onnx::builder::{int, string};
use isovec_model::precision::{BLOCK, BlockTensor, dequantize_blocks, floats, quantize_blocks};
use serde::Serialize;

use crate::error::{OptimizeError, Result};
use crate::history;
use crate::int8::check;
use crate::measure::sqnr;

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
    let mut writing = Writing::new(bundle, graph);
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

/// What is made of the weights of a source.
#[derive(Debug, Clone)]
enum Form {
    /// The weight of this index as it is.
    Same(usize),
    /// The bytes of its blocks along this axis.
    Blocks(usize, usize),
    /// Other values.
    Bytes(Bytes),
}

/// A source's weights in these forms: blocks are made when they are read, so that no second model is in memory.
#[derive(Debug)]
struct Reformed {
    source: Weights,
    infos: Vec<WeightInfo>,
    forms: Vec<Form>,
}

impl WeightSource for Reformed {
    fn weights(&self) -> &[WeightInfo] {
        &self.infos
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        Box::pin(async move {
            match &self.forms[index] {
                Form::Same(weight) => self.source.read(*weight).await,
                Form::Bytes(bytes) => Ok(bytes.clone()),
                Form::Blocks(weight, axis) => {
                    let values = floats(&self.source, *weight).await?;
                    let shape = &self.source.weights()[*weight].shape;
                    Ok(quantize_blocks(&values, shape, *axis)?.bytes.into())
                }
            }
        })
    }

    fn read_pieces<'a>(&'a self, index: usize, sink: &'a mut dyn Sink) -> EngineFuture<'a, ()> {
        match &self.forms[index] {
            Form::Same(weight) => self.source.read_pieces(*weight, sink),
            _ => Box::pin(async move {
                let bytes: EngineResult<Bytes> = self.read(index).await;
                sink.take(&bytes?)
            }),
        }
    }
}

/// The graph that is being written.
struct Writing<'b> {
    bundle: &'b ModelBundle,
    names: HashSet<String>,
    nodes: Vec<NodeProto>,
    small: Vec<TensorProto>,
    infos: Vec<WeightInfo>,
    forms: Vec<Form>,
    /// Weights that a node makes now.
    made: BTreeSet<usize>,
    hash: blake3::Hasher,
}

impl<'b> Writing<'b> {
    fn new(bundle: &'b ModelBundle, graph: &GraphProto) -> Self {
        let mut hash = blake3::Hasher::new();
        hash.update(b"isovec int4 1");
        hash.update(bundle.identity.0.as_bytes());
        let infos = bundle.weights.weights();
        let names = infos.iter().map(|info| &info.name);
        let names = names.chain(graph.input.iter().map(|input| &input.name));
        let names = names.chain(graph.initializer.iter().map(|tensor| &tensor.name));
        let names = names.chain(graph.node.iter().flat_map(|node| &node.output));
        Self {
            bundle,
            names: names.cloned().collect(),
            nodes: Vec::new(),
            small: Vec::new(),
            infos: Vec::new(),
            forms: Vec::new(),
            made: BTreeSet::new(),
            hash,
        }
    }

    /// Stores a matrix in blocks, and writes the nodes that make it of them.
    fn matrix(&mut self, index: usize, info: &WeightInfo, tensor: &BlockTensor) {
        let name = &info.name;
        let [rows, columns] = tensor.shape;
        let axis = tensor.axis;
        let (packed, ones) = match axis {
            0 => (
                [rows / BLOCK, BLOCK / 2, columns],
                [rows / BLOCK, 1, columns],
            ),
            _ => (
                [rows, columns / BLOCK, BLOCK / 2],
                [rows, columns / BLOCK, 1],
            ),
        };
        let bytes = self.fresh(&format!("{name}.int4"));
        self.infos.push(WeightInfo {
            name: bytes.clone(),
            dtype: DType::U8,
            shape: packed.to_vec(),
        });
        self.forms.push(Form::Blocks(index, axis));
        self.made.insert(index);
        self.hash.update(&tensor.bytes);
        let scales: Vec<u8> = tensor
            .scales
            .iter()
            .flat_map(|scale| scale.to_le_bytes())
            .collect();
        let scales = self.constant(&format!("{name}.scale"), DType::F16, &ones, scales);
        let four = self.constant(&format!("{name}.four"), DType::U8, &[], vec![4]);
        let eight = 8f32.to_le_bytes().to_vec();
        let eight = self.constant(&format!("{name}.eight"), DType::F32, &[], eight);
        let extents = [rows, columns].map(|extent| extent as i64);
        let extents = extents
            .iter()
            .flat_map(|extent| extent.to_le_bytes())
            .collect();
        let extents = self.constant(&format!("{name}.shape"), DType::I64, &[2], extents);
        let [left, low, high, all, wide, whole, scaled, factors] = [
            "left", "low", "high", "all", "wide", "whole", "scaled", "factors",
        ]
        .map(|what| self.fresh(&format!("{name}.{what}")));
        let (to_left, to_right) = (string("direction", "LEFT"), string("direction", "RIGHT"));
        let along = int("axis", 1 + axis as i64);
        let float = int("to", DataType::Float as i64);
        for (op, inputs, output, attribute) in [
            ("BitShift", [&bytes, &four].as_slice(), &left, Some(to_left)),
            ("BitShift", &[&left, &four], &low, Some(to_right.clone())),
            ("BitShift", &[&bytes, &four], &high, Some(to_right)),
            ("Concat", &[&low, &high], &all, Some(along)),
            ("Cast", &[&all], &wide, Some(float.clone())),
            ("Sub", &[&wide, &eight], &whole, None),
            ("Cast", &[&scales], &factors, Some(float)),
            ("Mul", &[&whole, &factors], &scaled, None),
            ("Reshape", &[&scaled, &extents], name, None),
        ] {
            self.nodes.push(node(op, inputs, output, attribute));
        }
    }

    fn fresh(&mut self, name: &str) -> String {
        let mut fresh = name.to_owned();
        while !self.names.insert(fresh.clone()) {
            fresh.push('_');
        }
        fresh
    }

    /// A constant, where reading a file would put it.
    fn constant(&mut self, name: &str, dtype: DType, shape: &[usize], bytes: Vec<u8>) -> String {
        let name = self.fresh(name);
        self.hash.update(&bytes);
        if bytes.len() >= WEIGHT_MIN_BYTES {
            self.infos.push(WeightInfo {
                name: name.clone(),
                dtype,
                shape: shape.to_vec(),
            });
            self.forms.push(Form::Bytes(bytes.into()));
        } else {
            self.small.push(TensorProto {
                name: name.clone(),
                data_type: DataType::from(dtype) as i32,
                dims: shape.iter().map(|&extent| extent as i64).collect(),
                raw_data: Bytes::from(bytes),
                ..TensorProto::default()
            });
        }
        name
    }

    fn finish(mut self) -> ModelBundle {
        let mut model = self.bundle.graph.clone();
        if let Some(graph) = model.graph.as_mut() {
            // They read nothing but weights, so they may come first.
            graph.node.splice(0..0, self.nodes);
            graph.initializer.append(&mut self.small);
        }
        for (index, info) in self.bundle.weights.weights().iter().enumerate() {
            if !self.made.contains(&index) {
                self.infos.push(info.clone());
                self.forms.push(Form::Same(index));
            }
        }
        let mut made = ModelBundle {
            graph: model,
            weights: Arc::new(Reformed {
                source: self.bundle.weights.clone(),
                infos: self.infos,
                forms: self.forms,
            }),
            identity: WeightsIdentity(self.hash.finalize().to_hex().to_string()),
            ..self.bundle.clone()
        };
        prune(&mut made);
        made
    }
}

fn node(
    op: &str,
    inputs: &[&String],
    output: &str,
    attribute: Option<AttributeProto>,
) -> NodeProto {
    NodeProto {
        op_type: op.into(),
        name: format!("{output}.node"),
        input: inputs.iter().map(|&name| name.clone()).collect(),
        output: vec![output.to_owned()],
        attribute: attribute.into_iter().collect(),
        ..NodeProto::default()
    }
}
