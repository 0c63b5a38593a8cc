//! NumPy's format, version 1: float32, `[n, dim]`
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};

use isovec::Embedded;

use super::Sink;
use crate::error::{CliError, Result};
use crate::input::Row;

/// The header is padded to this, which leaves room for any number of rows.
const HEADER_BYTES: usize = 128;

/// Writes rows as they come, and sets the header's count when they are handed over.
pub(super) struct Npy {
    file: BufWriter<File>,
    name: String,
    dim: usize,
    rows: u64,
}

impl Npy {
    /// Goes on after `rows` rows, which the file holds and is at the end of; after none, the file
    /// is empty.
    pub(super) fn new(file: File, name: String, dim: usize, rows: u64) -> Result<Self> {
        let mut npy = Self {
            file: BufWriter::with_capacity(1 << 16, file),
            name,
            dim,
            rows,
        };
        if rows == 0 {
            npy.file
                .write_all(&header(0, dim))
                .map_err(CliError::io(&npy.name))?;
        }
        Ok(npy)
    }
}

impl Sink<Embedded> for Npy {
    fn write(&mut self, _row: Row, embedded: Embedded) -> Result<()> {
        for value in embedded.vector {
            self.file
                .write_all(&value.to_le_bytes())
                .map_err(CliError::io(&self.name))?;
        }
        self.rows += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let header = header(self.rows, self.dim);
        let flush = |file: &mut BufWriter<File>| {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header)?;
            file.seek(SeekFrom::End(0))?;
            file.flush()
        };
        flush(&mut self.file).map_err(CliError::io(&self.name))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}

fn header(rows: u64, dim: usize) -> Vec<u8> {
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
        for (rows, dim) in [(0, 1), (u64::MAX, usize::MAX)] {
            let header = header(rows, dim);
            assert_eq!(header.len(), HEADER_BYTES);
            assert!(header.ends_with(b"\n") && String::from_utf8_lossy(&header).contains("), }"));
        }
    }
}
