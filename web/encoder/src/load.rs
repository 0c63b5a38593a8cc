//! Reads the weights of a program one at a time into the form that the kernels need.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::pause::Pause;
use isovec_engine::tensor::DType;
use isovec_engine::weights::{Sink, WeightInfo};
use isovec_engine::{EngineError, Result};
use isovec_kernels::gemm::{
    Floats, Int8Kernel, Int8Weights, Kernel, Order, Packed, Packer, Pages, Stored,
};
use isovec_kernels::{Index, Lookup, Table, TableValues, embed};

use crate::constant::Constant;
use crate::error::Unlowered;
use crate::ledger::Ledger;
use crate::lent::lent;
use crate::lower::weight_constant;
use crate::node;
use crate::program::{Program, TakeWeights};
use crate::value::Weight;

/// Weights of at most this many bytes are known while the graph is read.
const SMALL: usize = 64 << 10;
/// So are lists, whatever their length: scales of tables, biases.
const SMALL_LIST: usize = 4 << 20;

/// Rows to look up, one after another.
#[derive(Debug)]
pub enum StoredTable {
    /// As they are.
    F32(Floats),
    /// The bits of IEEE 754 binary16.
    F16(Vec<u16>),
    /// Times a scale for every row.
    I8 {
        /// The values.
        values: Vec<i8>,
        /// One for every row.
        scales: Vec<f32>,
    },
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
    pub(crate) tables: Vec<StoredTable>,
}

impl StoredTable {
    pub(crate) fn table(&self, width: usize) -> Table<'_> {
        let values = match self {
            Self::F32(values) => TableValues::F32(values),
            Self::F16(values) => TableValues::F16(values),
            Self::I8 { values, scales } => TableValues::I8 { values, scales },
        };
        Table::new(values, width)
    }

    /// All rows in f32.
    pub(crate) fn floats(&self, width: usize) -> Cow<'_, [f32]> {
        let rows = match self {
            Self::F32(values) => return Cow::Borrowed(values),
            Self::F16(values) => values.len() / width,
            Self::I8 { scales, .. } => scales.len(),
        };
        let mut out = vec![0.0; rows * width];
        let ids: Vec<i64> = (0..rows as i64).collect();
        let lookup = Lookup {
            table: self.table(width),
            index: Index::Ids(&ids),
        };
        // Every row is there.
        let _ = embed(&[lookup], &[0, rows], 0..rows, None, &mut out);
        Cow::Owned(out)
    }
}

impl Weights {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let tables = self.tables.iter().map(|rows| match rows {
            StoredTable::F32(values) => size_of_val(&values[..]),
            StoredTable::F16(values) => size_of_val(&values[..]),
            StoredTable::I8 { values, scales } => values.len() + size_of_val(&scales[..]),
        });
        self.matrices.iter().map(Matrix::bytes).chain(tables).sum()
    }
}

/// Reads the weights that are small enough to be known while the graph is read, by their index.
pub(crate) async fn small(
    bundle: &ModelBundle,
    ledger: &Ledger,
) -> Result<HashMap<usize, Constant>> {
    let mut known = HashMap::new();
    for (index, info) in bundle.weights.weights().iter().enumerate() {
        let list = info.shape.iter().filter(|&&extent| extent != 1).count() <= 1;
        let limit = if list { SMALL_LIST } else { SMALL };
        if info.byte_len() <= limit {
            let bytes = read(bundle, index).await?;
            let constant = weight_constant(ledger, info.dtype, &info.shape, &bytes);
            if let Some(error) = ledger.refused() {
                return Err(error.clone());
            }
            known.insert(index, constant.map_err(|detail| wrong(info, detail))?);
        }
    }
    Ok(known)
}

/// The bytes of a weight as they are stored, where that is the other way round and everybody who reads it takes it so: all of it, and
/// as matrices.
async fn turned(
    bundle: &ModelBundle,
    needed: &Needed,
    index: usize,
    is_taken: bool,
) -> Result<Option<Bytes>> {
    let info = &bundle.weights.weights()[index];
    let is_all = |(_, weight): (usize, &Weight)| {
        weight.shape == info.shape && !weight.transposed && weight.scale.is_none()
    };
    let fits = needed.matrices_of(index).all(is_all) && needed.tables_of(index).next().is_none();
    let stored = match is_taken && fits {
        true => bundle.weights.turned(index),
        false => None,
    };
    let Some(stored) = stored else {
        return Ok(None);
    };
    let bytes = stored.await?;
    check_length(info, bytes.len())?;
    Ok(Some(bytes))
}

