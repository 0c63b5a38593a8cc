//! A model whose matrices are stored in 4 bits a value on average, for a download of a seventh of the bytes, and computed as f32.
//!
//! 1. [`FewBits::of`] finds the matrices of products and the tables that are looked up, and gives each 3 to 6 bits (`allocate.rs`).
//! 2. With texts, [`FewBits::alone`] is the model with one of them in 4 bits; the caller compares its vectors with the original's, and
//!    hands the differences to [`FewBits::weigh`], which gives the bits anew.
//! 3. With texts, [`FewBits::sweeps`] are models that give the inputs of products; the caller runs each on the texts, one at a time,
//!    and hands what [`Moments`] add to [`FewBits::settle`], which rounds for those inputs (`feedback.rs`).
//! 4. [`FewBits::finish`] rounds what was not settled, and writes the nodes.
//!
//! A matrix is stored as [`BlockTensor`] has it, along the axis that products sum over; a table along its rows. Standard operators of
//! ONNX make the f32 matrix of that, so every runtime reads the file:
//!
//! `Reshape((n - zero) · Cast(scales))`, with `n = Σ Cast(Reshape((bytes << lefts) >> right)) · 2^lowest` over the planes
//!
//! A large table is a `Concat` of three such: its first rows, which are looked up most, have more bits.
//!
//! isovec expands the matrices when a model is loaded ([`widened`](isovec_model::precision::widened)), and ONNX Runtime when it folds
//! constants.

mod allocate;
mod feedback;
mod moments;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::GraphProto;
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightsIdentity;
use isovec_model::precision::{BLOCK, BlockTensor, dequantize_blocks, floats, quantize_blocks};
use serde::Serialize;

use self::allocate::{FEWEST, MEASURED, MOST, Taker, allocate};
use self::write::Writing;
use crate::error::{OptimizeError, Result};
use crate::history;
use crate::int8::{Products, check};
use crate::measure::{check_changes, mse, sqnr};
use crate::source::{Form, Reformed};
use crate::sweeps::{Input, in_sweeps};

pub use self::feedback::quantize_for;
pub use self::moments::Moments;
pub use crate::sweeps::Sweep;

/// Matrices of fewer bytes stay as they are.
const LEAST: usize = 4096;

/// Matrices below this many decibels in 4 bits stay as they are: noise of a twentieth of the signal's power. A matrix of normal
/// values has 20.
pub const LEAST_SQNR: f64 = 13.0;

/// A table of fewer rows has the same bits in all of them.
const LEAST_SPLIT: usize = 4096;

/// Bits of a value on average, scales not counted, unless others are asked for.
pub const AVERAGE: u8 = 4;

/// What became of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Matrix {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: usize,
    /// The bits of its values, without the scales: of all rows, or of the first ones, the next and the last. Empty: it stays as it was.
    pub parts: Vec<Part>,
    /// The ratio of its signal to the noise of its bits, in decibels; of one that stays, to that of 4 bits. `None`: it cannot be cut
    /// into blocks.
    pub sqnr: Option<f64>,
    /// The mean squared error of its values, as of [`sqnr`](Self::sqnr).
    pub mse: Option<f64>,
    /// For each of its parts the mean cosine of the texts' vectors with that part alone in 4 bits; empty without texts.
    pub alone: Vec<f64>,
    /// Whether it was rounded for the inputs that it has with the texts.
    pub for_texts: bool,
}

/// Rows of a matrix that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Part {
    /// How many they are.
    pub rows: usize,
    /// Bits of each of their values.
    pub bits: u8,
}

impl Matrix {
    /// Bits of a value on average; `None`: it stays as it was.
    pub fn bits(&self) -> Option<f64> {
        let rows: usize = self.parts.iter().map(|part| part.rows).sum();
        let bits = self
            .parts
            .iter()
            .map(|part| part.rows * usize::from(part.bits));
        (rows > 0).then(|| bits.sum::<usize>() as f64 / rows as f64)
    }
}

/// A model whose matrices get few bits.
#[derive(Debug)]
pub struct FewBits<'b> {
    bundle: &'b ModelBundle,
    matrices: Vec<Planned>,
    /// The inputs of products, each with the places of its matrices in `matrices`.
    inputs: Vec<Input>,
    /// The parts of all matrices, in their order.
    takers: Vec<Taker>,
    average: f64,
}

/// What becomes of a matrix.
#[derive(Debug)]
struct Planned {
    /// The index of its weight.
    weight: usize,
    axis: usize,
    told: Matrix,
    /// Of each part, once it is settled.
    tensors: Vec<BlockTensor>,
}

