//! Operators that put numbers in other places, or make them of extents.

use isovec_engine::onnx::axis;
use isovec_engine::onnx::proto::NodeProto;

use super::super::net::MOST;
use super::super::value::{Numbers, Value};

/// Values of a tensor of these extents, where they are few.
fn count(shape: &[usize]) -> Option<usize> {
    let all = shape
        .iter()
        .try_fold(1usize, |all, &extent| all.checked_mul(extent))?;
    (all <= MOST).then_some(all)
}

fn made(shape: Vec<usize>, of: &Value, places: &[usize]) -> Value {
    Value {
        shape,
        numbers: of.numbers.at(places),
    }
}

/// The steps between neighbours along each axis.
fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at];
    }
    strides
}

/// For each place of a tensor of these extents, the place that the steps lead to.
fn places(shape: &[usize], steps: &[usize], start: usize) -> Option<Vec<usize>> {
    let all = count(shape)?;
    let own = strides(shape);
    Some(
        (0..all)
            .map(|place| {
                let along = own.iter().zip(shape).zip(steps);
                start
                    + along
                        .map(|((own, extent), step)| place / own % extent * step)
                        .sum::<usize>()
            })
            .collect(),
    )
}

/// The extents that a `Reshape` asks for, of a value that has these.
pub(in super::super) fn reshaped(
    node: &NodeProto,
    shape: &[usize],
    asked: &[i64],
) -> Option<Vec<usize>> {
    let zeros_stay = node.int("allowzero").unwrap_or(0) != 0;
    let all: usize = shape.iter().product();
    let (mut extents, mut open) = (Vec::with_capacity(asked.len()), None);
    for (at, &extent) in asked.iter().enumerate() {
        extents.push(match extent {
            -1 if open.is_none() => {
                open = Some(at);
                1
            }
            0 if !zeros_stay => *shape.get(at)?,
            extent => usize::try_from(extent).ok()?,
        });
    }
    let known = extents
        .iter()
        .try_fold(1usize, |all, &extent| all.checked_mul(extent))?;
    if let Some(at) = open {
        extents[at] = all.checked_div(known)?;
    }
    (extents.iter().product::<usize>() == all).then_some(extents)
}

pub(super) fn reshape(node: &NodeProto, value: &Value, asked: &Value) -> Option<Value> {
    Some(Value {
        shape: reshaped(node, &value.shape, &asked.ints()?)?,
        numbers: value.numbers.clone(),
    })
}

/// The extents with ones at these axes of the result.
pub(in super::super) fn unsqueezed(shape: &[usize], axes: &[i64]) -> Option<Vec<usize>> {
    let rank = shape.len() + axes.len();
    let mut ones = vec![false; rank];
    for &one in axes {
        let place = axis(one, rank).ok()?;
        if std::mem::replace(&mut ones[place], true) {
            return None;
        }
    }
    let mut extents = shape.iter().copied();
    ones.into_iter()
        .map(|one| if one { Some(1) } else { extents.next() })
        .collect()
}

pub(super) fn unsqueeze(value: &Value, axes: &[i64]) -> Option<Value> {
    Some(Value {
        shape: unsqueezed(&value.shape, axes)?,
        numbers: value.numbers.clone(),
    })
}

pub(super) fn squeeze(value: &Value, axes: Option<Vec<i64>>) -> Option<Value> {
    let rank = value.shape.len();
    let gone: Vec<usize> = match axes {
        Some(axes) => axes
            .iter()
            .map(|&one| axis(one, rank).ok())
            .collect::<Option<_>>()?,
        None => (0..rank).filter(|&at| value.shape[at] == 1).collect(),
    };
    if gone.iter().any(|&at| value.shape[at] != 1) {
        return None;
    }
    let kept = (0..rank)
        .filter(|at| !gone.contains(at))
        .map(|at| value.shape[at]);
    Some(Value {
        shape: kept.collect(),
        numbers: value.numbers.clone(),
    })
}