/// Reads a weight, and checks its length.
pub(crate) async fn read(bundle: &ModelBundle, index: usize) -> Result<Bytes> {
    let info = &bundle.weights.weights()[index];
    let bytes = bundle.weights.read(index).await?;
    check_length(info, bytes.len())?;
    Ok(bytes)
}

/// Reads a weight piece by piece into all of `readers`, and checks its length.
pub(crate) async fn read_pieces(
    bundle: &ModelBundle,
    index: usize,
    readers: &mut [(usize, TableReader<'_>)],
) -> Result<()> {
    struct All<'a, 'r>(&'a mut [(usize, TableReader<'r>)], usize);
    impl Sink for All<'_, '_> {
        fn take(&mut self, piece: &[u8]) -> Result<()> {
            self.1 += piece.len();
            self.0
                .iter_mut()
                .try_for_each(|(_, reader)| reader.take(piece))
        }
    }
    let mut all = All(readers, 0);
    bundle.weights.read_pieces(index, &mut all).await?;
    check_length(&bundle.weights.weights()[index], all.1)
}

fn check_length(info: &WeightInfo, came: usize) -> Result<()> {
    if came == info.byte_len() {
        return Ok(());
    }
    let expected = info.byte_len();
    Err(wrong(
        info,
        format!("{came} bytes came instead of {expected}"),
    ))
}

fn wrong(info: &WeightInfo, detail: String) -> EngineError {
    EngineError::Weight {
        name: info.name.clone(),
        detail,
    }
}

/// A matrix `[k, n]` as it is stored.
#[derive(Debug)]
pub enum StoredMatrix<'a> {
    /// One of the bundle's weights, or some rows of it.
    Weight {
        /// What is said of it.
        info: &'a WeightInfo,
        /// Which part of it is meant, and what it is multiplied by.
        weight: &'a Weight,
        /// All of its bytes.
        bytes: &'a [u8],
    },
    /// One of the graph's own, row-major.
    Constant {
        /// All of it.
        values: &'a [f32],
        /// The number of rows.
        rows: usize,
    },
}

/// A matrix's values, row-major `[k, n]`, in the smallest form that holds them exactly.
#[derive(Debug, Clone, PartialEq)]
pub enum Dense {
    /// As they are; also whole numbers, times their scale.
    F32(Vec<f32>),
    /// The bits of IEEE 754 binary16.
    F16(Vec<u16>),
}

/// Whether a matrix is one of whole numbers with a scale for each column.
fn is_int8(info: &WeightInfo, weight: &Weight) -> bool {
    info.dtype == DType::I8 && weight.scale.is_some()
}

/// The part of a weight's bytes that a matrix is made of.
struct Part<'a> {
    info: &'a WeightInfo,
    weight: &'a Weight,
    bytes: &'a [u8],
    k: usize,
    n: usize,
}

impl<'a> Part<'a> {
    fn new(info: &'a WeightInfo, weight: &'a Weight, bytes: &'a [u8]) -> Result<Self> {
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
        Ok(Self {
            info,
            weight,
            bytes,
            k,
            n,
        })
    }

    /// Columns of the matrix as it is stored.
    fn columns(&self) -> usize {
        if self.weight.transposed {
            self.k
        } else {
            self.n
        }
    }

    fn wrong(&self, error: &isovec_kernels::gemm::Mismatch) -> EngineError {
        wrong(self.info, error.to_string())
    }

