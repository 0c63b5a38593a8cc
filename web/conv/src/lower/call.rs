//! A node of the graph with the values that it reads.

use std::sync::Arc;

use isovec_engine::onnx::proto::{AttributeProto, NodeProto, TensorProto};

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
        if let Some(ints) = self.ints(name) {
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

    fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        let mut attributes = self.node.attribute.iter();
        attributes.find(|attribute| attribute.name == name)
    }

    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name).map(|attribute| attribute.i)
    }

    pub(super) fn float(&self, name: &str) -> Option<f32> {
        self.attribute(name).map(|attribute| attribute.f)
    }

    pub(super) fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|attribute| &*attribute.ints)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.attribute(name)
            .and_then(|attribute| std::str::from_utf8(&attribute.s).ok())
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&TensorProto> {
        self.attribute(name)
            .and_then(|attribute| attribute.t.as_ref())
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

/// An axis, which may be counted from the end.
pub(super) fn axis(axis: i64, rank: usize) -> Why<usize> {
    let counted = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(counted)
        .ok()
        .filter(|&counted| counted < rank)
        .ok_or_else(|| format!("axis {axis} of {rank}").into())
}
