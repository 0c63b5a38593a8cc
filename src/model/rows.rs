//! Checks vectors that arrive in any order, and puts them in the order of their texts.

use std::collections::BTreeMap;

use isovec_engine::engine::RunOutput;
use isovec_model::head;
use isovec_model::sparse::Weighting;

use super::encoded::Encoded;
use crate::error::{Error, Result};
use crate::similarity::norm;

/// How far from 1 the length of a normalised vector may be: wide enough for 16-bit arithmetic,
/// and far from any vector that was not normalised at all or has no direction.
const UNIT_TOLERANCE: f64 = 1e-2;

/// The result under construction.
#[derive(Debug)]
pub(crate) struct Rows {
    /// Row after row; empty where rows are kept packed.
    pub(crate) values: Vec<f32>,
    /// A packed row for each text, where only what is above 0 is kept, or a vector for each token.
    pub(crate) packed: Vec<Packed>,
    pub(crate) token_counts: Vec<u32>,
    pub(crate) truncated: Vec<bool>,
    /// The places of the tokens of each text whose vectors or weights are kept, where they are not all.
    kept: Vec<Option<Box<[u32]>>>,
    /// The token ids of each text, where weights of tokens become weights of words.
    ids: Vec<Box<[u32]>>,
    /// The name of the prompt that was put before every text, if it has one.
    pub(crate) prompt: Option<String>,
    dim: usize,
    form: RowForm,
}

/// A row of words' weights: the indices of those above 0 in ascending order, as the bits of floats, and then the weights. Or the
/// vectors of a text's tokens, one after another. A cache keeps it as it keeps a vector.
pub(crate) type Packed = Box<[f32]>;

/// What is checked of a model's rows, and how they are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowForm {
    /// All components, as the model gives them.
    Whole,
    /// All components, of unit length.
    Unit,
    /// What is above 0 of the weights that are made of the model's numbers.
    Packed(Weighting),
    /// A vector of unit length for each token.
    Tokens,
    /// Of each word, the largest of the weights that are made of its tokens' numbers.
    TokenWeights(Weighting),
}

impl RowForm {
    /// Whether the model gives a row for each token.
    fn is_of_tokens(self) -> bool {
        matches!(self, Self::Tokens | Self::TokenWeights(_))
    }
}

impl Rows {
    pub(crate) fn new(
        texts: usize,
        dim: usize,
        form: RowForm,
        prompt: Option<String>,
    ) -> Result<Self> {
        let (width, rows) = match form {
            RowForm::Packed(_) | RowForm::Tokens | RowForm::TokenWeights(_) => (0, texts),
            RowForm::Whole | RowForm::Unit => (dim, 0),
        };
        let size = texts
            .checked_mul(width)
            .filter(|&size| size <= isize::MAX as usize / size_of::<f32>());
        let mut values = Vec::new();
        let reserved = size.map(|size| values.try_reserve_exact(size));
        let (Some(size), Some(Ok(()))) = (size, reserved) else {
            return Err(isovec_engine::EngineError::InputTooLarge {
                asked: (texts as u64).saturating_mul(dim as u64),
                limit: (isize::MAX as usize / size_of::<f32>()) as u64,
                unit: "components that fit into memory",
            }
            .into());
        };
        values.resize(size, f32::NAN);
        Ok(Self {
            values,
            packed: vec![Packed::default(); rows],
            kept: match form.is_of_tokens() {
                true => vec![None; texts],
                false => Vec::new(),
            },
            ids: match form {
                RowForm::TokenWeights(_) => vec![Box::default(); texts],
                _ => Vec::new(),
            },
            token_counts: vec![0; texts],
            truncated: vec![false; texts],
            prompt,
            dim,
            form,
        })
    }