    /// For a kernel: whole numbers with a scale for each column stay what they are, everything else
    /// becomes f32.
    fn pack(&self, kernels: Kernels, pages: &mut Pages) -> Result<Matrix> {
        let Self {
            info,
            weight,
            bytes,
            k,
            n,
        } = *self;
        if is_int8(info, weight)
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
                    .map_err(|error| self.wrong(&error))?;
            }
            return Ok(Matrix::Int8(packed));
        }
        let order = match weight.transposed {
            true => Order::Columns,
            false => Order::Rows,
        };
        let stored = self.stored_floats();
        let stored_as = stored.unwrap_or(Stored::F32);
        let mut packer = Packer::within(pages, kernels.f32, (k, n), order, stored_as)
            .map_err(|error| self.wrong(&error))?;
        if stored.is_some() {
            packer.push(bytes).map_err(|error| self.wrong(&error))?;
        } else {
            let mut row = Vec::with_capacity(self.columns() * size_of::<f32>());
            self.each_row(|values| {
                row.clear();
                row.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                packer.push(&row).map_err(|error| self.wrong(&error))
            })?;
        }
        packer
            .finish()
            .map(Matrix::F32)
            .map_err(|error| self.wrong(&error))
    }

    /// The type that it is stored in, if those are floats without a scale.
    fn stored_floats(&self) -> Option<Stored> {
        match (self.info.dtype, &self.weight.scale) {
            (DType::F32, None) => Some(Stored::F32),
            (DType::F16, None) => Some(Stored::F16),
            _ => None,
        }
    }

    /// The rows of whole numbers as they are stored, each value times its scale.
    fn each_row(&self, mut f: impl FnMut(&[f32]) -> Result<()>) -> Result<()> {
        let columns = self.columns();
        let mut row = Vec::with_capacity(columns);
        let whole = whole(self.info)?;
        for (number, bytes) in self.bytes.chunks_exact(columns.max(1)).enumerate() {
            row.clear();
            for (column, &byte) in bytes.iter().enumerate() {
                let scale = scale_of(self.weight, number + self.weight.first_row, column);
                row.push(whole(byte) * scale);
            }
            f(&row)?;
        }
        Ok(())
    }

    fn dense(&self) -> Result<Dense> {
        Ok(match self.stored_floats() {
            Some(Stored::F16) => {
                let words = self.bytes.as_chunks().0.iter();
                let values = words.map(|&word| u16::from_le_bytes(word)).collect();
                Dense::F16(self.row_major(values))
            }
            Some(_) => {
                let words = self.bytes.as_chunks().0.iter();
                let values = words.map(|&word| f32::from_le_bytes(word)).collect();
                Dense::F32(self.row_major(values))
            }
            None => {
                let mut values = Vec::with_capacity(self.k * self.n);
                self.each_row(|row| {
                    values.extend_from_slice(row);
                    Ok(())
                })?;
                Dense::F32(self.row_major(values))
            }
        })
    }

    fn row_major<T: Copy>(&self, values: Vec<T>) -> Vec<T> {
        if !self.weight.transposed {
            return values;
        }
        let row = |step: usize| values.iter().skip(step).step_by(self.k).copied();
        (0..self.k).flat_map(row).collect()
    }
}

impl StoredMatrix<'_> {
    /// Steps of a sum, and columns.
    pub fn extents(&self) -> [usize; 2] {
        match self {
            Self::Weight { weight, .. } => match weight.shape[..] {
                [k, n] => [k, n],
                _ => [0, 0],
            },
            Self::Constant { values, rows } => {
                [*rows, values.len().checked_div(*rows).unwrap_or(0)]
            }
        }
    }

    /// The values.
    ///
    /// # Errors
    /// [`EngineError::Weight`] for bytes that are no such matrix.
    pub fn dense(&self) -> Result<Dense> {
        match *self {
            Self::Weight {
                info,
                weight,
                bytes,
            } => Part::new(info, weight, bytes)?.dense(),
            Self::Constant { values, .. } => Ok(Dense::F32(values.to_vec())),
        }
    }

    fn pack(&self, kernels: Kernels, pages: &mut Pages) -> Result<Matrix> {
        match *self {
            Self::Weight {
                info,
                weight,
                bytes,
            } => Part::new(info, weight, bytes)?.pack(kernels, pages),
            Self::Constant { values, rows } => {
                let columns = values.len().checked_div(rows).unwrap_or(0);
                let packed = Packed::new(kernels.f32, (rows, columns), values, columns, 1);
                packed
                    .map(Matrix::F32)
                    .map_err(|error| EngineError::Weight {
                        name: "a matrix of the graph".into(),
                        detail: error.to_string(),
                    })
            }
        }
    }
}

/// Packs weights for the kernels of this machine.
#[derive(Debug)]
pub(crate) struct Packing {
    kernels: Kernels,
    pages: Pages,
    matrices: Vec<Option<Matrix>>,
    tables: Vec<Option<StoredTable>>,
}

