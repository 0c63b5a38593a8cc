//! Token ids, and the values of pictures, as the tensors that a model reads.

use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::description::{Dim, ModelDescription};
use isovec_engine::engine::{Batch, Engine};
use isovec_engine::tensor::{DType, NamedTensor};
use isovec_model::convert::ADAPTER_IDS;

use super::encoded::Encoded;
use crate::error::Result;

/// What an input is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Ids,
    Mask,
    Types,
    Adapters,
}

/// How a model is fed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Feed {
    inputs: Vec<(Arc<str>, Role, DType)>,
    /// The input of a model of pictures, and the extents of a picture's part of it. Such a model has no other.
    picture: Option<(Arc<str>, Vec<usize>)>,
    pad_id: u32,
    pad_type_id: u32,
    /// How many adapters the model has. The number stands for none.
    adapters: u32,
    /// The number of rows, where the model fixes it.
    pub(crate) rows: Option<usize>,
    /// The number of positions, where the model fixes it.
    pub(crate) positions: Option<usize>,
}

impl Feed {
    /// Finds out what a model wants: one with these ids of padding and of its type, and so many adapters.
    ///
    /// # Errors
    /// [`EngineError::UnsupportedModel`] for an input that a text does not give, and for a model
    /// without a mask, whose vectors would depend on the padding.
    pub(crate) fn new(
        origin: &str,
        model: &ModelDescription,
        (pad_id, pad_type_id): (u32, u32),
        adapters: usize,
    ) -> Result<Self, EngineError> {
        let unsupported = |reason: String| {
            EngineError::UnsupportedModel {
            origin: origin.to_owned(),
            reason,
            hint: "Export the model with the inputs input_ids, attention_mask and, if it has them, token_type_ids".into(),
        }
        };
        let mut feed = Self {
            inputs: Vec::new(),
            picture: None,
            pad_id,
            pad_type_id,
            adapters: adapters as u32,
            rows: None,
            positions: None,
        };
        if let Some((name, rows, extents)) = picture(model) {
            feed.rows = rows;
            feed.picture = Some((name.into(), extents));
            return Ok(feed);
        }
        for input in &model.inputs {
            let role = match input.name.as_str() {
                "input_ids" => Role::Ids,
                "attention_mask" => Role::Mask,
                "token_type_ids" => Role::Types,
                ADAPTER_IDS if adapters > 0 => Role::Adapters,
                other => {
                    return Err(unsupported(format!(
                        "it needs an input {other}, which texts do not have"
                    )));
                }
            };
            let dtype = match input.dtype {
                Some(dtype @ (DType::I64 | DType::I32)) => dtype,
                _ => {
                    return Err(unsupported(format!(
                        "its input {} is not of 64- or 32-bit integers",
                        input.name
                    )));
                }
            };
            if let Some(dims) = &input.dims {
                let [rows, positions] = dims.as_slice() else {
                    return Err(unsupported(format!(
                        "its input {} is {}",
                        input.name,
                        input.dims_text()
                    )));
                };
                feed.rows = feed.rows.or(fixed(rows));
                feed.positions = feed.positions.or(fixed(positions));
            }
            feed.inputs.push((input.name.as_str().into(), role, dtype));
        }
        for (role, name) in [(Role::Ids, "input_ids"), (Role::Mask, "attention_mask")] {
            if !feed.inputs.iter().any(|&(_, has, _)| has == role) {
                return Err(unsupported(format!("it has no input {name}")));
            }
        }
        Ok(feed)
    }

    /// Bytes of a picture as the model reads it, of a model of pictures.
    pub(crate) fn picture_bytes(&self) -> Option<usize> {
        let (_, extents) = self.picture.as_ref()?;
        Some(extents.iter().product::<usize>() * size_of::<f32>())
    }

    /// The positions that a text of this length takes.
    pub(crate) fn padded(&self, length: usize) -> usize {
        self.positions.unwrap_or(length)
    }

    /// Rows and positions of the batch of the texts at `places`.
    pub(crate) fn extents(&self, encodings: &[Encoded], places: &[usize]) -> (usize, usize) {
        let lengths = places.iter().filter_map(|&place| encodings.get(place));
        let longest = lengths.map(|text| text.len()).max().unwrap_or(0);
        (self.rows.unwrap_or(places.len()), self.padded(longest))
    }

