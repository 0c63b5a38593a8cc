//! What a model takes, gives and is made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tensor::DType;

/// One extent of an input or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dim {
    /// Always this many.
    Fixed(usize),
    /// Chosen per batch; equal names mean equal extents.
    Symbolic(String),
}

/// An input or output of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueDescription {
    /// The graph's name.
    pub name: String,
    /// The element type; `None` for one that isovec does not carry.
    pub dtype: Option<DType>,
    /// The extents; empty for a scalar, `None` where the model does not say.
    pub dims: Option<Vec<Dim>>,
}

impl ValueDescription {
    /// Whether a tensor of this shape fits.
    pub fn accepts(&self, shape: &[usize]) -> bool {
        let Some(dims) = &self.dims else { return true };
        dims.len() == shape.len()
            && dims.iter().zip(shape).all(|(dim, extent)| match dim {
                Dim::Fixed(fixed) => fixed == extent,
                Dim::Symbolic(_) => true,
            })
    }

    /// The extents as `[batch, sequence, 384]`.
    pub fn dims_text(&self) -> String {
        let Some(dims) = &self.dims else {
            return "any shape".into();
        };
        let dims: Vec<String> = dims
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(fixed) => fixed.to_string(),
                Dim::Symbolic(name) => name.clone(),
            })
            .collect();
        format!("[{}]", dims.join(", "))
    }
}

/// A model, as its graph describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelDescription {
    /// What must be fed.
    pub inputs: Vec<ValueDescription>,
    /// What comes out.
    pub outputs: Vec<ValueDescription>,
    /// Version of the default operator set.
    pub opset: i64,
    /// The program that wrote the file.
    pub producer: String,
    /// Bytes of all weights.
    pub weights_bytes: u64,
    /// Number of weights' elements.
    pub parameters: u64,
    /// How often each operator occurs.
    pub operators: BTreeMap<String, usize>,
}
