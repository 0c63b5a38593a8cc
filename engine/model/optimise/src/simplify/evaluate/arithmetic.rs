//! Operators that compute numbers, where every engine computes the same ones.

use isovec_engine::onnx::proto::DataType;

use super::super::value::{Numbers, Value};
use super::places::{spread, spread_places};

pub(super) fn cast(value: &Value, to: i64) -> Option<Value> {
    let to = DataType::try_from(i32::try_from(to).ok()?).ok()?;
    let numbers = match (&value.numbers, to) {
        (Numbers::F32(_), DataType::Float)
        | (Numbers::I64(_), DataType::Int64)
        | (Numbers::I32(_), DataType::Int32)
        | (Numbers::Bool(_), DataType::Bool) => value.numbers.clone(),
        (Numbers::I32(numbers), DataType::Int64) => {
            Numbers::I64(numbers.iter().map(|&n| n.into()).collect())
        }
        // Whole numbers that do not fit are left to the engine.
        (Numbers::I64(numbers), DataType::Int32) => {
            let fitting = numbers.iter().map(|&n| n.try_into().ok());
            Numbers::I32(fitting.collect::<Option<_>>()?)
        }
        (Numbers::I64(numbers), DataType::Float) => {
            Numbers::F32(numbers.iter().map(|&n| n as f32).collect())
        }
        (Numbers::I32(numbers), DataType::Float) => {
            Numbers::F32(numbers.iter().map(|&n| n as f32).collect())
        }
        (Numbers::Bool(numbers), DataType::Float) => {
            Numbers::F32(numbers.iter().map(|&n| f32::from(u8::from(n))).collect())
        }
        (Numbers::Bool(numbers), DataType::Int64) => {
            Numbers::I64(numbers.iter().map(|&n| n.into()).collect())
        }
        (Numbers::I64(numbers), DataType::Bool) => {
            Numbers::Bool(numbers.iter().map(|&n| n != 0).collect())
        }
        _ => return None,
    };
    Some(Value {
        shape: value.shape.clone(),
        numbers,
    })
}

pub(super) fn unary(operator: &str, value: &Value) -> Option<Value> {
    let numbers = match (operator, &value.numbers) {
        ("Neg", Numbers::F32(numbers)) => Numbers::F32(numbers.iter().map(|n| -n).collect()),
        ("Neg", Numbers::I64(numbers)) => {
            let negated = numbers.iter().map(|n| n.checked_neg());
            Numbers::I64(negated.collect::<Option<_>>()?)
        }
        ("Sqrt", Numbers::F32(numbers)) => Numbers::F32(numbers.iter().map(|n| n.sqrt()).collect()),
        ("Floor", Numbers::F32(numbers)) => {
            Numbers::F32(numbers.iter().map(|n| n.floor()).collect())
        }
        ("Ceil", Numbers::F32(numbers)) => Numbers::F32(numbers.iter().map(|n| n.ceil()).collect()),
        ("Not", Numbers::Bool(numbers)) => Numbers::Bool(numbers.iter().map(|n| !n).collect()),
        _ => return None,
    };
    Some(Value {
        shape: value.shape.clone(),
        numbers,
    })
}

pub(super) fn select(condition: &Value, yes: &Value, no: &Value) -> Option<Value> {
    let shape = spread(&spread(&condition.shape, &yes.shape)?, &no.shape)?;
    let Numbers::Bool(conditions) = condition
        .numbers
        .at(&spread_places(&condition.shape, &shape)?)
    else {
        return None;
    };
    let yes = yes.numbers.at(&spread_places(&yes.shape, &shape)?);
    let no = no.numbers.at(&spread_places(&no.shape, &shape)?);
    fn chosen<T: Copy>(conditions: &[bool], yes: &[T], no: &[T]) -> Vec<T> {
        let both = yes.iter().zip(no);
        let chosen = conditions.iter().zip(both);
        chosen
            .map(|(&condition, (&yes, &no))| if condition { yes } else { no })
            .collect()
    }
    let numbers = match (&yes, &no) {
        (Numbers::F32(yes), Numbers::F32(no)) => Numbers::F32(chosen(&conditions, yes, no)),
        (Numbers::I64(yes), Numbers::I64(no)) => Numbers::I64(chosen(&conditions, yes, no)),
        (Numbers::I32(yes), Numbers::I32(no)) => Numbers::I32(chosen(&conditions, yes, no)),
        (Numbers::Bool(yes), Numbers::Bool(no)) => Numbers::Bool(chosen(&conditions, yes, no)),
        _ => return None,
    };
    Some(Value { shape, numbers })
}

pub(super) fn binary(operator: &str, a: &Value, b: &Value) -> Option<Value> {
    let shape = spread(&a.shape, &b.shape)?;
    let a = a.numbers.at(&spread_places(&a.shape, &shape)?);
    let b = b.numbers.at(&spread_places(&b.shape, &shape)?);
    let numbers = match (&a, &b) {
        (Numbers::F32(a), Numbers::F32(b)) => {
            let pairs = a.iter().copied().zip(b.iter().copied());
            match operator {
                "Add" => Numbers::F32(pairs.map(|(a, b)| a + b).collect()),
                "Sub" => Numbers::F32(pairs.map(|(a, b)| a - b).collect()),
                "Mul" => Numbers::F32(pairs.map(|(a, b)| a * b).collect()),
                "Div" => Numbers::F32(pairs.map(|(a, b)| a / b).collect()),
                "Equal" => Numbers::Bool(pairs.map(|(a, b)| a == b).collect()),
                "Less" => Numbers::Bool(pairs.map(|(a, b)| a < b).collect()),
                "Greater" => Numbers::Bool(pairs.map(|(a, b)| a > b).collect()),
                _ => return None,
            }
        }
        (Numbers::I64(a), Numbers::I64(b)) => {
            let pairs = a.iter().copied().zip(b.iter().copied());
            // What overflows, and what is divided by zero, is left to the engine.
            let whole = |of: fn(i64, i64) -> Option<i64>| {
                let numbers = pairs.clone().map(|(a, b)| of(a, b));
                numbers.collect::<Option<Vec<i64>>>().map(Numbers::I64)
            };
            match operator {
                "Add" => whole(i64::checked_add)?,
                "Sub" => whole(i64::checked_sub)?,
                "Mul" => whole(i64::checked_mul)?,
                "Div" => whole(i64::checked_div)?,
                "Equal" => Numbers::Bool(pairs.map(|(a, b)| a == b).collect()),
                "Less" => Numbers::Bool(pairs.map(|(a, b)| a < b).collect()),
                "Greater" => Numbers::Bool(pairs.map(|(a, b)| a > b).collect()),
                _ => return None,
            }
        }
        (Numbers::Bool(a), Numbers::Bool(b)) => {
            let pairs = a.iter().copied().zip(b.iter().copied());
            match operator {
                "And" => Numbers::Bool(pairs.map(|(a, b)| a && b).collect()),
                "Or" => Numbers::Bool(pairs.map(|(a, b)| a || b).collect()),
                "Equal" => Numbers::Bool(pairs.map(|(a, b)| a == b).collect()),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Value { shape, numbers })
}
