//! Operators that change how a value is seen, and those that compute with extents.

use isovec_engine::onnx::axis;

use super::call::Call;
use super::columns::together;
use super::elementwise::{no_less_than_nothing, one};
use super::{Lowerer, constant};
use crate::builder::Builder;
use crate::constant::{Constant, Kind, elements, strides};
use crate::dim::Dim;
use crate::error::Why;
use crate::ledger::Ledger;
use crate::node::{Op, Unary};
use crate::value::{Axis, Data, MOST_DIMS, Offsets, Value, Weight};

impl Lowerer {
    pub(super) fn shapes(&mut self, operator: &str, call: &Call<'_>) -> Why<Option<Vec<Value>>> {
        Ok(match operator {
            "Constant" => one(constant_node(self.ledger(), call)?),
            "Shape" => one(shape(call)?),
            "Size" => {
                let shape = call.input(0)?.shape();
                let size = shape
                    .iter()
                    .try_fold(Dim::ONE, |size, &dim| size.times(dim));
                one(Value::Dims {
                    dims: vec![size.ok_or("a square of the number of tokens")?],
                    scalar: true,
                })
            }
            "Reshape" => {
                let wanted = call.input(1)?.as_dims().ok_or("its shape is not known")?;
                let zero = call.node.int("allowzero").unwrap_or(0) != 0;
                let target = resolve(&call.input(0)?.shape(), &wanted, zero)?;
                one(self.reshape(call.input(0)?, &target)?)
            }
            "Flatten" => {
                let shape = call.input(0)?.shape();
                let at = call.node.int("axis").unwrap_or(1);
                let at = usize::try_from(if at < 0 { at + shape.len() as i64 } else { at });
                let at = at
                    .ok()
                    .filter(|&at| at <= shape.len())
                    .ok_or("a wrong axis")?;
                let product = |dims: &[Dim]| dims.iter().try_fold(Dim::ONE, |a, &b| a.times(b));
                let target = [product(&shape[..at]), product(&shape[at..])];
                let [Some(a), Some(b)] = target else {
                    return Err("a square of the number of tokens".into());
                };
                one(self.reshape(call.input(0)?, &[a, b])?)
            }
            "Squeeze" | "Unsqueeze" => {
                let shape = call.input(0)?.shape();
                let axes = match call.whole_numbers(1)? {
                    Some(axes) => Some(axes),
                    None => call.node.ints("axes").map(<[i64]>::to_vec),
                };
                let target = match operator {
                    "Squeeze" => squeezed(&shape, axes.as_deref())?,
                    _ => unsqueezed(&shape, &axes.ok_or("it does not say which axes")?)?,
                };
                one(self.reshape(call.input(0)?, &target)?)
            }
            "Transpose" => {
                let value = call.input(0)?;
                let rank = value.shape().len();
                let perm = match call.node.ints("perm") {
                    Some(perm) => perm.iter().map(|&at| axis(at, rank)).collect::<Why<_>>()?,
                    None => (0..rank).rev().collect::<Vec<_>>(),
                };
                one(self.transpose(value, &perm)?)
            }
            "Expand" => {
                let shape = call.input(1)?.as_dims().ok_or("its shape is not known")?;
                one(self.expand(call.input(0)?, &shape)?)
            }
            "ConstantOfShape" => {
                let shape = call.input(0)?.as_dims().ok_or("its shape is not known")?;
                no_less_than_nothing(&shape)?;
                let value = match call.node.tensor("value") {
                    Some(tensor) => constant(self.ledger(), tensor)?,
                    None => Constant::scalar(Kind::Float, 0.0),
                };
                let number = value.uniform().ok_or("it has no value")?;
                one(Value::Uniform {
                    kind: value.kind,
                    value: number,
                    shape,
                })
            }
            "Range" => one(self.range(call)?),
            "Concat" => one(self.concat(call)?),
            "Pad" => one(self.pad(call)?),
            _ => return Ok(None),
        })
    }

