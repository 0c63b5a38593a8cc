//! Latency against throughput: calls of more and more texts, all of exactly one length.

use std::collections::BTreeMap;
use std::time::Instant;

use isovec::blocking::Embedder;
use isovec::{Cancel, EmbedOptions};
use serde::Serialize;

use super::check;
use super::figure::{Figure, Of, Part};
use super::plan::{Cell, Plan};
use super::seeded::Seeded;
use super::turns::{middle, quantile};
use crate::error::{CliError, Result};

/// Texts of a call.
const BATCHES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Tokens of each text.
const LENGTHS: [usize; 5] = [16, 32, 64, 128, 256];
/// Texts of the largest call.
const MOST: usize = BATCHES[BATCHES.len() - 1];
/// Calls of a turn, at least and at most.
const CALLS: (usize, usize) = (3, 1000);

/// Asks once, and gives the seconds that it took.
type Call<'a> = &'a dyn Fn(&[String]) -> Result<f64>;

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
        Some(cells) => again(cells, embedder, &call)?,
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
fn choose(seconds: f64, embedder: &Embedder, call: Call<'_>) -> Result<Vec<Measured>> {
    let mut points = Vec::new();
    let a_point = seconds / BATCHES.len() as f64;
    for (tokens, texts) in drawn(embedder)? {
        for batch in BATCHES {
            let texts = texts[..batch].to_vec();
            let took = warm(&texts, call)?;
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

/// The points of a baseline, as warm as they were when they were chosen.
fn again(cells: &[Cell], embedder: &Embedder, call: Call<'_>) -> Result<Vec<Measured>> {
    let drawn = drawn(embedder)?;
    let points = cells.iter().map(|&cell| {
        let texts = drawn
            .get(&cell.tokens)
            .and_then(|texts| texts.get(..cell.texts))
            .ok_or_else(no_lengths)?
            .to_vec();
        warm(&texts, call)?;
        Ok(Measured::new(cell, texts))
    });
    points.collect()
}

/// The texts of each length that the model sees and its tokenizer allows.
///
/// All of them, also where fewer are called: those of a length depend on how many were drawn before, and what is
/// measured again has to get the same.
fn drawn(embedder: &Embedder) -> Result<BTreeMap<usize, Vec<String>>> {
    let mut seeded = Seeded::new(embedder)?.ok_or_else(no_lengths)?;
    let mut drawn = BTreeMap::new();
    for tokens in LENGTHS {
        if tokens > embedder.max_length() {
            break;
        }
        if let Some(texts) = seeded.texts(MOST, tokens)? {
            drawn.insert(tokens, texts);
        }
    }
    Ok(drawn)
}

/// The seconds of a second call: the first of a size is not like the others.
fn warm(texts: &[String], call: Call<'_>) -> Result<f64> {
    call(texts)?;
    call(texts)
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

/// Whether a point of that name and work is one that can be chosen.
pub(super) fn could_be(called: &str, cell: Cell) -> bool {
    BATCHES.contains(&cell.texts)
        && LENGTHS.contains(&cell.tokens)
        && (CALLS.0..=CALLS.1).contains(&cell.calls)
        && name(cell) == called
}

fn name(Cell { texts, tokens, .. }: Cell) -> String {
    let plural = if texts == 1 { "text" } else { "texts" };
    format!("{texts} {plural} of {tokens} tokens")
}

fn point(measured: &Measured) -> Point {
    let Cell {
        texts,
        tokens,
        calls,
    } = measured.cell;
    let [mean, p50, p99] = [0, 1, 2].map(|of| middle(&measured.turns[of]));
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
    let name = name(measured.cell);
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;

    use isovec::EmbeddingConfig;
    use isovec::config::EngineChoice;

    use super::*;

    #[test]
    fn points_are_measured_again_warm_and_with_their_texts_though_lengths_were_cut_short() {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/tiny-bert");
        let config = EmbeddingConfig::default().with_engine(EngineChoice::Portable);
        let embedder = Embedder::builder(model.as_path())
            .config(config)
            .load()
            .unwrap();
        let call = |texts: &[String]| -> Result<f64> {
            Ok(match (embedder.count_tokens(&texts[0])?, texts.len()) {
                (16, 8..) | (32, _) => 9.0,
                _ => 0.001,
            })
        };
        let chosen = choose(1.0, &embedder, &call).unwrap();
        let cells: Vec<Cell> = chosen.iter().map(|point| point.cell).collect();
        let of = |tokens: usize| cells.iter().filter(|cell| cell.tokens == tokens).count();
        assert_eq!((of(16), of(32), of(64)), (3, 0, BATCHES.len()));

        let calls = RefCell::new(Vec::new());
        let noted = |texts: &[String]| -> Result<f64> {
            calls.borrow_mut().push(texts.to_vec());
            Ok(0.001)
        };
        let measured = again(&cells, &embedder, &noted).unwrap();
        let work = |points: &[Measured]| -> Vec<(Cell, Vec<String>)> {
            let work = points.iter().map(|point| (point.cell, point.texts.clone()));
            work.collect()
        };
        assert_eq!(work(&measured), work(&chosen));
        let twice = chosen
            .iter()
            .flat_map(|point| [point.texts.clone(), point.texts.clone()]);
        assert_eq!(calls.into_inner(), twice.collect::<Vec<_>>());
    }

    #[test]
    fn the_rate_of_a_point_is_that_of_its_figure() {
        let cell = Cell {
            texts: 3,
            tokens: 16,
            calls: 5,
        };
        let mut measured = Measured::new(cell, Vec::new());
        measured.turns = std::array::from_fn(|_| [[1.0; 4], [2.0; 4]].concat());
        let kept: Vec<f64> = figures(&measured)
            .filter(|figure| figure.key.of == Of::Time)
            .map(|figure| figure.texts_per_second())
            .collect();
        let shown = point(&measured);
        assert_eq!((shown.texts_per_second, kept), (2.0, vec![2.0]));
        assert_eq!(shown.p50_milliseconds, 1500.0);
    }
}
