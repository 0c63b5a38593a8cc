//! Compares the original with what was made of it: the vectors of the user's texts, and the time they take.

use std::collections::HashSet;
use std::time::Duration;

use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::{BoxFuture, MaybeSend, MaybeSync};
use isovec_optimize::OptimizeError;
use web_time::Instant;

use super::report::{Quality, Speed};
use crate::config::EmbeddingConfig;
use crate::embedder::Embedder;
use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::model::EmbedOptions;
use crate::similarity::{cosine, top_k};
use crate::source::ModelSource;

/// Texts whose vectors are compared: neighbours take the square of that.
const COMPARED: usize = 1000;

/// Texts of which all pairs are ranked.
const RANKED: usize = 200;

/// Neighbours of a text.
const NEAREST: usize = 10;

/// Turns of timing, an odd number.
const TURNS: usize = 7;

/// The time of a turn, about.
const TURN: Duration = Duration::from_millis(250);

/// Loads both and compares them on texts.
pub(super) async fn compare(
    original: ModelSource,
    result: ModelSource,
    config: &EmbeddingConfig,
    texts: Vec<String>,
    cancel: &Cancel,
) -> Result<(Quality, Speed)> {
    let texts = comparable_texts(texts)?;
    let mut plain = config.clone();
    // Kept vectors would answer for both.
    plain.embedding_cache = EmbeddingConfig::default().embedding_cache;
    let own = config_of_result(&plain);
    plain.model.dtype = None;
    let load = |source, config| {
        let builder = Embedder::builder(source).config(config);
        builder.cancel(cancel.clone()).load()
    };
    let (before, after) = (load(original, plain).await?, load(result, own).await?);
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    let embed = |embedder: Embedder| {
        let options = options.clone();
        move |texts: Vec<String>| -> BoxFuture<'static, Result<Vec<f32>>> {
            let vectors = embedder.embed_with(texts, options.clone());
            Box::pin(async move { Ok(vectors.await?.into_vec()) })
        }
    };
    both(&texts, embed(before), embed(after)).await
}

/// Compares the rows that two models give of the same items, one after the other, and the time they take.
pub(super) async fn both<T, F>(items: &[T], before: F, after: F) -> Result<(Quality, Speed)>
where
    T: Clone + MaybeSend + MaybeSync,
    F: Fn(Vec<T>) -> BoxFuture<'static, Result<Vec<f32>>> + MaybeSend + MaybeSync,
{
    let rows = (before(items.to_vec()).await?, after(items.to_vec()).await?);
    let quality = Quality::of_values(items.len(), &rows.0, &rows.1);
    Ok((quality, speed(items, &before, &after).await?))
}

/// The texts that models are compared on: each once, none that is empty, and at most 1,000, taken evenly from all of them.
///
/// # Errors
/// [`OptimizeError::Texts`] for fewer than 2.
pub fn comparable_texts(texts: Vec<String>) -> Result<Vec<String>> {
    let mut seen = HashSet::new();
    let distinct = texts.into_iter().filter(|text| !text.trim().is_empty());
    let distinct: Vec<String> = distinct.filter(|text| seen.insert(text.clone())).collect();
    match distinct.len() {
        0 | 1 => Err(OptimizeError::Texts(format!(
            "{} different text to compare the models with; give at least 2, and more than {NEAREST} for recall",
            distinct.len()
        ))
        .into()),
        _ => Ok(spread(distinct, COMPARED)),
    }
}

/// The configuration that loads what [`optimize`](crate::optimize()) wrote under this one: weights and head are as they are in the
/// folder.
pub fn config_of_result(config: &EmbeddingConfig) -> EmbeddingConfig {
    let mut own = config.clone();
    own.model = EmbeddingConfig::default().model;
    (own.text.pooling, own.text.normalize, own.text.dimension) = (None, None, None);
    own
}