    /// `value` with its axes in another order.
    pub(super) fn transpose(&self, value: &Value, perm: &[usize]) -> Why<Value> {
        transposed(self.ledger(), value, perm)
    }

    /// `value` with its elements in the same order and other extents.
    pub(super) fn reshape(&mut self, value: &Value, target: &[Dim]) -> Why<Value> {
        let shape = value.shape();
        if shape == target {
            return Ok(value.clone());
        }
        // Squares of the number of tokens are left to the arms below.
        let count = |shape: &[Dim]| shape.iter().try_fold(Dim::ONE, |all, &dim| all.times(dim));
        if let (Some(own), Some(wanted)) = (count(&shape), count(target))
            && own != wanted
        {
            return Err(format!("{shape:?} cannot be reshaped to {target:?}"));
        }
        let known = || -> Option<Vec<usize>> {
            let known = target.iter().map(|dim| dim.extent());
            known.collect()
        };
        Ok(match value {
            Value::Constant(constant) => {
                let known = known().ok_or("a constant gets extents that depend on the text")?;
                Value::constant(constant.reshaped(known)?)
            }
            Value::Dims { dims, .. } if target.len() <= 1 => Value::Dims {
                dims: dims.clone(),
                scalar: target.is_empty(),
            },
            Value::Dims { .. } => {
                let value = self.known_or_computed(value)?;
                return self.reshape(&value, target);
            }
            Value::Uniform { kind, value, .. } => Value::Uniform {
                kind: *kind,
                value: *value,
                shape: target.to_vec(),
            },
            Value::Unknown { kind, .. } => Value::Unknown {
                kind: *kind,
                shape: target.to_vec(),
            },
            Value::Offsets(offsets) => {
                let (lead, pair) = target.split_at(target.len().saturating_sub(2));
                let lead: Option<Vec<usize>> = lead.iter().map(|dim| dim.extent()).collect();
                let lead = lead.filter(|lead| {
                    pair == [Dim::TOKENS, Dim::TOKENS] && elements(lead) == elements(&offsets.lead)
                });
                Value::Offsets(Offsets {
                    lead: lead.ok_or("values for pairs of tokens get other axes")?,
                    ..offsets.clone()
                })
            }
            Value::Data(data) => Value::Data(self.reshape_data(data, target)?),
            Value::Scores(scores) | Value::Probabilities(scores) => {
                let mut other = scores.clone();
                other.rank = target.len();
                if other.shape() != target || (other.rank == 2 && other.heads != 1) {
                    return Err("attention scores get other axes".into());
                }
                match value {
                    Value::Scores(_) => Value::Scores(other),
                    _ => Value::Probabilities(other),
                }
            }
            Value::Weight(_) | Value::ByHead(_) | Value::ByDistance(_) => {
                return Err(format!("{} get other axes", value.what()));
            }
        })
    }

    fn reshape_data(&mut self, data: &Data, target: &[Dim]) -> Why<Data> {
        if let Ok(Some(axes)) = regroup(&merged(&data.axes), target) {
            return Ok(Data {
                axes,
                ..data.clone()
            });
        }
        // The columns are not in an order that the new axes can follow: put them in order first.
        let data = self.builder.in_order(data);
        let axes = regroup(&merged(&data.axes), target)?;
        Ok(Data {
            axes: axes.ok_or("its columns cannot be grouped so")?,
            ..data
        })
    }

