//! Writes the nodes of products of whole numbers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{DataType, GraphProto, NodeProto};
use isovec_engine::tensor::DType;
use isovec_model::onnx::builder::int;
use isovec_model::precision::{dequantize, floats};

use super::noise::{Plan, Values, decibels, plan};
use super::observed::Observed;
use super::products::{Input, Products, Table, users};
use super::{Activations, Int8Options, LEAST_SQNR, Product, WeightBits};
use crate::error::{OptimizeError, Result};
use crate::measure::{mse, sqnr};
use crate::rewriting::{Rewriting, node};
use crate::source::{Form, matrix, table};

/// Why a node stays in f32 that the caller named.
pub(crate) const ASKED: &str = "it was asked to stay in f32";

/// Writes the nodes, and says what became of each product and table.
pub(super) async fn rewrite(
    bundle: &ModelBundle,
    products: &Products,
    observed: Option<&Observed>,
    options: &Int8Options,
    cancel: &Cancel,
) -> Result<(ModelBundle, Vec<Product>)> {
    let empty = GraphProto::default();
    let graph = bundle.graph.graph.as_ref().unwrap_or(&empty);
    let mut writing = Writing::new(bundle, graph, options);
    let mut told = products.kept.clone();
    for (at, input) in products.inputs.iter().enumerate() {
        cancel.check().map_err(OptimizeError::from)?;
        let mut matrices = Vec::new();
        for matrix in &input.matrices {
            matrices.push(floats(&bundle.weights, matrix.weight).await?);
        }
        let values: Vec<Values<'_>> = input
            .matrices
            .iter()
            .zip(&matrices)
            .map(|(matrix, values)| Values {
                values,
                columns: matrix.columns,
            })
            .collect();
        let seen = observed.map(|observed| {
            let powers = observed.powers[at].iter();
            let signals: Vec<f64> = powers.map(|power| power.of_row()).collect();
            let channels = &observed.inputs[at];
            let plan = plan(channels, &values, &signals, options);
            (plan, signals)
        });
        let mut taken = Vec::new();
        for (place, matrix) in input.matrices.iter().enumerate() {
            let noise = seen
                .as_ref()
                .map(|(plan, signals)| (signals[place], plan.noise[place]));
            let ratio = noise.map(|(signal, noise)| decibels(signal, noise));
            let asked = options.kept.contains(&matrix.shown);
            let int8 = !asked && ratio.is_none_or(|ratio| ratio >= LEAST_SQNR);
            if int8 {
                taken.push(place);
            }
            told.push(Product {
                node: matrix.shown.clone(),
                int8,
                sqnr: ratio,
                mse: noise.map(|(_, noise)| noise / matrix.columns.max(1) as f64),
                alone: None,
                smooth: seen
                    .as_ref()
                    .and_then(|(plan, _)| plan.strength)
                    .filter(|_| int8),
                reason: match int8 {
                    true => String::new(),
                    false if asked => ASKED.into(),
                    false => format!(
                        "{:.1} dB of signal to noise are predicted, and {LEAST_SQNR} are needed",
                        ratio.unwrap_or_default()
                    ),
                },
            });
        }
        if !taken.is_empty() {
            writing
                .input(input, &taken, seen.map(|(plan, _)| plan))
                .await?;
        }
    }
    for table in &products.tables {
        cancel.check().map_err(OptimizeError::from)?;
        let asked = options.kept.contains(&table.shown);
        told.push(writing.table(table, asked).await?);
    }
    Ok((writing.finish(), told))
}

/// The graph that is being written.
struct Writing<'b> {
    bundle: &'b ModelBundle,
    graph: &'b GraphProto,
    activations: Activations,
    weights: WeightBits,
    /// Its weights and constants.
    parts: Rewriting<'b>,
    /// How often each value of the original is read.
    users: HashMap<&'b str, usize>,
    /// Nodes in the place of others, by the index of those.
    instead: BTreeMap<usize, Vec<NodeProto>>,
    /// Layer norms whose weight and bias are others now, by their index.
    norms: BTreeMap<usize, NodeProto>,
}

impl<'b> Writing<'b> {
    fn new(bundle: &'b ModelBundle, graph: &'b GraphProto, options: &Int8Options) -> Self {
        let mut parts = Rewriting::new(bundle, graph, "isovec int8 1");
        let activations = options.activations;
        parts.identify(&[u8::from(activations == Activations::Dynamic)]);
        Self {
            bundle,
            graph,
            activations,
            weights: options.weights,
            parts,
            users: users(graph),
            instead: BTreeMap::new(),
            norms: BTreeMap::new(),
        }
    }

