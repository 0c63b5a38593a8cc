//! Operators that look at one element of each input at a time.

use super::call::Call;
use super::{Lowerer, kind_to};
use crate::builder::Part;
use crate::constant::{Constant, Kind};
use crate::dim::Dim;
use crate::error::Why;
use crate::ledger::Ledger;
use crate::magnitude;
use crate::node::{Binary, Unary};
use crate::value::{Axis, Data, Offsets, Scores, Value, Weight};

/// For how many tokens values for pairs of tokens are made at most.
const MOST_OFFSETS: usize = 1 << 16;
/// Whole numbers up to this are exact in f64, in which constants are; one more may be two more.
pub(super) const WHOLE: f64 = ((1_u64 << 53) - 1) as f64;
/// The longest axis.
pub(super) const LONGEST_AXIS: i64 = i32::MAX as i64;

impl Lowerer {
    pub(super) fn elementwise(
        &mut self,
        operator: &str,
        call: &Call<'_>,
    ) -> Why<Option<Vec<Value>>> {
        if let Some(f) = unary(operator, call) {
            return self.map(f, call.input(0)?).map(one);
        }
        if let Some(f) = binary(operator, call) {
            let mut value = call.input(0)?.clone();
            for at in 1..call.inputs.len() {
                value = self.zip(f, &value, call.input(at)?)?;
            }
            return Ok(one(value));
        }
        Ok(match operator {
            "Identity" => one(call.input(0)?.clone()),
            "Dropout" => Some(dropout(call)?),
            "Cast" => {
                let to = kind_to(call.node.int("to").ok_or("it does not say to what")?)?;
                one(self.cast(call.input(0)?, to)?)
            }
            "CastLike" => one(self.cast(call.input(0)?, call.input(1)?.kind())?),
            "Clip" => one(self.clip(call)?),
            "Where" => {
                let [condition, a, b] = [call.input(0)?, call.input(1)?, call.input(2)?];
                one(self.choose(condition, a, b)?)
            }
            "com.microsoft::BiasGelu" | "com.microsoft::FastGelu" => {
                let mut x = call.input(0)?.clone();
                if let Some(bias) = call.optional(1) {
                    x = self.zip(Binary::Add, &x, bias)?;
                }
                let f = match operator {
                    "com.microsoft::BiasGelu" => Unary::Gelu,
                    _ => Unary::GeluTanh,
                };
                one(self.map(f, &x)?)
            }
            _ => return Ok(None),
        })
    }

    pub(super) fn map(&mut self, f: Unary, value: &Value) -> Why<Value> {
        let kind = match f {
            Unary::Not | Unary::IsNan => Kind::Flag,
            _ => value.kind(),
        };
        let number = |x: f64| crate::eval::unary(f, x);
        Ok(match value {
            Value::Constant(constant) => {
                Value::constant(constant.map(self.ledger(), kind, number)?)
            }
            Value::Uniform { value, shape, .. } => Value::Uniform {
                kind,
                value: kind.round(number(*value)),
                shape: shape.clone(),
            },
            Value::Offsets(offsets) => Value::Offsets(offsets.map(self.ledger(), kind, number)?),
            Value::Data(data) => Value::Data(self.builder.map(data, f, kind)),
            Value::Dims { .. } => {
                let value = self.known_or_computed(value)?;
                return self.map(f, &value);
            }
            // NaN scores do not come from finite weights; exporters guard against rows that are
            // masked throughout, and there are none.
            Value::Probabilities(scores) if f == Unary::IsNan => Value::Uniform {
                kind: Kind::Flag,
                value: 0.0,
                shape: scores.shape(),
            },
            other => return Err(format!("it is not computed on {}", other.what())),
        })
    }