    fn range(&mut self, call: &Call<'_>) -> Why<Value> {
        if call.input(0)?.kind() == Kind::Float {
            return float_range(self.ledger(), call);
        }
        let bound = |at: usize| -> Why<Dim> {
            let dims = call.input(at)?.as_dims();
            let dims = dims.filter(|dims| dims.len() == 1);
            dims.map(|dims| dims[0])
                .ok_or_else(|| format!("input {at} is not known"))
        };
        let (start, end, step) = (bound(0)?, bound(1)?, bound(2)?);
        if let (Some(start), Some(end), Some(step)) = (start.known(), end.known(), step.known()) {
            let most = end.checked_sub(start).filter(|&most| most <= 1 << 20);
            let Some(most) = most.filter(|_| step > 0) else {
                return Err("a range that is too long, or runs backwards".into());
            };
            let count = if most > 0 { (most - 1) / step + 1 } else { 0 };
            let count = usize::try_from(count).map_err(|_| "a range that is too long")?;
            let values = (0..count).map(|at| (start + at as i64 * step) as f64);
            return Constant::list(self.ledger(), Kind::Whole, values).map(Value::constant);
        }
        let length = end.minus(start);
        let (Some(start), Some(Dim::TOKENS), Some(1)) = (start.known(), length, step.known())
        else {
            return Err("a range that is not as long as the text".into());
        };
        let data = Data::whole(self.builder.position(), Kind::Whole, &[Axis::Tokens], &[]);
        let f = Unary::Affine {
            factor: 1.0,
            shift: start as f32,
        };
        Ok(Value::Data(self.builder.map(&data, f, Kind::Whole)))
    }

    fn concat(&mut self, call: &Call<'_>) -> Why<Value> {
        let values: Vec<&Value> = call.inputs.iter().flatten().collect();
        let Some(first) = values.first() else {
            return Err("nothing is put together".into());
        };
        let rank = first.shape().len();
        let at = axis(
            call.node
                .int("axis")
                .ok_or("it does not say along which axis")?,
            rank,
        )?;
        self.concat_values(&values, at)
    }

    /// Values one after another along one axis.
    pub(super) fn concat_values(&mut self, all: &[&Value], at: usize) -> Why<Value> {
        // Parts of no extent add nothing, as long as there are others.
        let extends = |value: &&&Value| value.shape().get(at) != Some(&Dim::new(0));
        let mut values: Vec<&Value> = all.iter().filter(extends).copied().collect();
        if values.is_empty() {
            values = all.to_vec();
        }
        let rank = values[0].shape().len();
        if values.iter().any(|value| value.shape().len() != rank) {
            return Err("its parts have different shapes".into());
        }
        if let [only] = values[..] {
            return Ok(only.clone());
        }
        let constants: Option<Vec<&Constant>> = values
            .iter()
            .map(|value| match value {
                Value::Constant(constant) => Some(&**constant),
                _ => None,
            })
            .collect();
        if let Some(constants) = constants {
            return concat_constants(self.ledger(), &constants, at).map(Value::constant);
        }
        if rank == 1 {
            let dims: Option<Vec<Vec<Dim>>> = values.iter().map(|value| value.as_dims()).collect();
            if let Some(dims) = dims {
                let many: usize = dims.iter().map(Vec::len).sum();
                if many > MOST_DIMS {
                    return Err(format!("a list of {many} extents"));
                }
                return Ok(Value::Dims {
                    dims: dims.concat(),
                    scalar: false,
                });
            }
        }
        let computed = values.iter().find_map(|value| match value {
            Value::Data(data) => Some(data.clone()),
            _ => None,
        });
        let all = |value: &&Value| matches!(value, Value::Data(_) | Value::Constant(_));
        match computed.filter(|_| values.iter().all(all)) {
            Some(like) => self.concat_computed(&values, &like, at),
            None => indices(&values, at),
        }
    }

    /// Values that are computed, and constants beside them.
    fn concat_computed(&mut self, values: &[&Value], like: &Data, at: usize) -> Why<Value> {
        let mut parts = Vec::new();
        for value in values {
            parts.push(match value {
                Value::Data(data) => data.clone(),
                Value::Constant(constant) => {
                    together(constant.kind, like.kind)?;
                    self.constant_rows(constant, like, at)?
                }
                other => return Err(format!("{} beside what is computed", other.what())),
            });
        }
        let parts: Vec<&Data> = parts.iter().collect();
        self.concat_data(&parts, at).map(Value::Data)
    }

