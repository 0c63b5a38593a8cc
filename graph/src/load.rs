//! The weights of a program, read one at a time into the form that the kernels want.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;
use isovec_engine::{EngineError, Result};
use isovec_kernels::gemm::{Int8Kernel, Int8Weights, Kernel, Order, Packed, Packer, Stored};
use isovec_kernels::{Table, TableValues};

use crate::constant::Constant;
use crate::lower::weight_constant;
use crate::node;
use crate::value::Weight;

/// Weights of at most this many bytes are known while the graph is read.
const SMALL: usize = 64 << 10;
/// So are lists, whatever their length: scales of tables, biases.
const SMALL_LIST: usize = 4 << 20;

/// Rows to look up.
#[derive(Debug)]
pub(crate) enum Rows {
    F32(Vec<f32>),
    F16(Vec<u16>),
    I8 { values: Vec<i8>, scales: Vec<f32> },
}

/// A product's weight in the form in which its kernel reads it.
#[derive(Debug)]
pub(crate) enum Matrix {
    F32(Packed),
    /// Whole numbers with a scale for each column, as they are stored.
    Int8(Int8Weights),
}

impl Matrix {
    /// Steps of a sum.
    pub(crate) fn k(&self) -> usize {
        match self {
            Self::F32(packed) => packed.k(),
            Self::Int8(weights) => weights.k(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::F32(packed) => packed.bytes(),
            Self::Int8(weights) => weights.bytes(),
        }
    }
}

/// The kernels that weights are packed for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernels {
    pub(crate) f32: &'static Kernel,
    pub(crate) int8: &'static Int8Kernel,
}

/// What the operators of a program read beside what they are given.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    pub(crate) matrices: Vec<Matrix>,
    pub(crate) tables: Vec<Rows>,
}

impl Rows {
    pub(crate) fn table(&self, width: usize) -> Table<'_> {
        let values = match self {
            Self::F32(values) => TableValues::F32(values),
            Self::F16(values) => TableValues::F16(values),
            Self::I8 { values, scales } => TableValues::I8 { values, scales },
        };
        Table::new(values, width)
    }
}

impl Weights {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let tables = self.tables.iter().map(|rows| match rows {
            Rows::F32(values) => size_of_val(&values[..]),
            Rows::F16(values) => size_of_val(&values[..]),
            Rows::I8 { values, scales } => values.len() + size_of_val(&scales[..]),
        });
        self.matrices.iter().map(Matrix::bytes).chain(tables).sum()
    }
}

/// Reads the weights that are small enough to be known while the graph is read, by their index.
pub(crate) async fn small(bundle: &ModelBundle) -> Result<HashMap<usize, Arc<Constant>>> {
    let mut known = HashMap::new();
    for (index, info) in bundle.weights.weights().iter().enumerate() {
        let list = info.shape.iter().filter(|&&extent| extent != 1).count() <= 1;
        let limit = if list { SMALL_LIST } else { SMALL };
        if info.byte_len() <= limit {
            let bytes = read(bundle, index).await?;
            let constant = weight_constant(info.dtype, &info.shape, &bytes)
                .map_err(|detail| wrong(info, detail))?;
            known.insert(index, Arc::new(constant));
        }
    }
    Ok(known)
}

/// Reads a weight, and checks its length.
pub(crate) async fn read(bundle: &ModelBundle, index: usize) -> Result<Bytes> {
    let info = &bundle.weights.weights()[index];
    let bytes = bundle.weights.read(index).await?;
    if bytes.len() == info.byte_len() {
        return Ok(bytes);
    }
    Err(wrong(
        info,
        format!("{} bytes came instead of {}", bytes.len(), info.byte_len()),
    ))
}

fn wrong(info: &WeightInfo, detail: String) -> EngineError {
    EngineError::Weight {
        name: info.name.clone(),
        detail,
    }
}

/// Packs a stored matrix for a kernel: whole numbers with a scale for each column stay what they
/// are, everything else becomes f32.
pub(crate) fn pack(
    kernels: Kernels,
    info: &WeightInfo,
    weight: &Weight,
    bytes: &[u8],
) -> Result<Matrix> {
    let [k, n] = weight.shape[..] else {
        return Err(wrong(
            info,
            format!("a matrix is wanted, not {:?}", weight.shape),
        ));
    };
    let (rows, columns) = if weight.transposed { (n, k) } else { (k, n) };
    let row_bytes = columns * info.dtype.size();
    let from = weight.first_row * row_bytes;
    let bytes = bytes
        .get(from..from + rows * row_bytes)
        .ok_or_else(|| wrong(info, "it is shorter than its shape".into()))?;
    let mismatch = |error: isovec_kernels::gemm::Mismatch| wrong(info, error.to_string());
    if info.dtype == DType::I8
        && weight.scale.is_some()
        // Refused where sums may overflow: such a matrix is multiplied as f32.
        && let Ok(mut packed) = Int8Weights::zeros(kernels.int8, (k, n))
    {
        let mut numbers = Vec::with_capacity(k);
        for column in 0..n {
            let number = |step: usize| match weight.transposed {
                true => bytes[column * k + step] as i8,
                false => bytes[step * n + column] as i8,
            };
            numbers.clear();
            numbers.extend((0..k).map(number));
            let scale = match weight.transposed {
                true => scale_of(weight, column + weight.first_row, 0),
                false => scale_of(weight, 0, column),
            };
            packed
                .set_quantised(column, &numbers, scale)
                .map_err(mismatch)?;
        }
        return Ok(Matrix::Int8(packed));
    }
    let order = match weight.transposed {
        true => Order::Columns,
        false => Order::Rows,
    };
    let stored = match (info.dtype, &weight.scale) {
        (DType::F32, None) => Some(Stored::F32),
        (DType::F16, None) => Some(Stored::F16),
        _ => None,
    };
    let mut packer =
        Packer::new(kernels.f32, (k, n), order, stored.unwrap_or(Stored::F32)).map_err(mismatch)?;
    if stored.is_some() {
        packer.push(bytes).map_err(mismatch)?;
        return packer.finish().map(Matrix::F32).map_err(mismatch);
    }
    let mut row = Vec::with_capacity(columns * size_of::<f32>());
    for (number, bytes) in bytes.chunks_exact(row_bytes.max(1)).enumerate() {
        row.clear();
        for (column, &byte) in bytes.iter().enumerate() {
            let value = whole(info, byte)? * scale_of(weight, number + weight.first_row, column);
            row.extend_from_slice(&value.to_le_bytes());
        }
        packer.push(&row).map_err(mismatch)?;
    }
    packer.finish().map(Matrix::F32).map_err(mismatch)
}

