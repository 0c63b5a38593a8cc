//! Functions of one element, sums, products, and the functions that exporters spread over several of these.

use isovec_kernels::Activation;

use super::Lowerer;
use super::call::Call;
use crate::error::Why;
use crate::node::{Finish, NodeId, Op};
use crate::value::{Axis, Data, Numbers, Step, Value};

/// How far a constant of an exporter's formula may be from the exact one, relatively.
const NEAR: f64 = 1e-5;

impl Lowerer<'_> {
    pub(super) fn elementwise(&mut self, operator: &str, call: &Call<'_>) -> Why<Value> {
        if let Value::Length { of, step } = call.input(0)? {
            return length(operator, call, of, *step);
        }
        match operator {
            "Add" | "Sub" | "Mul" | "Div" => self.binary(operator, call),
            "Softmax" => self.softmax(call),
            "Max" | "Min" => {
                let (data, other) = (call.data(0)?.clone(), call.number(1)?);
                let (2, Some(other)) = (call.inputs.len(), other) else {
                    return Err("it is not a value and a number".into());
                };
                let (least, most) = match operator {
                    "Max" => (other as f32, f32::INFINITY),
                    _ => (f32::NEG_INFINITY, other as f32),
                };
                Ok(self.limited(&data, least, most))
            }
            "Clip" => {
                let data = call.data(0)?.clone();
                let bound = |name: &str, at: usize| -> Why<Option<f32>> {
                    let attribute = call.node.float(name);
                    Ok(attribute.or(call.number(at)?.map(|bound| bound as f32)))
                };
                let least = bound("min", 1)?.unwrap_or(f32::NEG_INFINITY);
                let most = bound("max", 2)?.unwrap_or(f32::INFINITY);
                Ok(self.limited(&data, least, most))
            }
            "Relu" => {
                let data = call.data(0)?.clone();
                Ok(self.limited(&data, 0.0, f32::INFINITY))
            }
            "HardSigmoid" => {
                let data = call.data(0)?.clone();
                let alpha = f64::from(call.node.float("alpha").unwrap_or(0.2));
                let beta = f64::from(call.node.float("beta").unwrap_or(0.5));
                let line = self.line(&data, alpha, beta);
                // What is limited reads the line once.
                self.builder.named(line, 1);
                let node = self.builder.limit(line, 0.0, 1.0);
                Ok(self.data(node, &data.axes))
            }
            "Neg" => {
                let data = call.data(0)?.clone();
                let node = self.line(&data, -1.0, 0.0);
                Ok(self.data(node, &data.axes))
            }
            "Gelu" => match call.node.text("approximate").unwrap_or("none") {
                "none" => self.activated(call, Activation::Gelu),
                "tanh" => self.activated(call, Activation::GeluTanh),
                other => Err(format!("approximate {other:?}").into()),
            },
            "HardSwish" => self.activated(call, Activation::HardSwish),
            "Sigmoid" => self.activated(call, Activation::Sigmoid),
            "Tanh" => self.activated(call, Activation::Tanh),
            "Erf" => self.activated(call, Activation::Erf),
            "Exp" => self.activated(call, Activation::Exp),
            _ => Err("it is not computed of a picture".into()),
        }
    }

    fn activated(&mut self, call: &Call<'_>, activation: Activation) -> Why<Value> {
        let data = call.data(0)?.clone();
        let node = self.builder.activate(data.node, 1, activation);
        Ok(self.data(node, &data.axes))
    }

    fn limited(&mut self, data: &Data, least: f32, most: f32) -> Value {
        let node = self.builder.limit(data.node, least, most);
        self.data(node, &data.axes)
    }

    /// `x * scale + shift`.
    fn line(&mut self, data: &Data, scale: f64, shift: f64) -> NodeId {
        let channels = self.builder.map(data.node).channels;
        let (scale, shift) = (vec![scale; channels], vec![shift; channels]);
        self.builder.affine(data.node, scale, shift)
    }

    pub(super) fn softmax(&mut self, call: &Call<'_>) -> Why<Value> {
        let data = call.data(0)?.clone();
        let rank = data.axes.len() as i64;
        let default = if call.opset < 13 { 1 } else { -1 };
        let axis = call.node.int("axis").unwrap_or(default);
        let last = axis == -1 || axis == rank - 1;
        if !last || data.axes.last() != Some(&Axis::Channel) {
            return Err("it is not over the channels, the last axis".into());
        }
        let map = self.builder.map(data.node);
        let node = self.builder.push(Op::Softmax { x: data.node }, map);
        Ok(self.data(node, &data.axes))
    }

    fn binary(&mut self, operator: &str, call: &Call<'_>) -> Why<Value> {
        if call.inputs.len() != 2 {
            return Err("it has not two inputs".into());
        }
        match (call.input(0)?, call.input(1)?) {
            (Value::Data(a), Value::Data(b)) => self.two(operator, a, b),
            (Value::Data(data), Value::Numbers(numbers)) => {
                let own = self.by_channel(data, numbers)?;
                let none = |value: f64| vec![value; own.len()];
                let (scale, shift) = match operator {
                    "Add" => (none(1.0), own),
                    "Sub" => (none(1.0), own.iter().map(|value| -value).collect()),
                    "Mul" => (own.clone(), none(0.0)),
                    _ => (own.iter().map(|value| 1.0 / value).collect(), none(0.0)),
                };
                Ok(self.affine(data, scale, shift))
            }
            (Value::Numbers(numbers), Value::Data(data)) => {
                let own = self.by_channel(data, numbers)?;
                let none = |value: f64| vec![value; own.len()];
                let (scale, shift) = match operator {
                    "Add" => (none(1.0), own),
                    "Sub" => (none(-1.0), own),
                    "Mul" => (own.clone(), none(0.0)),
                    _ => return Err("it divides a constant".into()),
                };
                Ok(self.affine(data, scale, shift))
            }
            // A vector divided by its length.
            (Value::Data(data), Value::Length { of, step }) if operator == "Div" && data == of => {
                let Step::AtLeast(least) = *step else {
                    return Err("it divides by a sum of squares".into());
                };
                let map = self.builder.map(data.node);
                let node = self.builder.push(
                    Op::Unit {
                        x: data.node,
                        least,
                    },
                    map,
                );
                Ok(self.data(node, &data.axes))
            }
            _ => Err("it reads neither computed values nor constants".into()),
        }
    }

    /// A constant as a number for each channel.
    fn by_channel(&self, data: &Data, numbers: &Numbers) -> Why<Vec<f64>> {
        let channels = self.builder.map(data.node).channels;
        if let Some(one) = numbers
            .one()
            .filter(|_| numbers.shape.len() <= data.axes.len())
        {
            return Ok(vec![one; channels]);
        }
        let skipped = data.axes.len().checked_sub(numbers.shape.len());
        let fits = skipped.is_some_and(|skipped| {
            let pairs = numbers.shape.iter().zip(&data.axes[skipped..]);
            let mut several = pairs.filter(|(extent, _)| **extent != 1);
            several.all(|(&extent, axis)| *axis == Axis::Channel && extent == channels)
        });
        match fits {
            true => Ok(numbers.values.clone()),
            false => Err(format!(
                "a constant of {:?} is no number for each channel",
                numbers.shape
            )
            .into()),
        }
    }

    fn affine(&mut self, data: &Data, scale: Vec<f64>, shift: Vec<f64>) -> Value {
        let factor = uniform(&scale).filter(|_| uniform(&shift) == Some(0.0));
        let node = match factor.and_then(|factor| self.spread(data.node, factor)) {
            Some(node) => node,
            None => self.builder.affine(data.node, scale, shift),
        };
        self.data(node, &data.axes)
    }

    /// Two computed values.
    fn two(&mut self, operator: &str, a: &Data, b: &Data) -> Why<Value> {
        let (of_a, of_b) = (self.builder.map(a.node), self.builder.map(b.node));
        if a.axes == b.axes && of_a == of_b {
            let node = match operator {
                "Add" => self.builder.add(a.node, b.node),
                "Mul" if a.node == b.node => {
                    return Ok(Value::Length {
                        of: a.clone(),
                        step: Step::Squares,
                    });
                }
                "Mul" => self.multiply(a.node, b.node),
                _ => return Err("it is not computed of two computed values".into()),
            };
            return Ok(self.data(node, &a.axes));
        }
        if operator != "Mul" || a.axes.len() != b.axes.len() {
            return Err("its operands have different extents".into());
        }
        let (x, by) = if of_a.pixels() == 1 { (b, a) } else { (a, b) };
        let whole = x.axes.iter().zip(&by.axes).all(|(x, by)| match x {
            Axis::Row | Axis::Column => *by == Axis::One,
            other => by == other,
        });
        let (map, of_by) = (self.builder.map(x.node), self.builder.map(by.node));
        if !whole || of_by.pixels() != 1 || of_by.channels != map.channels {
            return Err("its operands have different extents".into());
        }
        let op = Op::Scale {
            x: x.node,
            by: by.node,
        };
        let node = self.builder.push(op, map);
        Ok(self.data(node, &x.axes))
    }

    /// A product of two maps, or the activation that it is the last operator of.
    fn multiply(&mut self, a: NodeId, b: NodeId) -> NodeId {
        for (x, gate) in [(a, b), (b, a)] {
            if let Some(activation) = self.gate(x, gate) {
                let reads = if self.builder.read_once(gate) {
                    2
                } else {
                    usize::MAX
                };
                return self.builder.activate(x, reads, activation);
            }
            // Half of x, times 1 + erf.
            if let Some(half) = self.factor(x, 0.5)
                && self.error_function(gate) == Some(half)
            {
                let reads = match self.builder.read_once(x) {
                    true => self.reads_of_error_function(gate),
                    false => usize::MAX,
                };
                return self.builder.activate(half, reads, Activation::Gelu);
            }
        }
        let map = self.builder.map(a);
        self.builder.push(Op::Multiply { x: a, by: b }, map)
    }

    /// The activation that `x` times `gate` is.
    fn gate(&self, x: NodeId, gate: NodeId) -> Option<Activation> {
        let node = self.builder.node(gate);
        let finish = node.finish;
        match &node.op {
            Op::Same { x: of } if *of == x => {
                let sigmoid = Finish {
                    activation: Some(Activation::Sigmoid),
                    ..Finish::default()
                };
                (finish == sigmoid).then_some(Activation::Silu)
            }
            Op::Affine {
                x: of,
                scale,
                shift,
            } if *of == x => {
                let limits = Finish {
                    limits: Some((0.0, 1.0)),
                    ..Finish::default()
                };
                let hard = near(uniform(scale)?, 1.0 / 6.0) && near(uniform(shift)?, 0.5);
                (hard && finish == limits).then_some(Activation::HardSwish)
            }
            _ => None,
        }
    }

    /// The activation that `product` times `factor` is, where `product` is all of it but the factor:
    /// `x * (1 + erf(x / sqrt(2))) * 0.5`, or `x * min(max(x + 3, 0), 6) / 6`.
    fn spread(&mut self, product: NodeId, factor: f64) -> Option<NodeId> {
        let node = self.builder.node(product);
        let (Op::Multiply { x, by }, true) = (&node.op, node.finish.is_empty()) else {
            return None;
        };
        let alone = self.builder.read_once(product);
        for (x, gate) in [(*x, *by), (*by, *x)] {
            if near(factor, 0.5) && self.error_function(gate) == Some(x) {
                let reads = match alone {
                    true => self.reads_of_error_function(gate),
                    false => usize::MAX,
                };
                return Some(self.builder.activate(x, reads, Activation::Gelu));
            }
            let node = self.builder.node(gate);
            if near(factor, 1.0 / 6.0)
                && let Op::Affine {
                    x: of,
                    scale,
                    shift,
                } = &node.op
                && *of == x
                && node.finish.activation.is_none()
                && node.finish.residual.is_none()
                && node.finish.limits == Some((0.0, 6.0))
                && uniform(scale) == Some(1.0)
                && uniform(shift) == Some(3.0)
            {
                let reads = match alone && self.builder.read_once(gate) {
                    true => 2,
                    false => usize::MAX,
                };
                return Some(self.builder.activate(x, reads, Activation::HardSwish));
            }
        }
        None
    }

    /// The `x` of `1 + erf(x / sqrt(2))`.
    fn error_function(&self, node: NodeId) -> Option<NodeId> {
        let one_more = self.builder.node(node);
        let Op::Affine { x, scale, shift } = &one_more.op else {
            return None;
        };
        if !one_more.finish.is_empty() || uniform(scale) != Some(1.0) || uniform(shift) != Some(1.0)
        {
            return None;
        }
        let erf = self.builder.node(*x);
        let only = Finish {
            activation: Some(Activation::Erf),
            ..Finish::default()
        };
        let Op::Affine { x, scale, shift } = &erf.op else {
            return None;
        };
        let root = near(uniform(scale)?, std::f64::consts::FRAC_1_SQRT_2);
        (erf.finish == only && root && uniform(shift) == Some(0.0)).then_some(*x)
    }

    /// How often a Gelu's formula reads its `x`, where nothing else reads what is between; more than there can be
    /// otherwise.
    fn reads_of_error_function(&self, one_more: NodeId) -> usize {
        let erf = match &self.builder.node(one_more).op {
            Op::Affine { x, .. } => *x,
            _ => one_more,
        };
        match self.builder.read_once(one_more) && self.builder.read_once(erf) {
            true => 2,
            false => usize::MAX,
        }
    }

    /// The `x` of `x * factor`.
    fn factor(&self, node: NodeId, factor: f64) -> Option<NodeId> {
        let node = self.builder.node(node);
        match &node.op {
            Op::Affine { x, scale, shift } if node.finish.is_empty() => {
                (near(uniform(scale)?, factor) && uniform(shift) == Some(0.0)).then_some(*x)
            }
            _ => None,
        }
    }
}

/// The next step of the way to a vector's length.
fn length(operator: &str, call: &Call<'_>, of: &Data, step: Step) -> Why<Value> {
    let step = match (operator, step) {
        ("Sqrt", Step::Sum) => Step::AtLeast(0.0),
        ("Max", Step::AtLeast(_)) if call.inputs.len() == 2 => {
            let least = call.number(1)?.ok_or("it has no bound")?;
            Step::AtLeast(least as f32)
        }
        _ => return Err("it is no step of a normalisation".into()),
    };
    Ok(Value::Length {
        of: of.clone(),
        step,
    })
}

/// The number that all are.
fn uniform(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    values.iter().all(|value| *value == first).then_some(first)
}

fn near(value: f64, exact: f64) -> bool {
    (value - exact).abs() <= NEAR * exact.abs()
}