impl Packing {
    pub(crate) fn new(kernels: Kernels, program: &Program, bundle: &ModelBundle) -> Self {
        let values = program.needed.floats(bundle, kernels.f32);
        let (matrices, tables) = program.weights();
        Self {
            kernels,
            pages: Pages::reserve(values),
            matrices: (0..matrices).map(|_| None).collect(),
            tables: (0..tables).map(|_| None).collect(),
        }
    }

    pub(crate) fn finish(self) -> Result<Weights, Unlowered> {
        fn all<T>(found: Vec<Option<T>>) -> Result<Vec<T>, Unlowered> {
            let missing = || Unlowered::Graph("a weight that nothing holds".into());
            let found = found.into_iter();
            found.map(|one| one.ok_or_else(missing)).collect()
        }
        Ok(Weights {
            matrices: all(self.matrices)?,
            tables: all(self.tables)?,
        })
    }
}

impl TakeWeights for Packing {
    fn matrix(&mut self, place: usize, matrix: &StoredMatrix<'_>) -> Result<()> {
        self.matrices[place] = Some(matrix.pack(self.kernels, &mut self.pages)?);
        Ok(())
    }

    fn table(&mut self, place: usize, table: StoredTable) -> Result<()> {
        self.tables[place] = Some(table);
        Ok(())
    }

    fn takes_turned(&self) -> bool {
        true
    }
}

/// Reads all weights that are needed, one at a time.
pub(crate) async fn read_all(
    bundle: &ModelBundle,
    needed: &Needed,
    taker: &mut dyn TakeWeights,
    cancel: &Cancel,
    pause: &mut dyn Pause,
) -> Result<()> {
    for (place, matrix) in needed.matrices.iter().enumerate() {
        if let node::Matrix::Constant { values, rows } = matrix {
            let rows = *rows;
            taker.matrix(place, &StoredMatrix::Constant { values, rows })?;
        }
    }
    for (place, table) in needed.tables.iter().enumerate() {
        if let node::Table::Constant(values) = table {
            taker.table(place, StoredTable::F32(values[..].into()))?;
        }
    }
    // In the source's order, each once, whatever it is for.
    for (index, info) in bundle.weights.weights().iter().enumerate() {
        if !needed.of(index) {
            continue;
        }
        let mut readers = Vec::new();
        for (place, weight) in needed.tables_of(index) {
            match lent(bundle, index, info, weight) {
                Some(table) => taker.table(place, table)?,
                None => readers.push((place, TableReader::new(info, weight)?)),
            }
        }
        if let Some(bytes) = turned(bundle, needed, index, taker.takes_turned()).await? {
            for (place, weight) in needed.matrices_of(index) {
                let weight = Weight {
                    transposed: !weight.transposed,
                    ..weight.clone()
                };
                let matrix = StoredMatrix::Weight {
                    info,
                    weight: &weight,
                    bytes: &bytes,
                };
                taker.matrix(place, &matrix)?;
            }
        } else if needed.matrices_of(index).next().is_some() {
            let bytes = read(bundle, index).await?;
            for (place, weight) in needed.matrices_of(index) {
                let matrix = StoredMatrix::Weight {
                    info,
                    weight,
                    bytes: &bytes,
                };
                taker.matrix(place, &matrix)?;
            }
            for (_, reader) in &mut readers {
                reader.take(&bytes)?;
            }
        } else if !readers.is_empty() {
            read_pieces(bundle, index, &mut readers).await?;
        }
        for (place, reader) in readers {
            taker.table(place, reader.finish()?)?;
        }
        pause.pause().await;
        cancel.check()?;
    }
    Ok(())
}

/// Whether matrices and tables can be read from what is stored with this type.
pub(crate) fn readable(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::I8 | DType::U8)
}