    /// Quantises an input, and multiplies it with some of its matrices.
    async fn input(&mut self, input: &Input, taken: &[usize], plan: Option<Plan>) -> Result<()> {
        let mut before = Vec::new();
        let mut value = input.name.clone();
        let ones: Arc<[f32]> = vec![1.0; input.width].into();
        let mut by = ones;
        if let Some(plan) = plan.as_ref().filter(|plan| plan.strength.is_some()) {
            by = plan.divisors.as_slice().into();
            let all = taken.len() == input.matrices.len();
            if !(all && self.scaled_norm(input, &by).await?) {
                let factors: Vec<f32> = by.iter().map(|by| by.recip()).collect();
                let factors =
                    self.parts
                        .f32s(&format!("{}.smooth", input.name), &[by.len()], &factors);
                let smoothed = self.parts.fresh(&format!("{}.smoothed", input.name));
                before.push(node("Mul", &[&value, &factors], &[&smoothed], None));
                value = smoothed;
            }
        }
        let rounded = self.parts.fresh(&format!("{}.int8", input.name));
        let (scale, zero, wide);
        match (self.activations, &plan) {
            (Activations::Static, Some(plan)) => {
                let (step, offset) = plan.range.to_u8();
                scale = self
                    .parts
                    .f32s(&format!("{}.scale", input.name), &[], &[step]);
                zero = self.parts.constant(
                    &format!("{}.zero", input.name),
                    DType::U8,
                    &[],
                    vec![offset],
                );
                wide = self.parts.fresh(&format!("{}.wide", input.name));
                before.push(node(
                    "QuantizeLinear",
                    &[&value, &scale, &zero],
                    &[&rounded],
                    None,
                ));
                before.push(node(
                    "DequantizeLinear",
                    &[&rounded, &scale, &zero],
                    &[&wide],
                    None,
                ));
            }
            _ => {
                scale = self.parts.fresh(&format!("{}.scale", input.name));
                zero = self.parts.fresh(&format!("{}.zero", input.name));
                wide = rounded.clone();
                let outputs = [rounded.as_str(), &scale, &zero];
                before.push(node("DynamicQuantizeLinear", &[&value], &outputs, None));
            }
        }
        for &place in taken {
            let product = &input.matrices[place];
            let info = &self.bundle.weights.weights()[product.weight];
            let whole = matrix(&self.bundle.weights, product.weight, &by, self.weights).await?;
            let form = Form::Matrix {
                weight: product.weight,
                by: Arc::clone(&by),
                weights: self.weights,
            };
            let name = format!("{}.int8", info.name);
            let name = self.parts.weight(&name, DType::I8, &info.shape, form);
            let scales = &whole.channels.scales;
            let scales = self
                .parts
                .f32s(&format!("{}.scale", info.name), &[scales.len()], scales);
            let old = &self.graph.node[product.node];
            let mut nodes = std::mem::take(&mut before);
            match self.activations {
                Activations::Static => {
                    let matrix = self.parts.fresh(&format!("{}.wide", info.name));
                    let axis = Some(int("axis", 1));
                    nodes.push(node(
                        "DequantizeLinear",
                        &[&name, &scales],
                        &[&matrix],
                        axis,
                    ));
                    nodes.push(NodeProto {
                        input: vec![wide.clone(), matrix],
                        ..old.clone()
                    });
                }
                Activations::Dynamic => {
                    let whole = self.parts.fresh(&format!("{}.whole", product.output));
                    let float = self.parts.fresh(&format!("{}.float", product.output));
                    let scaled = self.parts.fresh(&format!("{}.scale", product.output));
                    let to = Some(int("to", DataType::Float as i64));
                    nodes.push(node(
                        "MatMulInteger",
                        &[&wide, &name, &zero],
                        &[&whole],
                        None,
                    ));
                    nodes.push(node("Cast", &[&whole], &[&float], to));
                    nodes.push(node("Mul", &[&scale, &scales], &[&scaled], None));
                    nodes.push(NodeProto {
                        op_type: "Mul".into(),
                        input: vec![float, scaled],
                        ..old.clone()
                    });
                }
            }
            self.instead.insert(product.node, nodes);
        }
        Ok(())
    }

