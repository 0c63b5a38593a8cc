//! Operators that are put together from others, most of them as ONNX itself defines them.

use isovec_engine::onnx::axis;

use super::Lowerer;
use super::call::Call;
use super::elementwise::one;
use crate::constant::{Constant, Kind};
use crate::error::Why;
use crate::node::{Binary, Reduction, Unary};
use crate::value::Value;

impl Lowerer {
    pub(super) fn composed(&mut self, operator: &str, call: &Call<'_>) -> Why<Option<Vec<Value>>> {
        let float = |name: &str, default: f32| call.node.float(name).unwrap_or(default);
        Ok(match operator {
            "Celu" => {
                let alpha = float("alpha", 1.0);
                let x = call.input(0)?;
                let inner = self.affine(x, 1.0 / alpha, 0.0)?;
                let below = self.less_one(&inner)?;
                let below = self.affine(&below, alpha, 0.0)?;
                one(self.by_sign(x, &below)?)
            }
            "Cosh" => one(self.cosh(call.input(0)?)?),
            "Elu" => {
                let x = call.input(0)?;
                let below = self.less_one(x)?;
                let below = self.affine(&below, float("alpha", 1.0), 0.0)?;
                one(self.by_sign(x, &below)?)
            }
            "HardSigmoid" => {
                let (alpha, beta) = (float("alpha", 0.2), float("beta", 0.5));
                one(self.ramp(call.input(0)?, alpha, beta)?)
            }
            "HardSwish" => {
                let x = call.input(0)?;
                let gate = self.ramp(x, 1.0 / 6.0, 0.5)?;
                one(self.zip(Binary::Mul, x, &gate)?)
            }
            "IsInf" => one(self.is_infinite(call)?),
            "LeakyRelu" => {
                let x = call.input(0)?;
                let below = self.affine(x, float("alpha", 0.01), 0.0)?;
                one(self.by_sign(x, &below)?)
            }
            "LogSoftmax" => one(self.log_softmax(call)?),
            "Mean" => {
                let mut sum = call.input(0)?.clone();
                for at in 1..call.inputs.len() {
                    sum = self.zip(Binary::Add, &sum, call.input(at)?)?;
                }
                one(self.affine(&sum, 1.0 / call.inputs.len() as f32, 0.0)?)
            }
            "Mish" => {
                let x = call.input(0)?;
                let soft = self.softplus(x)?;
                let gate = self.map(Unary::Tanh, &soft)?;
                one(self.zip(Binary::Mul, x, &gate)?)
            }
            "PRelu" => {
                let x = call.input(0)?;
                let below = self.zip(Binary::Mul, x, call.input(1)?)?;
                one(self.by_sign(x, &below)?)
            }
            "ReduceL1" | "ReduceLogSum" | "ReduceLogSumExp" => {
                one(self.composed_reduction(operator, call)?)
            }
            "RotaryEmbedding" => one(self.rotary(call)?),
            "Round" => one(self.round(call.input(0)?)?),
            "Selu" => {
                let x = call.input(0)?;
                let (alpha, gamma) = (float("alpha", 1.673_263_2), float("gamma", 1.050_701));
                let below = self.less_one(x)?;
                let below = self.affine(&below, alpha, 0.0)?;
                let unscaled = self.by_sign(x, &below)?;
                one(self.affine(&unscaled, gamma, 0.0)?)
            }
            "Shrink" => {
                let (x, bias) = (call.input(0)?, float("bias", 0.0));
                let edge = f64::from(float("lambd", 0.5));
                let below = self.zip(Binary::Less, x, &number(-edge))?;
                let above = self.zip(Binary::Greater, x, &number(edge))?;
                let (up, down) = (self.affine(x, 1.0, bias)?, self.affine(x, 1.0, -bias)?);
                let down = self.choose(&above, &down, &number(0.0))?;
                one(self.choose(&below, &up, &down)?)
            }
            "Sinh" => {
                let (tanh, cosh) = (self.map(Unary::Tanh, call.input(0)?)?, call.input(0)?);
                let cosh = self.cosh(cosh)?;
                one(self.zip(Binary::Mul, &tanh, &cosh)?)
            }
            "Softplus" => one(self.softplus(call.input(0)?)?),
            "Softsign" => {
                let x = call.input(0)?;
                let size = self.map(Unary::Abs, x)?;
                let size = self.affine(&size, 1.0, 1.0)?;
                one(self.zip(Binary::Div, x, &size)?)
            }
            "Swish" => one(self.map(Unary::Swish(float("alpha", 1.0)), call.input(0)?)?),
            "Tan" => {
                let x = call.input(0)?;
                let (sin, cos) = (self.map(Unary::Sin, x)?, self.map(Unary::Cos, x)?);
                one(self.zip(Binary::Div, &sin, &cos)?)
            }
            "ThresholdedRelu" => {
                let (x, alpha) = (call.input(0)?, number(f64::from(float("alpha", 1.0))));
                let above = self.zip(Binary::Greater, x, &alpha)?;
                one(self.choose(&above, x, &number(0.0))?)
            }
            "Xor" => {
                let equal = self.zip(Binary::Equal, call.input(0)?, call.input(1)?)?;
                one(self.map(Unary::Not, &equal)?)
            }
            _ => return Ok(None),
        })
    }

    fn affine(&mut self, x: &Value, factor: f32, shift: f32) -> Why<Value> {
        self.map(Unary::Affine { factor, shift }, x)
    }