    /// `f(a, b)`, broadcast.
    pub(super) fn zip(&mut self, f: Binary, a: &Value, b: &Value) -> Why<Value> {
        let f = match f {
            Binary::Div if a.kind() != Kind::Float => Binary::DivWhole,
            f => f,
        };
        let kind = if f.compares() { Kind::Flag } else { a.kind() };
        let g = |a: f64, b: f64| f.apply(a, b);
        Ok(match (a, b) {
            (Value::Constant(a), Value::Constant(b)) => {
                Value::constant(a.zip(b, self.ledger(), kind, g)?)
            }
            // Whole numbers that were cast and are scaled: a weight stored in few bits.
            (Value::Weight(weight), Value::Constant(scale))
            | (Value::Constant(scale), Value::Weight(weight))
                if f == Binary::Mul =>
            {
                Value::Weight(scaled(weight, scale)?)
            }
            (Value::Scores(scores), other) => self.scores(f, scores, other, false)?,
            (other, Value::Scores(scores)) => self.scores(f, scores, other, true)?,
            (Value::Dims { .. }, _) | (_, Value::Dims { .. }) => {
                match dims(self.ledger(), f, a, b)? {
                    Some(value) => value,
                    None => {
                        let (a, b) = (self.known_or_computed(a)?, self.known_or_computed(b)?);
                        return self.zip(f, &a, &b);
                    }
                }
            }
            (Value::Data(a), Value::Data(b)) => match self.pairs(f, a, b)? {
                Some(offsets) => Value::Offsets(offsets),
                None => Value::Data(self.builder.zip(f, a, b, kind)?),
            },
            (Value::Offsets(a), Value::Offsets(b)) => {
                Value::Offsets(both(self.ledger(), f, a, b, kind)?)
            }
            (Value::Offsets(offsets), other) if other.uniform().is_some() => {
                let number = other.uniform().unwrap_or_default();
                let offsets = beside(offsets, &other.shape())?;
                Value::Offsets(offsets.map(self.ledger(), kind, |x| g(x, number))?)
            }
            (other, Value::Offsets(offsets)) if other.uniform().is_some() => {
                let number = other.uniform().unwrap_or_default();
                let offsets = beside(offsets, &other.shape())?;
                Value::Offsets(offsets.map(self.ledger(), kind, |x| g(number, x))?)
            }
            (Value::Data(data), other) => self.with_known(f, data, other, false, kind)?,
            (other, Value::Data(data)) => self.with_known(f, data, other, true, kind)?,
            (a, b) => match (a.uniform(), b.uniform()) {
                (Some(x), Some(y)) => Value::Uniform {
                    kind,
                    value: kind.round(g(x, y)),
                    shape: broadcast(&a.shape(), &b.shape())?,
                },
                _ => return Err("these two do not go together".into()),
            },
        })
    }

    /// Computed, with a constant or the same number everywhere.
    fn with_known(
        &mut self,
        f: Binary,
        data: &Data,
        known: &Value,
        swapped: bool,
        kind: Kind,
    ) -> Why<Value> {
        if let Some(truth) = self.certainly(f, data, known, swapped) {
            return Ok(Value::Uniform {
                kind,
                value: f64::from(u8::from(truth)),
                shape: broadcast(&data.shape(), &known.shape())?,
            });
        }
        let constant = match known {
            Value::Constant(constant) => Constant::clone(constant),
            other => {
                let number = other.uniform().ok_or("these two do not go together")?;
                // A mask of more axes than the value that it is for would repeat that value.
                fits(&data.shape(), &other.shape())?;
                Constant::scalar(other.kind(), number)
            }
        };
        let data = self
            .builder
            .zip_constant(f, data, &constant, swapped, kind)?;
        Ok(Value::Data(data))
    }

    /// What a comparison gives for every token, where that is sure: positions are not negative.
    fn certainly(&self, f: Binary, data: &Data, known: &Value, swapped: bool) -> Option<bool> {
        let (start, number) = (self.builder.counts_from(data)?, known.uniform()?);
        match (f, swapped) {
            (Binary::GreaterOrEqual, false) | (Binary::LessOrEqual, true) if start >= number => {
                Some(true)
            }
            (Binary::Greater, false) | (Binary::Less, true) if start > number => Some(true),
            (Binary::Less, false) | (Binary::Greater, true) if start >= number => Some(false),
            _ => None,
        }
    }