    /// Notes what the model will see of each text, the first of which is text `start`.
    pub(crate) fn note(&mut self, start: usize, encodings: &[Encoded]) -> Result<()> {
        let slots = self
            .token_counts
            .iter_mut()
            .zip(&mut self.truncated)
            .skip(start);
        for (offset, (encoding, (count, truncated))) in encodings.iter().zip(slots).enumerate() {
            encoding.check(start + offset)?;
            *count = u32::try_from(encoding.len()).unwrap_or(u32::MAX);
            *truncated = encoding.truncated();
            if let Encoded::Late(late) = encoding {
                if let Some(own) = self.kept.get_mut(start + offset) {
                    own.clone_from(&late.kept);
                }
                if let Some(own) = self.ids.get_mut(start + offset) {
                    *own = late.text.ids.as_slice().into();
                }
            }
        }
        Ok(())
    }

    /// Every row, and what the model saw of its text: tokens, and whether there were more.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[f32], u32, bool)> {
        let rows = self.values.chunks_exact(self.dim);
        let rows = rows.chain(self.packed.iter().map(|row| &**row));
        let seen = self.token_counts.iter().zip(&self.truncated);
        rows.zip(seen)
            .map(|(row, (&tokens, &truncated))| (row, tokens, truncated))
    }

    /// Takes the vectors of the texts at `start` + `places`.
    pub(crate) fn place(
        &mut self,
        start: usize,
        places: &[usize],
        output: &RunOutput,
    ) -> Result<()> {
        let of_tokens = self.form.is_of_tokens();
        let (vectors, width) = vectors(output, places.len(), self.dim, of_tokens)?;
        for (&place, vector) in places.iter().zip(vectors.chunks_exact(width)) {
            self.put(start + place, vector)?;
        }
        Ok(())
    }

    /// Takes the vectors of the texts from `start` on, row after row.
    pub(crate) fn place_values(&mut self, start: usize, mut values: &[f32]) -> Result<()> {
        let mut text = start;
        while !values.is_empty() {
            let width = match self.form.is_of_tokens() {
                true => self.tokens(text) * self.dim,
                false => self.dim,
            };
            let Some((own, rest)) = values.split_at_checked(width) else {
                break;
            };
            self.put(text, own)?;
            (text, values) = (text + 1, rest);
        }
        Ok(())
    }

    fn tokens(&self, text: usize) -> usize {
        self.token_counts
            .get(text)
            .map_or(0, |&count| count as usize)
    }

    /// Takes a vector that was checked when it was made, and what the model saw of its text.
    pub(crate) fn set(&mut self, text: usize, vector: &[f32], tokens: u32, truncated: bool) {
        if let Some(row) = self.packed.get_mut(text) {
            *row = vector.into();
        }
        let begin = text * self.dim;
        if let Some(row) = self.values.get_mut(begin..begin + self.dim) {
            row.copy_from_slice(vector);
        }
        if let Some(count) = self.token_counts.get_mut(text) {
            *count = tokens;
        }
        if let Some(cut) = self.truncated.get_mut(text) {
            *cut = truncated;
        }
    }

    fn put(&mut self, text: usize, vector: &[f32]) -> Result<()> {
        match self.form {
            RowForm::Tokens => return self.put_tokens(text, vector),
            RowForm::TokenWeights(weighting) => {
                return self.put_token_weights(text, weighting, vector);
            }
            _ => {}
        }
        if !vector.iter().all(|value| value.is_finite()) {
            return Err(Error::NotFinite { text });
        }
        if let (RowForm::Packed(weighting), Some(row)) = (self.form, self.packed.get_mut(text)) {
            *row = packed(weighting, vector);
            return Ok(());
        }
        if self.form == RowForm::Unit {
            check_unit(text, vector)?;
        }
        let begin = text * self.dim;
        if let Some(row) = self.values.get_mut(begin..begin + self.dim) {
            row.copy_from_slice(vector);
        }
        Ok(())
    }

    /// Takes the numbers of a text's tokens, and of padding behind them.
    fn put_token_weights(
        &mut self,
        text: usize,
        weighting: Weighting,
        numbers: &[f32],
    ) -> Result<()> {
        let ids = self.ids.get(text).map_or(&[][..], |ids| ids);
        let kept = self.kept.get(text).and_then(Option::as_deref);
        let kept = kept.unwrap_or_default().iter().map(|&place| place as usize);
        let mut weights: BTreeMap<u32, f32> = BTreeMap::new();
        for (&id, &number) in kept.filter_map(|place| ids.get(place).zip(numbers.get(place))) {
            if !number.is_finite() {
                return Err(Error::NotFinite { text });
            }
            let weight = weighting.of(number);
            if weight > 0.0 {
                let own = weights.entry(id).or_default();
                *own = own.max(weight);
            }
        }
        if let Some(row) = self.packed.get_mut(text) {
            let indices = weights.keys().map(|&id| f32::from_bits(id));
            *row = indices.chain(weights.values().copied()).collect();
        }
        Ok(())
    }

    /// Takes the vectors of a text's tokens, and of padding behind them.
    fn put_tokens(&mut self, text: usize, vectors: &[f32]) -> Result<()> {
        let all: Vec<&[f32]> = vectors
            .chunks_exact(self.dim)
            .take(self.tokens(text))
            .collect();
        let kept = self.kept.get(text).and_then(Option::as_deref);
        let own: Vec<&[f32]> = match kept {
            None => all,
            Some(kept) => kept
                .iter()
                .filter_map(|&place| all.get(place as usize).copied())
                .collect(),
        };
        for vector in &own {
            if !vector.iter().all(|value| value.is_finite()) {
                return Err(Error::NotFinite { text });
            }
            check_unit(text, vector)?;
        }
        if let Some(row) = self.packed.get_mut(text) {
            *row = own.concat().into();
        }
        Ok(())
    }
}

