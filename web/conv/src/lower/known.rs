//! What is known while the graph is read: constants, and shapes with their arithmetic.

use std::sync::Arc;

use isovec_engine::onnx::proto::DataType;

use super::Lowerer;
use super::call::Call;
use crate::error::Why;
use crate::value::{Axis, Extent, Numbers, Value};

/// The value of an operator that reads nothing of the picture's; `None` for one that does.
pub(super) fn compute(
    operator: &str,
    call: &Call<'_>,
    lowerer: &mut Lowerer<'_>,
) -> Why<Option<Value>> {
    match operator {
        "Constant" => return constant(call, lowerer).map(Some),
        "Shape" => return shape(call, lowerer).map(Some),
        _ => {}
    }
    let known = |value: &Value| matches!(value, Value::Numbers(_) | Value::Extents { .. });
    if !call.inputs.iter().flatten().all(known) {
        return Ok(None);
    }
    let value = call.input(0)?;
    if operator == "Identity" || operator == "Dropout" {
        return Ok(Some(value.clone()));
    }
    let unknown = || format!("{} that is not followed", value.what());
    if operator == "Cast" {
        let whole = [DataType::Int64, DataType::Int32].map(|to| Some(to as i64));
        return match value {
            Value::Extents { .. } if whole.contains(&call.node.int("to")) => {
                Ok(Some(value.clone()))
            }
            Value::Numbers(numbers) if call.node.int("to") == Some(DataType::Float as i64) => {
                let values = numbers.values.iter().map(|&value| f64::from(value as f32));
                Ok(Some(Value::Numbers(Arc::new(Numbers {
                    shape: numbers.shape.clone(),
                    values: values.collect(),
                    whole: false,
                }))))
            }
            Value::Numbers(numbers) if numbers.whole && whole.contains(&call.node.int("to")) => {
                Ok(Some(value.clone()))
            }
            _ => Err(unknown().into()),
        };
    }
    if let (Value::Numbers(numbers), "Reshape") = (value, operator) {
        return reshaped(call, numbers).map(Some);
    }
    let all = value.extents().ok_or_else(unknown)?;
    let (all, scalar) = match operator {
        "Unsqueeze" if value.is_scalar() => (all, false),
        "Squeeze" if all.len() == 1 => (all, true),
        "Gather" => gather(call, &all)?,
        "Slice" => (slice(call, &all)?, false),
        "Concat" => {
            let mut joined = Vec::new();
            for input in call.inputs.iter().flatten() {
                if input.is_scalar() {
                    return Err("it joins what has no axes".into());
                }
                joined.extend(input.extents().ok_or_else(unknown)?);
            }
            (joined, false)
        }
        "Add" | "Sub" | "Mul" | "Div" => {
            let other = call.input(1)?;
            let scalar = value.is_scalar() && other.is_scalar();
            (
                arithmetic(operator, &all, &other.extents().ok_or_else(unknown)?)?,
                scalar,
            )
        }
        _ => return Err(unknown().into()),
    };
    Ok(Some(Value::Extents { all, scalar }))
}

/// A constant with other extents.
fn reshaped(call: &Call<'_>, numbers: &Numbers) -> Why<Value> {
    let wanted = call.whole_numbers("shape", 1)?.ok_or("it has no shape")?;
    let zero_stays = call.node.int("allowzero").unwrap_or(0) == 0;
    let extents = wanted.iter().enumerate().map(|(at, &extent)| match extent {
        0 if zero_stays => numbers.shape.get(at).map(|&own| own as i64),
        extent => Some(extent),
    });
    let extents = extents.collect::<Option<Vec<i64>>>().unwrap_or_default();
    let count = numbers.values.len() as i64;
    let mut known = extents.iter().filter(|&&extent| extent != -1);
    let known = known.try_fold(1_i64, |all, &extent| all.checked_mul(extent));
    let open = extents.iter().filter(|&&extent| extent == -1).count();
    let rest = match (known, open) {
        (Some(known), 0) if known == count => 1,
        (Some(known @ 1..), 1) if count % known == 0 => count / known,
        _ => return Err(format!("a shape of {wanted:?} for {count} numbers").into()),
    };
    let extent = |&extent: &i64| if extent == -1 { rest } else { extent } as usize;
    Ok(Value::Numbers(Arc::new(Numbers {
        shape: extents.iter().map(extent).collect(),
        ..numbers.clone()
    })))
}

