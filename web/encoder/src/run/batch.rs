//! The texts of a batch, one after another without padding.

use isovec_engine::engine::{Batch, MASK};
use isovec_engine::tensor::{DType, Tensor};
use isovec_engine::{EngineError, Result};

use crate::executable::Step;
use crate::magnitude::LONGEST;
use crate::node::{Op, Rows};

/// No id is larger.
const LARGEST: i64 = crate::magnitude::LARGEST_ID as i64;

/// Where each text of a batch is, when they stand one after another without padding.
#[derive(Debug)]
pub struct Texts {
    /// Where each text begins among the tokens, and where the last one ends.
    offsets: Vec<usize>,
    /// The text of each token.
    of_token: Vec<usize>,
    /// The tokens of each text that others see, where some are not seen.
    seen: Option<Vec<usize>>,
    /// Positions of a row of the batch, padding included.
    length: usize,
}

impl Texts {
    /// The texts of a batch of tensors `[rows, length]`, for a model that takes at most so many
    /// tokens. Each row is as long as its mask says, or as `row_lengths` says where that is more: no token sees those behind the
    /// mask's, and they see the mask's.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`] for a row without tokens, a mask with a hole, and a row that
    /// is longer than the model's tables.
    pub fn of(batch: &Batch, positions: Option<usize>) -> Result<Self> {
        let texts = Self::read(batch)?;
        let most = positions.unwrap_or(LONGEST).min(LONGEST);
        match texts.longest().filter(|&longest| longest > most) {
            None => Ok(texts),
            Some(longest) => Err(EngineError::InvalidInput {
                name: "batch".into(),
                detail: format!("has a row of {longest} tokens, the model's tables end at {most}"),
            }),
        }
    }

    fn read(batch: &Batch) -> Result<Self> {
        let invalid = |detail: String| EngineError::InvalidInput {
            name: MASK.into(),
            detail,
        };
        let rows = batch.rows();
        let first = batch.inputs.first();
        let length = first.and_then(|input| input.tensor.shape().get(1)).copied();
        let length = length.unwrap_or(0);
        let mut offsets = vec![0];
        let mut all_seen = Vec::with_capacity(rows);
        for row in 0..rows {
            let seen = match batch.input(MASK) {
                Some(mask) => {
                    let mask = whole_numbers(mask, row).ok_or_else(|| {
                        invalid(format!("{mask:?} is no [batch, sequence] of whole numbers"))
                    })?;
                    let own = mask.iter().take_while(|&&real| real == 1).count();
                    if mask[own..].iter().any(|&real| real != 0) {
                        return Err(invalid(format!(
                            "row {row} is not ones followed by zeros: tokens in the middle of a \
                             text cannot be hidden, nor stand after padding"
                        )));
                    }
                    own
                }
                None => batch.row_lengths.get(row).copied().unwrap_or(length),
            };
            let own = batch
                .row_lengths
                .get(row)
                .map_or(seen, |&own| own.max(seen));
            if seen == 0 || own > length {
                return Err(invalid(format!(
                    "row {row} has {own} tokens of {length}, of which {seen} are seen"
                )));
            }
            offsets.push(offsets[row] + own);
            all_seen.push(seen);
        }
        let mut all = offsets.windows(2).zip(&all_seen);
        let some_unseen = all.any(|(ends, seen)| ends[1] - ends[0] != *seen);
        let of_token = offsets.windows(2).enumerate();
        let of_token = of_token.flat_map(|(text, ends)| vec![text; ends[1] - ends[0]]);
        Ok(Self {
            of_token: of_token.collect(),
            seen: some_unseen.then_some(all_seen),
            offsets,
            length,
        })
    }

    /// The number of texts.
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of tokens of all of them.
    pub fn tokens(&self) -> usize {
        self.of_token.len()
    }

    /// Tokens of the longest.
    pub fn longest(&self) -> Option<usize> {
        self.offsets.windows(2).map(|ends| ends[1] - ends[0]).max()
    }

    /// Where each begins among the tokens, and where the last one ends.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The text of each token.
    pub fn of_tokens(&self) -> &[usize] {
        &self.of_token
    }

    /// The tokens of each text, from its first, that others see; `None` where all are seen.
    pub fn seen(&self) -> Option<&[usize]> {
        self.seen.as_deref()
    }

