//! Operators that take a part.

use isovec_engine::onnx::axis;

use super::Lowerer;
use super::call::Call;
use super::elementwise::one;
use crate::constant::{Constant, Kind, elements, strides};
use crate::dim::Dim;
use crate::error::Why;
use crate::ledger::Ledger;
use crate::node::{Op, Rows, Table, Which};
use crate::value::{Axis, Data, Value, Weight};

/// A stretch of an axis: from, to (not included).
#[derive(Debug, Clone, Copy)]
struct Stretch {
    axis: usize,
    from: Dim,
    to: Dim,
    step: i64,
}

impl Lowerer {
    pub(super) fn slices(&mut self, operator: &str, call: &Call<'_>) -> Why<Option<Vec<Value>>> {
        Ok(match operator {
            "Slice" => {
                let mut value = call.input(0)?.clone();
                for stretch in stretches(call, &value.shape())? {
                    value = self.slice(&value, stretch)?;
                }
                one(value)
            }
            "Split" => Some(self.split(call)?),
            _ => return Ok(None),
        })
    }

    /// The entries `from..to` of an axis.
    pub(super) fn stretch(&mut self, value: &Value, axis: usize, from: i64, to: i64) -> Why<Value> {
        let (from, to) = (Dim::new(from), Dim::new(to));
        let step = 1;
        self.slice(
            value,
            Stretch {
                axis,
                from,
                to,
                step,
            },
        )
    }

    /// From the last to the first.
    fn backwards(&mut self, value: &Value, stretch: Stretch) -> Why<Value> {
        let known = |dim: Dim| dim.known().ok_or("it runs backwards along a text");
        let extent = known(value.shape()[stretch.axis])?;
        let bound = |bound: i64| match bound < 0 {
            true => bound.saturating_add(extent).max(-1),
            false => bound.min(extent - 1),
        };
        let (from, to) = (bound(known(stretch.from)?), bound(known(stretch.to)?));
        let back = usize::try_from(stretch.step.unsigned_abs());
        let places = (to + 1..=from).rev().step_by(back.unwrap_or(usize::MAX));
        let places: Vec<usize> = places
            .filter_map(|place| usize::try_from(place).ok())
            .collect();
        if places.is_empty() {
            return Err("a slice of nothing".into());
        }
        self.entries(value, stretch.axis, &places)
    }

    fn slice(&mut self, value: &Value, stretch: Stretch) -> Why<Value> {
        if stretch.step < 0 {
            return self.backwards(value, stretch);
        }
        let shape = value.shape();
        let own = shape[stretch.axis];
        let clamp = |bound| clamp(bound, own, self.fewest);
        let (from, to) = (clamp(stretch.from)?, clamp(stretch.to)?);
        if from == Dim::new(0) && to == own && stretch.step == 1 {
            return Ok(value.clone());
        }
        let extent = to.minus(from).ok_or("a slice that is too long")?;
        let at = stretch.axis;
        match value {
            Value::Uniform { kind, value, .. } if stretch.step == 1 => {
                let least = extent.fixed.checked_add(extent.tokens);
                if extent.tokens < 0 || least.is_none_or(|least| least < 0) {
                    return Err("a slice that ends before it begins".into());
                }
                let mut shape = shape;
                shape[at] = extent;
                return Ok(Value::Uniform {
                    kind: *kind,
                    value: *value,
                    shape,
                });
            }
            // As many rows of a table as the text has tokens: a row by position.
            Value::Constant(_) | Value::Weight(_) if extent == Dim::TOKENS && stretch.step == 1 => {
                let first = from
                    .known()
                    .ok_or("a slice from a place that depends on the text")?;
                return self.by_position(value, at, first as usize);
            }
            Value::Dims { dims, .. } => {
                let (Some(from), Some(to)) = (from.known(), to.known()) else {
                    return Err("a slice of extents that depends on the text".into());
                };
                let taken = dims.get(from as usize..to as usize).unwrap_or_default();
                let taken = taken.iter().step_by(stretch.step.max(1) as usize);
                return Ok(Value::Dims {
                    dims: taken.copied().collect(),
                    scalar: false,
                });
            }
            _ => {}
        }
        if let (Value::Data(data), Axis::Tokens) = (value, axis_of(value, at)) {
            let which = match (
                from.known(),
                extent.known(),
                from.minus(own).and_then(Dim::known),
            ) {
                (Some(from), Some(1), _) => Which::FromFirst(from as usize),
                (_, Some(1), Some(back)) if back < 0 => Which::FromLast((-1 - back) as usize),
                _ => return Err("some of a text's tokens".into()),
            };
            let mut axes = data.axes.clone();
            axes[at] = Axis::Unit;
            return Ok(Value::Data(self.builder.take(data, which, axes)));
        }
        let (Some(from), Some(to)) = (from.known(), to.known()) else {
            return Err("a slice that depends on the text".into());
        };
        let (from, step) = (from as usize, stretch.step as usize);
        let extent = (to as usize).saturating_sub(from).div_ceil(step);
        if extent == 0 {
            return Err("a slice of nothing".into());
        }
        Ok(match value {
            Value::Constant(constant) => {
                let mut shape = constant.shape.clone();
                shape[at] = extent;
                let mut strides = strides(&constant.shape);
                let offset = from.saturating_mul(strides[at]);
                strides[at] = strides[at].saturating_mul(step);
                let taken = constant.view(self.ledger(), shape, offset, strides)?;
                Value::constant(taken)
            }
            Value::Weight(weight) if at == 0 && !weight.transposed && step == 1 => {
                Value::Weight(Weight {
                    first_row: weight.first_row + from,
                    shape: [&[extent], &weight.shape[1..]].concat(),
                    ..weight.clone()
                })
            }
            Value::Data(data) => {
                let mut data = data.clone();
                if let Axis::Columns { stride, .. } = data.axes[at] {
                    data.offset += from * stride;
                    data.axes[at] = Axis::columns(extent, stride * step);
                }
                Value::Data(data)
            }
            other => return Err(format!("a part of {}", other.what())),
        })
    }

