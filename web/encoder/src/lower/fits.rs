//! Checks that integers fit their type.
//!
//! Numbers are f64 while a graph is read and f32 while a program runs, whatever their type. In ONNX an int8 of 300 is
//! 44, and an int32 that overflows wraps around. A graph with values that do not fit their type is not lowered,
//! because other runtimes would compute other values.

use isovec_engine::onnx::proto::{DataType, NodeProto};

use super::elementwise::WHOLE;
use crate::builder::Builder;
use crate::constant::Kind;
use crate::dim::Dim;
use crate::error::Why;
use crate::magnitude;
use crate::value::Value;

/// Operators that hand numbers on as they are.
const MOVES: [&str; 19] = [
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Dropout",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "Pad",
    "Reshape",
    "Shape",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
    "Where",
];

/// A node's operator, and the types of what it reads and writes.
#[derive(Debug)]
pub(super) struct Types<'n> {
    operator: &'n str,
    inputs: Vec<Option<DataType>>,
    pub(super) output: DataType,
}

impl<'n> Types<'n> {
    /// Of all outputs but flags, which are of any type.
    pub(super) fn new(operator: &'n str, node: &NodeProto, inputs: Vec<Option<DataType>>) -> Self {
        let of_tensor = |name: &str| node.tensor(name).map(|tensor| of(tensor.data_type));
        let given = |at: usize| inputs.get(at).copied().flatten();
        let output = match operator {
            "Cast" => node
                .int("to")
                .map(|to| i32::try_from(to).map_or(DataType::Undefined, of)),
            "CastLike" | "Where" => given(1),
            "Shape" | "Size" => Some(DataType::Int64),
            "Constant" if node.float("value_float").is_some() => Some(DataType::Float),
            "Constant" => of_tensor("value"),
            "ConstantOfShape" => of_tensor("value").or(Some(DataType::Float)),
            _ => inputs.iter().flatten().next().copied(),
        };
        Self {
            operator,
            inputs,
            // Whole numbers of attributes, and what is refused elsewhere.
            output: output.unwrap_or(DataType::Int64),
        }
    }

    /// # Errors
    /// For operands that f64 may not hold, and for results that the output's type does not.
    pub(super) fn check<'v>(
        &self,
        builder: &Builder,
        operands: impl Iterator<Item = &'v Value>,
        results: impl IntoIterator<Item = &'v Value>,
    ) -> Why<()> {
        let casts = matches!(self.operator, "Cast" | "CastLike");
        let from = self.inputs.first().copied().flatten();
        if MOVES.contains(&self.operator) || casts && from == Some(self.output) {
            return Ok(());
        }
        if casts {
            return results
                .into_iter()
                .try_for_each(|result| self.cast(builder, from, result));
        }
        for operand in operands {
            if let (Kind::Whole, Some((least, most))) = (operand.kind(), range(operand))
                && (least < -WHOLE || most > WHOLE)
            {
                return Err("it computes with whole numbers past 2^53".into());
            }
        }
        for result in results {
            self.fits(builder, result, (-WHOLE, WHOLE))?;
            let negates = matches!(self.operator, "Sub" | "Neg");
            if negates && is_unsigned(self.output) && matches!(result, Value::Data(_)) {
                return Err(format!("{:?} that may fall below 0", self.output));
            }
        }
        Ok(())
    }

    fn cast(&self, builder: &Builder, from: Option<DataType>, result: &Value) -> Why<()> {
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        self.fits(builder, result, all)?;
        if result.kind() != Kind::Whole {
            return Ok(());
        }
        let (Some((least, most)), source) = (limits(self.output), from.and_then(limits)) else {
            return Ok(());
        };
        match (result, source) {
            // The largest i64 is 2^63 in f64, as is the float after it.
            (Value::Constant(_) | Value::Uniform { .. }, None)
                if range(result).is_some_and(|(_, own)| own >= most) && most > WHOLE =>
            {
                Err(format!("floats that pass what {:?} holds", self.output))
            }
            (Value::Weight(_), source) => match source {
                Some((own_least, own_most)) if least <= own_least && own_most <= most => Ok(()),
                _ => Err(format!("a weight that may not fit {:?}", self.output)),
            },
            (Value::Data(data), source) if is_unsigned(self.output) => {
                let signed =
                    source.is_none_or(|(least, _)| least < 0.0) && from != Some(DataType::Bool);
                match signed && !builder.never_negative(data.node) {
                    true => Err(format!(
                        "numbers that may be below 0 become {:?}",
                        self.output
                    )),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether a result is within the output's type, and within `bounds`.
    fn fits(&self, builder: &Builder, result: &Value, bounds: (f64, f64)) -> Why<()> {
        let (Kind::Whole, Some(limits)) = (result.kind(), limits(self.output)) else {
            return Ok(());
        };
        let (least, most) = (limits.0.max(bounds.0), limits.1.min(bounds.1));
        let own = match result {
            Value::Data(data) => {
                let size = builder.magnitude(data.node);
                // Below 0 is looked at where it can come from.
                Some((if least < 0.0 { -size } else { 0.0 }, size))
            }
            Value::Constant(constant) if constant.values.is_empty() => return Ok(()),
            Value::Constant(_) | Value::Uniform { .. } | Value::Offsets(_) | Value::Dims { .. } => {
                range(result)
            }
            _ => return Ok(()),
        };
        match own {
            Some((a, b)) if least <= a && b <= most => Ok(()),
            Some((a, b)) => Err(format!(
                "numbers from {a} to {b}, but {:?} holds only {least} to {most}",
                self.output
            )),
            None => Err(format!("{:?} that is no number", self.output)),
        }
    }
}

/// The smallest and the largest number that is known of a value.
fn range(value: &Value) -> Option<(f64, f64)> {
    match value {
        Value::Constant(constant) => constant.values.facts().range,
        Value::Offsets(offsets) => offsets.values.facts().range,
        Value::Uniform { value, .. } => (!value.is_nan()).then_some((*value, *value)),
        Value::Dims { dims, .. } => {
            let ends = dims
                .iter()
                .flat_map(|&dim| [at(dim, 1), at(dim, magnitude::LONGEST)]);
            let ends = ends.map(|end| (end, end));
            // No extents are none that do not fit.
            Some(
                ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
                    .unwrap_or((0.0, 0.0)),
            )
        }
        _ => None,
    }
}

/// An extent in a text of so many tokens.
fn at(dim: Dim, tokens: usize) -> f64 {
    dim.fixed as f64 + dim.tokens as f64 * tokens as f64
}

fn of(data_type: i32) -> DataType {
    DataType::try_from(data_type).unwrap_or(DataType::Undefined)
}

fn is_unsigned(data_type: DataType) -> bool {
    limits(data_type).is_some_and(|(least, _)| least == 0.0)
}

/// The smallest and the largest number of a type of whole numbers, in f64.
fn limits(data_type: DataType) -> Option<(f64, f64)> {
    Some(match data_type {
        DataType::Int8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        DataType::Uint8 => (0.0, f64::from(u8::MAX)),
        DataType::Int16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        DataType::Uint16 => (0.0, f64::from(u16::MAX)),
        DataType::Int32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DataType::Uint32 => (0.0, f64::from(u32::MAX)),
        DataType::Int64 => (i64::MIN as f64, i64::MAX as f64),
        DataType::Uint64 => (0.0, u64::MAX as f64),
        _ => return None,
    })
}