    /// Positions of a row of the batch, padding included.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Rows of so many values for each token, as `[texts, length, width]` with zeros where padding is.
    pub fn padded(&self, values: &[f32], width: usize) -> Vec<f32> {
        let mut padded = vec![0.0; self.count() * self.length * width];
        for (row, ends) in self.offsets.windows(2).enumerate() {
            let own = &values[ends[0] * width..ends[1] * width];
            padded[row * self.length * width..][..own.len()].copy_from_slice(own);
        }
        padded
    }

    /// The row of a value that belongs to row `row` of a result.
    pub(super) fn row(&self, of: Rows, result: Rows, row: usize) -> usize {
        match (of, result) {
            (Rows::Texts, Rows::Tokens) => self.of_token[row],
            _ => row,
        }
    }

    /// Where a stretch of `most` rows from `from` ends: at the end of a text, for operators that
    /// look at all tokens of one.
    pub(super) fn until(&self, step: &Step, from: usize, most: usize) -> usize {
        let end = from.saturating_add(most);
        let whole_texts = matches!(step.node.op, Op::Attention(_) | Op::CumSum { .. });
        if !whole_texts || step.node.rows == Rows::Texts {
            return end;
        }
        let next = self.offsets.iter().copied().find(|&offset| offset >= end);
        next.unwrap_or_else(|| self.tokens())
    }

    /// An input's numbers, one for each token.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`] for an input that is missing, that is no `[rows, length]` of
    /// whole numbers, or that holds one that is no id.
    pub fn input(&self, batch: &Batch, name: &str) -> Result<Vec<f32>> {
        let invalid = |detail: String| EngineError::InvalidInput {
            name: name.to_owned(),
            detail,
        };
        let tensor = batch
            .input(name)
            .ok_or_else(|| invalid("is missing from the batch".into()))?;
        let mut values = Vec::with_capacity(self.tokens());
        for (row, ends) in self.offsets.windows(2).enumerate() {
            let numbers = whole_numbers(tensor, row).filter(|row| row.len() >= ends[1] - ends[0]);
            let numbers = numbers
                .ok_or_else(|| invalid(format!("{tensor:?} is no [batch, sequence] of ids")))?;
            for &number in &numbers[..ends[1] - ends[0]] {
                if !(-LARGEST..=LARGEST).contains(&number) {
                    return Err(invalid(format!("holds {number}, which is no id")));
                }
                values.push(number as f32);
            }
        }
        Ok(values)
    }

    /// An input's floats, `width` of them for each token.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`] for an input that is missing, or that is no `[rows, length, width]` of f32.
    pub fn values(&self, batch: &Batch, name: &str, width: usize) -> Result<Vec<f32>> {
        let invalid = |detail: String| EngineError::InvalidInput {
            name: name.to_owned(),
            detail,
        };
        let tensor = batch
            .input(name)
            .ok_or_else(|| invalid("is missing from the batch".into()))?;
        let wrong = || {
            invalid(format!(
                "{tensor:?} is no [batch, sequence, {width}] of f32"
            ))
        };
        let all = tensor.as_slice::<f32>().map_err(|_| wrong())?;
        let [rows, length, wide] = *tensor.shape() else {
            return Err(wrong());
        };
        if rows != self.count() || wide != width || self.longest() > Some(length) {
            return Err(wrong());
        }
        let mut values = Vec::with_capacity(self.tokens() * width);
        for (row, ends) in self.offsets.windows(2).enumerate() {
            let from = row * length * width;
            values.extend_from_slice(&all[from..][..(ends[1] - ends[0]) * width]);
        }
        Ok(values)
    }

    pub(super) fn positions(&self) -> Vec<f32> {
        let texts = self.offsets.windows(2);
        texts
            .flat_map(|ends| (0..ends[1] - ends[0]).map(|place| place as f32))
            .collect()
    }

    pub(super) fn lengths(&self) -> Vec<f32> {
        let texts = self.offsets.windows(2);
        texts.map(|ends| (ends[1] - ends[0]) as f32).collect()
    }
}

/// A row of a tensor `[rows, length]`.
fn whole_numbers(tensor: &Tensor, row: usize) -> Option<Vec<i64>> {
    let [rows, length] = *tensor.shape() else {
        return None;
    };
    let range = row * length..(row + 1) * length;
    if row >= rows {
        return None;
    }
    match tensor.dtype() {
        DType::I64 => Some(tensor.as_slice::<i64>().ok()?[range].to_vec()),
        DType::I32 => {
            let row = &tensor.as_slice::<i32>().ok()?[range];
            Some(row.iter().map(|&number| i64::from(number)).collect())
        }
        _ => None,
    }
}
