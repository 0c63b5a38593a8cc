//! Operators that take many elements to one, and those that need all of a row.

use isovec_engine::onnx::axis;

use super::Lowerer;
use super::call::Call;
use super::elementwise::one;
use isovec_engine::budget::Resource;

use crate::constant::{Constant, Kind, broadcast};
use crate::dim::Dim;
use crate::error::Why;
use crate::node::{Binary, Norm, NormKind, Op, Reduction, Rows, Unary};
use crate::value::{Axis, Data, Value};

impl Lowerer {
    pub(super) fn reductions(
        &mut self,
        operator: &str,
        call: &Call<'_>,
    ) -> Why<Option<Vec<Value>>> {
        let f = match operator {
            "ReduceSum" => Some(Reduction::Sum),
            "ReduceMean" => Some(Reduction::Mean),
            "ReduceMax" => Some(Reduction::Max),
            "ReduceMin" => Some(Reduction::Min),
            "ReduceProd" => Some(Reduction::Product),
            "ReduceL2" => Some(Reduction::L2),
            "ReduceSumSquare" => Some(Reduction::SumOfSquares),
            _ => None,
        };
        if let Some(f) = f {
            let plain = !matches!(f, Reduction::L2 | Reduction::SumOfSquares);
            if plain && reduces_nothing(call)? {
                return Ok(one(call.input(0)?.clone()));
            }
            let (axes, keep) = asked(call)?;
            return self
                .reduce(f, call.input(0)?, axes.as_deref(), keep)
                .map(one);
        }
        Ok(match operator {
            "Softmax" => one(self.softmax(call)?),
            "LayerNormalization" => Some(self.layer_norm_and_statistics(call)?),
            "RMSNormalization" | "SimplifiedLayerNormalization" => {
                one(self.layer_norm(call, NormKind::RootMeanSquare)?)
            }
            "com.microsoft::SkipLayerNormalization" => {
                let mut sum = self.zip(Binary::Add, call.input(0)?, call.input(1)?)?;
                if let Some(bias) = call.optional(4) {
                    sum = self.zip(Binary::Add, &sum, bias)?;
                }
                let asked = |at: usize| {
                    call.node
                        .output
                        .get(at)
                        .is_some_and(|name| !name.is_empty())
                };
                if asked(1) || asked(2) {
                    return Err("its mean or deviation is asked for".into());
                }
                let last = sum.shape().len().checked_sub(1).ok_or("a single number")?;
                let norm = self.normed(call, (&sum, last), NormKind::Layer, 2, 1e-12)?;
                // The second and the third, which nothing asks for, are the mean and the deviation.
                Some(vec![norm, sum.clone(), sum.clone(), sum])
            }
            "LpNormalization" => one(self.lp_norm(call)?),
            "CumSum" => one(self.cumulated(call)?),
            _ => return Ok(None),
        })
    }

    pub(super) fn reduce(
        &mut self,
        f: Reduction,
        value: &Value,
        axes: Option<&[i64]>,
        keep: bool,
    ) -> Why<Value> {
        let shape = value.shape();
        let rank = shape.len();
        let axes: Vec<usize> = match axes {
            Some([]) | None => (0..rank).collect(),
            Some(axes) => axes.iter().map(|&at| axis(at, rank)).collect::<Why<_>>()?,
        };
        let target: Vec<Dim> = (0..rank)
            .filter(|at| keep || !axes.contains(at))
            .map(|at| {
                if axes.contains(&at) {
                    Dim::ONE
                } else {
                    shape[at]
                }
            })
            .collect();
        match value {
            Value::Uniform { kind, value, .. } => {
                let many = axes
                    .iter()
                    .try_fold(Dim::ONE, |many, &at| many.times(shape[at]));
                let many = many.ok_or("a square of the number of tokens")?;
                self.reduce_uniform(f, *kind, *value, many, &target)
            }
            Value::Constant(constant) if axes.len() == rank && f == Reduction::Sum => {
                self.ledger().take(
                    Resource::Elements,
                    constant.values.len() as u64,
                    "sums of constants",
                )?;
                let sum = constant.kind.round(constant.values.iter().sum());
                let sum = Value::constant(Constant::scalar(constant.kind, sum));
                self.reshape(&sum, &target)
            }
            Value::Data(data) => {
                let reduced = self.reduce_data(f, data, &axes)?;
                self.reshape(&Value::Data(reduced), &target)
            }
            other => Err(format!("{} are summed up", other.what())),
        }
    }