    /// The entry of a table that belongs to each token's place, from `first` on, along axis `at`.
    fn by_position(&mut self, value: &Value, at: usize, first: usize) -> Why<Value> {
        let shape = value.shape();
        let rows = shape[at].known().unwrap_or_default() as usize;
        let rows = rows.checked_sub(first).filter(|&rows| rows > 0);
        let rows = rows.ok_or("a slice from beyond the end")?;
        self.builder.limit_positions(rows);
        if let Some(number) = value.uniform() {
            let mut shape = shape;
            shape[at] = Dim::TOKENS;
            return Ok(Value::Uniform {
                kind: value.kind(),
                value: number,
                shape,
            });
        }
        let ids = self.builder.position();
        let mut axes: Vec<Axis> = shape
            .iter()
            .map(|dim| Axis::columns(dim.known().unwrap_or(1) as usize, 1))
            .collect();
        axes[at] = Axis::Tokens;
        let (table, width) = match value {
            Value::Constant(constant) => {
                if let Some(start) = constant.counts_from() {
                    let data = Data {
                        node: ids,
                        kind: constant.kind,
                        offset: 0,
                        axes,
                    };
                    let f = crate::node::Unary::Affine {
                        factor: 1.0,
                        shift: (start + first as f64) as f32,
                    };
                    return Ok(Value::Data(self.builder.map(&data, f, constant.kind)));
                }
                // The positions first.
                let (mut turned, mut strides) = (constant.shape.clone(), strides(&constant.shape));
                let (_, stride) = (turned.remove(at), strides.remove(at));
                let width = elements(&turned).ok_or("a row that is too long")?;
                turned.insert(0, rows);
                strides.insert(0, stride);
                let offset = first.saturating_mul(stride);
                let table = constant.view(self.ledger(), turned, offset, strides)?;
                (Table::Constant(self.builder.floats(&table)?), width)
            }
            Value::Weight(weight) if at == 0 && !weight.transposed => {
                let weight = Weight {
                    first_row: weight.first_row + first,
                    shape: [&[rows], &weight.shape[1..]].concat(),
                    ..weight.clone()
                };
                let width = weight.shape[1..].iter().product();
                (Table::Weight(weight), width)
            }
            other => return Err(format!("a stretch of {}", other.what())),
        };
        let node = self
            .builder
            .push(Op::Gather { table, ids }, Rows::Tokens, width);
        let shape = Data {
            node,
            kind: value.kind(),
            offset: 0,
            axes,
        };
        Ok(Value::Data(crate::builder::Builder::like(
            node,
            value.kind(),
            &shape,
        )))
    }

    fn split(&mut self, call: &Call<'_>) -> Why<Vec<Value>> {
        let value = call.input(0)?.clone();
        let shape = value.shape();
        let at = axis(call.node.int("axis").unwrap_or(0), shape.len())?;
        let extent = shape[at].known().ok_or("it splits a text")?;
        let sizes = match call.whole_numbers(1)? {
            Some(sizes) => sizes,
            None => match call.node.ints("split") {
                Some(sizes) => sizes.to_vec(),
                None => {
                    let parts = call.node.output.len() as i64;
                    if parts == 0 || parts > extent {
                        return Err(format!("{parts} parts of {extent}"));
                    }
                    let size = (extent - 1) / parts + 1;
                    (0..parts)
                        .map(|part| size.min(extent - part * size))
                        .collect()
                }
            },
        };
        let mut from = 0;
        let mut values = Vec::new();
        for size in sizes {
            if size < 0 || size > extent - from {
                return Err("its parts do not fit".into());
            }
            let to = from + size;
            if size == 0 {
                values.push(nothing(self.ledger(), &value, at)?);
                continue;
            }
            let stretch = Stretch {
                axis: at,
                from: Dim::new(from),
                to: Dim::new(to),
                step: 1,
            };
            values.push(self.slice(&value, stretch)?);
            from = to;
        }
        if from != extent {
            return Err("its parts leave something over".into());
        }
        Ok(values)
    }