impl<'b> FewBits<'b> {
    /// The matrices of a model, with their bits: so many a value on average, scales not counted, 3 to 6. Those that are not read by a
    /// product or a lookup, those whose extent is no multiple of 64, and those that would lose too much stay as they are.
    ///
    /// # Errors
    /// [`OptimizeError::Unsuitable`] for a model that is quantised already, whose operator set is too old, or that has no such matrix;
    /// [`OptimizeError::Size`] for an average that is not in 3 to 6; those of reading weights.
    pub async fn of(bundle: &'b ModelBundle, average: f64, cancel: &Cancel) -> Result<Self> {
        check(bundle)?;
        if !(f64::from(FEWEST)..=f64::from(MOST)).contains(&average) {
            return Err(OptimizeError::Size {
                what: "the number of bits of a value on average",
                asked: average.to_string(),
                allowed: format!("{FEWEST} to {MOST}"),
            });
        }
        let empty = GraphProto::default();
        let graph = bundle.graph.graph.as_ref().unwrap_or(&empty);
        let axes = block_axes(graph);
        let (mut matrices, mut takers) = (Vec::new(), Vec::new());
        for (index, info) in bundle.weights.weights().iter().enumerate() {
            cancel.check().map_err(OptimizeError::from)?;
            let read = axes.get(info.name.as_str()).copied();
            let matrix =
                info.dtype == DType::F32 && info.shape.len() == 2 && info.byte_len() >= LEAST;
            let Some(Read { axis, table }) = read.filter(|_| matrix) else {
                continue;
            };
            let mut told = Matrix {
                name: info.name.clone(),
                values: info.elements(),
                parts: Vec::new(),
                sqnr: None,
                mse: None,
                alone: Vec::new(),
                for_texts: false,
            };
            if info.shape[axis] % BLOCK == 0 {
                let values = floats(&bundle.weights, index).await?;
                let tensor = quantize_blocks(&values, &info.shape, axis, MEASURED)?;
                let rounded = dequantize_blocks(&tensor)?;
                let ratio = sqnr(&values, &rounded);
                (told.sqnr, told.mse) = (Some(ratio), Some(mse(&values, &rounded)));
                if ratio >= LEAST_SQNR {
                    let noise = 10f64.powf(-ratio / 10.0);
                    let (rows, columns) = (info.shape[0], info.shape[1]);
                    for (rows, share) in if table {
                        by_use(rows)
                    } else {
                        vec![(rows, 1.0)]
                    } {
                        told.parts.push(Part { rows, bits: 0 });
                        takers.push(Taker {
                            values: rows * columns,
                            noise: noise * share,
                        });
                    }
                }
            }
            matrices.push(Planned {
                weight: index,
                axis,
                told,
                tensors: Vec::new(),
            });
        }
        if takers.is_empty() {
            return Err(OptimizeError::Unsuitable {
                origin: bundle.origin.clone(),
                reason: format!(
                    "none of its matrices has a multiple of {BLOCK} rows and keeps {LEAST_SQNR} dB of signal to noise in 4 bits"
                ),
                hint: "Store its weights in int8 (`--dtype int8`)".into(),
            });
        }
        let inputs = inputs(bundle, &matrices)?;
        let mut made = Self {
            bundle,
            matrices,
            inputs,
            takers,
            average,
        };
        made.give();
        Ok(made)
    }

    /// Gives each part its bits.
    fn give(&mut self) {
        let matrices = self.matrices.iter_mut();
        let parts = matrices.flat_map(|matrix| &mut matrix.told.parts);
        for (part, bits) in parts.zip(allocate(&self.takers, self.average)) {
            part.bits = bits;
        }
    }

    /// How many parts get bits of their own: matrices, and the parts of large tables.
    pub fn parts(&self) -> usize {
        self.takers.len()
    }

    /// The model with this part alone in 4 bits, each of its values the nearest, as f32.
    ///
    /// # Errors
    /// [`OptimizeError::Size`] for a part that is not there; those of reading weights.
    pub async fn alone(&self, part: usize) -> Result<ModelBundle> {
        let places = self.matrices.iter().flat_map(|matrix| {
            let ends = matrix.told.parts.iter().scan(0, |end, part| {
                let start = *end;
                *end += part.rows;
                Some(start..*end)
            });
            ends.map(move |rows| (matrix, rows))
        });
        let Some((matrix, rows)) = places.into_iter().nth(part) else {
            return Err(OptimizeError::Size {
                what: "the number of a part",
                asked: part.to_string(),
                allowed: format!("below {}", self.parts()),
            });
        };
        let infos = self.bundle.weights.weights();
        let columns = infos[matrix.weight].shape[1];
        let mut values = floats(&self.bundle.weights, matrix.weight).await?;
        let own = &mut values[rows.start * columns..rows.end * columns];
        let tensor = quantize_blocks(own, &[rows.len(), columns], matrix.axis, MEASURED)?;
        own.copy_from_slice(&dequantize_blocks(&tensor)?);
        let mut forms: Vec<Form> = (0..infos.len()).map(Form::Same).collect();
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        forms[matrix.weight] = Form::Bytes(bytes.collect::<Vec<u8>>().into());
        Ok(ModelBundle {
            weights: Arc::new(Reformed {
                source: self.bundle.weights.clone(),
                infos: infos.to_vec(),
                forms,
            }),
            identity: WeightsIdentity(format!("{} part {part}", self.bundle.identity.0)),
            ..self.bundle.clone()
        })
    }

