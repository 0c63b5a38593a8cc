//! Weights converted on request: each is read from the checkpoint, widened to f32, cut and
//! transposed when an engine asks for it, and nothing of it is kept.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use half::{bf16, f16};
use isovec_engine::content::Content;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::tensor::DType;
use isovec_engine::weights::{Sink, WeightInfo, WeightSource};

use super::adapters::{scales, turned};
use super::alibi::alibi_table;
use super::disentangled::{Distances, Table};
use super::patches::PatchGrid;
use super::positions::Positions;
use super::relative::{Buckets, causal_table, offset_table};
use super::rotary::{Part, Places, rotary_table};
use super::siglip_vision::probe_table;
use super::wavelengths::Wavelengths;
use crate::safetensors::{SourceDType, SourceTensor, TensorSet};

/// How one weight of the graph comes out of the checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Recipe {
    /// The tensor as it is, in f32.
    Copy {
        /// Name in the checkpoint.
        tensor: String,
    },
    /// Some rows of a matrix `[out, in]`, transposed to `[in, rows]` as `MatMul` wants it.
    Transposed {
        /// Name in the checkpoint.
        tensor: String,
        /// Rows taken.
        rows: Range<usize>,
    },
    /// A row of a matrix `[out, in]` less another, `[in, 1]`.
    RowLess {
        /// Name in the checkpoint.
        tensor: String,
        /// The row.
        row: usize,
        /// The other.
        less: usize,
    },
    /// A matrix `[out, in]`, its rows times the numbers of a vector, transposed; or a vector times another. The products are
    /// rounded to f32, which is as far off as rounding them after the layer would be.
    Scaled {
        /// Name in the checkpoint.
        tensor: String,
        /// Name in the checkpoint of the vector.
        by: String,
    },
    /// The tensor with 1 added to each number, rounded to f32, as the models' own library adds it.
    PlusOne {
        /// Name in the checkpoint.
        tensor: String,
    },
    /// A tensor of three axes, of whose middle one some entries are taken, with its axes in another order.
    Turned {
        /// Name in the checkpoint.
        tensor: String,
        /// Its axes in their new order.
        order: [usize; 3],
        /// Entries of the middle axis.
        middle: Range<usize>,
    },
    /// What the columns of adapters are multiplied with, `[count + 1, count * rank]`: a row for each adapter, and one for none.
    AdapterScales {
        /// Number of adapters.
        count: usize,
        /// Columns of each.
        rank: usize,
        /// What its own are multiplied with.
        scale: f32,
    },
    /// Some elements of a tensor.
    Part {
        /// Name in the checkpoint.
        tensor: String,
        /// Elements taken.
        elements: Range<usize>,
    },
    /// Cosines or sines of rotary positions, `[positions, pairs]`.
    Rotary {
        /// How far a pair turns.
        waves: Wavelengths,
        /// Rows of the table.
        places: Places,
        /// Columns of the table: half the size of a head.
        pairs: usize,
        /// Which of the two.
        part: Part,
    },
    /// Attention bias per head and offset, `[heads, 2 * positions - 1]`, from a table of buckets.
    OffsetBias {
        /// Name in the checkpoint, `[buckets, heads]`.
        tensor: String,
        /// How offsets fall into them.
        buckets: Buckets,
        /// The longest sequence.
        positions: usize,
    },
    /// What is added to the product of each patch, `[special + patches, hidden]`: its position and the product's bias; and for
    /// tokens that are no patch, whose product is 0, their own vector and, if they have one, their position.
    Patches {
        /// Names in the checkpoint of the vectors of tokens that are no patch, in their order.
        special: Vec<String>,
        /// The positions, if any are added.
        positions: Option<Positions>,
        /// Name in the checkpoint of the product's bias.
        bias: Option<String>,
        /// How the model's pictures are cut.
        grid: PatchGrid,
        /// Numbers of a row.
        width: usize,
    },
    /// What tokens are multiplied with for the scores of one query's keys, `[in, heads]`, from queries, keys and values in one.
    Probe {
        /// Name in the checkpoint of what the query is made of.
        probe: String,
        /// Name in the checkpoint of the weight, `[3 * in, in]`.
        weight: String,
        /// Name in the checkpoint of the bias.
        bias: String,
        /// Number of heads.
        heads: usize,
    },
    /// Attention bias per head and offset, `[heads, 2 * positions - 1]`, that hides keys behind their query.
    CausalBias {
        /// Rows, all alike.
        heads: usize,
        /// The longest sequence.
        positions: usize,
    },
    /// Attention bias per head and offset, `[heads, 2 * positions - 1]`, that falls with the distance.
    Alibi {
        /// Rows.
        heads: usize,
        /// The longest sequence.
        positions: usize,
    },
    /// For each offset of two tokens the column of its bucket, i32 `[1, 2 * positions - 1]`.
    ColumnsByOffset(Distances),
    /// Projected vectors of distances, `[heads, size, columns]`.
    DistanceTable(Box<Table>),
    /// Whole numbers as i32.
    Whole {
        /// Name in the checkpoint, i32 or i64.
        tensor: String,
    },
    /// 0, 1, 2, ... as i32.
    CountI32(usize),
    /// 0, 1, 2, ... as f32.
    CountF32(usize),
}

