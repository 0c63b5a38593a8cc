//! From f32 weights to small ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use isovec_engine::bundle::{ModelBundle, WEIGHT_MIN_BYTES};
use isovec_engine::cancel::Cancel;
use isovec_engine::description::default_opset;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::fingerprint::Precision;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{
    AttributeProto, DataType, GraphProto, NodeProto, StringStringEntryProto, TensorProto,
};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;

use super::bytes as le;
use super::error::{ratio, squares};
use super::half::Half;
use super::int8::{Channels, changes, relative_error, scales};
use super::source::{Form, Reformed, floats};
use crate::onnx::builder::int;

/// The `metadata_props` key under which a narrowed model states its form: `int8, 1`. The number changes with the
/// rules below, so that caches of earlier rules are not used.
pub const NARROWED_KEY: &str = "isovec.narrowed";

/// The rules of this version; see [`NARROWED_KEY`].
pub const RULES: u32 = 1;

/// Weights of fewer bytes stay f32: biases and norms are a thousandth of a model, and add up in
/// every component.
const MIN_BYTES: usize = 4096;

/// A matrix whose relative error in int8 is larger is stored in f16. The matrices of
/// all-MiniLM-L6-v2 lie between 0.007 and 0.022 (the second feed-forward layers, which have
/// outliers), which leaves the worst of the reference texts at a cosine of 0.996. A matrix of normal
/// values has 0.008; one past the limit has channels in which a single value hides the others.
const MAX_INT8_ERROR: f64 = 0.03;

/// The same for f16, else it stays f32: rounding gives 0.0002, and more means that values are past
/// 65504 or below 6e-5, where f16 ends.
const MAX_F16_ERROR: f64 = 1e-3;

/// The same for bfloat16: rounding gives 0.0017 at most on average, and more means that values are past what f32 has.
const MAX_BF16_ERROR: f64 = 4e-3;

/// The first operator set whose `DequantizeLinear` has scales along an axis, and whose `Cast` takes bfloat16.
const SMALL_OPSET: i64 = 13;

/// A bundle with small weights, and the form of each.
#[derive(Debug, Clone)]
pub struct Narrowed {
    /// The bundle.
    pub bundle: ModelBundle,
    /// The f32 weights that are large enough to be looked at, in their order.
    pub weights: Vec<NarrowedWeight>,
}

/// The form of one weight.
#[derive(Debug, Clone, PartialEq)]
pub struct NarrowedWeight {
    /// The name of the value that operators read.
    pub name: String,
    /// How it is stored now.
    pub stored: Precision,
    /// The Frobenius norm of what that changed, relative to the weight's; in int8 to that of the
    /// values beside the largest of each channel, which stay exact.
    pub relative_error: f64,
}

