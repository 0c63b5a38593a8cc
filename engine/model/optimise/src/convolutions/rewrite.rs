//! Writes the nodes of layers of whole numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::onnx::proto::{GraphProto, NodeProto};
use isovec_engine::tensor::DType;
use isovec_model::onnx::builder::int;

use super::constants::Constants;
use super::folding::{Folded, rounded};
use super::layers::{Chain, Convolutions, Layer};
use super::noise;
use super::observed::Ranges;
use super::regions::Regions;
use crate::error::{OptimizeError, Result};
use crate::int8::{ASKED, LEAST_SQNR, Product, WeightBits};
use crate::rewriting::{Rewriting, node};
use crate::source::Form;

/// Writes the nodes, and says what became of each layer.
pub(super) async fn rewrite(
    bundle: &ModelBundle,
    layers: &Convolutions,
    ranges: &Ranges,
    kept: &BTreeSet<String>,
    weights: WeightBits,
    cancel: &Cancel,
) -> Result<(ModelBundle, Vec<Product>)> {
    layers.need_any(&bundle.origin)?;
    let empty = GraphProto::default();
    let graph = bundle.graph.graph.as_ref().unwrap_or(&empty);
    let (constants, chain) = (Constants::of(bundle, graph), Chain::of(graph));
    let mut told = layers.kept.clone();
    let mut taken = Vec::new();
    for layer in &layers.layers {
        cancel.check().map_err(OptimizeError::from)?;
        let (ratio, mse) = noise_of(
            layer,
            &Folded::of(layer, &constants).await?,
            ranges,
            &chain,
            weights,
        )?;
        let asked = kept.contains(&layer.shown);
        let int8 = !asked && ratio >= LEAST_SQNR;
        if int8 {
            taken.push(layer);
        }
        told.push(Product {
            node: layer.shown.clone(),
            int8,
            sqnr: Some(ratio),
            mse: Some(mse),
            alone: None,
            smooth: None,
            reason: match int8 {
                true => String::new(),
                false if asked => ASKED.into(),
                false => format!(
                    "{ratio:.1} dB of signal to noise are predicted, and {LEAST_SQNR} are needed"
                ),
            },
        });
    }
    if taken.is_empty() {
        return Err(OptimizeError::Unsuitable {
            origin: bundle.origin.clone(),
            reason: format!(
                "none of its layers is to be in int8 and keeps {LEAST_SQNR} dB of signal to noise"
            ),
            hint: "Store its weights in f16 (`--dtype f16`), which rounds no values between layers"
                .into(),
        });
    }
    let mut writing = Writing {
        graph,
        parts: Rewriting::new(bundle, graph, "isovec int8 layers 1"),
        regions: Regions::around(&taken, graph, &chain, ranges)?,
        constants,
        weights,
        names: BTreeMap::new(),
        instead: HashMap::new(),
        dropped: BTreeSet::new(),
    };
    writing.name_values();
    for layer in taken {
        cancel.check().map_err(OptimizeError::from)?;
        writing.layer(layer).await?;
    }
    Ok((writing.finish(), told))
}

/// The predicted ratio of a layer's signal to its noise, in decibels, and the mean squared error of what it gives, not rounded yet.
fn noise_of(
    layer: &Layer,
    folded: &Folded,
    ranges: &Ranges,
    chain: &Chain<'_>,
    weights: WeightBits,
) -> Result<(f64, f64)> {
    let (step, _) = ranges.range(&layer.input)?.to_u8();
    let scales = folded.scales(&layer.kernel, step, weights);
    let powers = ranges.powers(&layer.input);
    let inside = noise::of_layer(&layer.kernel, folded, &scales, step, &powers);
    let given = chain.activated(layer.made());
    let (step, _) = ranges.range(given)?.to_u8();
    let power = ranges.power(given);
    let ratio = noise::decibels(
        (inside, ranges.power(layer.made())),
        (noise::of_rounding(step, power), power),
    );
    Ok((ratio, inside))
}

/// The names of what a value becomes.
struct Names {
    scale: String,
    zero: String,
    rounded: String,
    /// In f32 again.
    wide: String,
    /// As its node makes it: another name than the value's where that is an output.
    raw: String,
}

/// The graph that is being written.
struct Writing<'b> {
    graph: &'b GraphProto,
    parts: Rewriting<'b>,
    regions: Regions,
    constants: Constants<'b>,
    weights: WeightBits,
    names: BTreeMap<String, Names>,
    /// The nodes of layers, by their output.
    instead: HashMap<&'b str, Vec<NodeProto>>,
    /// Outputs of batch normalisations that are a part of a layer.
    dropped: BTreeSet<String>,
}

impl<'b> Writing<'b> {
    /// Stores scales and zero points, and chooses the names.
    fn name_values(&mut self) {
        let outputs: BTreeSet<&str> = self
            .graph
            .output
            .iter()
            .map(|output| output.name.as_str())
            .collect();
        for (value, &(step, offset)) in &self.regions.values {
            let rounded = self.parts.fresh(&format!("{value}.int8"));
            let (wide, raw) =
                match outputs.contains(value.as_str()) && self.regions.made.contains(value) {
                    true => (value.clone(), self.parts.fresh(&format!("{value}.f32"))),
                    false => (self.parts.fresh(&format!("{value}.wide")), value.clone()),
                };
            let names = Names {
                scale: self.parts.f32s(&format!("{value}.scale"), &[], &[step]),
                zero: self
                    .parts
                    .constant(&format!("{value}.zero"), DType::U8, &[], vec![offset]),
                rounded,
                wide,
                raw,
            };
            self.names.insert(value.clone(), names);
        }
    }