    fn reduce_uniform(
        &mut self,
        f: Reduction,
        kind: Kind,
        value: f64,
        many: Dim,
        target: &[Dim],
    ) -> Why<Value> {
        let factor = match f {
            Reduction::Mean | Reduction::Max | Reduction::Min => {
                return Ok(Value::Uniform {
                    kind,
                    value,
                    shape: target.to_vec(),
                });
            }
            Reduction::Sum => value,
            Reduction::SumOfSquares => value * value,
            Reduction::Product => return Err("the product of a mask".into()),
            Reduction::L2 => return Err("the norm of a mask".into()),
        };
        if target.iter().any(|&dim| dim != Dim::ONE) {
            return Err("the sum of a mask over some of its axes".into());
        }
        let count = self.computed(&Value::Dims {
            dims: vec![many],
            scalar: true,
        })?;
        let factor = Value::constant(Constant::scalar(kind, factor));
        let sum = Data { kind, ..count };
        let sum = self.zip(Binary::Mul, &Value::Data(sum), &factor)?;
        self.reshape(&sum, target)
    }

    /// With the reduced axes as axes of 1.
    fn reduce_data(&mut self, f: Reduction, data: &Data, axes: &[usize]) -> Why<Data> {
        over_one_text(data, axes)?;
        let mut rest = data.axes.clone();
        for &at in axes {
            rest[at] = Axis::Unit;
        }
        let over_tokens = axes.iter().any(|&at| data.axes[at] == Axis::Tokens);
        let columns: Vec<usize> = (0..data.axes.len())
            .filter(|&at| matches!(data.axes[at], Axis::Columns { .. }))
            .collect();
        let over: Vec<usize> = columns
            .iter()
            .copied()
            .filter(|at| axes.contains(at))
            .collect();
        match (over_tokens, over.is_empty()) {
            // A sum of groups of equal size is the sum of their sums.
            (true, false) => {
                let (tokens, columns): (Vec<usize>, Vec<usize>) =
                    axes.iter().partition(|&&at| data.axes[at] == Axis::Tokens);
                let (first, then) = match f {
                    Reduction::L2 | Reduction::SumOfSquares => {
                        (Reduction::SumOfSquares, Reduction::Sum)
                    }
                    same => (same, same),
                };
                let groups = self.reduce_data(first, data, &columns)?;
                let all = self.reduce_data(then, &groups, &tokens)?;
                Ok(match f {
                    Reduction::L2 => self.builder.map(&all, Unary::Sqrt, all.kind),
                    _ => all,
                })
            }
            (false, true) if matches!(f, Reduction::L2) => {
                Ok(self.builder.map(data, Unary::Abs, data.kind))
            }
            (false, true) if matches!(f, Reduction::SumOfSquares) => {
                Ok(self.builder.map(data, Unary::Square, data.kind))
            }
            (false, true) => Ok(data.clone()),
            (true, true) => Ok(self.builder.pool(data, f, rest)),
            (false, false) => {
                let size = over
                    .iter()
                    .map(|&at| data.axes[at].dim().known().unwrap_or(1) as usize)
                    .product();
                // Groups are columns that stand beside one another.
                let order = last(data.axes.len(), axes);
                let turned = permuted(data, &order);
                let rest = order.iter().map(|&at| rest[at]).collect();
                let reduced = self.builder.reduce(&turned, f, size, rest);
                Ok(permuted(&reduced, &inverse(&order)))
            }
        }
    }

    fn softmax(&mut self, call: &Call<'_>) -> Why<Value> {
        let value = call.input(0)?;
        let rank = value.shape().len();
        let default = if call.opset < 13 { 1 } else { -1 };
        let at = axis(call.node.int("axis").unwrap_or(default), rank)?;
        if call.opset < 13 && at + 1 != rank {
            return Err("a softmax over several axes".into());
        }
        match value {
            Value::Scores(scores) if at + 1 == rank => Ok(Value::Probabilities(scores.clone())),
            Value::Data(data) => {
                over_one_text(data, &[at])?;
                let extent = match data.axes[at] {
                    Axis::Columns { extent, .. } => extent,
                    Axis::Unit => 1,
                    Axis::Tokens => return Err("a softmax over tokens".into()),
                };
                let order = last(rank, &[at]);
                let soft = self.builder.softmax(&permuted(data, &order), extent);
                Ok(Value::Data(permuted(&soft, &inverse(&order))))
            }
            other => Err(format!("the softmax of {}", other.what())),
        }
    }