    /// Gives the bits anew, by what each part does to the model's vectors: `changes` has their mean squared change with
    /// [`alone`](Self::alone) of each. It counts instead of the noise of the matrix. Where no part changes any, the noise stays.
    ///
    /// # Errors
    /// [`OptimizeError::Size`] for changes of another number; [`OptimizeError::NotFinite`].
    pub fn weigh(&mut self, changes: &[f64]) -> Result<()> {
        check_changes(changes, self.parts(), "a vector, with a matrix in 4 bits,")?;
        let mut cosines = changes.iter().map(|change| 1.0 - change / 2.0);
        for matrix in &mut self.matrices {
            let parts = matrix.told.parts.len();
            matrix.told.alone = cosines.by_ref().take(parts).collect();
        }
        if changes.iter().any(|&change| change > 0.0) {
            let each = self.takers.iter_mut().zip(changes);
            each.for_each(|(taker, &change)| taker.noise = change);
            self.give();
        }
        Ok(())
    }

    /// The inputs of products in sweeps over the texts, each with moments of at most 128 MB, or of one input.
    pub fn sweeps(&self) -> Vec<Sweep> {
        in_sweeps(&self.inputs)
    }

    /// Rounds the matrices of a sweep for the inputs that were seen, `moments` in the order of [`Sweep::inputs`].
    ///
    /// # Errors
    /// Those of [`quantize_for`], and of reading weights.
    pub async fn settle(
        &mut self,
        sweep: Sweep,
        moments: Vec<Moments>,
        cancel: &Cancel,
    ) -> Result<()> {
        for (input, moments) in sweep.inputs.iter().zip(moments) {
            for &place in &input.matrices {
                cancel.check().map_err(OptimizeError::from)?;
                let matrix = &mut self.matrices[place];
                let &[Part { bits, .. }] = matrix.told.parts.as_slice() else {
                    continue;
                };
                let info = &self.bundle.weights.weights()[matrix.weight];
                let values = floats(&self.bundle.weights, matrix.weight).await?;
                let tensor = quantize_for(&values, info.shape[1], &moments, bits)?;
                matrix.settled(vec![tensor], &values)?;
                matrix.told.for_texts = true;
            }
        }
        Ok(())
    }

    /// The same model in few bits, and what became of each matrix. The identity is a new one, because vectors are others.
    ///
    /// # Errors
    /// Those of reading weights.
    pub async fn finish(mut self, cancel: &Cancel) -> Result<(ModelBundle, Vec<Matrix>)> {
        let empty = GraphProto::default();
        let graph = self.bundle.graph.graph.as_ref().unwrap_or(&empty);
        let mut writing = Writing::new(self.bundle, graph);
        for matrix in &mut self.matrices {
            cancel.check().map_err(OptimizeError::from)?;
            let info = &self.bundle.weights.weights()[matrix.weight];
            if matrix.told.parts.is_empty() {
                continue;
            }
            if matrix.tensors.is_empty() {
                let values = floats(&self.bundle.weights, matrix.weight).await?;
                let (mut rest, mut tensors) = (values.as_slice(), Vec::new());
                for &Part { rows, bits } in &matrix.told.parts {
                    let (own, behind) = rest.split_at(rows * info.shape[1]);
                    let shape = [rows, info.shape[1]];
                    tensors.push(quantize_blocks(own, &shape, matrix.axis, bits)?);
                    rest = behind;
                }
                matrix.settled(tensors, &values)?;
            }
            writing.matrix(matrix.weight, &info.name, &matrix.tensors);
            matrix.tensors.clear();
        }
        let told: Vec<Matrix> = self
            .matrices
            .into_iter()
            .map(|matrix| matrix.told)
            .collect();
        let count = told
            .iter()
            .filter(|matrix| !matrix.parts.is_empty())
            .count();
        let step = format!("int4: {count} of {} matrices and tables", told.len());
        Ok((
            history::noted(writing.finish(), &self.bundle.identity.0, step),
            told,
        ))
    }
}

