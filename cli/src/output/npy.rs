//! NumPy's format, version 1: float32, `[n, dim]`
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};

use isovec::Embeddings;

use super::Sink;
use crate::error::{CliError, Result};
use crate::input::Row;

/// The header is padded to this, which leaves room for any number of rows.
const HEADER_BYTES: usize = 128;

/// Writes rows as they come; the header's count is set at the end.
pub(super) struct Npy {
    file: BufWriter<File>,
    name: String,
    dim: usize,
    rows: usize,
}

impl Npy {
    pub(super) fn new(file: File, name: String, dim: usize) -> Result<Self> {
        let mut npy = Self {
            file: BufWriter::with_capacity(1 << 16, file),
            name,
            dim,
            rows: 0,
        };
        npy.file
            .write_all(&header(0, dim))
            .map_err(CliError::io(&npy.name))?;
        Ok(npy)
    }
}

impl Sink for Npy {
    fn write(&mut self, _rows: Vec<Row>, embeddings: Embeddings) -> Result<()> {
        for value in embeddings.as_slice() {
            self.file
                .write_all(&value.to_le_bytes())
                .map_err(CliError::io(&self.name))?;
        }
        self.rows += embeddings.len();
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let header = header(self.rows, self.dim);
        let close = |file: &mut BufWriter<File>| {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header)?;
            file.flush()
        };
        close(&mut self.file).map_err(CliError::io(self.name))
    }
}

fn header(rows: usize, dim: usize) -> Vec<u8> {
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(((HEADER_BYTES - 10) as u16).to_le_bytes());
    header.extend(
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}").bytes(),
    );
    header.resize(HEADER_BYTES - 1, b' ');
    header.push(b'\n');
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_room_for_any_shape() {
        for (rows, dim) in [(0, 1), (usize::MAX, usize::MAX)] {
            let header = header(rows, dim);
            assert_eq!(header.len(), HEADER_BYTES);
            assert!(header.ends_with(b"\n") && String::from_utf8_lossy(&header).contains("), }"));
        }
    }
}