/// What makes a number of a stored byte.
fn whole(info: &WeightInfo) -> Result<fn(u8) -> f32> {
    match info.dtype {
        DType::I8 => Ok(|byte| f32::from(byte as i8)),
        DType::U8 => Ok(f32::from),
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

/// The type of the table that a weight becomes, its rows and its columns.
pub(crate) fn table_form(info: &WeightInfo, weight: &Weight) -> (DType, usize, usize) {
    let dtype = match (info.dtype, &weight.scale) {
        (DType::F16, None) => DType::F16,
        (DType::I8, Some((scale, axis))) if *axis == 0 || scale.values.len() == 1 => DType::I8,
        _ => DType::F32,
    };
    let (rows, columns) = weight.shape.split_first().map_or((0, 1), |(rows, rest)| {
        (*rows, rest.iter().product::<usize>())
    });
    (dtype, rows, columns)
}

/// Rows to look up, taken from a stored table as its bytes come, in the form in which they are
/// stored where rows can be looked up in that. The largest of a model's weights is such a table,
/// so it is never in memory twice.
#[derive(Debug)]
pub(crate) struct TableReader<'a> {
    info: &'a WeightInfo,
    weight: &'a Weight,
    width: usize,
    /// Bytes of the source that are still to come before the first row.
    before: usize,
    /// Bytes that are still to come after those.
    missing: usize,
    rows: StoredTable,
}

impl<'a> TableReader<'a> {
    pub(crate) fn new(info: &'a WeightInfo, weight: &'a Weight) -> Result<Self> {
        let count = weight.shape[0];
        let width: usize = weight.shape[1..].iter().product();
        let row_bytes = width.saturating_mul(info.dtype.size());
        let before = weight.first_row.saturating_mul(row_bytes);
        let missing = count.saturating_mul(row_bytes);
        if before.saturating_add(missing) > info.byte_len() {
            return Err(wrong(info, "it is shorter than its shape".into()));
        }
        let values = count * width;
        let rows = match (info.dtype, &weight.scale) {
            (DType::F32, None) => StoredTable::F32(Floats::with_room(values)),
            (DType::F16, None) => StoredTable::F16(Vec::with_capacity(values)),
            (DType::I8, Some((scale, axis))) if *axis == 0 || scale.values.len() == 1 => {
                StoredTable::I8 {
                    values: Vec::with_capacity(values),
                    scales: (0..count)
                        .map(|row| scale_of(weight, row + weight.first_row, 0))
                        .collect(),
                }
            }
            (DType::I8 | DType::U8, _) => StoredTable::F32(Floats::with_room(values)),
            (other, _) => return Err(wrong(info, format!("a table of {other}"))),
        };
        Ok(Self {
            info,
            weight,
            width,
            before,
            missing,
            rows,
        })
    }

    /// The table, when all bytes have come.
    pub(crate) fn finish(self) -> Result<StoredTable> {
        match self.missing {
            0 => Ok(self.rows),
            missing => Err(wrong(
                self.info,
                format!("its last {missing} bytes did not come"),
            )),
        }
    }
}

impl Sink for TableReader<'_> {
    fn take(&mut self, piece: &[u8]) -> Result<()> {
        let skipped = self.before.min(piece.len());
        self.before -= skipped;
        let rest = &piece[skipped..];
        let bytes = &rest[..self.missing.min(rest.len())];
        self.missing -= bytes.len();
        match (&mut self.rows, self.info.dtype) {
            (StoredTable::F32(values), DType::F32) => {
                let words = bytes.as_chunks().0.iter();
                values.extend(words.map(|&word| f32::from_le_bytes(word)));
            }
            (StoredTable::F32(values), _) => {
                let (first, whole) = (values.len(), whole(self.info)?);
                values.extend(bytes.iter().enumerate().map(|(at, &byte)| {
                    let (row, column) = ((first + at) / self.width, (first + at) % self.width);
                    let scale = scale_of(self.weight, row + self.weight.first_row, column);
                    whole(byte) * scale
                }));
            }
            (StoredTable::F16(values), _) => {
                let words = bytes.as_chunks().0.iter();
                values.extend(words.map(|&word| u16::from_le_bytes(word)));
            }
            (StoredTable::I8 { values, .. }, _) => {
                values.extend(bytes.iter().map(|&byte| byte as i8))
            }
        }
        Ok(())
    }
}

/// Which weights a program needs, and the place of each among its matrices or tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needed {
    pub(crate) matrices: Vec<node::Matrix>,
    pub(crate) tables: Vec<node::Table>,
    /// Their places by what tells most of them apart, so that none is compared with all others.
    by_sign: HashMap<u64, Vec<usize>>,
    /// Those that are made of an entry of the source: matrices, and tables.
    by_weight: HashMap<usize, [Vec<usize>; 2]>,
}