    fn scores(&mut self, f: Binary, scores: &Scores, other: &Value, swapped: bool) -> Why<Value> {
        let mut scores = scores.clone();
        match (f, other.uniform(), other) {
            (Binary::Mul, Some(number), _) => scores.scale_by(self.ledger(), number)?,
            (Binary::Div, Some(number), _) if !swapped => {
                scores.scale_by(self.ledger(), 1.0 / number)?;
            }
            // The same for all keys of a query: the softmax takes it away again.
            (Binary::Add, Some(number), _) if number.is_finite() => {
                fits(&scores.shape(), &other.shape())?;
            }
            (Binary::Add, _, Value::ByDistance(terms)) => scores = scores.with_terms(terms)?,
            (Binary::Add, _, Value::Offsets(bias)) => {
                fits(&scores.shape(), &bias.shape())?;
                scores.bias = Some(match scores.bias.take() {
                    None => bias.clone(),
                    Some(other) => both(self.ledger(), Binary::Add, &other, bias, Kind::Float)?,
                });
            }
            _ => return Err("it changes attention scores in a way that is not known".into()),
        }
        Ok(Value::Scores(scores))
    }

    /// A value for each pair of tokens, if `a` and `b` count along different axes.
    fn pairs(&mut self, f: Binary, a: &Data, b: &Data) -> Why<Option<Offsets>> {
        let from_end = |data: &Data| data.token_axis().map(|axis| data.axes.len() - axis);
        let (Some(at), Some(bt)) = (from_end(a), from_end(b)) else {
            return Ok(None);
        };
        if at == bt {
            return Ok(None);
        }
        let (Some(x), Some(y)) = (self.builder.counts_from(a), self.builder.counts_from(b)) else {
            return Err("values for pairs of tokens that depend on more than their offset".into());
        };
        let counts = a.width() == 1 && b.width() == 1;
        if !counts
            || !f.compares() && f != Binary::Sub
            || matches!(f, Binary::And | Binary::Or)
            || (at, bt) != (2, 1) && (at, bt) != (1, 2)
        {
            return Err("values for pairs of tokens that depend on more than their offset".into());
        }
        let positions = self.builder.positions.unwrap_or(self.positions);
        let positions = positions.min(MOST_OFFSETS);
        if positions == 0 {
            return Err("its tables are for no tokens".into());
        }
        self.builder.limit_positions(positions);
        // `key - query` runs from `1 - positions` to `positions - 1`.
        let sign = if at == 2 { -1.0 } else { 1.0 };
        let span = 2 * positions - 1;
        let offsets = (0..span).map(|at| at as f64 + 1.0 - positions as f64);
        let kind = if f.compares() { Kind::Flag } else { a.kind };
        let values = offsets.map(|offset| kind.round(f.apply(sign * offset + x - y, 0.0)));
        let rank = a.axes.len().max(b.axes.len());
        Ok(Some(Offsets {
            kind,
            lead: vec![1; rank - 2],
            values: self.ledger().numbers(span, values)?,
            positions,
        }))
    }

    fn cast(&mut self, value: &Value, to: Kind) -> Why<Value> {
        let from = value.kind();
        let number = |x: f64| match to {
            // Without the sign that 0 may have.
            Kind::Whole => x.trunc() + 0.0,
            _ => x,
        };
        Ok(match value {
            _ if from == to => value.clone(),
            Value::Constant(constant) => {
                Value::constant(constant.map(self.ledger(), to, number)?)
            }
            Value::Uniform { value, shape, .. } => Value::Uniform {
                kind: to,
                value: to.round(number(*value)),
                shape: shape.clone(),
            },
            Value::Offsets(offsets) => Value::Offsets(offsets.map(self.ledger(), to, number)?),
            Value::Weight(weight) if from == Kind::Whole && to == Kind::Float => {
                let mut weight = weight.clone();
                weight.kind = to;
                Value::Weight(weight)
            }
            Value::Dims { .. } => {
                let value = self.known_or_computed(value)?;
                return self.cast(&value, to);
            }
            Value::Data(data) => match (from, to) {
                (Kind::Float, Kind::Whole) => {
                    return Err("floats that are cut to whole numbers".into());
                }
                (_, Kind::Flag) => {
                    let zero = Constant::scalar(from, 0.0);
                    let equal = self
                        .builder
                        .zip_constant(Binary::Equal, data, &zero, false, to)?;
                    Value::Data(self.builder.map(&equal, Unary::Not, to))
                }
                _ => {
                    let mut data = data.clone();
                    data.kind = to;
                    Value::Data(data)
                }
            },
            Value::Unknown { shape, .. } => Value::Unknown {
                kind: to,
                shape: shape.clone(),
            },
            other => return Err(format!("{} are cast to another type", other.what())),
        })
    }

