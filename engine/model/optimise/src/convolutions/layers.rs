//! What of a graph can be layers of whole numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{GraphProto, NodeProto};

use super::constants::{Constants, constant};
use super::regions::values_between;
use crate::error::{OptimizeError, Result};
use crate::int8::{Product, check, probe, shown, users};

/// The layers of a network.
#[derive(Debug, Clone)]
pub struct Convolutions {
    pub(super) layers: Vec<Layer>,
    /// What cannot be changed, with the reason.
    pub(super) kept: Vec<Product>,
    /// The values that are observed, and the number of channels that each is seen in.
    pub(super) values: BTreeMap<String, usize>,
    /// Whether one of the layers is a convolution.
    convolves: bool,
}

/// A convolution or a product with a constant kernel, and what follows it and becomes a part of it.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) shown: String,
    pub(super) input: String,
    /// The output of its own node.
    pub(super) output: String,
    pub(super) kernel: Kernel,
    pub(super) bias: Option<String>,
    pub(super) norm: Option<Norm>,
}

/// A constant kernel.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    /// The axis of its outputs.
    pub(super) axis: usize,
    pub(super) groups: usize,
}

/// A batch normalisation behind a layer.
#[derive(Debug, Clone)]
pub(super) struct Norm {
    /// Scale, shift, mean and variance.
    pub(super) constants: [String; 4],
    pub(super) epsilon: f64,
    pub(super) output: String,
}

impl Convolutions {
    /// Those of a model.
    ///
    /// # Errors
    /// Those of [`check`].
    pub fn of(bundle: &ModelBundle) -> Result<Self> {
        check(bundle)?;
        let empty = GraphProto::default();
        let graph = bundle.graph.graph.as_ref().unwrap_or(&empty);
        let constants = Constants::of(bundle, graph);
        let chain = Chain::of(graph);
        let (mut layers, mut kept) = (Vec::new(), Vec::new());
        let mut values = BTreeMap::new();
        for node in &graph.node {
            let Some(layer) = layer(node, &constants, &chain) else {
                continue;
            };
            let name = &layer.kernel.name;
            let count = chain.users.get(name.as_str()).copied().unwrap_or(0);
            if count > 1 {
                let reason = format!("{name} is shared: it is read {count} times");
                kept.push(Product::in_f32(layer.shown, reason));
                continue;
            }
            for value in [layer.made(), chain.activated(layer.made())] {
                values.entry(value.to_owned()).or_insert(1);
            }
            layers.push(layer);
        }
        let all: Vec<&Layer> = layers.iter().collect();
        for value in values_between(&all, graph, &chain) {
            values.entry(value.to_owned()).or_insert(1);
        }
        // An input is seen in its channels, even where it is an output as well.
        for layer in &layers {
            values.insert(layer.input.clone(), layer.kernel.channels());
        }
        let convolves = layers.iter().any(|layer| layer.kernel.shape.len() > 2);
        Ok(Self {
            convolves,
            layers,
            kept,
            values,
        })
    }

    /// Whether the model has convolutions that can be of whole numbers.
    pub fn any(&self) -> bool {
        self.convolves
    }

    /// Refuses a model without convolutions.
    ///
    /// # Errors
    /// [`OptimizeError::Unsuitable`].
    pub(super) fn need_any(&self, origin: &str) -> Result<()> {
        if self.any() {
            return Ok(());
        }
        let shared = match self.kept.is_empty() {
            true => "",
            false => " that no other node reads",
        };
        Err(OptimizeError::Unsuitable {
            origin: origin.to_owned(),
            reason: format!(
                "it has no convolution (Conv) of pictures with a constant kernel{shared}"
            ),
            hint: "Leave it as it is".into(),
        })
    }

    /// A model that gives what [`Ranges`](super::Ranges) adds, but for the model's own inputs.
    #[must_use]
    pub fn probe(&self, bundle: &ModelBundle) -> ModelBundle {
        probe(bundle, self.values.keys().collect())
    }

    /// The names of all layers, those that cannot be changed among them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let layers = self.layers.iter().map(|layer| layer.shown.as_str());
        layers.chain(self.kept.iter().map(|layer| layer.node.as_str()))
    }
}

impl Layer {
    /// The value that it makes, the batch normalisation included.
    pub(super) fn made(&self) -> &str {
        self.norm.as_ref().map_or(&self.output, |norm| &norm.output)
    }
}

impl Kernel {
    pub(super) fn outputs(&self) -> usize {
        self.shape[self.axis]
    }

    /// Channels of the input.
    pub(super) fn channels(&self) -> usize {
        self.shape[1 - self.axis] * self.groups
    }

