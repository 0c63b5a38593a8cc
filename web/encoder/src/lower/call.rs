//! A node of the graph with the values that it reads.

use isovec_engine::onnx::proto::NodeProto;

use crate::constant::Constant;
use crate::error::Why;
use crate::value::Value;

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
            .ok_or_else(|| format!("input {at} is missing"))
    }

    pub(super) fn optional(&self, at: usize) -> Option<&Value> {
        self.inputs.get(at)?.as_ref()
    }

    /// An input that must be known.
    pub(super) fn constant(&self, at: usize) -> Why<&Constant> {
        match self.input(at)? {
            Value::Constant(constant) => Ok(constant),
            other => Err(format!("input {at} is {}, not a constant", other.what())),
        }
    }

    /// An input of whole numbers, known, that may be missing.
    pub(super) fn whole_numbers(&self, at: usize) -> Why<Option<Vec<i64>>> {
        let Some(value) = self.optional(at) else {
            return Ok(None);
        };
        let dims = value
            .as_dims()
            .ok_or_else(|| format!("input {at} is {}, not a list of numbers", value.what()))?;
        let known: Option<Vec<i64>> = dims.iter().map(|dim| dim.known()).collect();
        known
            .map(Some)
            .ok_or_else(|| format!("input {at} depends on the text"))
    }

    /// The inputs in words.
    pub(super) fn what(&self) -> String {
        let inputs = self.inputs.iter().flatten();
        let words: Vec<&str> = inputs.map(Value::what).collect();
        match words.is_empty() {
            true => "nothing".into(),
            false => words.join(", "),
        }
    }
}