/// The order of axes that a `Transpose` asks for.
pub(in super::super) fn order(perm: Option<&[i64]>, rank: usize) -> Option<Vec<usize>> {
    let order: Vec<usize> = match perm {
        None => (0..rank).rev().collect(),
        Some(perm) => perm
            .iter()
            .map(|&at| usize::try_from(at).ok())
            .collect::<Option<_>>()?,
    };
    let mut seen = vec![false; rank];
    for &at in &order {
        if std::mem::replace(seen.get_mut(at)?, true) {
            return None;
        }
    }
    (order.len() == rank).then_some(order)
}

pub(super) fn transpose(value: &Value, perm: Option<&[i64]>) -> Option<Value> {
    let order = order(perm, value.shape.len())?;
    let own = strides(&value.shape);
    let shape: Vec<usize> = order.iter().map(|&at| value.shape[at]).collect();
    let steps: Vec<usize> = order.iter().map(|&at| own[at]).collect();
    let places = places(&shape, &steps, 0)?;
    Some(made(shape, value, &places))
}

pub(super) fn concat(node: &NodeProto, inputs: &[Option<Value>]) -> Option<Value> {
    let parts: Vec<&Value> = inputs.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let first = parts.first()?;
    let at = axis(node.int("axis")?, first.shape.len()).ok()?;
    let alike = |part: &&&Value| {
        let same = |(place, (a, b)): (usize, (&usize, &usize))| place == at || a == b;
        part.shape.len() == first.shape.len()
            && part.shape.iter().zip(&first.shape).enumerate().all(same)
    };
    if parts.iter().filter(alike).count() != parts.len() {
        return None;
    }
    let mut shape = first.shape.clone();
    shape[at] = parts.iter().map(|part| part.shape[at]).sum();
    count(&shape)?;
    let outer: usize = shape[..at].iter().product();
    // All numbers in a row, and for each place of the result where it is in that row.
    let mut row = parts[0].numbers.clone();
    let mut starts = vec![0];
    for part in &parts[1..] {
        starts.push(row.len());
        match (&mut row, &part.numbers) {
            (Numbers::F32(row), Numbers::F32(more)) => row.extend(more),
            (Numbers::I64(row), Numbers::I64(more)) => row.extend(more),
            (Numbers::I32(row), Numbers::I32(more)) => row.extend(more),
            (Numbers::Bool(row), Numbers::Bool(more)) => row.extend(more),
            _ => return None,
        }
    }
    let mut places = Vec::new();
    for block in 0..outer {
        for (part, start) in parts.iter().zip(&starts) {
            let length: usize = part.shape[at..].iter().product();
            places.extend((0..length).map(|place| start + block * length + place));
        }
    }
    Some(Value {
        shape,
        numbers: row.at(&places),
    })
}

pub(super) fn gather(node: &NodeProto, value: &Value, indices: &Value) -> Option<Value> {
    let at = axis(node.int("axis").unwrap_or(0), value.shape.len()).ok()?;
    let extent = value.shape[at];
    let chosen = indices.ints()?.into_iter();
    let chosen: Vec<usize> = chosen
        .map(|index| axis(index, extent).ok())
        .collect::<Option<_>>()?;
    let (outer, inner) = (&value.shape[..at], &value.shape[at + 1..]);
    let shape = [outer, indices.shape.as_slice(), inner].concat();
    count(&shape)?;
    let width: usize = inner.iter().product();
    let blocks: usize = outer.iter().product();
    let places: Vec<usize> = (0..blocks)
        .flat_map(|block| {
            chosen
                .iter()
                .map(move |index| (block * extent + index) * width)
        })
        .flat_map(|start| start..start + width)
        .collect();
    Some(made(shape, value, &places))
}

