//! What operators give of constants: those that shapes are computed with, and arithmetic that IEEE 754 rounds in one way
//! (<https://onnx.ai/onnx/operators/>).

use isovec_engine::onnx::axis;
use isovec_engine::onnx::proto::{DataType, NodeProto};

use super::net::MOST;
use super::value::{Numbers, Value};

/// The output of a node whose inputs are these; none for other operators, and for inputs that an engine has to refuse.
pub(super) fn evaluate(node: &NodeProto, inputs: &[Option<Value>]) -> Option<Value> {
    let input = |at: usize| inputs.get(at).and_then(Option::as_ref);
    let first = || input(0).cloned();
    match node.op_type.as_str() {
        "Identity" => first(),
        "Shape" => shape_of(node, input(0)?),
        "Size" => Some(Value {
            shape: Vec::new(),
            numbers: Numbers::I64(vec![input(0)?.numbers.len() as i64]),
        }),
        "Cast" => cast(input(0)?, node.int("to")?),
        "Reshape" => reshape(node, input(0)?, input(1)?),
        "Unsqueeze" => unsqueeze(input(0)?, &axes(node, input(1))?),
        "Squeeze" => squeeze(input(0)?, axes(node, input(1))),
        "Transpose" => transpose(input(0)?, node.ints("perm")),
        "Concat" => concat(node, inputs),
        "Gather" => gather(node, input(0)?, input(1)?),
        "Slice" => slice(input(0)?, inputs),
        "Expand" => expand(input(0)?, &input(1)?.ints()?),
        "ConstantOfShape" => filled(node, &input(0)?.ints()?),
        "Range" => range(input(0)?, input(1)?, input(2)?),
        "Neg" | "Sqrt" | "Not" | "Floor" | "Ceil" => unary(&node.op_type, input(0)?),
        "Where" => select(input(0)?, input(1)?, input(2)?),
        "Add" | "Sub" | "Mul" | "Div" | "Equal" | "Less" | "Greater" | "And" | "Or" => {
            binary(&node.op_type, input(0)?, input(1)?)
        }
        _ => None,
    }
}

fn axes(node: &NodeProto, given: Option<&Value>) -> Option<Vec<i64>> {
    match node.ints("axes") {
        Some(axes) => Some(axes.to_vec()),
        None => given?.ints(),
    }
}

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

fn shape_of(node: &NodeProto, value: &Value) -> Option<Value> {
    let rank = value.shape.len() as i64;
    let bound = |name: &str, unset: i64| {
        let given = node.int(name).unwrap_or(unset);
        let counted = if given < 0 { given + rank } else { given };
        counted.clamp(0, rank) as usize
    };
    let (start, end) = (bound("start", 0), bound("end", rank));
    let extents = value.shape.get(start..end.max(start))?;
    Some(Value::row(
        extents.iter().map(|&extent| extent as i64).collect(),
    ))
}

fn cast(value: &Value, to: i64) -> Option<Value> {
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

/// The extents that a `Reshape` asks for, of a value that has these.
pub(super) fn reshaped(node: &NodeProto, shape: &[usize], asked: &[i64]) -> Option<Vec<usize>> {
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

fn reshape(node: &NodeProto, value: &Value, asked: &Value) -> Option<Value> {
    Some(Value {
        shape: reshaped(node, &value.shape, &asked.ints()?)?,
        numbers: value.numbers.clone(),
    })
}

/// The extents with ones at these axes of the result.
pub(super) fn unsqueezed(shape: &[usize], axes: &[i64]) -> Option<Vec<usize>> {
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

fn unsqueeze(value: &Value, axes: &[i64]) -> Option<Value> {
    Some(Value {
        shape: unsqueezed(&value.shape, axes)?,
        numbers: value.numbers.clone(),
    })
}

fn squeeze(value: &Value, axes: Option<Vec<i64>>) -> Option<Value> {
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
pub(super) fn order(perm: Option<&[i64]>, rank: usize) -> Option<Vec<usize>> {
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

fn transpose(value: &Value, perm: Option<&[i64]>) -> Option<Value> {
    let order = order(perm, value.shape.len())?;
    let own = strides(&value.shape);
    let shape: Vec<usize> = order.iter().map(|&at| value.shape[at]).collect();
    let steps: Vec<usize> = order.iter().map(|&at| own[at]).collect();
    let places = places(&shape, &steps, 0)?;
    Some(made(shape, value, &places))
}

fn concat(node: &NodeProto, inputs: &[Option<Value>]) -> Option<Value> {
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

fn gather(node: &NodeProto, value: &Value, indices: &Value) -> Option<Value> {
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

fn slice(value: &Value, inputs: &[Option<Value>]) -> Option<Value> {
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
fn spread(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
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
fn spread_places(of: &[usize], over: &[usize]) -> Option<Vec<usize>> {
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

fn expand(value: &Value, asked: &[i64]) -> Option<Value> {
    let asked = asked.iter().map(|&extent| usize::try_from(extent).ok());
    let shape = spread(&value.shape, &asked.collect::<Option<Vec<_>>>()?)?;
    let places = spread_places(&value.shape, &shape)?;
    Some(made(shape, value, &places))
}

fn filled(node: &NodeProto, asked: &[i64]) -> Option<Value> {
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

fn range(start: &Value, limit: &Value, step: &Value) -> Option<Value> {
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

fn unary(operator: &str, value: &Value) -> Option<Value> {
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

fn select(condition: &Value, yes: &Value, no: &Value) -> Option<Value> {
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

fn binary(operator: &str, a: &Value, b: &Value) -> Option<Value> {
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