    /// The batch of the texts at `places`, in the lists of `spare`. A model with a fixed number of
    /// rows gets the last text again to fill them.
    pub(crate) fn batch(
        &self,
        engine: &dyn Engine,
        encodings: &[Encoded],
        places: &[usize],
        spare: Batch,
    ) -> Result<Batch> {
        let (rows, positions) = self.extents(encodings, places);
        let texts = || {
            (0..rows).filter_map(|row| {
                let place = places.get(row).or(places.last())?;
                encodings.get(*place)
            })
        };
        let mut batch = spare;
        batch.row_lengths.extend(texts().map(|text| text.len()));
        if let Some((name, extents)) = &self.picture {
            let shape = [&[rows], &extents[..]].concat();
            let mut tensor = engine.alloc(DType::F32, &shape)?;
            let all = tensor.as_mut_slice::<f32>()?;
            let values_of_one = extents.iter().product();
            for (row, picture) in all.chunks_exact_mut(values_of_one).zip(texts()) {
                if let Encoded::Picture { values, .. } = picture {
                    row.copy_from_slice(values);
                }
            }
            let name = Arc::clone(name);
            batch.inputs.push(NamedTensor::new(name, tensor));
        }
        for (name, role, dtype) in &self.inputs {
            let mut tensor = engine.alloc(*dtype, &[rows, positions])?;
            match dtype {
                DType::I32 => self.fill(
                    *role,
                    tensor.as_mut_slice::<i32>()?,
                    positions,
                    texts(),
                    |id| id as i32,
                ),
                _ => self.fill(
                    *role,
                    tensor.as_mut_slice::<i64>()?,
                    positions,
                    texts(),
                    i64::from,
                ),
            }
            batch
                .inputs
                .push(NamedTensor::new(Arc::clone(name), tensor));
        }
        Ok(batch)
    }

    fn fill<'t, T: Copy>(
        &self,
        role: Role,
        values: &mut [T],
        positions: usize,
        texts: impl Iterator<Item = &'t Encoded>,
        as_id: fn(u32) -> T,
    ) {
        let texts = texts.filter_map(|encoded| Some((encoded, encoded.text()?)));
        for (row, (encoded, text)) in values.chunks_exact_mut(positions.max(1)).zip(texts) {
            let (real, padding) = row.split_at_mut(text.ids.len().min(positions));
            match role {
                Role::Ids => copy(real, &text.ids, as_id),
                Role::Types => copy(real, &text.type_ids, as_id),
                Role::Mask => {
                    let (seen, unseen) = real.split_at_mut(encoded.seen().min(real.len()));
                    seen.fill(as_id(1));
                    unseen.fill(as_id(0));
                }
                Role::Adapters => real.fill(as_id(encoded.adapter().unwrap_or(self.adapters))),
            }
            padding.fill(as_id(match role {
                Role::Ids => self.pad_id,
                Role::Types => self.pad_type_id,
                Role::Mask => 0,
                Role::Adapters => self.adapters,
            }));
        }
    }
}

/// The input of a model of pictures: its name, the number of pictures where that is fixed, and the extents of one, all of which are
/// known.
fn picture(model: &ModelDescription) -> Option<(&str, Option<usize>, Vec<usize>)> {
    let ([input], Some(DType::F32)) = (&model.inputs[..], model.inputs.first()?.dtype) else {
        return None;
    };
    let (rows, extents) = input.dims.as_deref()?.split_first()?;
    let extents: Vec<usize> = extents.iter().map(fixed).collect::<Option<_>>()?;
    (!extents.is_empty() && !extents.contains(&0))
        .then(|| (input.name.as_str(), fixed(rows), extents))
}

fn copy<T>(row: &mut [T], ids: &[u32], as_id: fn(u32) -> T) {
    for (slot, &id) in row.iter_mut().zip(ids) {
        *slot = as_id(id);
    }
}

fn fixed(dim: &Dim) -> Option<usize> {
    match dim {
        Dim::Fixed(extent) => Some(*extent),
        Dim::Symbolic(_) => None,
    }
}