/// The same model with its large f32 weights stored in f16, bfloat16 or int8; with
/// [`Precision::F32`] as it is. It computes in f32. [`Precision::Int8Fast`] stores as
/// [`Precision::Int8`] does, and the model
/// [asks](ModelBundle::rounds_activations) for rounded activations.
///
/// Every weight is read once, one at a time, to measure what storing it small would change:
/// a matrix that int8 changes by more than 3% is stored in f16, one that f16 changes by more than
/// 0.1%, or bfloat16 by more than 0.4%, stays f32. Vectors, and weights below 4 KiB, stay f32. In int8, weights that are not the
/// constant operand of `MatMul`, `Gemm` or a `Gather` along axis 0 are stored in f16. Weights
/// that are not f32 are left alone. The small form is made when it is read, so a narrowed
/// bundle takes no more memory than its source.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] when int8 or bfloat16 needs a newer operator set than the model has;
/// [`EngineError::Weight`] when a weight cannot be read; [`EngineError::Cancelled`].
pub async fn narrowed(bundle: &ModelBundle, to: Precision, cancel: &Cancel) -> Result<Narrowed> {
    let unchanged = || Narrowed {
        bundle: bundle.clone(),
        weights: Vec::new(),
    };
    let mut model = bundle.graph.clone();
    let opset = default_opset(&model);
    let Some(graph) = model.graph.as_mut() else {
        return Ok(unchanged());
    };
    if to == Precision::F32 {
        return Ok(unchanged());
    }
    let is_int8 = matches!(to, Precision::Int8 | Precision::Int8Fast);
    if to != Precision::F16 && opset < SMALL_OPSET {
        return Err(EngineError::UnsupportedModel {
            origin: bundle.origin.clone(),
            reason: format!(
                "it uses operator set {opset}, and {to} weights need at least {SMALL_OPSET}"
            ),
            hint: "Store it in f16, or export the model again with a newer operator set".into(),
        });
    }
    let half = match to {
        Precision::Bf16 => Half::Bf16,
        _ => Half::F16,
    };
    let axes = channel_axes(graph);
    let mut names = Names::of(graph, bundle.weights.weights());
    let mut narrowing = Narrowing::default();
    for (index, info) in bundle.weights.weights().iter().enumerate() {
        cancel.check()?;
        if !is_matrix(info) {
            narrowing.keep(index, info);
            continue;
        }
        let values = floats(&bundle.weights, index).await?;
        // A stack of matrices has more channels than scales along one axis.
        let axis = axes.get(&info.name);
        let axis = axis.filter(|&&axis| is_int8 && (axis == 0 || info.shape.len() == 2));
        let stored = axis
            .and_then(|&axis| as_int8(&values, info, axis))
            .or_else(|| as_half(&values, half));
        narrowing.add(index, info, stored, &mut names);
    }
    let Narrowing {
        nodes,
        small,
        infos,
        forms,
        weights,
    } = narrowing;
    if nodes.is_empty() {
        return Ok(Narrowed {
            weights,
            ..unchanged()
        });
    }
    // They read nothing but weights, so they may come first.
    graph.node.splice(0..0, nodes);
    graph.initializer.extend(small);
    model
        .metadata_props
        .retain(|entry| entry.key != NARROWED_KEY);
    model.metadata_props.push(StringStringEntryProto {
        key: NARROWED_KEY.into(),
        value: format!("{to}, {RULES}"),
    });
    let rounds = to == Precision::Int8Fast
        && weights
            .iter()
            .any(|weight| weight.stored == Precision::Int8);
    let narrowed = ModelBundle {
        graph: model,
        weights: Arc::new(Reformed {
            source: bundle.weights.clone(),
            infos,
            forms,
        }),
        ..bundle.clone()
    };
    let narrowed = narrowed.with_rounded_activations(rounds);
    Ok(Narrowed {
        bundle: narrowed,
        weights,
    })
}

/// How a weight is going to be stored, and what that changes.
enum Stored {
    Int8 {
        axis: usize,
        scales: Vec<f32>,
        channels: Channels,
        error: f64,
    },
    Half {
        half: Half,
        error: f64,
    },
}

fn as_int8(values: &[f32], info: &WeightInfo, axis: usize) -> Option<Stored> {
    let channels = Channels::along(&info.shape, axis)?;
    let scales = scales(values, channels);
    let error = relative_error(values, changes(values, &scales, channels), channels);
    (error <= MAX_INT8_ERROR).then_some(Stored::Int8 {
        axis,
        scales,
        channels,
        error,
    })
}

fn as_half(values: &[f32], half: Half) -> Option<Stored> {
    let error = ratio(
        squares(half.changes(values)),
        squares(values.iter().copied()),
    );
    let most = match half {
        Half::F16 => MAX_F16_ERROR,
        Half::Bf16 => MAX_BF16_ERROR,
    };
    (error <= most).then_some(Stored::Half { half, error })
}

/// Whether a weight is worth storing small. What has only one extent may be a table of counts,
/// which f16 would round (2049 to 2048).
fn is_matrix(info: &WeightInfo) -> bool {
    let wide = info.shape.iter().filter(|&&extent| extent > 1).count();
    info.dtype == DType::F32 && info.byte_len() >= MIN_BYTES && wide >= 2
}

/// The axis of the channels of every weight that can be stored in int8, by its name.
fn channel_axes(graph: &GraphProto) -> HashMap<String, usize> {
    let mut axes = HashMap::new();
    for node in &graph.node {
        if !default_domain(&node.domain).is_empty() {
            continue;
        }
        let number = |name: &str| node.int(name).unwrap_or(0);
        // (which input, the axis of its outputs)
        let operands: &[(usize, usize)] = match node.op_type.as_str() {
            "MatMul" => &[(1, 1), (0, 0)],
            "Gemm" if number("transB") == 0 => &[(1, 1)],
            "Gemm" => &[(1, 0)],
            "Gather" if number("axis") == 0 => &[(0, 0)],
            _ => &[],
        };
        for &(input, axis) in operands {
            if let Some(name) = node.input.get(input) {
                axes.entry(name.clone()).or_insert(axis);
            }
        }
    }
    axes
}

