//! Rotary embeddings as one operator, put together from others as ONNX defines it
//! (<https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html>).

use super::Lowerer;
use super::call::Call;
use crate::dim::Dim;
use crate::error::Why;
use crate::node::Binary;
use crate::value::Value;

impl Lowerer {
    pub(super) fn rotary(&mut self, call: &Call<'_>) -> Why<Value> {
        let given = call.input(0)?;
        let shape = given.shape();
        let interleaved = call.node.int("interleaved").unwrap_or(0) != 0;
        // [batch, tokens, heads, size], whatever it comes as.
        let x = match shape[..] {
            [_, _, _, _] => self.transpose(given, &[0, 2, 1, 3])?,
            [batch, tokens, width] => {
                let heads = call.node.int("num_heads").filter(|&heads| heads > 0);
                let heads = Dim::new(heads.ok_or("it does not say how many heads")?);
                let size = width.divided_by(heads).ok_or("heads of different sizes")?;
                self.reshape(given, &[batch, tokens, heads, size])?
            }
            _ => return Err(format!("{} axes are no heads of tokens", shape.len())),
        };
        let size = x.shape()[3].known().ok_or("a head as long as the text")?;
        let rotary = match call.node.int("rotary_embedding_dim").unwrap_or(0) {
            0 => size,
            some => some,
        };
        if rotary <= 0 || rotary > size || rotary % 2 != 0 {
            return Err(format!("{rotary} of {size} columns are turned"));
        }
        let half = rotary / 2;
        let turned = self.stretch(&x, 3, 0, rotary)?;
        let (first, second) = match interleaved {
            false => (
                self.stretch(&turned, 3, 0, half)?,
                self.stretch(&turned, 3, half, rotary)?,
            ),
            true => (
                self.every_second(&turned, half, 0)?,
                self.every_second(&turned, half, 1)?,
            ),
        };
        let (cos, sin) = (self.angles(call, 1, half)?, self.angles(call, 2, half)?);
        let [fc, ss] =
            [(&first, &cos), (&second, &sin)].map(|(x, by)| self.zip(Binary::Mul, x, by));
        let [fs, sc] =
            [(&first, &sin), (&second, &cos)].map(|(x, by)| self.zip(Binary::Mul, x, by));
        let real = self.zip(Binary::Sub, &fc?, &ss?)?;
        let imaginary = self.zip(Binary::Add, &fs?, &sc?)?;
        let mut parts = match interleaved {
            false => vec![real, imaginary],
            true => vec![self.beside(&real, &imaginary, rotary)?],
        };
        if rotary < size {
            parts.push(self.stretch(&x, 3, rotary, size)?);
        }
        let whole = self.concat_values(&parts.iter().collect::<Vec<_>>(), 3)?;
        match shape.len() {
            4 => self.transpose(&whole, &[0, 2, 1, 3]),
            _ => self.reshape(&whole, &shape),
        }
    }

    /// The cosines or sines of the tokens, seen as [batch, tokens, 1, half].
    fn angles(&mut self, call: &Call<'_>, at: usize, half: i64) -> Why<Value> {
        let own = match call.optional(3) {
            Some(Value::Constant(places)) => self.gather_known(call.input(at)?, 0, places)?,
            Some(Value::Data(places)) => self.lookup(call.input(at)?, 0, places)?,
            Some(other) => return Err(format!("the places of tokens are {}", other.what())),
            None => call.input(at)?.clone(),
        };
        let mut shape = own.shape();
        if shape.len() != 3 || shape[2] != Dim::new(half) {
            return Err(format!("angles {shape:?} for {half} pairs"));
        }
        shape.insert(2, Dim::ONE);
        self.reshape(&own, &shape)
    }

    /// Every second column from `first` on.
    fn every_second(&mut self, x: &Value, half: i64, first: i64) -> Why<Value> {
        let shape = x.shape();
        let pairs = [&shape[..3], &[Dim::new(half), Dim::new(2)]].concat();
        let pairs = self.reshape(x, &pairs)?;
        self.entry(&pairs, 4, first)
    }

    /// Columns of two values in turn.
    fn beside(&mut self, a: &Value, b: &Value, width: i64) -> Why<Value> {
        let shape = a.shape();
        let single = [&shape[..], &[Dim::ONE]].concat();
        let (a, b) = (self.reshape(a, &single)?, self.reshape(b, &single)?);
        let pairs = self.concat_values(&[&a, &b], 4)?;
        self.reshape(&pairs, &[&shape[..3], &[Dim::new(width)]].concat())
    }
}