    fn clip(&mut self, call: &Call<'_>) -> Why<Value> {
        let bound = |at: usize, name: &str, none: f32| -> Why<f32> {
            match call.optional(at) {
                None => Ok(call.node.float(name).unwrap_or(none)),
                Some(value) => value
                    .uniform()
                    .map(|number| number as f32)
                    .ok_or_else(|| format!("its bound is {}", value.what())),
            }
        };
        let f = Unary::Clamp {
            least: bound(1, "min", f32::NEG_INFINITY)?,
            most: bound(2, "max", f32::INFINITY)?,
        };
        self.map(f, call.input(0)?)
    }

    /// `if condition then a else b`, broadcast.
    pub(super) fn choose(&mut self, condition: &Value, a: &Value, b: &Value) -> Why<Value> {
        if let Some(truth) = condition.uniform() {
            let taken = if truth != 0.0 { a } else { b };
            let shape = broadcast(&condition.shape(), &broadcast(&a.shape(), &b.shape())?)?;
            return self.expand(taken, &shape);
        }
        if let Value::Offsets(condition) = condition {
            return self.pick_by_offset(condition, a, b);
        }
        let parts = [condition, a, b].map(|value| match value {
            Value::Data(data) => Some(Ok(data.clone())),
            Value::Constant(constant) => Some(Err(Constant::clone(constant))),
            other => {
                let number = other.uniform()?;
                Some(Err(Constant::scalar(other.kind(), number)))
            }
        });
        let kind = a.kind();
        let [Some(c), Some(x), Some(y)] = &parts else {
            return Err("it picks between values of other kinds".into());
        };
        let data = self.builder.select([c, x, y].map(Part::of), kind)?;
        // Masks stand for one number here; their extents may not repeat the rest.
        let shape = broadcast(&condition.shape(), &broadcast(&a.shape(), &b.shape())?)?;
        fits(&data.shape(), &shape)?;
        Ok(Value::Data(data))
    }

    fn pick_by_offset(&mut self, condition: &Offsets, a: &Value, b: &Value) -> Why<Value> {
        // One side's number where the condition holds, and nothing added elsewhere.
        let weight = |here: &Value, there: f64, truth: bool| -> Why<Offsets> {
            let number = here
                .uniform()
                .ok_or("it picks between values of other kinds")?;
            condition.map(self.ledger(), Kind::Float, |c| match (c != 0.0) == truth {
                true => number,
                false => there,
            })
        };
        match (a, b) {
            (Value::Scores(scores), other) | (other, Value::Scores(scores)) => {
                let hidden = matches!(b, Value::Scores(_));
                let number = other.uniform().unwrap_or_default();
                // A query without any key would see all of them.
                let span = condition.span();
                let mut own = condition.values.iter().skip(span / 2).step_by(span);
                let sees_itself = own.all(|&c| (c != 0.0) != hidden);
                let hides = number <= -1e4 && sees_itself;
                if !hides || other.uniform().is_none() {
                    return Err("scores are replaced by what does not hide them".into());
                }
                fits(&scores.shape(), &condition.shape())?;
                fits(&scores.shape(), &other.shape())?;
                let mut scores = scores.clone();
                let bias = weight(other, 0.0, hidden)?;
                scores.bias = Some(match scores.bias.take() {
                    None => bias,
                    Some(known) => both(self.ledger(), Binary::Add, &known, &bias, Kind::Float)?,
                });
                Ok(Value::Scores(scores))
            }
            _ => {
                let kind = a.kind();
                let a = self.as_offsets(a, condition)?;
                let b = self.as_offsets(b, condition)?;
                // All three with the same axes before the tokens.
                let ledger = self.ledger();
                let shape = both(ledger, Binary::Mul, condition, &a, kind)?;
                let shape = both(ledger, Binary::Mul, &shape, &b, kind)?;
                let zero = shape.map(ledger, kind, |_| 0.0)?;
                let alike = |of: &Offsets| both(ledger, Binary::Add, of, &zero, of.kind);
                let (c, a, b) = (alike(condition)?, alike(&a)?, alike(&b)?);
                let picked = c.values.iter().zip(a.values.iter().zip(b.values.iter()));
                let picked = picked.map(|(&c, (&a, &b))| if c != 0.0 { a } else { b });
                Ok(Value::Offsets(Offsets {
                    values: ledger.numbers(c.values.len(), picked)?,
                    ..zero
                }))
            }
        }
    }