    /// Columns one after another along one axis.
    pub(super) fn concat_data(&mut self, parts: &[&Data], at: usize) -> Why<Data> {
        let first = parts[0];
        let others = |data: &Data| -> Vec<Dim> {
            let mut shape = data.shape();
            shape[at] = Dim::ONE;
            shape
        };
        if parts
            .iter()
            .any(|part| part.axes.len() != first.axes.len() || others(part) != others(first))
        {
            return Err("its parts have different shapes".into());
        }
        if first.axes[at] == Axis::Tokens {
            return Err("it puts tokens one after another".into());
        }
        let extent = |axis: Axis| axis.dim().known().unwrap_or(1) as usize;
        let product = |axes: &[Axis]| -> usize {
            axes.iter()
                .filter(|&&axis| axis != Axis::Tokens)
                .map(|&axis| extent(axis))
                .product()
        };
        let outer = product(&first.axes[..at]);
        let inner = product(&first.axes[at + 1..]);
        let rows = self.builder.node(first.node).rows;
        let mut nodes = Vec::new();
        let mut together = 0;
        for part in parts {
            if self.builder.node(part.node).rows != rows {
                return Err("it puts tokens and texts together".into());
            }
            let own = extent(part.axes[at]);
            together += own;
            nodes.push((self.builder.matrix(part), own * inner));
        }
        let width = outer * together * inner;
        let node = self.builder.push(
            Op::Concat {
                outer,
                parts: nodes,
            },
            rows,
            width,
        );
        let mut axes = first.axes.clone();
        axes[at] = Axis::columns(together, 1);
        let shape = Data {
            axes,
            ..first.clone()
        };
        Ok(Builder::like(node, first.kind, &shape))
    }
}

/// A range of floats, all of it known.
fn float_range(ledger: &Ledger, call: &Call<'_>) -> Why<Value> {
    let bound = |at: usize| -> Why<f64> {
        let number = call.constant(at)?.uniform();
        number.ok_or_else(|| format!("input {at} is no number"))
    };
    let (start, end, step) = (bound(0)?, bound(1)?, bound(2)?);
    let count = ((end - start) / step).ceil();
    if count.is_nan() || count > f64::from(1 << 20) {
        return Err("a range that is too long".into());
    }
    let values = (0..count as usize).map(|at| Kind::Float.round(start + at as f64 * step));
    Constant::list(ledger, Kind::Float, values).map(Value::constant)
}

/// Whole numbers of different kinds together, as exporters gather the places of a mask's elements:
/// only their shape is known from here on.
fn indices(values: &[&Value], at: usize) -> Why<Value> {
    let mut shape = values[0].shape();
    shape[at] = Dim::new(0);
    for value in values {
        let mut own = value.shape();
        if value.kind() != Kind::Whole || own.len() != shape.len() {
            return Err("it puts values of different kinds together".into());
        }
        let together = shape[at].plus(own[at]);
        (own[at], shape[at]) = (Dim::ONE, Dim::ONE);
        shape = super::elementwise::broadcast(&shape, &own)?;
        shape[at] = together.ok_or("it is too long")?;
    }
    Ok(Value::Unknown {
        kind: Kind::Whole,
        shape,
    })
}

