//! The costs of this machine.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::costs::Costs;
use crate::compute::Compute;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::observer::Observer;
use crate::output::{Form, Output};
use crate::rows::{Chunk, ROWS};
use crate::spec::Spec;
use crate::store::Store;
use crate::unit::{Kind, Part, Unit};
use crate::{parquet, plan, vectors};

/// Texts that are embedded before the clock runs: a model's first calls make its memory.
const WARM: usize = 16;
/// Small objects that are written and looked for.
const SMALL: u32 = 5;
/// Bytes of the large object.
const LARGE: usize = 8 << 20;
/// What took no time took so many seconds.
const SHORTEST: f64 = 1e-9;

/// Measures what `rows` rows of the job's own input cost here, and the store of its output.
///
/// The first rows of the input are read and embedded; nothing of the job is written. In the output's folder some objects are
/// written, read and removed again. What cannot be measured in a short time, such as failures, has its default, and so has
/// `load_seconds`: whoever loads the model knows it. One thread computes, whatever `workers` says.
///
/// # Errors
/// As [`run`](crate::run). [`Error::Costs`] where the input has no texts.
pub fn measure(
    spec: &Spec,
    compute: &dyn Compute,
    rows: usize,
    observer: Arc<dyn Observer>,
) -> Result<Costs> {
    let context = Context::new(spec, observer)?;
    let input = Input::list(&spec.input, &context)?;
    let sample = Sample::take(spec, compute, &input, rows as u64, &context)?;
    if sample.texts == 0 {
        return Err(Error::Costs(format!(
            "{} has no texts to measure with",
            spec.input
        )));
    }
    let mut costs = Costs::read(None, &["texts_per_second = 1"])?;
    costs.texts_per_second = sample.texts as f64 / sample.seconds.max(SHORTEST);
    costs.input_row_bytes = (sample.bytes.round() as u64 / sample.rows).max(1);
    costs.output_row_bytes = sample.written / sample.rows;
    if let Some((file_rows, group_rows)) = first_groups(&input)? {
        (costs.file_rows, costs.group_rows) = (file_rows.max(1), group_rows.max(1));
    } else {
        let bytes: u64 = input.files.iter().map(|file| file.size).sum();
        let file = bytes / input.files.len() as u64;
        costs.file_rows = (file / costs.input_row_bytes).max(1);
    }
    let store = Store::create_folder(&spec.output, &context)?;
    (costs.request_seconds, costs.bytes_per_second) = stored(&store)?;
    Ok(costs)
}

/// The rows of the first Parquet file, and how many its row groups have in the mean.
fn first_groups(input: &Input) -> Result<Option<(u64, u64)>> {
    let first = input.files.iter().find(|file| file.kind == Kind::Parquet);
    let Some(first) = first else {
        return Ok(None);
    };
    let groups = parquet::row_groups(&input.store, first)?;
    let rows: u64 = groups.iter().sum();
    Ok(Some((rows, rows.div_ceil(groups.len().max(1) as u64))))
}

/// Rows of the input, and what they took.
#[derive(Default)]
struct Sample {
    rows: u64,
    texts: u64,
    seconds: f64,
    /// Bytes of the rows in the input.
    bytes: f64,
    /// Bytes of the rows in files of output.
    written: u64,
}

impl Sample {
    fn take(
        spec: &Spec,
        compute: &dyn Compute,
        input: &Input,
        rows: u64,
        context: &Context,
    ) -> Result<Self> {
        let mut sample = Self::default();
        for unit in plan::units(input, spec, None, false)? {
            if sample.rows >= rows {
                break;
            }
            sample.read(spec, compute, input, &unit, rows, context)?;
        }
        Ok(sample)
    }

    /// Takes the rows of a unit, until there are `rows`.
    fn read(
        &mut self,
        spec: &Spec,
        compute: &dyn Compute,
        input: &Input,
        unit: &Unit,
        rows: u64,
        context: &Context,
    ) -> Result<()> {
        let most = usize::try_from(rows - self.rows).unwrap_or(ROWS);
        let mut reader = input.reader(unit, spec, most.min(ROWS))?;
        let fault = |detail: String| Error::Input {
            file: unit.file.name.clone(),
            detail,
        };
        let form = Form::new(reader.fields(), compute, spec.poisoned).map_err(fault)?;
        let mut output = Output::new(&form).map_err(fault)?;
        let before = input.store.bytes_read();
        let mut row = None;
        while self.rows < rows
            && let Some(chunk) = reader.next()?
        {
            let row = match row {
                Some(row) => row,
                None => {
                    let read = input.store.bytes_read() - before;
                    *row.insert(row_bytes(input, unit, &chunk, read)?)
                }
            };
            if self.texts == 0 {
                let texts = chunk.rows.iter().flat_map(|row| row.text.as_deref());
                let texts: Vec<&str> = texts.take(WARM).collect();
                vectors::embed(compute, &texts, &context.retry)?;
            }
            let begun = Instant::now();
            let vectors = vectors::of_chunk(compute, &chunk, &context.retry)?;
            self.seconds += begun.elapsed().as_secs_f64();
            let count = chunk.rows.len() as u64;
            self.rows += count;
            self.bytes += row * count as f64;
            let texts = chunk.rows.iter().filter(|row| row.text.is_ok());
            self.texts += texts.count() as u64;
            output.push(&chunk, vectors).map_err(fault)?;
        }
        self.written += output.finish().map_err(fault)?.len() as u64;
        Ok(())
    }
}

/// Bytes of a row, from a unit's first chunk, for which `read` bytes were read.
fn row_bytes(input: &Input, unit: &Unit, chunk: &Chunk, read: u64) -> Result<f64> {
    Ok(match unit.part {
        // Rows know where they begin.
        Part::Bytes { start, end } => match &*chunk.rows {
            [first, .., last] => (last.at - first.at) as f64 / (chunk.rows.len() - 1) as f64,
            _ => (end - start) as f64,
        },
        // The columns of a row group were read as a whole.
        Part::Groups { first, .. } => {
            let groups = parquet::row_groups(&input.store, &unit.file)?;
            read as f64 / groups.get(first as usize).copied().unwrap_or(0).max(1) as f64
        }
    })
}

/// Seconds of a request of the store, and the bytes that one moves in a second.
fn stored(store: &Store) -> Result<(f64, f64)> {
    let own = RandomState::new().hash_one(std::process::id());
    // Not in a folder, which a disk would keep.
    let name = |number: u32| store.at(&format!("measured-{own:016x}-{number}"));
    let timed = || -> Result<(f64, f64)> {
        let mut times = Vec::new();
        for number in 0..SMALL {
            let begun = Instant::now();
            store.replace(&name(number), Bytes::from_static(b"small"))?;
            times.push(begun.elapsed().as_secs_f64());
            let begun = Instant::now();
            store.find(&name(number))?;
            times.push(begun.elapsed().as_secs_f64());
        }
        let request = times.iter().sum::<f64>() / times.len() as f64;
        let bytes = vec![7; LARGE];
        let begun = Instant::now();
        store.replace(&name(SMALL), bytes.into())?;
        store.get(&name(SMALL))?;
        let seconds = begun.elapsed().as_secs_f64() - 2.0 * request;
        Ok((request, 2.0 * LARGE as f64 / seconds.max(SHORTEST)))
    };
    let times = timed();
    for number in 0..=SMALL {
        let removed = store.remove(&name(number));
        // The first error is the one to tell.
        if times.is_ok() {
            removed?;
        }
    }
    times
}