    /// For a value of the kernel: its output, and its channel of the input.
    pub(super) fn place(&self, index: usize) -> (usize, usize) {
        let steps: usize = self.shape[2..].iter().product();
        let (first, second) = (index / steps / self.shape[1], index / steps % self.shape[1]);
        match self.axis {
            0 => {
                let group = first / (self.outputs() / self.groups);
                (first, group * self.shape[1] + second)
            }
            _ => (second, first),
        }
    }
}

/// Who reads what.
pub(super) struct Chain<'g> {
    pub(super) users: HashMap<&'g str, usize>,
    /// The only reader of a value, where it has one.
    readers: HashMap<&'g str, &'g NodeProto>,
    constants: BTreeSet<&'g str>,
}

impl<'g> Chain<'g> {
    pub(super) fn of(graph: &'g GraphProto) -> Self {
        let users = users(graph);
        let mut readers = HashMap::new();
        for node in &graph.node {
            let alone = node
                .input
                .iter()
                .filter(|name| users.get(name.as_str()) == Some(&1));
            readers.extend(alone.map(|name| (name.as_str(), node)));
        }
        let constants = graph.initializer.iter().map(|tensor| tensor.name.as_str());
        let nodes = graph.node.iter().filter_map(constant);
        let constants = constants.chain(nodes.map(|(name, _)| name));
        Self {
            users,
            readers,
            constants: constants.collect(),
        }
    }

    fn next(&self, value: &str) -> Option<&'g NodeProto> {
        let reader = self.readers.get(value)?;
        let first = reader.input.first().is_some_and(|first| first == value);
        (first && reader.output.len() == 1).then_some(reader)
    }

    /// The value behind a Relu or a Clip that alone reads this one, else the value. ONNX Runtime joins both with the rounding that
    /// follows: a Clip only where its ends are constants.
    pub(super) fn activated<'v>(&self, value: &'v str) -> &'v str
    where
        'g: 'v,
    {
        let Some(node) = self.next(value) else {
            return value;
        };
        let ends = &node.input[1..];
        let known = |end: &String| end.is_empty() || self.constants.contains(end.as_str());
        match (default_domain(&node.domain), node.op_type.as_str()) {
            ("", "Relu") => &node.output[0],
            ("", "Clip") if ends.iter().all(known) => &node.output[0],
            _ => value,
        }
    }
}

/// A node as a layer, if it is one.
fn layer(node: &NodeProto, constants: &Constants<'_>, chain: &Chain<'_>) -> Option<Layer> {
    if !default_domain(&node.domain).is_empty() {
        return None;
    }
    let [input, name, rest @ ..] = node.input.as_slice() else {
        return None;
    };
    if constants.shape(input).is_some() {
        return None;
    }
    let shape = constants.shape(name)?;
    let kernel = match (node.op_type.as_str(), shape.len()) {
        ("Conv", 4) => Kernel {
            name: name.clone(),
            axis: 0,
            groups: usize::try_from(node.int("group").unwrap_or(1)).ok()?,
            shape,
        },
        ("Gemm", 2) if plain(node) => Kernel {
            name: name.clone(),
            axis: usize::from(node.int("transB").unwrap_or(0) == 0),
            groups: 1,
            shape,
        },
        _ => return None,
    };
    if kernel.groups == 0
        || kernel.shape.contains(&0)
        || !kernel.outputs().is_multiple_of(kernel.groups)
    {
        return None;
    }
    let bias = rest.first().filter(|bias| !bias.is_empty());
    let fits = |name: &String| constants.shape(name).as_deref() == Some(&[kernel.outputs()]);
    if !bias.is_none_or(fits) {
        return None;
    }
    let output = node.output.first()?;
    let norm = chain.next(output).filter(|_| kernel.shape.len() == 4);
    let norm = norm.and_then(|norm| {
        let named = norm.op_type == "BatchNormalization" && default_domain(&norm.domain).is_empty();
        let [_, of @ ..] = norm.input.as_slice() else {
            return None;
        };
        let of: &[String; 4] = of.try_into().ok()?;
        (named && norm.int("training_mode").unwrap_or(0) == 0 && of.iter().all(fits)).then(|| {
            Norm {
                constants: of.clone(),
                epsilon: norm.float("epsilon").map_or(1e-5, f64::from),
                output: norm.output[0].clone(),
            }
        })
    });
    Some(Layer {
        shown: shown(node),
        input: input.clone(),
        output: output.clone(),
        bias: bias.cloned(),
        kernel,
        norm,
    })
}

/// Whether a `Gemm` is `x · w + b`.
fn plain(node: &NodeProto) -> bool {
    let one = |name| node.float(name).is_none_or(|factor| factor == 1.0);
    one("alpha") && one("beta") && node.int("transA").unwrap_or(0) == 0
}