impl Planned {
    fn settled(&mut self, tensors: Vec<BlockTensor>, values: &[f32]) -> Result<()> {
        let mut found = Vec::with_capacity(values.len());
        for tensor in &tensors {
            found.extend(dequantize_blocks(tensor)?);
        }
        self.told.sqnr = Some(sqnr(values, &found));
        self.told.mse = Some(mse(values, &found));
        self.tensors = tensors;
        Ok(())
    }
}

/// The same model with its matrices and tables in 4 bits on average, by their values alone, and what became of each.
///
/// # Errors
/// Those of [`FewBits::of`] and [`FewBits::finish`].
pub async fn in_four_bits(
    bundle: &ModelBundle,
    cancel: &Cancel,
) -> Result<(ModelBundle, Vec<Matrix>)> {
    let bits = FewBits::of(bundle, f64::from(AVERAGE), cancel).await?;
    bits.finish(cancel).await
}

/// The inputs of products whose matrices get few bits. A matrix that several products read has no single input.
fn inputs(bundle: &ModelBundle, matrices: &[Planned]) -> Result<Vec<Input>> {
    let places: BTreeMap<usize, usize> = (0..)
        .zip(matrices)
        .filter(|(_, matrix)| matrix.told.parts.len() == 1 && matrix.axis == 0)
        .map(|(place, matrix)| (matrix.weight, place))
        .collect();
    let products = match Products::of(bundle) {
        // A model of tables alone has none.
        Err(OptimizeError::Unsuitable { .. }) => return Ok(Vec::new()),
        products => products?,
    };
    let inputs = products.inputs().map(|(name, width, weights)| Input {
        name: name.to_owned(),
        width,
        matrices: weights
            .filter_map(|weight| places.get(&weight).copied())
            .collect(),
    });
    Ok(inputs.filter(|input| !input.matrices.is_empty()).collect())
}

/// How a weight is read.
#[derive(Debug, Clone, Copy)]
struct Read {
    /// The axis of its blocks.
    axis: usize,
    /// Whether rows of it are looked up.
    table: bool,
}

/// How every weight is read that a product or a lookup reads, by its name.
fn block_axes(graph: &GraphProto) -> BTreeMap<&str, Read> {
    let mut axes = BTreeMap::new();
    for node in graph
        .node
        .iter()
        .filter(|node| default_domain(&node.domain).is_empty())
    {
        let number = |name: &str| node.int(name).unwrap_or(0);
        let (input, axis) = match node.op_type.as_str() {
            "MatMul" => (1, 0),
            "Gemm" if number("transB") == 0 => (1, 0),
            "Gemm" => (1, 1),
            "Gather" if number("axis") == 0 => (0, 1),
            _ => continue,
        };
        if let Some(name) = node.input.get(input) {
            let table = node.op_type == "Gather";
            axes.entry(name.as_str()).or_insert(Read { axis, table });
        }
    }
    axes
}

/// The rows of a table in parts, with the share of lookups that each has.
///
/// Vocabularies are made with frequent tokens first, and the token of rank `r` is used `1 / r` as often as the first (G. K. Zipf, "Human
/// Behavior and the Principle of Least Effort", 1949). The first `n` of `rows` have a share of `H(n) / H(rows)`, with `H(n)` about
/// `ln(n) + 0.5772`. A table of few rows is one part.
fn by_use(rows: usize) -> Vec<(usize, f64)> {
    if rows < LEAST_SPLIT {
        return vec![(rows, 1.0)];
    }
    let harmonic = |n: usize| (n as f64).ln() + 0.577_215_664_9;
    let ends = [rows / 8, rows / 4, rows];
    let (mut parts, mut first, mut before) = (Vec::new(), 0, 0.0);
    for end in ends {
        let share = harmonic(end) / harmonic(rows);
        parts.push((end - first, share - before));
        (first, before) = (end, share);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_of_a_table_are_used_most() {
        let parts = by_use(30_522);
        let rows: Vec<usize> = parts.iter().map(|(rows, _)| *rows).collect();
        assert_eq!(rows, [3815, 3815, 22_892]);
        // The harmonic numbers summed as they are defined.
        let harmonic = |n: usize| (1..=n).map(|rank| 1.0 / rank as f64).sum::<f64>();
        let mut end = 0;
        let mut told = 0.0;
        for (rows, share) in parts {
            end += rows;
            told += share;
            let wanted = harmonic(end) / harmonic(30_522);
            assert!((told - wanted).abs() < 1e-4, "{end}: {told} {wanted}");
        }
        assert_eq!(by_use(LEAST_SPLIT - 1), [(LEAST_SPLIT - 1, 1.0)]);
    }
}
