//! A model whose products multiply whole numbers of 8 bits, as ONNX Runtime computes them.
//!
//! 1. [`Products`] finds what can be stored in 8 bits: the constant matrices of `MatMul`, and tables of `Gather`.
//! 2. [`Products::probe`] is a model that gives the values which [`Observed`] needs; the caller runs it on texts, one at a time.
//! 3. [`quantise`] chooses the scales and writes the nodes.
//!
//! A matrix has a scale for each of its columns. Activations have one scale for a tensor: [`Activations::Static`] takes it from the
//! values that were observed, as `QuantizeLinear` and `DequantizeLinear` around a `MatMul`, which ONNX Runtime makes one product
//! of whole numbers of; [`Activations::Dynamic`] measures it at each run (`DynamicQuantizeLinear`, `MatMulInteger`), so that a text's
//! vector depends on the texts beside it.
//!
//! **Scales move from activations into weights** (SmoothQuant: G. Xiao et al., 2023, <https://arxiv.org/abs/2211.10438>). An input
//! `x` of products becomes `x / s`, and row `c` of their matrices `s[c] · w[c]`, with `s[c] = max|x[c]|^a / max|w[c]|^(1 - a)`.
//! Where nothing but products reads a layer norm, the norm's weight and bias are divided by `s`; elsewhere a `Mul` is added.
//! The strength `a` is the one with the least predicted noise (`noise.rs`).

mod noise;
mod observed;
mod products;
mod rewrite;

use std::collections::BTreeSet;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use serde::Serialize;

use crate::error::{OptimizeError, Result};
use crate::history;

pub use observed::Observed;
pub use products::{Products, check};
pub(crate) use products::{probe, shown, users};
pub(crate) use rewrite::ASKED;

/// Where the scale of activations comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activations {
    /// From values that were observed before.
    Static,
    /// From the values of each run.
    Dynamic,
}

/// How many bits the weights of products and layers have.
///
/// A processor without VNNI adds two products of 8 bits in 16, of unsigned activations and signed weights
/// (`vpmaddubsw`): with weights of 8 bits it may reach the end of these, and gives another value. With 7 bits it cannot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightBits {
    /// -127 to 127.
    #[default]
    Eight,
    /// -63 to 63: no sum is cut off.
    Seven,
}

impl WeightBits {
    /// The largest whole number.
    pub(crate) fn largest(self) -> f32 {
        match self {
            Self::Eight => 127.0,
            Self::Seven => 63.0,
        }
    }
}

/// How products become ones of whole numbers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Int8Options {
    /// Where the scale of activations comes from.
    pub activations: Activations,
    /// The strength with which scales move into weights, 0 to 1; `None`: for each input the one that predicts the least noise,
    /// or none at all.
    pub smooth: Option<f64>,
    /// Bits of the matrices' values.
    pub weights: WeightBits,
    /// Nodes that stay in f32, by the names that [`Product::node`] has.
    pub kept: BTreeSet<String>,
}

impl Int8Options {
    /// With strengths chosen by the predicted noise.
    pub fn new(activations: Activations) -> Self {
        Self {
            activations,
            smooth: None,
            weights: WeightBits::default(),
            kept: BTreeSet::new(),
        }
    }
}

/// What became of a product with a constant matrix, or of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Product {
    /// The name of its node; of its output where the node has none.
    pub node: String,
    /// Whether it is of whole numbers now.
    pub int8: bool,
    /// The predicted ratio of its signal to the noise of quantisation, in decibels; of a table, the ratio of its values.
    pub sqnr: Option<f64>,
    /// The predicted mean squared error of what it gives, as a layer without the rounding behind it; of a table, that of its values.
    pub mse: Option<f64>,
    /// What vectors are with it alone in int8, where that was measured.
    pub alone: Option<Alone>,
    /// The strength with which its input's scales moved into its matrix; `None`: they did not.
    pub smooth: Option<f64>,
    /// Why it stays in f32; empty where it does not.
    pub reason: String,
}

/// The vectors of texts or pictures with one node of a model changed, beside the original's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Alone {
    /// The mean of the cosines.
    pub cosine_mean: f64,
    /// The least of them.
    pub cosine_worst: f64,
}