/// A checkpoint's tensors as the converted graph wants them.
#[derive(Debug)]
pub(super) struct ConvertedWeights {
    pub(super) tensors: Arc<TensorSet>,
    pub(super) infos: Vec<WeightInfo>,
    pub(super) recipes: Vec<Recipe>,
}

impl ConvertedWeights {
    fn cook(&self, recipe: &Recipe) -> Result<Bytes> {
        match recipe {
            Recipe::Copy { tensor } => {
                let source = self.source(tensor)?;
                let data = bytes(tensor, &source.data)?;
                if source.dtype == SourceDType::F32 {
                    return Ok(data);
                }
                Ok(bytes_of(&widened(tensor, source.dtype, &data)?))
            }
            Recipe::Transposed { tensor, rows } => {
                // Bytes are moved once, and stay bytes.
                let data = self.rows(tensor, rows)?;
                let (values, _) = data.as_chunks::<4>();
                let columns = values.len() / rows.len().max(1);
                let moved = transposed(values, rows.len(), columns);
                Ok(moved.into_flattened().into())
            }
            Recipe::RowLess { tensor, row, less } => {
                let source = self.source(tensor)?;
                let columns = source.shape.last().copied().unwrap_or(0);
                let read = |row: usize| {
                    let data = part_of(tensor, source, row * columns..(row + 1) * columns)?;
                    widened(tensor, source.dtype, &data)
                };
                let mut values = read(*row)?;
                for (value, less) in values.iter_mut().zip(read(*less)?) {
                    *value -= less;
                }
                Ok(bytes_of(&values))
            }
            Recipe::Scaled { tensor, by } => {
                let (mut values, by) = (self.floats(tensor)?, self.floats(by)?);
                let columns = values.len() / by.len().max(1);
                for (row, by) in values.chunks_exact_mut(columns.max(1)).zip(&by) {
                    row.iter_mut().for_each(|value| *value *= by);
                }
                Ok(bytes_of(&transposed(&values, by.len(), columns)))
            }
            Recipe::PlusOne { tensor } => {
                let mut values = self.floats(tensor)?;
                values.iter_mut().for_each(|value| *value += 1.0);
                Ok(bytes_of(&values))
            }
            Recipe::Turned {
                tensor,
                order,
                middle,
            } => {
                let shape = &self.source(tensor)?.shape;
                let shape = [shape[0], shape[1], shape[2]];
                let values = self.floats(tensor)?;
                Ok(bytes_of(&turned(&values, shape, *order, middle.clone())))
            }
            Recipe::AdapterScales { count, rank, scale } => {
                Ok(bytes_of(&scales(*count, *rank, *scale)))
            }
            Recipe::Part { tensor, elements } => {
                let source = self.source(tensor)?;
                let data = part_of(tensor, source, elements.clone())?;
                Ok(bytes_of(&widened(tensor, source.dtype, &data)?))
            }
            Recipe::Rotary {
                waves,
                places,
                pairs,
                part,
            } => Ok(bytes_of(&rotary_table(waves, places, *pairs, *part))),
            Recipe::OffsetBias {
                tensor,
                buckets,
                positions,
            } => {
                let heads = self.source(tensor)?.shape.last().copied().unwrap_or(0);
                let table = self.floats(tensor)?;
                Ok(bytes_of(&offset_table(&table, *buckets, heads, *positions)))
            }
            Recipe::Patches {
                special,
                positions,
                bias,
                grid,
                width,
            } => {
                let mut table = Vec::with_capacity(grid.tokens() * width);
                for name in special {
                    table.extend(self.floats(name)?);
                }
                match bias {
                    Some(bias) => table.extend(self.floats(bias)?.repeat(grid.rows * grid.columns)),
                    None => table.resize(grid.tokens() * width, 0.0),
                }
                if let Some(positions) = positions {
                    let stored = self.floats(&positions.tensor)?;
                    let (first, squares) = stored.split_at(positions.stored.special * width);
                    let squares = positions.moved(squares, grid);
                    let (own, patches) = table.split_at_mut(grid.special * width);
                    let own = own.iter_mut().zip(first);
                    for (value, more) in own.chain(patches.iter_mut().zip(squares.iter())) {
                        *value += more;
                    }
                }
                Ok(bytes_of(&table))
            }
            Recipe::Probe {
                probe,
                weight,
                bias,
                heads,
            } => {
                let [probe, weight, bias] = [probe, weight, bias].map(|name| self.floats(name));
                Ok(bytes_of(&probe_table(&probe?, &weight?, &bias?, *heads)))
            }
            Recipe::CausalBias { heads, positions } => {
                Ok(bytes_of(&causal_table(*heads, *positions)))
            }
            Recipe::Alibi { heads, positions } => Ok(bytes_of(&alibi_table(*heads, *positions))),
            Recipe::DistanceTable(table) => Ok(bytes_of(&table.make(|name| self.floats(name))?)),
            Recipe::ColumnsByOffset(distances) => Ok(bytes_of_whole(distances.by_offset())),
            Recipe::Whole { tensor } => {
                Ok(bytes_of_whole(whole_numbers(tensor, self.source(tensor)?)?))
            }
            Recipe::CountI32(count) => Ok(bytes_of_whole(0..*count as i32)),
            Recipe::CountF32(count) => {
                Ok(bytes_of(&(0..*count).map(|n| n as f32).collect::<Vec<_>>()))
            }
        }
    }