    /// The same number for each offset, or what it is.
    fn as_offsets(&self, value: &Value, like: &Offsets) -> Why<Offsets> {
        match (value, value.uniform()) {
            (Value::Offsets(offsets), _) => Ok(offsets.clone()),
            (_, Some(number)) => {
                let like = beside(like, &value.shape())?;
                like.map(self.ledger(), value.kind(), |_| number)
            }
            _ => Err("it picks between values of other kinds".into()),
        }
    }

    /// Extents as numbers that are computed.
    pub(super) fn computed(&mut self, value: &Value) -> Why<Data> {
        match value {
            Value::Data(data) => Ok(data.clone()),
            Value::Dims { dims, scalar } if dims.len() == 1 => {
                let Dim { fixed, tokens } = dims[0];
                let most = fixed.unsigned_abs().saturating_add(
                    tokens
                        .unsigned_abs()
                        .saturating_mul(magnitude::LONGEST as u64),
                );
                if most > u64::from(magnitude::EXACT) {
                    return Err("extents that may pass 2^24, which f32 does not hold".into());
                }
                let length = self.builder.length();
                let lead: &[Axis] = if *scalar { &[] } else { &[Axis::Unit] };
                let data = Data::whole(length, Kind::Whole, lead, &[]);
                let f = Unary::Affine {
                    factor: tokens as f32,
                    shift: fixed as f32,
                };
                Ok(self.builder.map(&data, f, Kind::Whole))
            }
            other => Err(format!("{} cannot be computed with", other.what())),
        }
    }

    pub(super) fn known_or_computed(&mut self, value: &Value) -> Why<Value> {
        match value {
            Value::Dims { dims, scalar } => match dims.iter().map(|dim| dim.known()).collect() {
                Some(known) => {
                    let known: Vec<i64> = known;
                    let values = known.iter().map(|&number| number as f64);
                    let list = Constant::list(self.ledger(), Kind::Whole, values)?;
                    let shape = if *scalar { vec![] } else { vec![dims.len()] };
                    list.reshaped(shape).map(Value::constant)
                }
                None => self.computed(value).map(Value::Data),
            },
            other => Ok(other.clone()),
        }
    }