fn concat_constants(ledger: &Ledger, parts: &[&Constant], at: usize) -> Why<Constant> {
    let mut shape = parts[0].shape.clone();
    shape[at] = 0;
    for part in parts {
        let mut other = part.shape.clone();
        let Some(extent) = other.get(at).copied() else {
            return Err("its parts have different shapes".into());
        };
        other[at] = 0;
        let mut wanted = shape.clone();
        wanted[at] = 0;
        if other != wanted {
            return Err("its parts have different shapes".into());
        }
        shape[at] = shape[at].saturating_add(extent);
    }
    let too_many = || format!("{shape:?} are too many constants");
    let count = elements(&shape).ok_or_else(too_many)?;
    // Where there is nothing, the other extents may be anything.
    let outer = if count == 0 {
        0
    } else {
        shape[..at].iter().product()
    };
    let runs = (0..outer).flat_map(|row| {
        parts.iter().flat_map(move |part| {
            let run: usize = part.shape[at..].iter().product();
            part.values[row * run..(row + 1) * run].iter().copied()
        })
    });
    let values = ledger.numbers(count, runs)?;
    Ok(Constant::new(parts[0].kind, shape, values))
}

fn constant_node(ledger: &Ledger, call: &Call<'_>) -> Why<Value> {
    if let Some(tensor) = call.node.tensor("value") {
        return constant(ledger, tensor).map(Value::constant);
    }
    let single = |kind, value| Ok(Value::constant(Constant::scalar(kind, value)));
    if let Some(number) = call.node.int("value_int") {
        return single(Kind::Whole, number as f64);
    }
    if let Some(number) = call.node.float("value_float") {
        return single(Kind::Float, f64::from(number));
    }
    if let Some(numbers) = call.node.ints("value_ints") {
        let values = numbers.iter().map(|&number| number as f64);
        return Constant::list(ledger, Kind::Whole, values).map(Value::constant);
    }
    Err("its value is of a kind that is not computed with".into())
}

