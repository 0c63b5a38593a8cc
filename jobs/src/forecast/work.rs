//! What the units of a file are made of, by the rules that real runs have.

use super::costs::Costs;
use crate::rows::{BYTES, ROWS};
use crate::spec::Spec;
use crate::unit::{Kind, Part};
use crate::{jsonl, output, parquet, plan};

/// What a unit takes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Work {
    pub(crate) rows: u64,
    /// Requests that read its input, and their bytes.
    pub(crate) reads: u64,
    pub(crate) bytes: u64,
    /// Texts that are computed until its end, with all tries.
    pub(crate) texts: u64,
    /// Seconds of waiting before retries.
    pub(crate) waits: f64,
    /// Files of output, and the rows in them.
    pub(crate) files: u64,
    pub(crate) written: u64,
    /// It has a side file.
    pub(crate) side: bool,
    /// It fails by a poisoned row.
    pub(crate) fails: bool,
}

/// The units of a file of so many rows, each with the rows of its chunks.
pub(crate) fn units(spec: &Spec, costs: &Costs, kind: Kind, rows: u64) -> Vec<(Work, Vec<u64>)> {
    let row = costs.input_row_bytes;
    let size = rows.saturating_mul(row);
    let most = ROWS.min(spec.unit_rows.get()) as u64;
    let (parts, groups) = match kind {
        Kind::JsonLines => (plan::ranges(size, spec.unit_bytes.get()), Vec::new()),
        Kind::Parquet => {
            let groups: Vec<u64> = chunks(rows, costs.group_rows).collect();
            (plan::groups(&groups, spec.unit_rows.get() as u64), groups)
        }
    };
    let units = parts.into_iter().map(|part| match part {
        Part::Bytes { start, end } => {
            // The lines that begin in the range.
            let lines = end.div_ceil(row) - start.div_ceil(row);
            let (mut reads, mut bytes) = (1, end - start.saturating_sub(1));
            if lines > 0 && end % row != 0 {
                let left = end.next_multiple_of(row).min(size) - end;
                let tails = left.div_ceil(jsonl::TAIL);
                reads += tails;
                bytes += (tails * jsonl::TAIL).min(size - end);
            }
            // Chunks end with the line that makes them large enough.
            let most = most.min((BYTES as u64).div_ceil(row));
            Work::of(spec, lines, reads, bytes, chunks(lines, most).collect())
        }
        Part::Groups { first, end, .. } => {
            let groups = &groups[first as usize..end as usize];
            let rows: u64 = groups.iter().sum();
            let columns = spec.keep.iter().filter(|name| **name != spec.text).count() as u64 + 1;
            let reads = 1 + columns * groups.len() as u64;
            let bytes = size.min(parquet::TAIL) + rows * row;
            let chunks = groups.iter().flat_map(|&rows| chunks(rows, most)).collect();
            Work::of(spec, rows, reads, bytes, chunks)
        }
    });
    units.collect()
}

/// So many rows in pieces of `most`.
fn chunks(rows: u64, most: u64) -> impl Iterator<Item = u64> {
    (0..rows.div_ceil(most)).map(move |piece| most.min(rows - piece * most))
}

impl Work {
    fn of(spec: &Spec, rows: u64, reads: u64, bytes: u64, chunks: Vec<u64>) -> (Self, Vec<u64>) {
        let (files, _) = files(&chunks, spec);
        let work = Self {
            rows,
            reads,
            bytes,
            texts: rows,
            files,
            written: rows,
            ..Self::default()
        };
        (work, chunks)
    }
}

/// Files that these chunks fill, and the rows in all but the last.
pub(crate) fn files(chunks: &[u64], spec: &Spec) -> (u64, u64) {
    let (mut full, mut stored, mut held) = (0, 0, 0);
    for &rows in chunks {
        if held > 0 && !output::has_room(held as usize, rows as usize, spec) {
            full += 1;
            stored += held;
            held = 0;
        }
        held += rows;
    }
    (full + u64::from(held > 0), stored)
}