/// At most so many of a list, evenly spread over it.
pub(super) fn spread<T>(texts: Vec<T>, most: usize) -> Vec<T> {
    let count = texts.len();
    if count <= most {
        return texts;
    }
    let taken: HashSet<usize> = (0..most).map(|at| at * count / most).collect();
    let texts = texts.into_iter().enumerate();
    texts
        .filter(|(at, _)| taken.contains(at))
        .map(|(_, text)| text)
        .collect()
}

impl Quality {
    /// Compares the vectors of the same texts, `[texts, dim]` each, in the same order.
    ///
    /// # Panics
    /// When the numbers of texts differ.
    pub fn of(before: &Embeddings, after: &Embeddings) -> Self {
        assert_eq!(
            before.len(),
            after.len(),
            "vectors of different texts cannot be compared"
        );
        Self::of_values(before.len(), before.as_slice(), after.as_slice())
    }

    /// Compares the rows of so many items, in the same order and one row after the other: their vectors, or a classifier's logits.
    ///
    /// # Panics
    /// When these are not as many values for each item.
    pub fn of_values(items: usize, before: &[f32], after: &[f32]) -> Self {
        let rows = |values: &[f32]| {
            let width = values.len() / items.max(1);
            assert_eq!(width * items, values.len(), "rows have one length");
            let rows = (0..items).map(|item| values[item * width..][..width].to_vec());
            rows.collect::<Vec<_>>()
        };
        Self::of_rows(&rows(before), &rows(after))
    }

    fn of_rows(before: &[Vec<f32>], after: &[Vec<f32>]) -> Self {
        let same = |(a, b): &(&Vec<f32>, &Vec<f32>)| {
            a.len() == b.len() && a.iter().zip(*b).all(|(a, b)| a.to_bits() == b.to_bits())
        };
        let comparable = before.first().map(Vec::len) == after.first().map(Vec::len);
        let pairs = before.iter().zip(after);
        let cosines: Option<Vec<f64>> = comparable.then(|| {
            pairs
                .clone()
                .map(|(a, b)| f64::from(cosine(a, b)))
                .collect()
        });
        Quality {
            texts: before.len(),
            identical: pairs.clone().filter(same).count(),
            cosine_mean: cosines
                .as_ref()
                .map(|all| all.iter().sum::<f64>() / all.len() as f64),
            cosine_worst: cosines.and_then(|all| all.into_iter().min_by(f64::total_cmp)),
            recall_at_10: (before.len() > NEAREST).then(|| recall(before, after)),
            rank_correlation: correlation(&similarities(before), &similarities(after)),
        }
    }
}

/// The share of each text's nearest others that are the same in both.
fn recall(before: &[Vec<f32>], after: &[Vec<f32>]) -> f64 {
    let nearest = |rows: &[Vec<f32>], text: usize| -> HashSet<usize> {
        let scores = rows
            .iter()
            .enumerate()
            .map(|(other, row)| match other == text {
                true => f32::NAN,
                false => cosine(&rows[text], row),
            });
        top_k(scores, NEAREST)
            .into_iter()
            .map(|hit| hit.index)
            .collect()
    };
    let found = (0..before.len()).map(|text| {
        let wanted = nearest(before, text);
        nearest(after, text).intersection(&wanted).count()
    });
    found.sum::<usize>() as f64 / (before.len() * NEAREST) as f64
}

/// The cosine of every pair of the first texts.
fn similarities(rows: &[Vec<f32>]) -> Vec<f64> {
    let rows = &rows[..rows.len().min(RANKED)];
    let pairs = (0..rows.len()).flat_map(|a| (a + 1..rows.len()).map(move |b| (a, b)));
    pairs
        .map(|(a, b)| f64::from(cosine(&rows[a], &rows[b])))
        .collect()
}