/// The names of a graph's values, so that new ones are new.
struct Names(HashSet<String>);

impl Names {
    fn of(graph: &GraphProto, weights: &[WeightInfo]) -> Self {
        let nodes = graph.node.iter().flat_map(|node| &node.output);
        let inputs = graph.input.iter().map(|input| &input.name);
        let tensors = graph.initializer.iter().map(|tensor| &tensor.name);
        let weights = weights.iter().map(|info| &info.name);
        let all = nodes.chain(inputs).chain(tensors).chain(weights);
        Self(all.cloned().collect())
    }

    fn fresh(&mut self, name: &str, ending: &str) -> String {
        let mut fresh = format!("{name}.{ending}");
        while !self.0.insert(fresh.clone()) {
            fresh.push('_');
        }
        fresh
    }
}

/// What is gathered on the way through the weights.
#[derive(Default)]
struct Narrowing {
    nodes: Vec<NodeProto>,
    /// Scales that are too small to live apart from the graph.
    small: Vec<TensorProto>,
    infos: Vec<WeightInfo>,
    forms: Vec<Form>,
    weights: Vec<NarrowedWeight>,
}

impl Narrowing {
    fn keep(&mut self, index: usize, info: &WeightInfo) {
        self.infos.push(info.clone());
        self.forms.push(Form::Same(index));
    }

    fn add(&mut self, index: usize, info: &WeightInfo, stored: Option<Stored>, names: &mut Names) {
        let (precision, relative_error) = match stored {
            None => {
                self.keep(index, info);
                (Precision::F32, 0.0)
            }
            Some(Stored::Half { half, error }) => {
                let (dtype, precision) = match half {
                    Half::F16 => (DType::F16, Precision::F16),
                    Half::Bf16 => (DType::BF16, Precision::Bf16),
                };
                let name = names.fresh(&info.name, &dtype.to_string());
                let to = int("to", DataType::Float as i64);
                self.node("Cast", &[&name], info, to);
                let form = Form::Half {
                    weight: index,
                    half,
                };
                self.form(name, dtype, info.shape.clone(), form);
                (precision, error)
            }
            Some(Stored::Int8 {
                axis,
                scales,
                channels,
                error,
            }) => {
                let ints = names.fresh(&info.name, "int8");
                let scale = names.fresh(&info.name, "scale");
                let inputs = [ints.as_str(), scale.as_str()];
                self.node("DequantizeLinear", &inputs, info, int("axis", axis as i64));
                let scales: Arc<[f32]> = scales.into();
                self.scales(scale, &scales);
                let form = Form::Int8 {
                    weight: index,
                    scales,
                    channels,
                };
                self.form(ints, DType::I8, info.shape.clone(), form);
                (Precision::Int8, error)
            }
        };
        self.weights.push(NarrowedWeight {
            name: info.name.clone(),
            stored: precision,
            relative_error,
        });
    }

    fn node(&mut self, op: &str, inputs: &[&str], gives: &WeightInfo, attribute: AttributeProto) {
        self.nodes.push(NodeProto {
            op_type: op.into(),
            name: format!("{}.node", gives.name),
            input: inputs.iter().map(|&name| name.into()).collect(),
            output: vec![gives.name.clone()],
            attribute: vec![attribute],
            ..NodeProto::default()
        });
    }

    fn form(&mut self, name: String, dtype: DType, shape: Vec<usize>, form: Form) {
        self.infos.push(WeightInfo { name, dtype, shape });
        self.forms.push(form);
    }

    /// Scales are where reading a file would put them.
    fn scales(&mut self, name: String, scales: &Arc<[f32]>) {
        let shape = vec![scales.len()];
        if size_of_val(&**scales) >= WEIGHT_MIN_BYTES {
            self.form(name, DType::F32, shape, Form::Scales(Arc::clone(scales)));
            return;
        }
        self.small.push(TensorProto {
            name,
            data_type: DataType::Float as i32,
            dims: vec![scales.len() as i64],
            raw_data: le::of_f32s(scales),
            ..TensorProto::default()
        });
    }
}