/// Refuses a vector that has no unit length.
fn check_unit(text: usize, vector: &[f32]) -> Result<()> {
    let norm = norm(vector);
    match (norm - 1.0).abs() > UNIT_TOLERANCE {
        true => Err(Error::NotNormalized { text, norm }),
        false => Ok(()),
    }
}

/// What is above 0 of the weights of a row's numbers.
fn packed(weighting: Weighting, numbers: &[f32]) -> Packed {
    let weights = numbers.iter().map(|&x| weighting.of(x));
    let (mut row, weights): (Vec<f32>, Vec<f32>) = (0..)
        .zip(weights)
        .filter(|&(_, weight)| weight > 0.0)
        .map(|(index, weight)| (f32::from_bits(index), weight))
        .unzip();
    row.extend(weights);
    row.into()
}

/// The vectors in an engine's answer, `[rows or more, dim]`, and the values of a row; where they are of tokens, `[rows or more,
/// positions, dim]`.
pub(crate) fn vectors(
    output: &RunOutput,
    rows: usize,
    dim: usize,
    of_tokens: bool,
) -> Result<(&[f32], usize)> {
    let tensor = output
        .output(head::OUTPUT)
        .ok_or_else(|| Error::InvalidOutput {
            wanted: format!("an output {}", head::OUTPUT),
            got: format!("{} others", output.outputs.len()),
        })?;
    let width = match *tensor.shape() {
        [has, of] if !of_tokens && has >= rows && of == dim => Some(dim),
        [has, positions, of] if of_tokens && has >= rows && of == dim && positions > 0 => {
            Some(positions * dim)
        }
        _ => None,
    };
    match (tensor.as_slice::<f32>(), width) {
        (Ok(vectors), Some(width)) => Ok((vectors, width)),
        _ => Err(Error::InvalidOutput {
            wanted: match of_tokens {
                false => format!("f32 [{rows}, {dim}]"),
                true => format!("f32 [{rows}, positions, {dim}]"),
            },
            got: format!("{} {:?}", tensor.dtype(), tensor.shape()),
        }),
    }
}