    fn layer_norm(&mut self, call: &Call<'_>, kind: NormKind) -> Why<Value> {
        let value = call.input(0)?;
        let rank = value.shape().len();
        let from = axis(call.node.int("axis").unwrap_or(-1), rank)?;
        self.normed(call, (value, from), kind, 1, 1e-5)
    }

    /// With the mean and the reciprocal of the deviation, where they are asked for.
    fn layer_norm_and_statistics(&mut self, call: &Call<'_>) -> Why<Vec<Value>> {
        let mut values = vec![self.layer_norm(call, NormKind::Layer)?];
        if call.node.output.iter().skip(1).all(String::is_empty) {
            return Ok(values);
        }
        let x = call.input(0)?;
        let rank = x.shape().len();
        let from = axis(call.node.int("axis").unwrap_or(-1), rank)?;
        let axes: Vec<i64> = (from as i64..rank as i64).collect();
        let mean = self.reduce(Reduction::Mean, x, Some(&axes), true)?;
        let centred = self.zip(Binary::Sub, x, &mean)?;
        let squares = self.map(Unary::Square, &centred)?;
        let variance = self.reduce(Reduction::Mean, &squares, Some(&axes), true)?;
        let f = Unary::Affine {
            factor: 1.0,
            shift: call.node.float("epsilon").unwrap_or(1e-5),
        };
        let variance = self.map(f, &variance)?;
        let deviation = self.map(Unary::Sqrt, &variance)?;
        values.push(mean);
        values.push(self.map(Unary::Reciprocal, &deviation)?);
        Ok(values)
    }

    /// Over the axes from `from` on, with gamma at input `at`, and beta after it.
    fn normed(
        &mut self,
        call: &Call<'_>,
        (value, from): (&Value, usize),
        kind: NormKind,
        at: usize,
        epsilon: f32,
    ) -> Why<Value> {
        let Value::Data(data) = value else {
            return Err(format!("the normalisation of {}", value.what()));
        };
        over_one_text(data, &(from..data.axes.len()).collect::<Vec<_>>())?;
        let extents = data.axes[from..].iter().map(|&axis| match axis {
            Axis::Columns { extent, .. } => Ok(extent),
            Axis::Unit => Ok(1),
            Axis::Tokens => Err("a normalisation over tokens"),
        });
        let extents: Vec<usize> = extents.collect::<Result<_, _>>()?;
        let size = extents.iter().product();
        let parameter = |at: usize| -> Why<Option<_>> {
            let Some(value) = call.optional(at) else {
                return Ok(None);
            };
            let Value::Constant(constant) = value else {
                return Err(format!("its parameter is {}", value.what()));
            };
            // Axes of 1 before those that are normalised change nothing.
            let lead = constant.shape.len().saturating_sub(extents.len());
            let (ones, own) = constant.shape.split_at(lead);
            let repeats = broadcast(own, &extents).as_ref() != Ok(&extents);
            if repeats || ones.iter().any(|&extent| extent != 1) {
                return Err(format!(
                    "its parameter is {:?}, for {extents:?}",
                    constant.shape
                ));
            }
            let own = constant.reshaped(own.to_vec())?;
            let own = own.expand(self.ledger(), &extents)?;
            self.builder.floats(&own).map(Some)
        };
        let (gamma, beta) = (parameter(at)?, parameter(at + 1)?);
        let epsilon = call.node.float("epsilon").unwrap_or(epsilon);
        let data = self.builder.norm(data, |x| Norm {
            x,
            residual: None,
            kind,
            size,
            epsilon,
            gamma,
            beta,
        });
        Ok(Value::Data(data))
    }

    fn lp_norm(&mut self, call: &Call<'_>) -> Why<Value> {
        let value = call.input(0)?.clone();
        let at = [call.node.int("axis").unwrap_or(-1)];
        let norm = match call.node.int("p").unwrap_or(2) {
            1 => {
                let size = self.map(Unary::Abs, &value)?;
                self.reduce(Reduction::Sum, &size, Some(&at), true)?
            }
            _ => self.reduce(Reduction::L2, &value, Some(&at), true)?,
        };
        self.zip(Binary::Div, &value, &norm)
    }