    /// Rows of a matrix as they are, in f32.
    fn rows(&self, tensor: &str, rows: &Range<usize>) -> Result<Bytes> {
        let source = self.source(tensor)?;
        // The axes of a convolution's kernel are one, as its patches are.
        let columns = source.shape.iter().skip(1).product::<usize>();
        let data = part_of(tensor, source, rows.start * columns..rows.end * columns)?;
        match source.dtype {
            SourceDType::F32 => Ok(data),
            dtype => Ok(bytes_of(&widened(tensor, dtype, &data)?)),
        }
    }

    /// A tensor as it is, in f32, piece by piece: tables of words are half of some models.
    fn copy_pieces(&self, tensor: &str, sink: &mut dyn Sink) -> Result<()> {
        let source = self.source(tensor)?;
        let take = |piece: &[u8]| match source.dtype {
            SourceDType::F32 => sink.take(piece),
            dtype => sink.take(&bytes_of(&widened(tensor, dtype, piece)?)),
        };
        source.data.pieces(take, |error| unreadable(tensor, &error))
    }

    /// A tensor as it is, in f32.
    fn floats(&self, name: &str) -> Result<Vec<f32>> {
        let source = self.source(name)?;
        widened(name, source.dtype, &bytes(name, &source.data)?)
    }

    fn source(&self, name: &str) -> Result<&SourceTensor> {
        self.tensors.get(name).ok_or_else(|| EngineError::Weight {
            name: name.to_owned(),
            detail: "the checkpoint does not hold it".into(),
        })
    }
}

impl WeightSource for ConvertedWeights {
    fn weights(&self) -> &[WeightInfo] {
        &self.infos
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        let data = match self.recipes.get(index) {
            Some(recipe) => self.cook(recipe),
            None => Err(EngineError::Weight {
                name: format!("number {index}"),
                detail: format!("there are {} weights", self.recipes.len()),
            }),
        };
        Box::pin(async move { data })
    }

    fn read_pieces<'a>(&'a self, index: usize, sink: &'a mut dyn Sink) -> EngineFuture<'a, ()> {
        Box::pin(async move {
            match self.recipes.get(index) {
                Some(Recipe::Copy { tensor }) => self.copy_pieces(tensor, sink),
                _ => sink.take(&self.read(index).await?),
            }
        })
    }

    fn turned<'a>(&'a self, index: usize) -> Option<EngineFuture<'a, Bytes>> {
        let Some(Recipe::Transposed { tensor, rows }) = self.recipes.get(index) else {
            return None;
        };
        let data = self.rows(tensor, rows);
        Some(Box::pin(async move { data }))
    }

    fn lent(&self, index: usize) -> Option<Bytes> {
        let Some(Recipe::Copy { tensor }) = self.recipes.get(index) else {
            return None;
        };
        let source = self.tensors.get(tensor)?;
        source
            .data
            .lent()
            .filter(|_| source.dtype == SourceDType::F32)
    }
}

/// Whether a checkpoint's element type can be a float weight.
pub(super) fn is_float(dtype: SourceDType) -> bool {
    matches!(
        dtype,
        SourceDType::F64 | SourceDType::F32 | SourceDType::F16 | SourceDType::BF16
    )
}

/// The element type that a recipe gives.
pub(super) fn dtype_of(recipe: &Recipe) -> DType {
    match recipe {
        Recipe::Whole { .. } | Recipe::CountI32(_) | Recipe::ColumnsByOffset(_) => DType::I32,
        _ => DType::F32,
    }
}

