//! Products of matrices, and attention.

use super::Lowerer;
use super::call::Call;
use super::elementwise::one;
use crate::builder::heads_stand;
use crate::constant::Kind;
use crate::dim::Dim;
use crate::error::Why;
use crate::node::{Binary, Matrix, Op, Reduction, Rows};
use crate::value::{Axis, Data, Scores, Value, Weight};

impl Lowerer {
    pub(super) fn products(&mut self, operator: &str, call: &Call<'_>) -> Why<Option<Vec<Value>>> {
        Ok(match operator {
            "Einsum" => one(self.einsum(call)?),
            "MatMul" => one(self.product(call.input(0)?, call.input(1)?)?),
            "Gemm" => one(self.gemm(call)?),
            _ => return Ok(None),
        })
    }

    /// By a kernel, or else by its terms, where they are few.
    fn product(&mut self, a: &Value, b: &Value) -> Why<Value> {
        let computed = |value: &Value| matches!(value, Value::Data(_) | Value::Constant(_));
        match self.product_by_kernel(a, b) {
            Err(why) if computed(a) && computed(b) => self.product_by_terms(a, b).map_err(|_| why),
            known => known,
        }
    }

    fn product_by_kernel(&mut self, a: &Value, b: &Value) -> Why<Value> {
        match (a, b) {
            (Value::Data(data), Value::Weight(_) | Value::Constant(_)) => {
                match self.by_head(data, b) {
                    Some(products) => Ok(products),
                    None => self.times_matrix(data, b).map(Value::Data),
                }
            }
            (Value::Data(a), Value::Data(b)) => self.of_data(a, b),
            // The sum over all tokens.
            (Value::Uniform { value, shape, .. }, Value::Data(data)) => {
                let row = shape.len() >= 2 && shape[shape.len() - 2] == Dim::ONE;
                let lead = shape.len().saturating_sub(2);
                let repeats = shape.len() > data.axes.len()
                    || shape[..lead].iter().any(|&dim| dim != Dim::ONE);
                if !row || repeats || shape.last() != Some(&Dim::TOKENS) {
                    return Err("a product with a mask that is no row of tokens".into());
                }
                let axes = summed(data)?;
                let sum = self.builder.pool(data, Reduction::Sum, axes);
                let number =
                    Value::constant(crate::constant::Constant::scalar(Kind::Float, *value));
                self.zip(Binary::Mul, &Value::Data(sum), &number)
            }
            (Value::Probabilities(scores), Value::Data(value)) => {
                self.builder.attention(scores, value).map(Value::Data)
            }
            _ => Err("a product of these is not known".into()),
        }
    }

    /// `data · matrix`.
    pub(super) fn times_matrix(&mut self, data: &Data, matrix: &Value) -> Why<Data> {
        let shape = matrix.shape();
        let [Some(inputs), Some(outputs)] =
            [0, 1].map(|at| shape.get(at).and_then(|dim| dim.known()))
        else {
            return Err("a product with a stack of matrices".into());
        };
        if shape.len() != 2 {
            return Err("a product with a stack of matrices".into());
        }
        let (inputs, outputs) = (inputs as usize, outputs as usize);
        let matrix = match matrix {
            Value::Weight(weight) => Matrix::Weight(scale_fits(weight)?),
            Value::Constant(constant) => Matrix::Constant {
                values: self.builder.floats(constant)?,
                rows: inputs,
            },
            other => return Err(format!("a product with {}", other.what())),
        };
        self.builder.linear(data, matrix, inputs, outputs)
    }

    fn of_data(&mut self, a: &Data, b: &Data) -> Why<Value> {
        let (Some(&last), Some(&rows)) = (a.axes.last(), a.axes.iter().rev().nth(1)) else {
            return Err("a product of vectors".into());
        };
        // Each token's weight times its row, summed over the tokens.
        if last == Axis::Tokens && rows == Axis::Unit && a.width() == 1 {
            if a.axes.len() > b.axes.len() {
                return Err("weights of more axes than what they weigh".into());
            }
            let axes = summed(b)?;
            let x = self.builder.matrix(b);
            let weights = self.builder.matrix(a);
            let width = self.builder.node(x).width;
            let node = self
                .builder
                .push(Op::WeightedSum { x, weights }, Rows::Texts, width);
            let shape = Data {
                node,
                kind: b.kind,
                offset: 0,
                axes,
            };
            let data = crate::builder::Builder::like(node, b.kind, &shape);
            return Ok(Value::Data(data));
        }
        let (query, heads, size) = self.builder.heads(a, false)?;
        let (key, key_heads, key_size) = self.builder.heads(b, true)?;
        if (heads, size) != (key_heads, key_size) {
            return Err(format!(
                "{heads} heads of {size} and {key_heads} heads of {key_size}"
            ));
        }
        let rank = a.axes.len().max(b.axes.len());
        if heads > 1 && !(heads_stand(a) && heads_stand(b)) {
            return Err("heads that are not the axis before the tokens".into());
        }
        Ok(Value::Scores(Scores {
            query,
            key,
            heads,
            size,
            scale: 1.0,
            bias: None,
            relative: None,
            rank,
        }))
    }

    fn gemm(&mut self, call: &Call<'_>) -> Why<Value> {
        let operand = |at: usize, name: &str| match call.node.int(name).unwrap_or(0) {
            0 => call.input(at).cloned(),
            _ => self.turned(call.input(at)?),
        };
        let (a, b) = (operand(0, "transA")?, operand(1, "transB")?);
        let product = self.product(&a, &b)?;
        let scaled = |lowerer: &mut Self, value: &Value, name: &str| {
            let factor = f64::from(call.node.float(name).unwrap_or(1.0));
            let factor = crate::constant::Constant::scalar(Kind::Float, factor);
            match factor.values[0] == 1.0 {
                true => Ok(value.clone()),
                false => lowerer.zip(Binary::Mul, value, &Value::constant(factor)),
            }
        };
        let product = scaled(self, &product, "alpha")?;
        match call.optional(2) {
            None => Ok(product),
            Some(bias) => {
                let bias = scaled(self, bias, "beta")?;
                self.zip(Binary::Add, &product, &bias)
            }
        }
    }
}

/// The axes of a sum over the tokens, which stand before the last axis.
fn summed(data: &Data) -> Why<Vec<Axis>> {
    let rank = data.axes.len();
    if rank < 2 || data.axes[rank - 2] != Axis::Tokens {
        return Err("a row of tokens times a matrix without tokens".into());
    }
    let mut axes = data.axes.clone();
    axes[rank - 2] = Axis::Unit;
    Ok(axes)
}

/// A product's weight may have a scale for each of its outputs.
fn scale_fits(weight: &Weight) -> Why<Weight> {
    if let Some((scale, axis)) = &weight.scale {
        let outputs = usize::from(!weight.transposed);
        if scale.values.len() > 1 && *axis != outputs {
            return Err("a weight with a scale for each of its inputs".into());
        }
    }
    Ok(weight.clone())
}