    /// `value` repeated to `shape`.
    pub(super) fn expand(&mut self, value: &Value, shape: &[Dim]) -> Why<Value> {
        let shape = broadcast(&value.shape(), shape)?;
        no_less_than_nothing(&shape)?;
        if value.shape() == shape {
            return Ok(value.clone());
        }
        if let Some(number) = value.uniform() {
            return Ok(Value::Uniform {
                kind: value.kind(),
                value: number,
                shape,
            });
        }
        let known: Option<Vec<usize>> = shape.iter().map(|dim| dim.extent()).collect();
        match (value, known) {
            (Value::Constant(constant), Some(known)) => {
                constant.expand(self.ledger(), &known).map(Value::constant)
            }
            (Value::Offsets(offsets), _) => {
                let lead = shape[..shape.len().saturating_sub(2)].iter();
                let lead: Option<Vec<usize>> = lead.map(|dim| dim.extent()).collect();
                let lead = lead.filter(|_| offsets.lead.iter().all(|&extent| extent == 1));
                let lead = lead.ok_or("values for pairs of tokens are repeated")?;
                offsets.repeated(self.ledger(), lead).map(Value::Offsets)
            }
            (Value::Scores(_), _) => Err("scores are repeated".into()),
            (Value::Data(data), _) => {
                let lead = shape.len() - data.axes.len();
                let axes = shape.iter().enumerate().map(|(at, dim)| {
                    let own = at
                        .checked_sub(lead)
                        .map_or(Axis::Unit, |own| data.axes[own]);
                    match (own, dim.known()) {
                        (Axis::Unit, Some(1)) => Ok(Axis::Unit),
                        (Axis::Unit, Some(_)) => Ok(Axis::Columns {
                            extent: dim.extent().ok_or("an axis that is too long")?,
                            stride: 0,
                        }),
                        (Axis::Unit, None) => Err("a row is repeated for each token".to_owned()),
                        (other, _) => Ok(other),
                    }
                });
                let axes: Vec<Axis> = axes.collect::<Why<_>>()?;
                crate::builder::within_bounds(&axes)?;
                Ok(Value::Data(Data {
                    axes,
                    ..data.clone()
                }))
            }
            (other, _) => Err(format!("{} is repeated", other.what())),
        }
    }
}

/// Sums and products of extents, where they are extents again.
fn dims(ledger: &Ledger, f: Binary, a: &Value, b: &Value) -> Why<Option<Value>> {
    let (Some(x), Some(y)) = (a.as_dims(), b.as_dims()) else {
        return Ok(None);
    };
    let scalar = a.shape().is_empty() && b.shape().is_empty();
    let length = x.len().max(y.len());
    if ![1, length].contains(&x.len()) || ![1, length].contains(&y.len()) {
        return Ok(None);
    }
    let at = |dims: &[Dim], at: usize| if dims.len() == 1 { dims[0] } else { dims[at] };
    let flag = |truth: bool| Dim::new(i64::from(truth));
    let each = (0..length).map(|place| {
        let (x, y) = (at(&x, place), at(&y, place));
        match f {
            Binary::Add => x.plus(y),
            Binary::Sub => x.minus(y),
            Binary::Mul => x.times(y),
            Binary::DivWhole => x.divided_by(y),
            // Of a text's length and -1 or 0, which exporters ask before they reshape.
            Binary::Equal => equal(x, y).map(flag),
            _ => match (x.known(), y.known()) {
                (Some(x), Some(y)) => {
                    let exact = whole(x as f64).is_some() && whole(y as f64).is_some();
                    let result = whole(f.apply(x as f64, y as f64)).map(Dim::new);
                    result.filter(|_| exact)
                }
                _ => None,
            },
        }
    });
    let Some(dims) = each.collect::<Option<Vec<Dim>>>() else {
        return Ok(None);
    };
    if f.compares() {
        let values = dims.iter().map(|dim| dim.fixed as f64);
        let list = Constant::list(ledger, Kind::Flag, values)?;
        let shape = if scalar { vec![] } else { vec![length] };
        return list.reshaped(shape).map(Value::constant).map(Some);
    }
    Ok(Some(Value::Dims { dims, scalar }))
}

/// A number as the whole number that it is exactly.
fn whole(number: f64) -> Option<i64> {
    let exact = number.abs() <= WHOLE && number.trunc() == number;
    exact.then_some(number as i64)
}

/// Whether two extents are equal, where that is the same for every text of a token or more.
fn equal(x: Dim, y: Dim) -> Option<bool> {
    let difference = x.minus(y)?;
    if let Some(known) = difference.known() {
        return Some(known == 0);
    }
    // The number of tokens at which they are.
    let (fixed, tokens) = (difference.fixed.checked_neg()?, difference.tokens);
    let whole = fixed.checked_rem(tokens)? == 0;
    (!whole || fixed.checked_div(tokens)? < 1).then_some(false)
}