fn constant(call: &Call<'_>, lowerer: &mut Lowerer<'_>) -> Why<Value> {
    let numbers = |shape: Vec<usize>, values: Vec<f64>, whole: bool| {
        Value::Numbers(Arc::new(Numbers {
            shape,
            values,
            whole,
        }))
    };
    if let Some(tensor) = call.node.tensor("value") {
        let numbers = Numbers::of_tensor(tensor, lowerer.budget)?;
        return Ok(Value::Numbers(Arc::new(numbers)));
    }
    if let Some(value) = call.node.float("value_float") {
        return Ok(numbers(vec![], vec![f64::from(value)], false));
    }
    if let Some(value) = call.node.int("value_int") {
        return Ok(numbers(vec![], vec![value as f64], true));
    }
    if let Some(values) = call.node.ints("value_ints") {
        let all = values.iter().map(|&value| value as f64).collect();
        return Ok(numbers(vec![values.len()], all, true));
    }
    Err("a constant of another kind".into())
}

fn shape(call: &Call<'_>, lowerer: &Lowerer<'_>) -> Why<Value> {
    let all: Vec<Extent> = match call.input(0)? {
        Value::Data(data) => {
            let map = lowerer.builder.map(data.node);
            let extent = |axis: &Axis| match axis.extent(map) {
                Some(known) => Extent::Known(known as i64),
                None => lowerer.pictures.map_or(Extent::Batch, Extent::Known),
            };
            data.axes.iter().map(extent).collect()
        }
        other => return Err(format!("the shape of {}", other.what()).into()),
    };
    let rank = all.len() as i64;
    let place = |name: &str, other: i64| {
        let at = call.node.int(name).unwrap_or(other);
        (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize
    };
    let (start, end) = (place("start", 0), place("end", rank));
    Ok(Value::Extents {
        all: all[start..end.max(start)].to_vec(),
        scalar: false,
    })
}

/// The entries at known places.
fn gather(call: &Call<'_>, all: &[Extent]) -> Why<(Vec<Extent>, bool)> {
    let places = call.input(1)?;
    if call.node.int("axis").unwrap_or(0) != 0 || call.input(0)?.is_scalar() {
        return Err("it takes entries of another axis than the first".into());
    }
    let entries = places.extents().ok_or("its places are not known")?;
    let entries = entries.into_iter().map(|place| match place {
        Extent::Known(at) => {
            let at = if at < 0 { at + all.len() as i64 } else { at };
            usize::try_from(at).ok().and_then(|at| all.get(at)).copied()
        }
        Extent::Batch => None,
    });
    let entries = entries
        .collect::<Option<Vec<_>>>()
        .ok_or("it takes an entry that is not there")?;
    Ok((entries, places.is_scalar()))
}

/// A part of a list.
fn slice(call: &Call<'_>, all: &[Extent]) -> Why<Vec<Extent>> {
    let one = |name: &str, at: usize| -> Why<Option<i64>> {
        match call.whole_numbers(name, at)?.as_deref() {
            None => Ok(None),
            Some([one]) => Ok(Some(*one)),
            Some(several) => Err(format!("{name} {several:?} of a list").into()),
        }
    };
    let (start, end) = (one("starts", 1)?, one("ends", 2)?);
    if one("axes", 3)?.unwrap_or(0) != 0 || one("steps", 4)?.unwrap_or(1) != 1 {
        return Err("a slice with gaps".into());
    }
    let len = all.len() as i64;
    let place = |at: i64| (if at < 0 { at.saturating_add(len) } else { at }).clamp(0, len) as usize;
    let (start, end) = (place(start.unwrap_or(0)), place(end.unwrap_or(len)));
    Ok(all[start..end.max(start)].to_vec())
}

/// Whole numbers, entry by entry; one entry goes with all of the others.
fn arithmetic(operator: &str, a: &[Extent], b: &[Extent]) -> Why<Vec<Extent>> {
    let len = match (a.len(), b.len()) {
        (a, b) if a == b || b == 1 => a,
        (1, b) => b,
        (a, b) => return Err(format!("lists of {a} and {b} entries").into()),
    };
    let entries = (0..len).map(|at| {
        let entry = |all: &[Extent]| all[if all.len() == 1 { 0 } else { at }];
        let (Extent::Known(a), Extent::Known(b)) = (entry(a), entry(b)) else {
            return None;
        };
        let result = match operator {
            "Add" => a.checked_add(b),
            "Sub" => a.checked_sub(b),
            "Mul" => a.checked_mul(b),
            // As the graph's whole numbers: without the rest.
            _ => a.checked_div(b),
        };
        result.map(Extent::Known)
    });
    let entries = entries.collect::<Option<Vec<_>>>();
    entries.ok_or_else(|| "it computes with the number of pictures".into())
}