    fn cumulated(&mut self, call: &Call<'_>) -> Why<Value> {
        let value = call.input(0)?;
        let at = call.constant(1)?.uniform().ok_or("its axis is not known")?;
        let shape = value.shape();
        let at = axis(at as i64, shape.len())?;
        let reverse = call.node.int("reverse").unwrap_or(0) != 0;
        let exclusive = call.node.int("exclusive").unwrap_or(0) != 0;
        let data = match value {
            Value::Data(data) => data.clone(),
            // Of a mask: a count of the tokens.
            Value::Uniform { kind, value, .. }
                if shape.iter().filter(|&&dim| dim != Dim::ONE).count() == 1 =>
            {
                let axes = shape.iter().map(|&dim| match dim {
                    Dim::TOKENS => Ok(Axis::Tokens),
                    Dim::ONE => Ok(Axis::Unit),
                    _ => Err("the running sum of a mask along something else".to_owned()),
                });
                let axes: Vec<Axis> = axes.collect::<Why<_>>()?;
                if axes[at] != Axis::Tokens {
                    return Err("a running sum along an axis that is not the tokens'".into());
                }
                let position = self.builder.position();
                let data = Data {
                    node: position,
                    kind: *kind,
                    offset: 0,
                    axes,
                };
                if !reverse && !exclusive {
                    let f = Unary::Affine {
                        factor: *value as f32,
                        shift: *value as f32,
                    };
                    return Ok(Value::Data(self.builder.map(&data, f, *kind)));
                }
                let f = Unary::Affine {
                    factor: 0.0,
                    shift: *value as f32,
                };
                self.builder.map(&data, f, *kind)
            }
            other => return Err(format!("the running sum of {}", other.what())),
        };
        if data.axes.get(at) != Some(&Axis::Tokens) {
            return Err("a running sum along an axis that is not the tokens'".into());
        }
        let x = self.builder.matrix(&data);
        let width = self.builder.node(x).width;
        let op = Op::CumSum {
            x,
            reverse,
            exclusive,
        };
        let node = self.builder.push(op, Rows::Tokens, width);
        Ok(Value::Data(crate::builder::Builder::like(
            node, data.kind, &data,
        )))
    }
}

/// The axes that a reduction is asked for (`None`: all), and whether they stay as axes of 1.
pub(super) fn asked(call: &Call<'_>) -> Why<(Option<Vec<i64>>, bool)> {
    if reduces_nothing(call)? {
        return Err("it is asked to reduce nothing".into());
    }
    Ok((
        named_axes(call)?,
        call.node.int("keepdims").unwrap_or(1) != 0,
    ))
}

/// The axes that a reduction names, as an input or, in older operator sets, as an attribute.
fn named_axes(call: &Call<'_>) -> Why<Option<Vec<i64>>> {
    Ok(match call.whole_numbers(1)? {
        Some(axes) => Some(axes),
        None => call.node.ints("axes").map(<[i64]>::to_vec),
    })
}

/// Whether no axes means none, and not all of them.
fn reduces_nothing(call: &Call<'_>) -> Why<bool> {
    let none = named_axes(call)?.is_none_or(|axes| axes.is_empty());
    Ok(none && call.node.int("noop_with_empty_axes").unwrap_or(0) != 0)
}

/// Refuses what takes in the first axis where that has one entry: the texts of a batch, of which a
/// graph is read for one.
fn over_one_text(data: &Data, axes: &[usize]) -> Why<()> {
    let texts = data.axes.len() > 1 && data.axes[0] == Axis::Unit;
    match texts && axes.contains(&0) {
        true => Err("it takes the texts of a batch together".into()),
        false => Ok(()),
    }
}

/// All axes in order, but some of them behind the others.
fn last(rank: usize, some: &[usize]) -> Vec<usize> {
    let others = (0..rank).filter(|at| !some.contains(at));
    let some = (0..rank).filter(|at| some.contains(at));
    others.chain(some).collect()
}

/// A value with its axes in another order.
pub(super) fn permuted(data: &Data, order: &[usize]) -> Data {
    Data {
        axes: order.iter().map(|&at| data.axes[at]).collect(),
        ..data.clone()
    }
}

/// The order that takes an order back.
fn inverse(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    for (to, &from) in order.iter().enumerate() {
        inverse[from] = to;
    }
    inverse
}