/// Spearman's rank correlation: Pearson's correlation of the ranks, of which equal values share the mean. `None` where one
/// side has no order.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| {
        let terms = a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean));
        terms.sum::<f64>()
    };
    let norm = (product(&a, &a) * product(&b, &b)).sqrt();
    (norm > 0.0).then(|| product(&a, &b) / norm)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let shared = first as f64 + (tied.len() as f64 + 1.0) / 2.0;
        for &place in tied {
            ranks[place] = shared;
        }
        first += tied.len();
    }
    ranks
}

/// Times both in turns, so that what else the machine does falls on both.
async fn speed<T, F>(texts: &[T], before: &F, after: &F) -> Result<Speed>
where
    T: Clone + MaybeSend + MaybeSync,
    F: Fn(Vec<T>) -> BoxFuture<'static, Result<Vec<f32>>> + MaybeSend + MaybeSync,
{
    let once = async |model: &F, texts: &[T]| {
        let since = Instant::now();
        model(texts.to_vec()).await?;
        Ok::<_, crate::Error>(since.elapsed())
    };
    // As many texts as fit into a turn of the original.
    let first = &texts[..texts.len().min(8)];
    let each = once(before, first).await? / first.len() as u32;
    let count = TURN.as_nanos() / each.as_nanos().max(1);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let texts = &texts[..count.clamp(1, texts.len())];
    let turn = async |model: &F| {
        // A fast model is asked several times: a turn of some microseconds says nothing.
        let (mut spent, mut calls) = (Duration::ZERO, 0u32);
        while spent < TURN / 10 || calls == 0 {
            spent += once(model, texts).await?;
            calls += 1;
        }
        let seconds = spent.as_secs_f64() / f64::from(calls);
        Ok::<_, crate::Error>(texts.len() as f64 / seconds.max(f64::MIN_POSITIVE))
    };
    let (mut befores, mut afters, mut quotients) = (Vec::new(), Vec::new(), Vec::new());
    turn(after).await?;
    for round in 0..TURNS {
        let (first, second) = if round % 2 == 0 {
            (before, after)
        } else {
            (after, before)
        };
        let (first, second) = (turn(first).await?, turn(second).await?);
        let (b, a) = if round % 2 == 0 {
            (first, second)
        } else {
            (second, first)
        };
        befores.push(b);
        afters.push(a);
        quotients.push(a / b);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Ok(Speed {
        texts: texts.len(),
        before: median(&mut befores),
        after: median(&mut afters),
        times: median(&mut quotients),
        between: (quotients[0], quotients[quotients.len() - 1]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_equal_values_are_shared_and_order_is_what_counts() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 0.5]), [3.5, 2.0, 3.5, 1.0]);
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[1.0, 4.0, 9.0]), Some(1.0));
        assert_eq!(
            correlation(&[1.0, 2.0, 3.0], &[0.0, -4.0, -9.0]),
            Some(-1.0)
        );
        // Worked by hand: ranks (1, 2, 3, 4) and (1, 3, 2, 4) give 1 - 6 * 2 / (4 * 15).
        let found = correlation(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 2.0, 4.0]).unwrap();
        assert!((found - 0.8).abs() < 1e-12, "{found}");
        assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn recall_counts_the_neighbours_that_stay() {
        let angle = |at: usize| {
            let angle = at as f32 * 0.05;
            vec![angle.cos(), angle.sin()]
        };
        let rows: Vec<Vec<f32>> = (0..12).map(angle).collect();
        assert_eq!(recall(&rows, &rows), 1.0);
        // Each text has 11 others and 10 neighbours: the farthest is none. For the last six it was the first, and is the sixth now.
        let mut turned = rows.clone();
        turned.swap(0, 5);
        assert_eq!(recall(&rows, &turned), 114.0 / 120.0);
    }

    #[test]
    fn texts_are_taken_from_the_whole_list() {
        let texts: Vec<String> = (0..10).map(|at| at.to_string()).collect();
        assert_eq!(spread(texts.clone(), 3), ["0", "3", "6"]);
        assert_eq!(spread(texts.clone(), 10), texts);
    }
}