/// Two values for each offset, their axes before the tokens broadcast.
fn both(ledger: &Ledger, f: Binary, a: &Offsets, b: &Offsets, kind: Kind) -> Why<Offsets> {
    if a.positions != b.positions {
        return Err(format!(
            "tables for {} and {} tokens",
            a.positions, b.positions
        ));
    }
    let span = a.span();
    let shaped = |offsets: &Offsets| {
        let mut shape = offsets.lead.clone();
        shape.push(span);
        Constant::new(offsets.kind, shape, std::sync::Arc::clone(&offsets.values))
    };
    let both = shaped(a).zip(&shaped(b), ledger, kind, |x, y| f.apply(x, y))?;
    let mut lead = both.shape;
    lead.pop();
    Ok(Offsets {
        kind,
        lead,
        values: both.values,
        positions: a.positions,
    })
}

impl Scores {
    fn scale_by(&mut self, ledger: &Ledger, factor: f64) -> Why<()> {
        if self.relative.is_some() {
            return Err("scores are scaled that have terms by distance".into());
        }
        self.scale *= factor;
        if let Some(bias) = &mut self.bias {
            *bias = bias.map(ledger, Kind::Float, |value| value * factor)?;
        }
        Ok(())
    }
}

/// A weight of whole numbers, cast to floats, times a scale.
fn scaled(weight: &Weight, scale: &Constant) -> Why<Weight> {
    let rank = weight.shape.len();
    let lead = rank.checked_sub(scale.shape.len());
    let lead =
        lead.filter(|_| weight.whole && weight.kind == Kind::Float && weight.scale.is_none());
    let lead = lead.ok_or("a large weight is computed with")?;
    let mut along = (0..scale.shape.len()).filter(|&at| scale.shape[at] != 1);
    let (first, second) = (along.next(), along.next());
    let axis = first.map(|at| at + lead);
    if second.is_some() || axis.is_some_and(|axis| scale.values.len() != weight.shape[axis]) {
        return Err("a weight in few bits with a scale along several axes".into());
    }
    with_scale(weight, scale, axis)
}

/// Whole numbers with one scale, or with one for each entry of an axis as the graph sees it.
pub(super) fn with_scale(weight: &Weight, scale: &Constant, axis: Option<usize>) -> Why<Weight> {
    let stored = match axis {
        Some(axis) if weight.transposed => 1 - axis,
        Some(axis) => axis,
        None => 0,
    };
    if axis.is_some() && stored == 0 && weight.first_row != 0 {
        return Err("some rows of a weight, with a scale for each".into());
    }
    if scale.kind != Kind::Float {
        return Err("a scale of whole numbers".into());
    }
    Ok(Weight {
        scale: Some((std::sync::Arc::new(scale.clone()), stored)),
        kind: Kind::Float,
        ..weight.clone()
    })
}

/// Values for pairs of tokens with as many axes as a mask beside them has, which may not repeat
/// them.
fn beside(offsets: &Offsets, mask: &[Dim]) -> Why<Offsets> {
    let shape = broadcast(&offsets.shape(), mask)?;
    let lead = &shape[..shape.len() - 2];
    let new = lead.len() - offsets.lead.len();
    let same = shape[new..] == offsets.shape();
    if !same || lead[..new].iter().any(|&dim| dim != Dim::ONE) {
        return Err("values for pairs of tokens are repeated".into());
    }
    Ok(Offsets {
        lead: [vec![1; new], offsets.lead.clone()].concat(),
        ..offsets.clone()
    })
}

/// Whether `small` broadcasts to `shape` without changing it.
fn fits(shape: &[Dim], small: &[Dim]) -> Why<()> {
    match broadcast(shape, small)? == shape {
        true => Ok(()),
        false => Err(format!("{small:?} repeats {shape:?}")),
    }
}