    /// Writes a layer.
    async fn layer(&mut self, layer: &Layer) -> Result<()> {
        let Some(old) = self
            .graph
            .node
            .iter()
            .find(|node| node.output.first() == Some(&layer.output))
        else {
            return Ok(());
        };
        let kernel = &layer.kernel;
        let folded = Folded::of(layer, &self.constants).await?;
        let step = self
            .regions
            .values
            .get(&layer.input)
            .map_or(1.0, |&(step, _)| step);
        let scales = folded.scales(kernel, step, self.weights);
        let axis = || Some(int("axis", kernel.axis as i64));
        let name = format!("{}.int8", kernel.name);
        let whole = match self.constants.weight(&kernel.name) {
            Some(weight) => {
                let form = Form::Kernel {
                    weight,
                    axis: kernel.axis,
                    by: folded.by.clone(),
                    scales: scales.clone(),
                };
                self.parts.weight(&name, DType::I8, &kernel.shape, form)
            }
            None => {
                let whole = rounded(
                    &folded.values,
                    &kernel.shape,
                    kernel.axis,
                    &folded.by,
                    &scales,
                );
                let bytes = whole.into_iter().map(|value| value as u8).collect();
                self.parts.constant(&name, DType::I8, &kernel.shape, bytes)
            }
        };
        let outputs = [scales.len()];
        let named = |what: &str| format!("{}.{what}", kernel.name);
        let scale = self.parts.f32s(&named("scale"), &outputs, &scales);
        // Zeros, without which ONNX Runtime joins no Gemm.
        let zero = self
            .parts
            .constant(&named("zero"), DType::I8, &outputs, vec![0; scales.len()]);
        let wide = self.parts.fresh(&named("wide"));
        let mut nodes = vec![node(
            "DequantizeLinear",
            &[&whole, &scale, &zero],
            &[&wide],
            axis(),
        )];
        let mut inputs = vec![self.wide(&layer.input), wide];
        if let Some(bias) = folded.whole_bias(&scales, step) {
            let named = |what: &str| format!("{}.bias.{what}", kernel.name);
            let bytes = bias.iter().flat_map(|value| value.to_le_bytes()).collect();
            let whole = self
                .parts
                .constant(&named("int32"), DType::I32, &outputs, bytes);
            let steps: Vec<f32> = scales.iter().map(|scale| scale * step).collect();
            let scale = self.parts.f32s(&named("scale"), &outputs, &steps);
            let wide = self.parts.fresh(&named("wide"));
            let axis = Some(int("axis", 0));
            nodes.push(node("DequantizeLinear", &[&whole, &scale], &[&wide], axis));
            inputs.push(wide);
        }
        if let Some(norm) = &layer.norm {
            self.dropped.insert(norm.output.clone());
        }
        nodes.push(NodeProto {
            input: inputs,
            output: vec![layer.made().to_owned()],
            ..old.clone()
        });
        if let Some(output) = old.output.first() {
            self.instead.insert(output, nodes);
        }
        Ok(())
    }

    /// The value in f32 again, after it was in 8 bits.
    fn wide(&self, value: &str) -> String {
        let names = self.names.get(value);
        names.map_or_else(|| value.to_owned(), |names| names.wide.clone())
    }

    fn finish(self) -> ModelBundle {
        let Self {
            graph: old,
            parts,
            regions,
            names,
            mut instead,
            dropped,
            ..
        } = self;
        let quantised = |value: &str| {
            let Names {
                scale,
                zero,
                rounded,
                wide,
                raw,
            } = names.get(value)?;
            let down = node("QuantizeLinear", &[raw, scale, zero], &[rounded], None);
            let up = node("DequantizeLinear", &[rounded, scale, zero], &[wide], None);
            Some([down, up])
        };
        let mut nodes = Vec::new();
        for input in &old.input {
            nodes.extend(quantised(&input.name).into_iter().flatten());
        }
        for (at, node) in old.node.iter().enumerate() {
            if node.output.iter().any(|output| dropped.contains(output)) {
                continue;
            }
            let small = regions.between.contains(&at);
            let layer = node
                .output
                .first()
                .and_then(|output| instead.remove(output.as_str()));
            let mut written = layer.unwrap_or_else(|| {
                let mut node = node.clone();
                for input in &mut node.input {
                    // A node in f32 reads what is in f32, where that is still there.
                    if let Some(names) = names.get(input)
                        && (small || regions.made.contains(input))
                    {
                        input.clone_from(&names.wide);
                    }
                }
                vec![node]
            });
            let made: Vec<String> = written
                .last()
                .map(|node| node.output.clone())
                .unwrap_or_default();
            if let Some(last) = written.last_mut() {
                for output in &mut last.output {
                    if let Some(names) = names.get(output) {
                        output.clone_from(&names.raw);
                    }
                }
            }
            nodes.extend(written);
            for value in &made {
                nodes.extend(quantised(value).into_iter().flatten());
            }
        }
        parts.finish(|graph| graph.node = nodes)
    }
}
