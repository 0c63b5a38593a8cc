//! Products without a kernel, written out: every term of every sum is a column, and the columns are added up. This is
//! expensive, so it is done only for small products.

use isovec_engine::onnx::axis;

use super::Lowerer;
use super::call::Call;
use crate::dim::Dim;
use crate::error::Why;
use crate::node::{Binary, Reduction};
use crate::value::Value;

/// The longest equation: letters for every axis of a few operands.
const LONGEST_EQUATION: usize = 256;
/// The most terms of a row.
const MOST_TERMS: i64 = 1 << 14;

impl Lowerer {
    /// `a · b`, their last axes as matrices and those before as stacks of them.
    pub(super) fn product_by_terms(&mut self, a: &Value, b: &Value) -> Why<Value> {
        let (left, right) = (a.shape(), b.shape());
        if left.is_empty() || right.is_empty() {
            return Err("a product with a single number".into());
        }
        // A vector is a row on the left and a column on the right, and that axis goes again.
        let (row, column) = (left.len() == 1, right.len() == 1);
        let mut left = if row {
            [&[Dim::ONE], &left[..]].concat()
        } else {
            left
        };
        let mut right = if column {
            [&right[..], &[Dim::ONE]].concat()
        } else {
            right
        };
        left.push(Dim::ONE);
        right.insert(right.len() - 2, Dim::ONE);
        let (a, b) = (self.reshape(a, &left)?, self.reshape(b, &right)?);
        let sum = self.sum_of_products(&a, &b, &[-2])?;
        let mut shape = sum.shape();
        if column {
            shape.pop();
        }
        if row {
            let place = shape.len() - if column { 1 } else { 2 };
            shape.remove(place);
        }
        self.reshape(&sum, &shape)
    }

    /// `a · b`, broadcast and summed up along some axes, which go.
    fn sum_of_products(&mut self, a: &Value, b: &Value, axes: &[i64]) -> Why<Value> {
        let shape = super::elementwise::broadcast(&a.shape(), &b.shape())?;
        let terms = shape.iter().filter_map(|dim| dim.known());
        let terms = terms.fold(1_i64, |terms, extent| terms.saturating_mul(extent));
        if terms > MOST_TERMS {
            return Err(format!("a product of {terms} terms without a kernel"));
        }
        let product = self.zip(Binary::Mul, a, b)?;
        match axes {
            [] => Ok(product),
            axes => self.reduce(Reduction::Sum, &product, Some(axes), false),
        }
    }

    pub(super) fn einsum(&mut self, call: &Call<'_>) -> Why<Value> {
        let equation: String = call
            .node
            .text("equation")
            .unwrap_or_default()
            .replace(' ', "");
        if equation.len() > LONGEST_EQUATION {
            return Err(format!("an equation of {} letters", equation.len()));
        }
        let (inputs, output) = match equation.split_once("->") {
            Some((inputs, output)) => (inputs, output.to_owned()),
            None => (&equation[..], implied(&equation)),
        };
        let inputs: Vec<&str> = inputs.split(',').collect();
        let made = output
            .chars()
            .all(|letter| inputs.concat().contains(letter));
        if inputs.len() != call.inputs.len() || equation.contains('.') || !made {
            return Err(format!("the equation {equation:?} is not known"));
        }
        // All letters, the output's first; every operand gets an axis for each.
        let mut letters: Vec<char> = output.chars().collect();
        for letter in inputs
            .concat()
            .chars()
            .filter(|letter| letter.is_ascii_alphabetic())
        {
            if !letters.contains(&letter) {
                letters.push(letter);
            }
        }
        let mut all: Option<Value> = None;
        let summed: Vec<i64> = (output.chars().count() as i64..letters.len() as i64).collect();
        for (at, own) in inputs.iter().enumerate() {
            let operand = self.spread(call.input(at)?, own, &letters)?;
            let last = at + 1 == inputs.len();
            all = Some(match all {
                None if last => match &summed[..] {
                    [] => operand,
                    axes => self.reduce(Reduction::Sum, &operand, Some(axes), false)?,
                },
                None => operand,
                Some(all) => {
                    self.sum_of_products(&all, &operand, if last { &summed } else { &[] })?
                }
            });
        }
        all.ok_or_else(|| "it has no operand".into())
    }

    /// A value with an axis for each letter, of extent 1 where it has none of its own.
    fn spread(&mut self, value: &Value, own: &str, letters: &[char]) -> Why<Value> {
        let own: Vec<char> = own.chars().collect();
        let shape = value.shape();
        let twice = own
            .iter()
            .enumerate()
            .any(|(at, letter)| own[..at].contains(letter));
        if own.len() != shape.len() || twice {
            return Err("an operand of other axes, or one with a diagonal".into());
        }
        let places: Vec<Option<usize>> = letters
            .iter()
            .map(|letter| own.iter().position(|other| other == letter))
            .collect();
        let order: Vec<usize> = places.iter().copied().flatten().collect();
        let turned = self.transpose(value, &order)?;
        let target: Vec<Dim> = places
            .iter()
            .map(|at| at.map_or(Dim::ONE, |at| shape[at]))
            .collect();
        self.reshape(&turned, &target)
    }

    /// The last two axes of a value in the other order.
    pub(super) fn turned(&self, value: &Value) -> Why<Value> {
        let rank = value.shape().len();
        let (last, before) = (axis(-1, rank)?, axis(-2, rank)?);
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(last, before);
        self.transpose(value, &order)
    }
}

/// The output that an equation without one means: the letters that stand in it once, in order.
fn implied(equation: &str) -> String {
    let mut letters: Vec<char> = equation.chars().filter(char::is_ascii_alphabetic).collect();
    letters.sort_unstable();
    let once = |letter: &char| equation.matches(*letter).count() == 1;
    letters.into_iter().filter(once).collect()
}
