//! Activation functions, by the names that `config.json` gives them.

use std::f64::consts::{FRAC_2_SQRT_PI, SQRT_2};

use isovec_engine::error::Result;

use super::config::Config;
use super::net::Net;

/// An activation function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    /// `x Φ(x)`, Φ being the normal distribution (<https://arxiv.org/abs/1606.08415>).
    Gelu,
    /// The approximation of GELU through tanh, from the same paper.
    GeluTanh,
    /// The approximation `x sigmoid(1.702 x)`, from the same paper.
    GeluSigmoid,
    /// `max(x, 0)`.
    Relu,
    /// `x sigmoid(x)`.
    Silu,
}

impl Activation {
    /// Reads the name under `key`; absent means GELU, the default of every family here.
    pub(super) fn of(config: &Config, key: &str) -> Result<Self> {
        Self::or(config, key, "gelu")
    }

    /// The same, with another default.
    pub(super) fn or(config: &Config, key: &str, default: &str) -> Result<Self> {
        Ok(match config.text_or(key, default)? {
            "gelu" | "gelu_python" => Self::Gelu,
            "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" | "gelu_accurate"
            | "gelu_python_tanh" => Self::GeluTanh,
            "quick_gelu" => Self::GeluSigmoid,
            "relu" => Self::Relu,
            "silu" | "swish" => Self::Silu,
            other => {
                return Err(config.unsupported(format!(
                    "{key} in config.json is {other:?}; gelu, gelu_new, quick_gelu, relu and silu \
                     can be converted"
                )));
            }
        })
    }

    /// Applies the function to each element of `x`.
    ///
    /// The forms are those that runtimes recognise and run as one operator.
    pub(super) fn apply(self, net: &mut Net<'_>, x: &str) -> String {
        match self {
            Self::Gelu => {
                let root = net.builder().f32(SQRT_2 as f32);
                let one = net.builder().f32(1.0);
                let half = net.builder().f32(0.5);
                let scaled = net.node("Div", &[x, &root], vec![]);
                let erf = net.node("Erf", &[&scaled], vec![]);
                let shifted = net.node("Add", &[&erf, &one], vec![]);
                let product = net.node("Mul", &[x, &shifted], vec![]);
                net.node("Mul", &[&product, &half], vec![])
            }
            Self::GeluTanh => {
                // sqrt(2 / π), as half of 2 / sqrt(π) times sqrt(2).
                let root = net.builder().f32((FRAC_2_SQRT_PI * SQRT_2 / 2.0) as f32);
                let cubic = net.builder().f32(0.044_715);
                let one = net.builder().f32(1.0);
                let half = net.builder().f32(0.5);
                let square = net.node("Mul", &[x, x], vec![]);
                let cube = net.node("Mul", &[&square, x], vec![]);
                let term = net.node("Mul", &[&cube, &cubic], vec![]);
                let sum = net.node("Add", &[x, &term], vec![]);
                let scaled = net.node("Mul", &[&sum, &root], vec![]);
                let tanh = net.node("Tanh", &[&scaled], vec![]);
                let shifted = net.node("Add", &[&tanh, &one], vec![]);
                let halved = net.node("Mul", &[x, &half], vec![]);
                net.node("Mul", &[&halved, &shifted], vec![])
            }
            Self::GeluSigmoid => {
                let factor = net.builder().f32(1.702);
                let scaled = net.node("Mul", &[x, &factor], vec![]);
                let gate = net.node("Sigmoid", &[&scaled], vec![]);
                net.node("Mul", &[x, &gate], vec![])
            }
            Self::Relu => net.node("Relu", &[x], vec![]),
            Self::Silu => {
                let gate = net.node("Sigmoid", &[x], vec![]);
                net.node("Mul", &[x, &gate], vec![])
            }
        }
    }
}