fn shape(call: &Call<'_>) -> Why<Value> {
    let shape = call.input(0)?.shape();
    let rank = shape.len() as i64;
    let bound = |name: &str, default: i64| {
        let at = call.node.int(name).unwrap_or(default);
        (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize
    };
    let (start, end) = (bound("start", 0), bound("end", rank));
    Ok(Value::Dims {
        dims: shape.get(start..end).unwrap_or_default().to_vec(),
        scalar: false,
    })
}

/// The extents that a reshape asks for: 0 keeps one, -1 takes what is left.
fn resolve(shape: &[Dim], wanted: &[Dim], zero_is_zero: bool) -> Why<Vec<Dim>> {
    let square = || "a square of the number of tokens".to_owned();
    let product = |dims: &[Dim]| dims.iter().try_fold(Dim::ONE, |a, &b| a.times(b));
    let mut target = wanted.to_vec();
    for (at, dim) in target.iter_mut().enumerate() {
        if *dim == Dim::new(0) && !zero_is_zero {
            *dim = *shape
                .get(at)
                .ok_or("a shape keeps an axis that does not exist")?;
        }
    }
    let open = target.iter().position(|&dim| dim == Dim::new(-1));
    if let Some(open) = open {
        target[open] = Dim::ONE;
    }
    no_less_than_nothing(&target)?;
    let Some(open) = open else {
        return Ok(target);
    };
    // Scores have two axes of tokens: take those that stand on both sides away first.
    let mut have = shape.to_vec();
    let mut asked = target.clone();
    asked.retain(|dim| match have.iter().position(|own| own == dim) {
        Some(at) if dim.known().is_none() => {
            have.remove(at);
            false
        }
        _ => true,
    });
    let all = product(&have).ok_or_else(square)?;
    let rest = product(&asked).ok_or_else(square)?;
    target[open] = all
        .divided_by(rest)
        .ok_or("a shape does not divide the elements")?;
    Ok(target)
}

fn squeezed(shape: &[Dim], axes: Option<&[i64]>) -> Why<Vec<Dim>> {
    let axes: Vec<usize> = match axes {
        Some(axes) => axes
            .iter()
            .map(|&at| axis(at, shape.len()))
            .collect::<Why<_>>()?,
        None => (0..shape.len())
            .filter(|&at| shape[at] == Dim::ONE)
            .collect(),
    };
    if axes.iter().any(|&at| shape[at] != Dim::ONE) {
        return Err("an axis that is not of extent 1 is taken away".into());
    }
    let kept = (0..shape.len()).filter(|at| !axes.contains(at));
    Ok(kept.map(|at| shape[at]).collect())
}

fn unsqueezed(shape: &[Dim], axes: &[i64]) -> Why<Vec<Dim>> {
    let rank = shape.len() + axes.len();
    let new: Vec<usize> = axes.iter().map(|&at| axis(at, rank)).collect::<Why<_>>()?;
    let mut own = shape.iter();
    let all = (0..rank).map(|at| match new.contains(&at) {
        true => Some(Dim::ONE),
        false => own.next().copied(),
    });
    all.collect::<Option<_>>()
        .ok_or_else(|| "an axis is named twice".into())
}

fn transposed(ledger: &Ledger, value: &Value, perm: &[usize]) -> Why<Value> {
    let shape = value.shape();
    if perm.len() != shape.len() {
        return Err(format!(
            "{} axes are put in an order of {}",
            shape.len(),
            perm.len()
        ));
    }
    if perm.iter().enumerate().all(|(at, &from)| at == from) {
        return Ok(value.clone());
    }
    Ok(match value {
        Value::Constant(constant) => {
            let shape = perm.iter().map(|&from| constant.shape[from]).collect();
            let own = strides(&constant.shape);
            let turned = perm.iter().map(|&from| own[from]).collect();
            Value::constant(constant.view(ledger, shape, 0, turned)?)
        }
        Value::Weight(weight) if perm == [1, 0] => Value::Weight(Weight {
            shape: vec![weight.shape[1], weight.shape[0]],
            transposed: !weight.transposed,
            ..weight.clone()
        }),
        Value::Uniform { kind, value, .. } => Value::Uniform {
            kind: *kind,
            value: *value,
            shape: perm.iter().map(|&from| shape[from]).collect(),
        },
        Value::Data(data) => Value::Data(Data {
            axes: perm.iter().map(|&from| data.axes[from]).collect(),
            ..data.clone()
        }),
        Value::ByDistance(terms) if perm == [0, 1, 3, 2] => Value::ByDistance(terms.turned()),
        // [query, key, heads] as tables of relative positions are looked up, to [heads, query, key]
        // and further axes of 1 before them.
        other => return Err(format!("{} are transposed", other.what())),
    })
}

/// Columns that stand beside one another as one axis, so that it can be split anywhere.
fn merged(axes: &[Axis]) -> Vec<Axis> {
    let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
    for &axis in axes.iter().filter(|&&axis| axis != Axis::Unit) {
        match (merged.last_mut(), axis) {
            (
                Some(Axis::Columns {
                    extent: outer,
                    stride: step,
                }),
                Axis::Columns { extent, stride },
            ) if *step == extent * stride => {
                *outer *= extent;
                *step = stride;
            }
            _ => merged.push(axis),
        }
    }
    merged
}

/// The axes of a view in new groups, `None` where its strides do not allow it.
fn regroup(axes: &[Axis], target: &[Dim]) -> Why<Option<Vec<Axis>>> {
    let mut from = axes
        .iter()
        .copied()
        .filter(|&axis| axis != Axis::Unit)
        .peekable();
    let mut new = Vec::with_capacity(target.len());
    // What is left of the source's axis that is being split: its extent and innermost stride.
    let mut open: Option<(usize, usize)> = None;
    for &dim in target {
        let wanted = match dim.known() {
            Some(1) => {
                new.push(Axis::Unit);
                continue;
            }
            Some(wanted) if wanted > 0 => wanted as usize,
            Some(_) => return Err("an extent of nothing".into()),
            None => {
                if open.is_some() || dim != Dim::TOKENS || from.next() != Some(Axis::Tokens) {
                    return Err("tokens and columns change places".into());
                }
                new.push(Axis::Tokens);
                continue;
            }
        };
        // Gather whole axes until the extent is reached; the last one may be split.
        let mut run: Option<(usize, usize)> = None; // extent, innermost stride
        loop {
            let have = run.map_or(1, |(extent, _)| extent);
            if have == wanted {
                break;
            }
            let (extent, stride) = match open.take() {
                Some(open) => open,
                None => match from.next() {
                    Some(Axis::Columns { extent, stride }) => (extent, stride),
                    _ => return Err("tokens and columns change places".into()),
                },
            };
            // Inner to what is gathered: its whole run must be one step of the outer.
            if let Some((_, outer)) = run
                && outer != extent * stride
            {
                return Ok(None);
            }
            let missing = wanted / have;
            if wanted % have != 0 {
                return Err("an axis does not divide".into());
            }
            if extent <= missing {
                run = Some((have * extent, stride));
            } else if extent % missing == 0 {
                let inner = extent / missing;
                run = Some((wanted, stride * inner));
                open = Some((inner, stride));
            } else {
                return Err("an axis does not divide".into());
            }
        }
        let (extent, stride) = run.unwrap_or((1, 1));
        new.push(Axis::Columns { extent, stride });
    }
    match (open, from.next()) {
        (None, None) => Ok(Some(new)),
        _ => Err("elements are left over".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(extent: usize, stride: usize) -> Axis {
        Axis::Columns { extent, stride }
    }

    #[test]
    fn columns_are_split_and_merged_by_their_strides() {
        let (one, n) = (Dim::ONE, Dim::TOKENS);
        let matrix = [Axis::Unit, Axis::Tokens, columns(384, 1)];
        let heads = [one, n, Dim::new(12), Dim::new(32)];
        let split = regroup(&matrix, &heads).unwrap().unwrap();
        assert_eq!(split[2..], [columns(12, 32), columns(32, 1)]);
        let merged = regroup(&split, &[one, n, Dim::new(384)]).unwrap().unwrap();
        assert_eq!(merged, matrix);
        // Across what lies between them, only by a copy.
        let apart = [Axis::Tokens, columns(12, 96), columns(32, 1)];
        assert_eq!(regroup(&apart, &[n, Dim::new(384)]).unwrap(), None);
        // Tokens stay where they are.
        let turned = [Axis::Unit, columns(12, 32), Axis::Tokens, columns(32, 1)];
        assert!(regroup(&turned, &[one, n, Dim::new(384)]).is_err());
        assert!(regroup(&matrix, &[one, n, Dim::new(380)]).is_err());
        assert!(regroup(&matrix, &[one, n, Dim::new(768)]).is_err());
    }

    #[test]
    fn shapes_are_resolved_with_tokens_in_them() {
        let (one, n) = (Dim::ONE, Dim::TOKENS);
        let wanted = [Dim::new(0), Dim::new(-1), Dim::new(12), Dim::new(32)];
        let target = resolve(&[one, n, Dim::new(384)], &wanted, false).unwrap();
        assert_eq!(target, [one, n, Dim::new(12), Dim::new(32)]);
        let wanted = [Dim::new(-1), n, n];
        let scores = [one, Dim::new(12), n, n];
        assert_eq!(
            resolve(&scores, &wanted, false).unwrap(),
            [Dim::new(12), n, n]
        );
        assert!(resolve(&[n, Dim::new(7)], &[Dim::new(-1), Dim::new(5)], false).is_err());
    }

    #[test]
    fn axes_come_and_go() {
        let shape = [Dim::TOKENS, Dim::new(3)];
        let more = unsqueezed(&shape, &[0, -1]).unwrap();
        assert_eq!(more, [Dim::ONE, Dim::TOKENS, Dim::new(3), Dim::ONE]);
        assert_eq!(squeezed(&more, None).unwrap(), shape);
        assert_eq!(squeezed(&more, Some(&[-1])).unwrap().len(), 3);
        assert!(squeezed(&more, Some(&[1])).is_err());
        assert!(unsqueezed(&shape, &[1, 1]).is_err());
    }
}
