//! A node of the graph with the values that it reads.

use std::sync::Arc;

use isovec_engine::onnx::proto::NodeProto;

use crate::error::Why;
use crate::value::{Data, Extent, Numbers, Value};

/// A node, its inputs, and the operator set.
#[derive(Debug)]
pub(super) struct Call<'n> {
    pub(super) node: &'n NodeProto,
    pub(super) inputs: Vec<Option<Value>>,
    pub(super) opset: i64,
}

impl Call<'_> {
    /// An input that must be there.
    pub(super) fn input(&self, at: usize) -> Why<&Value> {
        self.optional(at)
            .ok_or_else(|| format!("input {at} is missing").into())
    }

    pub(super) fn optional(&self, at: usize) -> Option<&Value> {
        self.inputs.get(at)?.as_ref()
    }

    /// An input that is computed.
    pub(super) fn data(&self, at: usize) -> Why<&Data> {
        match self.input(at)? {
            Value::Data(data) => Ok(data),
            other => Err(format!("input {at} is {}, not a computed value", other.what()).into()),
        }
    }

    /// An input that must be known.
    pub(super) fn numbers(&self, at: usize) -> Why<&Arc<Numbers>> {
        match self.input(at)? {
            Value::Numbers(numbers) => Ok(numbers),
            other => Err(format!("input {at} is {}, not a constant", other.what()).into()),
        }
    }

    /// A known number that may be missing.
    pub(super) fn number(&self, at: usize) -> Why<Option<f64>> {
        if self.optional(at).is_none() {
            return Ok(None);
        }
        let one = self.numbers(at)?.one();
        one.map(Some)
            .ok_or_else(|| format!("input {at} is not one number").into())
    }

    /// A list of whole numbers: an attribute in old operator sets, an input in new ones.
    pub(super) fn whole_numbers(&self, name: &str, at: usize) -> Why<Option<Vec<i64>>> {
        if let Some(ints) = self.node.ints(name) {
            return Ok(Some(ints.to_vec()));
        }
        let Some(value) = self.optional(at) else {
            return Ok(None);
        };
        let known = value.extents().and_then(|extents| {
            let known = extents.into_iter().map(|extent| match extent {
                Extent::Known(known) => Some(known),
                Extent::Batch => None,
            });
            known.collect::<Option<Vec<_>>>()
        });
        known
            .map(Some)
            .ok_or_else(|| format!("input {at} is {}, not a list of numbers", value.what()).into())
    }

    /// The inputs in words.
    pub(super) fn what(&self) -> String {
        let words: Vec<&str> = self.inputs.iter().flatten().map(Value::what).collect();
        match words.is_empty() {
            true => "nothing".into(),
            false => words.join(", "),
        }
    }
}