/// Refuses extents below 0, and those that a target of 32 bits does not have.
pub(super) fn no_less_than_nothing(shape: &[Dim]) -> Why<()> {
    let known = shape.iter().filter_map(|dim| dim.known());
    for extent in known {
        if extent < 0 {
            return Err(format!("an extent of {extent}"));
        }
        if extent > LONGEST_AXIS {
            return Err(format!("an extent of {extent} is too many"));
        }
    }
    Ok(())
}

/// The shape that two shapes broadcast to.
pub(super) fn broadcast(a: &[Dim], b: &[Dim]) -> Why<Vec<Dim>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[Dim], axis: usize| {
        (axis + shape.len())
            .checked_sub(rank)
            .map_or(Dim::ONE, |own| shape[own])
    };
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (x, y) if x == y || y == Dim::ONE => Ok(x),
            (Dim::ONE, y) => Ok(y),
            _ => Err(format!("{a:?} and {b:?} do not broadcast")),
        })
        .collect()
}

/// Nothing is dropped but in training; what stays is all of it.
fn dropout(call: &Call<'_>) -> Why<Vec<Value>> {
    let x = call.input(0)?;
    let training = match call.optional(2) {
        Some(training) => training.uniform() != Some(0.0),
        None => false,
    };
    let none = call.optional(1).and_then(Value::uniform) == Some(0.0);
    if training && !none {
        return Err("numbers are dropped at random, as in training".into());
    }
    let kept = Value::Uniform {
        kind: Kind::Flag,
        value: 1.0,
        shape: x.shape(),
    };
    Ok(vec![x.clone(), kept])
}

pub(super) fn one(value: Value) -> Option<Vec<Value>> {
    Some(vec![value])
}

fn unary(operator: &str, call: &Call<'_>) -> Option<Unary> {
    Some(match operator {
        "Abs" => Unary::Abs,
        "Acos" => Unary::Acos,
        "Acosh" => Unary::Acosh,
        "Asin" => Unary::Asin,
        "Asinh" => Unary::Asinh,
        "Atan" => Unary::Atan,
        "Atanh" => Unary::Atanh,
        "Ceil" => Unary::Ceil,
        "Cos" => Unary::Cos,
        "Erf" => Unary::Erf,
        "Exp" => Unary::Exp,
        "Floor" => Unary::Floor,
        "Gelu" | "com.microsoft::Gelu" => match call.node.text("approximate") {
            Some("tanh") => Unary::GeluTanh,
            _ => Unary::Gelu,
        },
        "com.microsoft::QuickGelu" => Unary::Swish(call.node.float("alpha").unwrap_or(1.702)),
        "IsNaN" => Unary::IsNan,
        "Log" => Unary::Log,
        "Neg" => Unary::Affine {
            factor: -1.0,
            shift: 0.0,
        },
        "Not" => Unary::Not,
        "Reciprocal" => Unary::Reciprocal,
        "Relu" => Unary::Relu,
        "Sigmoid" => Unary::Sigmoid,
        "Sign" => Unary::Sign,
        "Sin" => Unary::Sin,
        "Sqrt" => Unary::Sqrt,
        "Tanh" => Unary::Tanh,
        _ => return None,
    })
}

fn binary(operator: &str, call: &Call<'_>) -> Option<Binary> {
    Some(match operator {
        "Add" | "Sum" => Binary::Add,
        "And" => Binary::And,
        "Div" => Binary::Div,
        "Equal" => Binary::Equal,
        "Greater" => Binary::Greater,
        "GreaterOrEqual" => Binary::GreaterOrEqual,
        "Less" => Binary::Less,
        "LessOrEqual" => Binary::LessOrEqual,
        "Max" => Binary::Max,
        "Min" => Binary::Min,
        "Mod" if call.node.int("fmod").unwrap_or(0) != 0 => Binary::Remainder,
        "Mod" => Binary::Modulo,
        "Mul" => Binary::Mul,
        "Or" => Binary::Or,
        "Pow" => Binary::Power,
        "Sub" => Binary::Sub,
        _ => return None,
    })
}