/// Whether matrices and tables can be read from what is stored with this type.
pub(crate) fn readable(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::I8 | DType::U8)
}

/// A stored byte as a number.
fn whole(info: &WeightInfo, byte: u8) -> Result<f32> {
    match info.dtype {
        DType::I8 => Ok(f32::from(byte as i8)),
        DType::U8 => Ok(f32::from(byte)),
        other => Err(wrong(info, format!("{other} is no type of weights"))),
    }
}

/// What a stored number is multiplied by.
fn scale_of(weight: &Weight, row: usize, column: usize) -> f32 {
    match &weight.scale {
        None => 1.0,
        Some((scale, _)) if scale.values.len() == 1 => scale.values[0] as f32,
        Some((scale, 0)) => scale.values[row] as f32,
        Some((scale, _)) => scale.values[column] as f32,
    }
}

/// A stored table, in the form in which it is stored where rows can be looked up in that.
pub(crate) fn table(info: &WeightInfo, weight: &Weight, bytes: &[u8]) -> Result<Rows> {
    let rows = weight.shape[0];
    let width: usize = weight.shape[1..].iter().product();
    let row_bytes = width * info.dtype.size();
    let from = weight.first_row * row_bytes;
    let bytes = bytes
        .get(from..from + rows * row_bytes)
        .ok_or_else(|| wrong(info, "it is shorter than its shape".into()))?;
    Ok(match (info.dtype, &weight.scale) {
        (DType::F32, None) => {
            let values = bytes.as_chunks().0.iter();
            Rows::F32(values.map(|&bytes| f32::from_le_bytes(bytes)).collect())
        }
        (DType::F16, None) => {
            let values = bytes.as_chunks().0.iter();
            Rows::F16(values.map(|&bytes| u16::from_le_bytes(bytes)).collect())
        }
        (DType::I8, Some((scale, axis))) if *axis == 0 || scale.values.len() == 1 => Rows::I8 {
            values: bytes.iter().map(|&byte| byte as i8).collect(),
            scales: (0..rows)
                .map(|row| scale_of(weight, row + weight.first_row, 0))
                .collect(),
        },
        (DType::I8 | DType::U8, _) => {
            let values = bytes.iter().enumerate().map(|(at, &byte)| {
                let (row, column) = (at / width + weight.first_row, at % width);
                Ok(whole(info, byte)? * scale_of(weight, row, column))
            });
            Rows::F32(values.collect::<Result<_>>()?)
        }
        (other, _) => return Err(wrong(info, format!("a table of {other}"))),
    })
}

/// A product's constant matrix, packed.
pub(crate) fn pack_constant(kernels: Kernels, values: &[f32], rows: usize) -> Result<Matrix> {
    let columns = values.len().checked_div(rows).unwrap_or(0);
    let packed = Packed::new(kernels.f32, (rows, columns), values, columns, 1);
    packed
        .map(Matrix::F32)
        .map_err(|error| EngineError::Weight {
            name: "a matrix of the graph".into(),
            detail: error.to_string(),
        })
}

/// Which weights a program reads, the place of each among its matrices or tables.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) matrices: Vec<node::Matrix>,
    pub(crate) tables: Vec<node::Table>,
}

impl Wanted {
    /// The place of a matrix; the same one twice is packed once.
    pub(crate) fn matrix(&mut self, matrix: &node::Matrix) -> usize {
        place(&mut self.matrices, matrix)
    }

    /// The place of a table.
    pub(crate) fn table(&mut self, table: &node::Table) -> usize {
        place(&mut self.tables, table)
    }

    /// The place's weights of a source's entry.
    pub(crate) fn of(&self, index: usize) -> bool {
        let is = |weight: &Weight| weight.index == index;
        self.matrices
            .iter()
            .any(|m| matches!(m, node::Matrix::Weight(w) if is(w)))
            || self
                .tables
                .iter()
                .any(|t| matches!(t, node::Table::Weight(w) if is(w)))
    }
}

fn place<T: Clone + PartialEq>(all: &mut Vec<T>, one: &T) -> usize {
    match all.iter().position(|known| known == one) {
        Some(at) => at,
        None => {
            all.push(one.clone());
            all.len() - 1
        }
    }
}