    /// Divides the weight and the bias of the layer norm that makes an input, where nothing else reads it or them.
    async fn scaled_norm(&mut self, input: &Input, by: &[f32]) -> Result<bool> {
        let made = self
            .graph
            .node
            .iter()
            .position(|node| node.output.first() == Some(&input.name));
        let read = self.users.get(input.name.as_str()).copied();
        let Some(at) = made.filter(|_| read == Some(input.matrices.len())) else {
            return Ok(false);
        };
        let norm = &self.graph.node[at];
        if norm.op_type != "LayerNormalization" || !default_domain(&norm.domain).is_empty() {
            return Ok(false);
        }
        let mut found = Vec::new();
        for name in norm.input.iter().skip(1).filter(|name| !name.is_empty()) {
            let alone = self.users.get(name.as_str()) == Some(&1);
            match self
                .vector(name)
                .await?
                .filter(|values| alone && values.len() == by.len())
            {
                Some(values) => found.push((name, values)),
                None => return Ok(false),
            }
        }
        let mut changed = norm.clone();
        for (place, (name, values)) in found.into_iter().enumerate() {
            let divided: Vec<f32> = values
                .iter()
                .zip(by)
                .map(|(value, by)| value / by)
                .collect();
            changed.input[place + 1] =
                self.parts
                    .f32s(&format!("{name}.smooth"), &[by.len()], &divided);
        }
        self.norms.insert(at, changed);
        Ok(true)
    }

    /// The values of a constant of f32s.
    async fn vector(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let infos = self.bundle.weights.weights();
        if let Some(at) = infos.iter().position(|info| info.name == name) {
            return match infos[at].dtype {
                DType::F32 => Ok(Some(floats(&self.bundle.weights, at).await?)),
                _ => Ok(None),
            };
        }
        let mut small = self.graph.initializer.iter();
        let tensor =
            small.find(|tensor| tensor.name == name && tensor.data_type == DataType::Float as i32);
        Ok(tensor.map(|tensor| {
            let (values, _) = tensor.raw_data.as_chunks::<4>();
            values
                .iter()
                .map(|bytes| f32::from_le_bytes(*bytes))
                .collect()
        }))
    }

    /// Looks rows up in whole numbers.
    async fn table(&mut self, at: &Table, asked: bool) -> Result<Product> {
        let info = &self.bundle.weights.weights()[at.weight];
        let values = floats(&self.bundle.weights, at.weight).await?;
        let whole = table(&self.bundle.weights, at.weight).await?;
        let rounded = dequantize(&whole)?;
        let ratio = sqnr(&values, &rounded);
        let int8 = !asked && ratio >= LEAST_SQNR;
        if int8 {
            let name = format!("{}.int8", info.name);
            let form = Form::Table(at.weight);
            let name = self.parts.weight(&name, DType::I8, &info.shape, form);
            let scales = &whole.channels.scales;
            let scales =
                self.parts
                    .f32s(&format!("{}.scale", info.name), &[scales.len(), 1], scales);
            let (ids, output) = (&at.rows, &at.output);
            let [rows, float, factors] = ["rows", "float", "factors"]
                .map(|what| self.parts.fresh(&format!("{output}.{what}")));
            let to = Some(int("to", DataType::Float as i64));
            let nodes = vec![
                node("Gather", &[&name, ids], &[&rows], None),
                node("Cast", &[&rows], &[&float], to),
                node("Gather", &[&scales, ids], &[&factors], None),
                node("Mul", &[&float, &factors], &[output], None),
            ];
            self.instead.insert(at.node, nodes);
        }
        Ok(Product {
            node: at.shown.clone(),
            int8,
            sqnr: Some(ratio),
            mse: Some(mse(&values, &rounded)),
            alone: None,
            smooth: None,
            reason: match int8 {
                true => String::new(),
                false if asked => ASKED.into(),
                false => {
                    format!("its rows have {ratio:.1} dB in int8, and {LEAST_SQNR} are needed")
                }
            },
        })
    }

    fn finish(self) -> ModelBundle {
        let (mut instead, mut norms) = (self.instead, self.norms);
        self.parts.finish(|graph| {
            let old = std::mem::take(&mut graph.node);
            for (at, old) in old.into_iter().enumerate() {
                match instead.remove(&at) {
                    Some(new) => graph.node.extend(new),
                    None => graph.node.push(norms.remove(&at).unwrap_or(old)),
                }
            }
        })
    }
}