impl Alone {
    /// Of these cosines; `None` where there are none.
    pub fn of(cosines: &[f64]) -> Option<Self> {
        let cosine_worst = cosines.iter().copied().min_by(f64::total_cmp)?;
        Some(Self {
            cosine_mean: cosines.iter().sum::<f64>() / cosines.len() as f64,
            cosine_worst,
        })
    }
}

impl Product {
    /// One that stays in f32, for this reason.
    pub(crate) fn in_f32(node: String, reason: String) -> Self {
        Self {
            node,
            int8: false,
            sqnr: None,
            mse: None,
            alone: None,
            smooth: None,
            reason,
        }
    }
}

/// Products below this many decibels stay in f32: noise of a thousandth of the signal's power. Nearly all products of
/// all-MiniLM-L6-v2 lie above it.
pub const LEAST_SQNR: f64 = 30.0;

/// The same model with products of whole numbers, and what became of each product. `observed` is what the
/// [probe](Products::probe) gave; without it nothing is smoothed, and nothing is known of the noise.
///
/// The identity is a new one, because vectors are others.
///
/// # Errors
/// [`OptimizeError::Texts`] where a static scale is asked for and nothing was observed; [`OptimizeError::Unsuitable`] where
/// all products would stay in f32, and for a node that is to stay so and is none of its products and tables;
/// [`OptimizeError::Size`] for a strength that is not in 0 to 1; [`OptimizeError::NotFinite`]; those of reading weights.
pub async fn quantise(
    bundle: &ModelBundle,
    products: &Products,
    observed: Option<&Observed>,
    options: &Int8Options,
    cancel: &Cancel,
) -> Result<(ModelBundle, Vec<Product>)> {
    let mut kept = options.kept.iter();
    if let Some(name) = kept.find(|name| !products.names().any(|other| other == **name)) {
        return Err(OptimizeError::Unsuitable {
            origin: bundle.origin.clone(),
            reason: format!(
                "{name:?}, which is to stay in f32, is none of its products and tables"
            ),
            hint: "The report of products in int8 lists them".into(),
        });
    }
    if let Some(strength) = options.smooth
        && !(0.0..=1.0).contains(&strength)
    {
        return Err(OptimizeError::Size {
            what: "the strength of smoothing",
            asked: strength.to_string(),
            allowed: "0 to 1".into(),
        });
    }
    let needed = options.activations == Activations::Static || options.smooth.is_some();
    let observed = observed.filter(|observed| observed.rows() > 0);
    if needed && observed.is_none() {
        return Err(OptimizeError::Texts(
            "there is no text to calibrate with; give texts like those that will be embedded"
                .into(),
        ));
    }
    let (made, told) = rewrite::rewrite(bundle, products, observed, options, cancel).await?;
    if !told
        .iter()
        .any(|product| product.int8 && !products.is_table(&product.node))
    {
        return Err(OptimizeError::Unsuitable {
            origin: bundle.origin.clone(),
            reason: format!(
                "none of its products is to be in int8 and keeps {LEAST_SQNR} dB of signal to noise"
            ),
            hint: "Store its weights in int8 (`--dtype int8`), which rounds no activations".into(),
        });
    }
    let count = told.iter().filter(|product| product.int8).count();
    let name = match options.activations {
        Activations::Static => "static",
        Activations::Dynamic => "dynamic",
    };
    let step = format!(
        "int8: {name}, {count} of {} products and tables",
        told.len()
    );
    Ok((history::noted(made, &bundle.identity.0, step), told))
}

/// The same model with this product or table alone in int8, as [`quantise`] makes it; the original where it stays in f32.
///
/// # Errors
/// Those of reading weights.
pub async fn alone(
    bundle: &ModelBundle,
    products: &Products,
    observed: Option<&Observed>,
    options: &Int8Options,
    node: &str,
    cancel: &Cancel,
) -> Result<ModelBundle> {
    let others = products.names().filter(|name| *name != node);
    let mut options = options.clone();
    options.kept = others.map(str::to_owned).collect();
    let observed = observed.filter(|observed| observed.rows() > 0);
    let (made, _) = rewrite::rewrite(bundle, products, observed, &options, cancel).await?;
    Ok(made)
}
