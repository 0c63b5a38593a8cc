//! An input of so many texts: its files, and its units with poisoned texts among them.

use super::costs::Costs;
use super::poison::Poison;
use super::work::{Work, units};
use crate::error::{Error, Result};
use crate::parquet;
use crate::rows::ROWS;
use crate::spec::Spec;
use crate::unit::Kind;

/// Units that are held at the same time.
const UNITS: usize = 2_000_000;
/// Files, units or chunks of an input.
const PIECES: u64 = 20_000_000;

/// An input that is none yet.
pub(crate) struct Input {
    pub(crate) files: u64,
    /// Whether a run notes the row groups of every file.
    pub(crate) has_row_groups: bool,
    /// Bytes that are read to learn the row groups of all files.
    pub(crate) footers: u64,
    pub(crate) units: Vec<Work>,
}

/// Cuts an input of so many texts into units.
pub(crate) fn input(spec: &Spec, costs: &Costs, texts: u64, seed: u64) -> Result<Input> {
    let kind = Kind::of(&spec.input).ok_or_else(|| {
        Error::Spec(format!(
            "the input {:?} does not end with .jsonl, .ndjson or .parquet, and so does not say what its files hold",
            spec.input
        ))
    })?;
    let file_rows = costs.file_rows;
    let files = texts.div_ceil(file_rows);
    let chunk = ROWS.min(spec.unit_rows.get()) as u64;
    let cuts = match kind {
        Kind::JsonLines => texts.saturating_mul(costs.input_row_bytes) / spec.unit_bytes,
        Kind::Parquet => texts / costs.group_rows,
    };
    let pieces = cuts.max(files).max(texts / chunk);
    if pieces > PIECES {
        return Err(Error::Costs(format!(
            "{texts} texts make {pieces} files, units or chunks, which are too many to simulate; take fewer texts, or larger units"
        )));
    }
    let whole = units(spec, costs, kind, file_rows.min(texts));
    let last_rows = texts - (files - 1) * file_rows;
    let last = units(spec, costs, kind, last_rows);
    let count = (files - 1).saturating_mul(whole.len() as u64);
    if count.saturating_add(last.len() as u64) > UNITS as u64 {
        return Err(Error::Costs(format!(
            "{texts} texts make more than {UNITS} units, which are too many to simulate; take fewer texts, or larger units"
        )));
    }
    let poison = Poison::new(spec, costs, seed);
    let mut all = Vec::new();
    for _ in 1..files {
        all.extend(whole.iter().cloned());
    }
    all.extend(last);
    poison.spoil(spec, &mut all)?;
    let footer = |rows: u64| {
        rows.saturating_mul(costs.input_row_bytes)
            .min(parquet::TAIL)
    };
    let has_row_groups = kind == Kind::Parquet;
    let footers = match has_row_groups {
        true => (files - 1) * footer(file_rows) + footer(last_rows),
        false => 0,
    };
    let units = all.into_iter().map(|(work, _)| work).collect();
    Ok(Input {
        files,
        has_row_groups,
        footers,
        units,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(kind: &str, spec: &str, costs: &str, texts: u64) -> Vec<Work> {
        let spec = format!("input = 'in/*.{kind}'\noutput = 'out'\nretry_wait = '1s'\n{spec}");
        let costs = Costs::read(None, &["texts_per_second = 1", costs]).unwrap();
        let input = input(&Spec::parse(&spec).unwrap(), &costs, texts, 7).unwrap();
        assert_eq!(input.units.iter().map(|unit| unit.rows).sum::<u64>(), texts);
        input.units
    }

    #[test]
    fn a_line_belongs_to_the_unit_in_which_it_begins() {
        // Four lines of 10 bytes: from byte 0, 10, 20 and 30.
        let units = made("jsonl", "unit_bytes = 11", "input_row_bytes = 10", 4);
        let of = |read: fn(&Work) -> u64| units.iter().map(read).collect::<Vec<_>>();
        assert_eq!(of(|unit| unit.rows), [2, 1, 1, 0]);
        // The ends are read where a line goes on: the rest of the file, as it is short.
        assert_eq!(of(|unit| unit.reads), [2, 2, 2, 1]);
        assert_eq!(of(|unit| unit.bytes), [11 + 29, 12 + 18, 12 + 7, 8]);
    }

    #[test]
    fn a_file_of_output_is_full_when_a_chunk_does_not_fit() {
        let of = |spec: &str| {
            let units = made("jsonl", spec, "input_row_bytes = 100", 20_000);
            units.iter().map(|unit| unit.files).sum::<u64>()
        };
        // Chunks of 4096 rows, two in a file; then chunks of 5 rows.
        assert_eq!(of(""), 3);
        assert_eq!(of("unit_rows = 5"), 4000);
    }

    #[test]
    fn row_groups_are_read_by_columns() {
        let costs = "group_rows = 40\ninput_row_bytes = 10\nfile_rows = 100";
        let units = made(
            "parquet",
            "unit_rows = 60\nkeep = ['id', 'text']",
            costs,
            150,
        );
        let of = |read: fn(&Work) -> u64| units.iter().map(read).collect::<Vec<_>>();
        assert_eq!(of(|unit| unit.rows), [40, 60, 50]);
        assert_eq!(of(|unit| unit.reads), [1 + 2, 1 + 4, 1 + 4]);
        assert_eq!(of(|unit| unit.bytes), [1000 + 400, 1000 + 600, 500 + 500]);
    }

    #[test]
    fn poisoned_texts_cost_what_finding_them_costs() {
        let costs = |rate: &str| format!("input_row_bytes = 1024\n{rate} = 100");
        let spec = "poisoned = 'null'\nretries = 2";
        let refused = made("jsonl", spec, &costs("refused_per_million"), 409_600);
        let tries = |unit: &Work| unit.texts as f64 / unit.rows as f64;
        let (poisoned, plain): (Vec<_>, Vec<_>) =
            refused.iter().partition(|unit| tries(unit) > 1.0);
        // About 41 of 409,600, in the hundred units of 4096 rows.
        assert!((20..45).contains(&poisoned.len()), "{}", poisoned.len());
        assert!(plain.iter().all(|unit| unit.texts == unit.rows));
        assert!(poisoned.iter().any(|unit| unit.texts == 2 * 4096 - 1));

        // All are tried three times, with two waits of 1 and 2 s; then halves down to one text, of which one fails each time.
        let crashing = made("jsonl", spec, &costs("crashing_per_million"), 409_600);
        let alone = crashing.iter().filter(|unit| unit.waits == 3.0);
        let texts: Vec<u64> = alone.map(|unit| unit.texts).collect();
        let least = 3 * 4096 + 2 * 4095;
        let single = texts.iter().filter(|&&texts| texts == least).count();
        assert!(texts.iter().all(|&texts| texts >= least), "{texts:?}");
        assert!(single > texts.len() / 2, "{texts:?}");
    }
}
