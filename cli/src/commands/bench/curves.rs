//! Latency against throughput: calls of more and more texts, all of exactly one length.

use std::time::Instant;

use isovec::blocking::Embedder;
use isovec::{Cancel, EmbedOptions};
use serde::Serialize;

use super::check;
use super::figure::{Figure, Of, Part};
use super::plan::{Cell, Plan};
use super::seeded::Seeded;
use super::turns::quantile;
use crate::error::{CliError, Result};

/// Texts of a call.
const BATCHES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Tokens of each text.
const LENGTHS: [usize; 5] = [16, 32, 64, 128, 256];
/// Calls of a turn, at least and at most.
const CALLS: (usize, usize) = (3, 1000);

/// What came of a point.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    pub(super) tokens: usize,
    pub(super) texts: usize,
    pub(super) calls: usize,
    pub(super) texts_per_second: f64,
    pub(super) p50_milliseconds: f64,
    pub(super) p99_milliseconds: f64,
}

/// A point with its texts, and what its turns took.
struct Measured {
    cell: Cell,
    texts: Vec<String>,
    /// Seconds of a call on average, of half of them, of 99 in 100 of them: for each turn.
    turns: [Vec<f64>; 3],
}

/// Measures all points in turns, so that a slow moment hits them all.
pub(super) fn measure(
    plan: &Plan,
    embedder: &Embedder,
    cancel: &Cancel,
) -> Result<(Vec<Point>, Vec<Figure>)> {
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    let call = |texts: &[String]| -> Result<f64> {
        check(cancel)?;
        let asked = Instant::now();
        embedder.embed_with(texts, options.clone())?;
        Ok(asked.elapsed().as_secs_f64().max(1e-9))
    };
    let mut points = match &plan.cells {
        Some(cells) => again(cells, embedder)?,
        None => choose(plan.options.seconds, embedder, &call)?,
    };
    for _ in 0..plan.options.rounds {
        for point in &mut points {
            let calls = (0..point.cell.calls).map(|_| call(&point.texts));
            let seconds: Vec<f64> = calls.collect::<Result<_>>()?;
            let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
            let values = [mean, quantile(&seconds, 0.5), quantile(&seconds, 0.99)];
            for (turns, value) in point.turns.iter_mut().zip(values) {
                turns.push(value);
            }
        }
    }
    let figures = points.iter().flat_map(figures).collect();
    Ok((points.iter().map(point).collect(), figures))
}

/// As many calls as a turn has time for; longer and larger ones are left out when one alone takes too much of it.
fn choose(
    seconds: f64,
    embedder: &Embedder,
    call: &dyn Fn(&[String]) -> Result<f64>,
) -> Result<Vec<Measured>> {
    let mut seeded = seeded(embedder)?;
    let mut points = Vec::new();
    let a_point = seconds / BATCHES.len() as f64;
    for tokens in LENGTHS {
        if tokens > embedder.max_length() {
            break;
        }
        let Some(most) = BATCHES.last() else { break };
        let Some(texts) = seeded.texts(*most, tokens)? else {
            continue;
        };
        for batch in BATCHES {
            let texts = texts[..batch].to_vec();
            // The first call of a size is not like the others.
            call(&texts)?;
            let took = call(&texts)?;
            let calls = ((a_point / took) as usize).clamp(CALLS.0, CALLS.1);
            let cell = Cell {
                texts: batch,
                tokens,
                calls,
            };
            if took > seconds / 2.0 && !points.is_empty() {
                break;
            }
            points.push(Measured::new(cell, texts));
        }
    }
    match points.is_empty() {
        true => Err(no_lengths()),
        false => Ok(points),
    }
}

/// The points of a baseline.
fn again(cells: &[Cell], embedder: &Embedder) -> Result<Vec<Measured>> {
    let mut seeded = seeded(embedder)?;
    let mut points = Vec::with_capacity(cells.len());
    let mut texts: (usize, Vec<String>) = (0, Vec::new());
    for &cell in cells {
        if texts.0 != cell.tokens {
            let most = cells.iter().filter(|other| other.tokens == cell.tokens);
            let most = most.map(|other| other.texts).max().unwrap_or(cell.texts);
            let made = seeded.texts(most, cell.tokens)?.ok_or_else(no_lengths)?;
            texts = (cell.tokens, made);
        }
        let texts = texts.1.iter().take(cell.texts).cloned().collect();
        points.push(Measured::new(cell, texts));
    }
    Ok(points)
}

fn seeded(embedder: &Embedder) -> Result<Seeded<'_>> {
    Seeded::new(embedder)?.ok_or_else(no_lengths)
}

fn no_lengths() -> CliError {
    CliError::Usage(
        "--curves needs texts of exactly 16, 32 … tokens, and this model's tokenizer and maximum length allow none; \
         measure without it"
            .into(),
    )
}

impl Measured {
    fn new(cell: Cell, texts: Vec<String>) -> Self {
        Self {
            cell,
            texts,
            turns: Default::default(),
        }
    }
}

fn point(measured: &Measured) -> Point {
    let Cell {
        texts,
        tokens,
        calls,
    } = measured.cell;
    let [mean, p50, p99] = [0, 1, 2].map(|of| quantile(&measured.turns[of], 0.5));
    Point {
        tokens,
        texts,
        calls,
        texts_per_second: texts as f64 / mean,
        p50_milliseconds: p50 * 1e3,
        p99_milliseconds: p99 * 1e3,
    }
}

fn figures(measured: &Measured) -> impl Iterator<Item = Figure> {
    let Cell {
        texts,
        tokens,
        calls,
    } = measured.cell;
    let plural = if texts == 1 { "text" } else { "texts" };
    let name = format!("{texts} {plural} of {tokens} tokens");
    let all = [Of::Time, Of::P50, Of::P99]
        .into_iter()
        .zip(&measured.turns);
    let figures = all.filter_map(move |(of, seconds)| {
        Some(Figure {
            calls: Some(calls),
            tokens: Some(tokens),
            ..Figure::new(Part::Curves, &name, of, texts, seconds)?
        })
    });
    figures.collect::<Vec<_>>().into_iter()
}