impl Needed {
    /// The place of a matrix; the same one twice is packed once.
    pub(crate) fn matrix(&mut self, matrix: &node::Matrix) -> usize {
        let (sign, index) = match matrix {
            node::Matrix::Weight(weight) => (sign_of(0, weight), Some(weight.index)),
            node::Matrix::Constant { values, rows } => (sign_of_floats(1, *rows, values), None),
        };
        let known = self.by_sign.entry(sign).or_default();
        let (at, new) = place(&mut self.matrices, known, matrix);
        if let Some(index) = index.filter(|_| new) {
            self.by_weight.entry(index).or_default()[0].push(at);
        }
        at
    }

    /// The place of a table.
    pub(crate) fn table(&mut self, table: &node::Table) -> usize {
        let (sign, index) = match table {
            node::Table::Weight(weight) => (sign_of(2, weight), Some(weight.index)),
            node::Table::Constant(values) => (sign_of_floats(3, 0, values), None),
        };
        let known = self.by_sign.entry(sign).or_default();
        let (at, new) = place(&mut self.tables, known, table);
        if let Some(index) = index.filter(|_| new) {
            self.by_weight.entry(index).or_default()[1].push(at);
        }
        at
    }

    /// Values of the matrices of the bundle that are multiplied as f32, as the kernel has them.
    fn floats(&self, bundle: &ModelBundle, kernel: &Kernel) -> usize {
        let floats = self.matrices.iter().filter_map(|matrix| match matrix {
            node::Matrix::Weight(weight)
                if !is_int8(bundle.weights.weights().get(weight.index)?, weight) =>
            {
                let [k, n] = weight.shape[..] else {
                    return None;
                };
                Packed::values_of(kernel, (k, n)).ok()
            }
            _ => None,
        });
        floats.fold(0, usize::saturating_add)
    }

    /// Numbers of the program itself that are copied where its weights are made ready.
    pub(crate) fn copied(&self) -> u64 {
        let matrices = self.matrices.iter().map(|matrix| match matrix {
            node::Matrix::Constant { values, .. } => values.len() as u64,
            node::Matrix::Weight(_) => 0,
        });
        let tables = self.tables.iter().map(|table| match table {
            node::Table::Constant(values) => values.len() as u64,
            node::Table::Weight(_) => 0,
        });
        matrices.chain(tables).sum()
    }

    /// The matrices that are made of a source's entry, with their places.
    pub(crate) fn matrices_of(&self, index: usize) -> impl Iterator<Item = (usize, &Weight)> {
        let places = self
            .by_weight
            .get(&index)
            .into_iter()
            .flat_map(|[own, _]| own);
        places.filter_map(|&at| match &self.matrices[at] {
            node::Matrix::Weight(weight) => Some((at, weight)),
            node::Matrix::Constant { .. } => None,
        })
    }

    /// The tables that are, with theirs.
    pub(crate) fn tables_of(&self, index: usize) -> impl Iterator<Item = (usize, &Weight)> {
        let places = self
            .by_weight
            .get(&index)
            .into_iter()
            .flat_map(|[_, own]| own);
        places.filter_map(|&at| match &self.tables[at] {
            node::Table::Weight(weight) => Some((at, weight)),
            node::Table::Constant(_) => None,
        })
    }

    /// Whether anything is.
    pub(crate) fn of(&self, index: usize) -> bool {
        self.matrices_of(index).next().is_some() || self.tables_of(index).next().is_some()
    }
}

/// A number that differs between most weights.
fn sign_of(what: u8, weight: &Weight) -> u64 {
    let mut hasher = DefaultHasher::new();
    (what, weight.index, weight.first_row, &weight.shape).hash(&mut hasher);
    hasher.finish()
}

/// A number that differs between most lists of numbers.
fn sign_of_floats(what: u8, rows: usize, values: &[f32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (what, rows, values.len()).hash(&mut hasher);
    for value in values {
        hasher.write_u32(value.to_bits());
    }
    hasher.finish()
}

/// The place of one among all, and whether it is new there; `known` are those that it may be equal to.
fn place<T: Clone + PartialEq>(all: &mut Vec<T>, known: &mut Vec<usize>, one: &T) -> (usize, bool) {
    if let Some(&at) = known.iter().find(|&&at| all[at] == *one) {
        return (at, false);
    }
    all.push(one.clone());
    known.push(all.len() - 1);
    (all.len() - 1, true)
}