/// Elements `range` of a tensor.
fn part_of(name: &str, source: &SourceTensor, range: Range<usize>) -> Result<Bytes> {
    let size = source.dtype.size();
    match source.data.part(range.start * size..range.end * size) {
        Some(part) => bytes(name, &part),
        None => Err(EngineError::Weight {
            name: name.to_owned(),
            detail: format!(
                "elements {range:?} were asked for, but it is {:?}",
                source.shape
            ),
        }),
    }
}

/// The elements of a tensor of i32 or i64.
pub(super) fn whole_numbers(name: &str, source: &SourceTensor) -> Result<Vec<i32>> {
    let data = bytes(name, &source.data)?;
    match source.dtype {
        SourceDType::I32 => Ok(data
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| i32::from_le_bytes(*bytes))
            .collect()),
        SourceDType::I64 => data
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| {
                let number = i64::from_le_bytes(*bytes);
                i32::try_from(number).map_err(|_| EngineError::Weight {
                    name: name.to_owned(),
                    detail: format!("it holds {number}"),
                })
            })
            .collect(),
        other => Err(EngineError::Weight {
            name: name.to_owned(),
            detail: format!("{other} is no type of whole numbers"),
        }),
    }
}

fn bytes(name: &str, data: &Content) -> Result<Bytes> {
    data.bytes().map_err(|error| unreadable(name, &error))
}

fn unreadable(name: &str, error: &io::Error) -> EngineError {
    EngineError::Weight {
        name: name.to_owned(),
        detail: format!("it cannot be read: {error}"),
    }
}

/// Elements in f32. f16, bf16 and i8 widen exactly; f64 rounds to nearest.
fn widened(name: &str, dtype: SourceDType, data: &[u8]) -> Result<Vec<f32>> {
    Ok(match dtype {
        SourceDType::F32 => data
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect(),
        SourceDType::F16 => data
            .as_chunks::<2>()
            .0
            .iter()
            .map(|bytes| f16::from_le_bytes(*bytes).to_f32())
            .collect(),
        SourceDType::BF16 => data
            .as_chunks::<2>()
            .0
            .iter()
            .map(|bytes| bf16::from_le_bytes(*bytes).to_f32())
            .collect(),
        SourceDType::F64 => data
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes) as f32)
            .collect(),
        SourceDType::I8 => data.iter().map(|&byte| f32::from(byte as i8)).collect(),
        other => {
            return Err(EngineError::Weight {
                name: name.to_owned(),
                detail: format!("{other} is not a float type"),
            });
        }
    })
}

/// `[rows, columns]` → `[columns, rows]`, in blocks that fit the first-level cache.
fn transposed<T: Copy + Default>(values: &[T], rows: usize, columns: usize) -> Vec<T> {
    const BLOCK: usize = 32;
    let mut out = vec![T::default(); values.len()];
    for row_block in (0..rows).step_by(BLOCK) {
        for column_block in (0..columns).step_by(BLOCK) {
            for row in row_block..(row_block + BLOCK).min(rows) {
                for column in column_block..(column_block + BLOCK).min(columns) {
                    out[column * rows + row] = values[row * columns + column];
                }
            }
        }
    }
    out
}

fn bytes_of_whole(values: impl IntoIterator<Item = i32>) -> Bytes {
    let bytes = values.into_iter().flat_map(i32::to_le_bytes);
    bytes.collect::<Vec<u8>>().into()
}

fn bytes_of(values: &[f32]) -> Bytes {
    if cfg!(target_endian = "little") {
        return Bytes::copy_from_slice(bytemuck::cast_slice(values));
    }
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect::<Vec<u8>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_is_its_own_inverse_and_moves_each_element() {
        let (rows, columns) = (37, 65);
        let values: Vec<f32> = (0..rows * columns).map(|n| n as f32).collect();
        let once = transposed(&values, rows, columns);
        assert_eq!(once[5 * rows + 36], values[36 * columns + 5]);
        assert_eq!(transposed(&once, columns, rows), values);
    }

    #[test]
    fn every_float_type_widens() {
        let half = f16::from_f32(-1.5).to_le_bytes();
        let brain = bf16::from_f32(-1.5).to_le_bytes();
        for (dtype, data) in [
            (SourceDType::F16, &half[..]),
            (SourceDType::BF16, &brain),
            (SourceDType::F32, &(-1.5f32).to_le_bytes()),
            (SourceDType::F64, &(-1.5f64).to_le_bytes()),
        ] {
            assert_eq!(widened("w", dtype, data).expect("float"), [-1.5]);
        }
        assert_eq!(widened("w", SourceDType::I8, &[0xfe]).expect("i8"), [-2.0]);
        let error = widened("w", SourceDType::U8, &[1]).expect_err("int");
        assert!(
            error.to_string().contains("U8 is not a float type"),
            "{error}"
        );
    }
}