    /// One entry of an axis, which goes away.
    pub(super) fn entry(&mut self, value: &Value, at: usize, index: i64) -> Why<Value> {
        let extent = value.shape()[at];
        let from = match index < 0 {
            true => extent
                .plus(Dim::new(index))
                .ok_or("an index that is too large")?,
            false => Dim::new(index),
        };
        if let (Some(from), Some(extent)) = (from.known(), extent.known())
            && !(0..extent).contains(&from)
        {
            return Err(format!("entry {index} of {extent}"));
        }
        let stretch = Stretch {
            axis: at,
            from,
            to: from.plus(Dim::ONE).ok_or("an index that is too large")?,
            step: 1,
        };
        let part = self.slice(value, stretch)?;
        let mut shape = part.shape();
        shape.remove(at);
        self.reshape(&part, &shape)
    }
}

/// A value of no extent along one axis.
fn nothing(ledger: &Ledger, value: &Value, at: usize) -> Why<Value> {
    let mut shape = value.shape();
    shape[at] = Dim::new(0);
    match value {
        Value::Constant(constant) => {
            let mut extents = constant.shape.clone();
            extents[at] = 0;
            constant
                .view(ledger, extents, 0, strides(&constant.shape))
                .map(Value::constant)
        }
        other => Ok(Value::Uniform {
            kind: other.kind(),
            value: 0.0,
            shape,
        }),
    }
}

fn axis_of(value: &Value, at: usize) -> Axis {
    match value {
        Value::Data(data) => data.axes[at],
        _ => Axis::Unit,
    }
}

/// A bound within an axis, negative ones counted from its end. A row has `fewest` tokens at least.
fn clamp(bound: Dim, extent: Dim, fewest: i64) -> Why<Dim> {
    let too_large = || "a bound that is too large".to_owned();
    match (bound.known(), extent.known()) {
        (Some(bound), Some(extent)) => {
            let bound = if bound < 0 { bound + extent } else { bound };
            Ok(Dim::new(bound.clamp(0, extent)))
        }
        // From the end of a text.
        (Some(bound), None) if bound < 0 => extent.plus(Dim::new(bound)).ok_or_else(too_large),
        (Some(bound), None) if bound > i64::from(i32::MAX) - 1 => Ok(extent),
        // More of a bound than that is not known to be in it.
        (Some(0 | 1), None) => Ok(bound),
        (Some(known), None) if extent == Dim::TOKENS && known <= fewest => Ok(bound),
        (Some(_), None) => Err("a place that a short text does not have".into()),
        (None, _) => Ok(bound),
    }
}

fn stretches(call: &Call<'_>, shape: &[Dim]) -> Why<Vec<Stretch>> {
    let dims = |at: usize, name: &str| -> Why<Option<Vec<Dim>>> {
        match call.optional(at) {
            Some(value) => value
                .as_dims()
                .map(Some)
                .ok_or_else(|| format!("input {at} is {}, not extents", value.what())),
            None => Ok(call
                .node
                .ints(name)
                .map(|numbers| numbers.iter().map(|&number| Dim::new(number)).collect())),
        }
    };
    let starts = dims(1, "starts")?.ok_or("it does not say from where")?;
    let ends = dims(2, "ends")?.ok_or("it does not say to where")?;
    let axes = match dims(3, "axes")? {
        Some(axes) => axes,
        None => (0..starts.len() as i64).map(Dim::new).collect(),
    };
    let steps = dims(4, "steps")?.unwrap_or_else(|| vec![Dim::ONE; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err("its lists differ in length".into());
    }
    (0..starts.len())
        .map(|at| {
            let step = steps[at].known().filter(|&step| step != 0);
            Ok(Stretch {
                axis: axis(
                    axes[at].known().ok_or("an axis depends on the text")?,
                    shape.len(),
                )?,
                from: starts[at],
                to: ends[at],
                step: step.ok_or("it does not say in which steps")?,
            })
        })
        .collect()
}

/// A constant's one whole number, with its shape.
pub(super) fn index(constant: &Constant) -> Option<i64> {
    (constant.kind == Kind::Whole && constant.values.len() == 1).then(|| constant.values[0] as i64)
}
