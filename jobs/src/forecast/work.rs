//! What the units of an input are made of, by the rules that real runs have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value;

use super::costs::Costs;
use super::random::Random;
use crate::compute::{Compute, Refusal};
use crate::error::{Error, Result};
use crate::observer::{Event, Observer};
use crate::retry::Retry;
use crate::rows::{BYTES, ROWS};
use crate::spec::{Poisoned, Spec};
use crate::unit::{Kind, Part};
use crate::{jsonl, output, parquet, plan, vectors};

/// Units that are held at the same time.
const UNITS: usize = 2_000_000;
/// Files, units or chunks of an input.
const PIECES: u64 = 20_000_000;
const MILLION: f64 = 1e6;

/// An input that is none yet.
pub(crate) struct Input {
    pub(crate) files: u64,
    /// Whether a run notes the row groups of every file.
    pub(crate) has_row_groups: bool,
    /// Bytes that are read to learn the row groups of all files.
    pub(crate) footers: u64,
    pub(crate) units: Vec<Work>,
}

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
    let last = units(spec, costs, kind, texts - (files - 1) * file_rows);
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
        true => (files - 1) * footer(file_rows) + footer(texts - (files - 1) * file_rows),
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

/// The units of a file of so many rows, each with the rows of its chunks.
fn units(spec: &Spec, costs: &Costs, kind: Kind, rows: u64) -> Vec<(Work, Vec<u64>)> {
    let row = costs.input_row_bytes;
    let size = rows.saturating_mul(row);
    let most = (ROWS.min(spec.unit_rows.get())) as u64;
    match kind {
        Kind::JsonLines => {
            // Chunks end with the line that makes them large enough.
            let most = most.min((BYTES as u64).div_ceil(row));
            let ranges = plan::ranges(size, spec.unit_bytes.get());
            let units = ranges.into_iter().map(|part| {
                let Part::Bytes { start, end } = part else {
                    return Work::of(spec, 0, 0, 0, Vec::new());
                };
                // The lines that begin in the range.
                let lines = end.div_ceil(row) - start.div_ceil(row);
                let range = end - start.saturating_sub(1);
                let (mut reads, mut bytes) = (1, range);
                if lines > 0 && end % row != 0 {
                    let left = end.next_multiple_of(row).min(size) - end;
                    let tails = left.div_ceil(jsonl::TAIL);
                    reads += tails;
                    bytes += (tails * jsonl::TAIL).min(size - end);
                }
                Work::of(spec, lines, reads, bytes, chunks(lines, most).collect())
            });
            units.collect()
        }
        Kind::Parquet => {
            let group = costs.group_rows;
            let groups: Vec<u64> = chunks(rows, group).collect();
            let columns = spec.keep.iter().filter(|name| **name != spec.text).count() as u64 + 1;
            let footer = size.min(parquet::TAIL);
            let units = plan::groups(&groups, spec.unit_rows.get() as u64).into_iter();
            let units = units.map(|part| {
                let Part::Groups { first, end, .. } = part else {
                    return Work::of(spec, 0, 0, 0, Vec::new());
                };
                let groups = &groups[first as usize..end as usize];
                let rows: u64 = groups.iter().sum();
                let reads = 1 + columns * groups.len() as u64;
                let chunks = groups.iter().flat_map(|&rows| chunks(rows, most)).collect();
                Work::of(spec, rows, reads, footer + rows * row, chunks)
            });
            units.collect()
        }
    }
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
fn files(chunks: &[u64], spec: &Spec) -> (u64, u64) {
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

/// Which texts have no vector, and what they cost.
struct Poison {
    /// The part of the texts.
    part: f64,
    /// The part of these at which the model fails without a name.
    crashing: f64,
    retry: Retry,
    /// Seconds of all waits before the last try.
    waits: f64,
    seen: Arc<Retries>,
    random: Random,
}

/// Counts retries.
#[derive(Default)]
struct Retries(AtomicU64);

impl Observer for Retries {
    fn event(&self, _: Event<'_>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A model that refuses or fails at marked texts, and counts the texts that it was given.
#[derive(Default)]
struct Refusing(AtomicU64);

const GOOD: &str = "good";
const REFUSED: &str = "refused";
const CRASHING: &str = "crashing";

impl Compute for Refusing {
    fn fingerprint(&self) -> Value {
        Value::Null
    }

    fn dim(&self) -> usize {
        0
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal> {
        self.0.fetch_add(texts.len() as u64, Relaxed);
        if let Some(index) = texts.iter().position(|&text| text == REFUSED) {
            let reason = REFUSED.into();
            return Err(Refusal::Text { index, reason });
        }
        match texts.contains(&CRASHING) {
            true => Err(Refusal::Failed(CRASHING.into())),
            false => Ok(Vec::new()),
        }
    }
}

impl Poison {
    fn new(spec: &Spec, costs: &Costs, seed: u64) -> Self {
        let part = (costs.refused_per_million + costs.crashing_per_million) / MILLION;
        let seen = Arc::new(Retries::default());
        let retry = Retry {
            retries: spec.retries,
            wait: spec.retry_wait,
            observer: Arc::<Retries>::clone(&seen),
        };
        let waits = retry.waits().take(spec.retries as usize);
        Self {
            part,
            crashing: costs.crashing_per_million / MILLION / part,
            waits: waits.map(|wait| wait.as_secs_f64()).sum(),
            // The waits are summed up and not waited for.
            retry: Retry {
                wait: Duration::ZERO,
                ..retry
            },
            seen,
            random: Random::new(seed),
        }
    }

    /// The distance to the next poisoned text: geometric.
    fn next(&mut self) -> u64 {
        // Saturates where none is poisoned.
        (self.random.part().ln() / (1.0 - self.part).ln()) as u64
    }

    /// Draws poisoned texts, and tries their chunks with the code that finds them in real runs.
    fn spoil(mut self, spec: &Spec, units: &mut [(Work, Vec<u64>)]) -> Result<()> {
        if self.part == 0.0 {
            return Ok(());
        }
        let mut skip = self.next();
        for (work, chunks) in units {
            work.texts = 0;
            for (at, &rows) in chunks.iter().enumerate() {
                if skip >= rows {
                    skip -= rows;
                    work.texts += rows;
                    continue;
                }
                let mut texts = vec![GOOD; rows as usize];
                while skip < rows {
                    let crashes = self.random.part() <= self.crashing;
                    texts[skip as usize] = if crashes { CRASHING } else { REFUSED };
                    skip = skip.saturating_add(1).saturating_add(self.next());
                }
                skip -= rows;
                let model = Refusing::default();
                vectors::embed(&model, &texts, &self.retry)?;
                work.texts += model.0.load(Relaxed);
                let retries = self.seen.0.swap(0, Relaxed);
                work.waits += retries as f64 / f64::from(spec.retries.max(1)) * self.waits;
                match spec.poisoned {
                    Poisoned::Null => {}
                    Poisoned::Skip => work.side = true,
                    Poisoned::Fail if !work.fails => {
                        work.fails = true;
                        let (files, stored) = files(&chunks[..=at], spec);
                        work.files = files - 1;
                        work.written = stored;
                        work.rows = chunks[..=at].iter().sum();
                    }
                    Poisoned::Fail => {}
                }
                if work.fails {
                    // Later chunks are not computed; their poisoned texts are passed by.
                    let mut later: u64 = chunks[at + 1..].iter().sum();
                    while skip < later {
                        later -= skip + 1;
                        skip = self.next();
                    }
                    skip -= later;
                    break;
                }
            }
        }
        Ok(())
    }
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