    /// `x`, or `below` where `x` is less than 0.
    fn by_sign(&mut self, x: &Value, below: &Value) -> Why<Value> {
        let negative = self.zip(Binary::Less, x, &number(0.0))?;
        self.choose(&negative, below, x)
    }

    /// `factor · x + shift`, between 0 and 1.
    fn ramp(&mut self, x: &Value, factor: f32, shift: f32) -> Why<Value> {
        let line = self.affine(x, factor, shift)?;
        let (least, most) = (0.0, 1.0);
        self.map(Unary::Clamp { least, most }, &line)
    }

    /// `exp(x) - 1`, as `tanh(x/2) (exp(x) + 1)`, which is exact for small numbers as well.
    fn less_one(&mut self, x: &Value) -> Why<Value> {
        let half = self.affine(x, 0.5, 0.0)?;
        let tanh = self.map(Unary::Tanh, &half)?;
        let exp = self.map(Unary::Exp, x)?;
        let exp = self.affine(&exp, 1.0, 1.0)?;
        self.zip(Binary::Mul, &tanh, &exp)
    }

    fn cosh(&mut self, x: &Value) -> Why<Value> {
        let turned = self.affine(x, -1.0, 0.0)?;
        let (up, down) = (self.map(Unary::Exp, x)?, self.map(Unary::Exp, &turned)?);
        let sum = self.zip(Binary::Add, &up, &down)?;
        self.affine(&sum, 0.5, 0.0)
    }

    /// `log(1 + exp(x))`, of the negative magnitude alone, so that nothing overflows.
    fn softplus(&mut self, x: &Value) -> Why<Value> {
        let size = self.map(Unary::Abs, x)?;
        let turned = self.affine(&size, -1.0, 0.0)?;
        let exp = self.map(Unary::Exp, &turned)?;
        let exp = self.affine(&exp, 1.0, 1.0)?;
        let log = self.map(Unary::Log, &exp)?;
        let line = self.map(Unary::Relu, x)?;
        self.zip(Binary::Add, &line, &log)
    }

    /// To the nearest whole number, to the even one of two that are as near.
    fn round(&mut self, x: &Value) -> Why<Value> {
        let floor = self.map(Unary::Floor, x)?;
        let over = self.zip(Binary::Sub, x, &floor)?;
        let next = self.affine(&floor, 1.0, 1.0)?;
        let half = self.affine(&next, 0.5, 0.0)?;
        let half = self.map(Unary::Floor, &half)?;
        let even = self.affine(&half, 2.0, 0.0)?;
        let down = self.zip(Binary::Less, &over, &number(0.5))?;
        let up = self.zip(Binary::Greater, &over, &number(0.5))?;
        let near = self.choose(&up, &next, &even)?;
        self.choose(&down, &floor, &near)
    }

    fn is_infinite(&mut self, call: &Call<'_>) -> Why<Value> {
        let detects = |name: &str| call.node.int(name).unwrap_or(1) != 0;
        let infinite = number(f64::INFINITY);
        let x = call.input(0)?;
        let x = match (detects("detect_negative"), detects("detect_positive")) {
            (true, true) => self.map(Unary::Abs, x)?,
            (true, false) => self.affine(x, -1.0, 0.0)?,
            (false, true) => x.clone(),
            (false, false) => return Err("it is asked for no infinity".into()),
        };
        self.zip(Binary::Equal, &x, &infinite)
    }

    /// `x - max - log(sum(exp(x - max)))`: the logarithm of a softmax is lost where that is 0.
    fn log_softmax(&mut self, call: &Call<'_>) -> Why<Value> {
        let x = call.input(0)?;
        let rank = x.shape().len();
        let default = if call.opset < 13 { 1 } else { -1 };
        let at = axis(call.node.int("axis").unwrap_or(default), rank)?;
        if call.opset < 13 && at + 1 != rank {
            return Err("a softmax over several axes".into());
        }
        let at = [at as i64];
        let most = self.reduce(Reduction::Max, x, Some(&at), true)?;
        let x = self.zip(Binary::Sub, x, &most)?;
        let exp = self.map(Unary::Exp, &x)?;
        let sum = self.reduce(Reduction::Sum, &exp, Some(&at), true)?;
        let log = self.map(Unary::Log, &sum)?;
        self.zip(Binary::Sub, &x, &log)
    }

    fn composed_reduction(&mut self, operator: &str, call: &Call<'_>) -> Why<Value> {
        let (axes, keep) = super::reduce::asked(call)?;
        let (x, axes) = (call.input(0)?, axes.as_deref());
        match operator {
            "ReduceL1" => {
                let size = self.map(Unary::Abs, x)?;
                self.reduce(Reduction::Sum, &size, axes, keep)
            }
            "ReduceLogSum" => {
                let sum = self.reduce(Reduction::Sum, x, axes, keep)?;
                self.map(Unary::Log, &sum)
            }
            // Less the largest, so that nothing overflows.
            _ => {
                let most = self.reduce(Reduction::Max, x, axes, true)?;
                let inner = self.zip(Binary::Sub, x, &most)?;
                let exp = self.map(Unary::Exp, &inner)?;
                let sum = self.reduce(Reduction::Sum, &exp, axes, keep)?;
                let log = self.map(Unary::Log, &sum)?;
                let most = self.reshape(&most, &log.shape())?;
                self.zip(Binary::Add, &log, &most)
            }
        }
    }
}

/// A number beside a value.
fn number(value: f64) -> Value {
    Value::constant(Constant::scalar(Kind::Float, Kind::Float.round(value)))
}