pub(super) fn slice(value: &Value, inputs: &[Option<Value>]) -> Option<Value> {
    let rank = value.shape.len();
    let given = |at: usize| {
        inputs
            .get(at)
            .and_then(Option::as_ref)
            .map(|value| value.ints())
    };
    let (starts, ends) = (given(1)??, given(2)??);
    let axes = match given(3) {
        Some(axes) => axes?,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = match given(4) {
        Some(steps) => steps?,
        None => vec![1; starts.len()],
    };
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return None;
    }
    let own = strides(&value.shape);
    let (mut shape, mut walked, mut first) = (value.shape.clone(), own.clone(), 0);
    for (at, &one) in axes.iter().enumerate() {
        let along = axis(one, rank).ok()?;
        let extent = value.shape[along] as i64;
        let inside = |bound: i64| {
            let counted = if bound < 0 {
                bound.saturating_add(extent)
            } else {
                bound
            };
            counted.clamp(0, extent)
        };
        let (start, end) = (inside(starts[at]), inside(ends[at]));
        // Steps backwards are left to the engine.
        let step = steps[at];
        if step < 1 || shape[along] as i64 != extent {
            return None;
        }
        shape[along] = (end - start)
            .max(0)
            .unsigned_abs()
            .div_ceil(step.unsigned_abs()) as usize;
        walked[along] = own[along].checked_mul(step as usize)?;
        first += start as usize * own[along];
    }
    let places = places(&shape, &walked, first)?;
    Some(made(shape, value, &places))
}

/// The extents of a value and another one, as operators spread both.
pub(super) fn spread(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let extent = |shape: &[usize], at: usize| match (at + shape.len()).checked_sub(rank) {
        Some(at) => shape[at],
        None => 1,
    };
    (0..rank)
        .map(|at| match (extent(a, at), extent(b, at)) {
            (a, b) if a == b => Some(a),
            (1, b) => Some(b),
            (a, 1) => Some(a),
            _ => None,
        })
        .collect()
}

/// For each place of the extents, the place in a value that is spread over them.
pub(super) fn spread_places(of: &[usize], over: &[usize]) -> Option<Vec<usize>> {
    let own = strides(of);
    let missing = over.len() - of.len();
    let steps: Vec<usize> = (0..over.len())
        .map(|at| match at.checked_sub(missing) {
            Some(at) if of[at] != 1 => own[at],
            _ => 0,
        })
        .collect();
    places(over, &steps, 0)
}

pub(super) fn expand(value: &Value, asked: &[i64]) -> Option<Value> {
    let asked = asked.iter().map(|&extent| usize::try_from(extent).ok());
    let shape = spread(&value.shape, &asked.collect::<Option<Vec<_>>>()?)?;
    let places = spread_places(&value.shape, &shape)?;
    Some(made(shape, value, &places))
}

pub(super) fn filled(node: &NodeProto, asked: &[i64]) -> Option<Value> {
    let shape = asked.iter().map(|&extent| usize::try_from(extent).ok());
    let shape: Vec<usize> = shape.collect::<Option<_>>()?;
    let all = count(&shape)?;
    let value = match node.tensor("value") {
        Some(tensor) => Value::of(tensor)?.numbers,
        None => Numbers::F32(vec![0.0]),
    };
    (value.len() == 1).then(|| Value {
        shape,
        numbers: value.at(&vec![0; all]),
    })
}

pub(super) fn range(start: &Value, limit: &Value, step: &Value) -> Option<Value> {
    let one = |value: &Value| match &value.numbers {
        Numbers::I64(numbers) if numbers.len() == 1 => Some(numbers[0]),
        _ => None,
    };
    let (start, limit, step) = (one(start)?, one(limit)?, one(step)?);
    let span = limit.checked_sub(start)?;
    if step == 0 {
        return None;
    }
    let steps = span / step + i64::from(span % step != 0 && (span > 0) == (step > 0));
    let all = usize::try_from(steps.max(0))
        .ok()
        .filter(|&all| all <= MOST)?;
    Some(Value::row(
        (0..all as i64).map(|at| start + at * step).collect(),
    ))
}
