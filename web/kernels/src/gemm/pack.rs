//! The matrix B in the order in which tiles read it.
//!
//! Columns are cut into panels of the kernel's width; a panel holds, for every step of k, its
//! columns' values side by side. The last panel is filled up with zeros.

use half::{bf16, f16};

use super::buffer::Buffer;
use super::error::Mismatch;
use super::kernel::Kernel;
use super::pages::Pages;

/// A matrix `[k, n]`, packed.
#[derive(Clone, Default)]
pub struct Packed {
    k: usize,
    n: usize,
    panel: usize,
    values: Buffer,
}

impl Packed {
    /// Packs a matrix in memory: the value of row `i` and column `j` is
    /// `values[i * row_stride + j * column_stride]`.
    ///
    /// # Errors
    ///
    /// If the matrix does not lie within `values`, or is larger than memory.
    pub fn new(
        kernel: &Kernel,
        (k, n): (usize, usize),
        values: &[f32],
        row_stride: usize,
        column_stride: usize,
    ) -> Result<Self, Mismatch> {
        let mut packed = Self::default();
        packed.repack(kernel, (k, n), values, row_stride, column_stride)?;
        Ok(packed)
    }

    /// As [`Packed::new`], into the memory of this one, for operands that change in every run, such as the keys of
    /// attention.
    ///
    /// # Errors
    ///
    /// As for [`Packed::new`]; the old content is then lost or unchanged.
    pub fn repack(
        &mut self,
        kernel: &Kernel,
        (k, n): (usize, usize),
        values: &[f32],
        row_stride: usize,
        column_stride: usize,
    ) -> Result<(), Mismatch> {
        let last = match (k, n) {
            (0, _) | (_, 0) => Some(0),
            _ => (k - 1).checked_mul(row_stride).and_then(|row| {
                let column = (n - 1).checked_mul(column_stride)?;
                row.checked_add(column)?.checked_add(1)
            }),
        };
        if last.is_none_or(|last| last > values.len()) {
            return Err(Mismatch::new(format!(
                "a matrix [{k}, {n}] with strides {row_stride} and {column_stride} does not fit \
                 into {} values",
                values.len()
            )));
        }
        self.shape(kernel, k, n)?;
        let panel = self.panel;
        for (number, packed) in self
            .values
            .as_mut_slice()
            .chunks_exact_mut((k * panel).max(1))
            .enumerate()
        {
            let first = number * panel;
            let width = panel.min(n - first);
            let from = &values[(first * column_stride).min(values.len())..];
            if column_stride == 1 {
                for (row, step) in packed.chunks_exact_mut(panel).enumerate() {
                    let row = &from[row * row_stride..];
                    step[..width].copy_from_slice(&row[..width]);
                }
            } else {
                for column in 0..width {
                    let from = &from[column * column_stride..];
                    for (row, step) in packed.chunks_exact_mut(panel).enumerate() {
                        step[column] = from[row * row_stride];
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes a shape, all values 0.
    fn shape(&mut self, kernel: &Kernel, k: usize, n: usize) -> Result<(), Mismatch> {
        let len = Self::values_of(kernel, (k, n))?;
        self.values.reset(len);
        (self.k, self.n, self.panel) = (k, n, kernel.panel());
        Ok(())
    }

    /// Values of a packed matrix `[k, n]`, those that fill up its last panel included.
    ///
    /// # Errors
    ///
    /// If the matrix is larger than memory.
    pub fn values_of(kernel: &Kernel, (k, n): (usize, usize)) -> Result<usize, Mismatch> {
        let columns = n.div_ceil(kernel.panel()).checked_mul(kernel.panel());
        columns
            .and_then(|columns| columns.checked_mul(k))
            .filter(|len| *len <= isize::MAX as usize / size_of::<f32>() - 64)
            .ok_or_else(|| Mismatch::new(format!("a matrix [{k}, {n}] is larger than memory")))
    }

    /// Its rows: the steps of the sums.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// Its columns.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// Columns of a panel: that of the kernels that can use it.
    #[must_use]
    pub fn panel(&self) -> usize {
        self.panel
    }

    /// Bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(self.values.as_slice())
    }

    /// The panels, one after the other.
    pub(super) fn values(&self) -> &[f32] {
        self.values.as_slice()
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packed")
            .field("k", &self.k)
            .field("n", &self.n)
            .field("panel", &self.panel)
            .finish_non_exhaustive()
    }
}

/// How the values of a stored matrix follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `[k, n]`, row by row.
    Rows,
    /// `[n, k]`, row by row: the transposed matrix, as linear layers are stored.
    Columns,
}

/// The type of stored values, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// 4 bytes.
    F32,
    /// 2 bytes, IEEE 754 half precision.
    F16,
    /// 2 bytes, the upper half of an f32.
    Bf16,
}

impl Stored {
    /// Bytes of a value.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// The value that starts `bytes`.
    fn read(self, bytes: [u8; 4]) -> f32 {
        let [a, b, ..] = bytes;
        match self {
            Self::F32 => f32::from_le_bytes(bytes),
            Self::F16 => f16::from_le_bytes([a, b]).to_f32(),
            Self::Bf16 => bf16::from_le_bytes([a, b]).to_f32(),
        }
    }
}

/// Packs a stored matrix from its bytes as they come, in pieces of any length and alignment, so
/// that the matrix is never in memory twice.
#[derive(Debug)]
pub struct Packer {
    packed: Packed,
    order: Order,
    stored: Stored,
    /// Values taken so far.
    taken: usize,
    /// The first bytes of a value whose others have not come yet.
    begun: [u8; 4],
    begun_len: usize,
}

impl Packer {
    /// For a matrix of `k` rows and `n` columns, to be multiplied by `kernel`.
    ///
    /// # Errors
    ///
    /// If the matrix is larger than memory.
    pub fn new(
        kernel: &Kernel,
        (k, n): (usize, usize),
        order: Order,
        stored: Stored,
    ) -> Result<Self, Mismatch> {
        Self::within(&mut Pages::default(), kernel, (k, n), order, stored)
    }

    /// As [`Packer::new`], in these pages if they have room.
    ///
    /// # Errors
    ///
    /// As for [`Packer::new`].
    pub fn within(
        pages: &mut Pages,
        kernel: &Kernel,
        (k, n): (usize, usize),
        order: Order,
        stored: Stored,
    ) -> Result<Self, Mismatch> {
        let packed = Packed {
            k,
            n,
            panel: kernel.panel(),
            values: Buffer::zeros(Packed::values_of(kernel, (k, n))?, pages),
        };
        Ok(Self {
            packed,
            order,
            stored,
            taken: 0,
            begun: [0; 4],
            begun_len: 0,
        })
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// If there are more than the matrix has.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), Mismatch> {
        let size = self.stored.bytes();
        let missing = (self.packed.k * self.packed.n - self.taken) * size - self.begun_len;
        if bytes.len() > missing {
            return Err(Mismatch::new(format!(
                "a matrix [{}, {}] of {size} bytes a value got {} bytes more than it has",
                self.packed.k,
                self.packed.n,
                bytes.len() - missing
            )));
        }
        if self.begun_len > 0 {
            let (head, rest) = bytes.split_at(bytes.len().min(size - self.begun_len));
            self.begin(head);
            bytes = rest;
            if self.begun_len < size {
                return Ok(());
            }
            let whole = self.begun;
            self.begun_len = 0;
            self.take(&whole[..size]);
        }
        let is_whole = self.taken == 0 && bytes.len() == missing;
        if is_whole && self.order == Order::Columns && self.stored == Stored::F32 {
            self.take_columns(bytes.as_chunks().0);
            return Ok(());
        }
        let (whole, rest) = bytes.split_at(bytes.len() / size * size);
        self.take(whole);
        self.begin(rest);
        Ok(())
    }

    /// Keeps bytes of a value that is not complete.
    fn begin(&mut self, bytes: &[u8]) {
        self.begun[self.begun_len..self.begun_len + bytes.len()].copy_from_slice(bytes);
        self.begun_len += bytes.len();
    }

    /// Packs all columns, panel by panel, so many rows of it at a time that they stay in the nearest cache: a value's place is a
    /// panel's width from that of the next one of its column.
    fn take_columns(&mut self, columns: &[[u8; 4]]) {
        /// As many values of 4 bytes as a cache line holds.
        const ROWS: usize = 16;
        let (k, panel) = (self.packed.k, self.packed.panel);
        if k == 0 {
            return;
        }
        let panels = self
            .packed
            .values
            .as_mut_slice()
            .chunks_exact_mut(k * panel);
        for (packed, columns) in panels.zip(columns.chunks(k * panel)) {
            for (block, packed) in packed.chunks_mut(ROWS * panel).enumerate() {
                for (at, column) in columns.chunks_exact(k).enumerate() {
                    let values = &column[block * ROWS..];
                    for (step, value) in packed.chunks_exact_mut(panel).zip(values) {
                        step[at] = f32::from_le_bytes(*value);
                    }
                }
            }
        }
        self.taken = columns.len();
    }

    /// Packs whole values, which are known to fit.
    fn take(&mut self, bytes: &[u8]) {
        match self.stored {
            Stored::F32 => self.place(
                bytes
                    .chunks_exact(4)
                    .map(|b| Stored::F32.read([b[0], b[1], b[2], b[3]])),
            ),
            Stored::F16 => self.place(
                bytes
                    .chunks_exact(2)
                    .map(|b| Stored::F16.read([b[0], b[1], 0, 0])),
            ),
            Stored::Bf16 => self.place(
                bytes
                    .chunks_exact(2)
                    .map(|b| Stored::Bf16.read([b[0], b[1], 0, 0])),
            ),
        }
    }

    /// Puts values to their places, from the one after those taken.
    fn place(&mut self, mut values: impl ExactSizeIterator<Item = f32>) {
        let (k, n, panel) = (self.packed.k, self.packed.n, self.packed.panel);
        let packed = self.packed.values.as_mut_slice();
        while values.len() > 0 {
            // A run goes along a row within a panel, or along a column: its places lie one step
            // apart.
            let (place, step, room) = match self.order {
                Order::Rows => {
                    let (row, column) = (self.taken / n, self.taken % n);
                    let within = column % panel;
                    let place = column / panel * panel * k + row * panel + within;
                    (place, 1, (panel - within).min(n - column))
                }
                Order::Columns => {
                    let (column, row) = (self.taken / k, self.taken % k);
                    let place = column / panel * panel * k + row * panel + column % panel;
                    (place, panel, k - row)
                }
            };
            let run = room.min(values.len());
            for (to, value) in packed[place..]
                .iter_mut()
                .step_by(step)
                .zip(values.by_ref().take(run))
            {
                *to = value;
            }
            self.taken += run;
        }
    }

    /// The packed matrix, when all bytes have come.
    ///
    /// # Errors
    ///
    /// If some are missing.
    pub fn finish(self) -> Result<Packed, Mismatch> {
        let size = self.stored.bytes();
        let missing = (self.packed.k * self.packed.n - self.taken) * size - self.begun_len;
        if missing > 0 {
            return Err(Mismatch::new(format!(
                "a matrix [{}, {}] of {size} bytes a value lacks its last {missing} bytes",
                self.packed.k, self.packed.n
            )));
        }
        Ok(self.packed)
    }
}
