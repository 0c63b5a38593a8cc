//! All texts at hand: planned by isovec, one by one, and as programs do that do not sort.

use std::time::Instant;

use isovec::blocking::Embedder;
use isovec::{Cancel, EmbedOptions};
use serde::Serialize;

use super::figure::{Figure, Of, Part};
use super::plan::Plan;
use super::turns::{Contestant, quantile};
use super::{again, turns};
use crate::args::Bench;
use crate::error::Result;

/// Rows of a batch where nothing is sorted: many programs' default.
const IN_ORDER: usize = 32;
/// The longest text of each band, in tokens; the last band has no end.
const BANDS: [usize; 6] = [16, 32, 64, 128, 256, usize::MAX];
/// Texts by which it is judged how many a turn has time for.
const PROBE: usize = 64;

/// What came of them.
#[derive(Debug, Serialize)]
pub(super) struct Offline {
    /// Texts of a turn, out of those given.
    pub(super) texts: usize,
    pub(super) given: usize,
    pub(super) tokens: usize,
    pub(super) ways: Vec<Way>,
    pub(super) bands: Vec<Band>,
}

/// A way to embed them.
#[derive(Debug, Serialize)]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) texts_per_second: f64,
    pub(super) tokens_per_second: f64,
    /// Of what was computed.
    pub(super) padding: f64,
}

/// Texts of about one length.
#[derive(Debug, Serialize)]
pub(super) struct Band {
    pub(super) longest: Option<usize>,
    pub(super) texts: usize,
    pub(super) planned_texts_per_second: f64,
    pub(super) one_by_one_texts_per_second: f64,
}

/// Measures them in turns.
pub(super) fn compare(
    args: &Bench,
    plan: &Plan,
    embedder: &Embedder,
    texts: &[String],
    cancel: &Cancel,
) -> Result<(Offline, Vec<Figure>)> {
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    let texts_a_turn = match plan.texts_a_turn {
        Some(count) => count,
        None => texts_a_turn(plan.options.seconds, embedder, texts, &options)?,
    };
    let chosen = spread(texts, texts_a_turn);
    let lengths: Vec<usize> = chosen
        .iter()
        .map(|text| Ok(embedder.count_tokens(text)?.min(embedder.max_length())))
        .collect::<Result<_>>()?;
    let tokens: usize = lengths.iter().sum();

    let in_order = again(args, cancel, |config| {
        config
            .with_batch_optimization(false)
            .with_max_batch_size(IN_ORDER)
    })?;
    let mut contestants = [
        whole(embedder, &chosen, &options),
        one_by_one(embedder, &chosen, &options),
        whole(&in_order, &chosen, &options),
    ];
    let mut padding = [0.0; 3];
    let embedders = [embedder, embedder, &in_order];
    for ((padding, contestant), embedder) in padding.iter_mut().zip(&mut contestants).zip(embedders)
    {
        *padding = padding_of(embedder, contestant)?;
    }
    let seconds = turns::take(plan.options.rounds, cancel, &mut contestants)?;
    let names = [
        "isovec, in one call",
        "one text at a time",
        "batches of 32 in the given order",
    ];
    let mut figures: Vec<Figure> = names
        .into_iter()
        .zip(&seconds)
        .filter_map(|(name, seconds)| {
            Figure::new(Part::Offline, name, Of::Time, chosen.len(), seconds)
        })
        .collect();
    let ways = names.into_iter().zip(padding).zip(&seconds);
    let ways = ways.map(|((name, padding), seconds)| {
        let seconds = quantile(seconds, 0.5).max(f64::MIN_POSITIVE);
        Way {
            name,
            texts_per_second: chosen.len() as f64 / seconds,
            tokens_per_second: tokens as f64 / seconds,
            padding,
        }
    });
    let (bands, of_bands) = bands(plan.options.rounds, embedder, &chosen, &lengths, cancel)?;
    figures.extend(of_bands);
    let offline = Offline {
        texts: chosen.len(),
        given: texts.len(),
        tokens,
        ways: ways.collect(),
        bands,
    };
    Ok((offline, figures))
}

/// The part of what a turn computes that is padding.
fn padding_of(embedder: &Embedder, contestant: &mut Contestant<'_>) -> Result<f64> {
    let before = embedder.stats().tokens;
    contestant()?;
    let mut own = embedder.stats().tokens;
    own.real -= before.real;
    own.padding -= before.padding;
    Ok(own.padding_ratio())
}

fn bands(
    rounds: usize,
    embedder: &Embedder,
    texts: &[&String],
    lengths: &[usize],
    cancel: &Cancel,
) -> Result<(Vec<Band>, Vec<Figure>)> {
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    let mut bands = Vec::new();
    let mut figures = Vec::new();
    let mut shorter = 0;
    for longest in BANDS {
        let own: Vec<&String> = texts
            .iter()
            .zip(lengths)
            .filter(|&(_, &tokens)| tokens > shorter && tokens <= longest)
            .map(|(&text, _)| text)
            .collect();
        let from = shorter + 1;
        shorter = longest;
        if own.is_empty() {
            continue;
        }
        let seconds = turns::take(
            rounds,
            cancel,
            &mut [
                whole(embedder, &own, &options),
                one_by_one(embedder, &own, &options),
            ],
        )?;
        let rate =
            |way: usize| own.len() as f64 / quantile(&seconds[way], 0.5).max(f64::MIN_POSITIVE);
        let of = match longest {
            usize::MAX => format!("{from} and more tokens"),
            longest => format!("{from} to {longest} tokens"),
        };
        for (way, seconds) in ["in one call", "one at a time"].into_iter().zip(&seconds) {
            let name = format!("{of}, {way}");
            figures.extend(Figure::new(
                Part::Lengths,
                name,
                Of::Time,
                own.len(),
                seconds,
            ));
        }
        bands.push(Band {
            longest: (longest != usize::MAX).then_some(longest),
            texts: own.len(),
            planned_texts_per_second: rate(0),
            one_by_one_texts_per_second: rate(1),
        });
    }
    Ok((bands, figures))
}

fn whole<'a>(
    embedder: &'a Embedder,
    texts: &'a [&'a String],
    options: &'a EmbedOptions,
) -> Contestant<'a> {
    Box::new(move || {
        embedder.embed_with(texts, options.clone())?;
        Ok(())
    })
}

fn one_by_one<'a>(
    embedder: &'a Embedder,
    texts: &'a [&'a String],
    options: &'a EmbedOptions,
) -> Contestant<'a> {
    Box::new(move || {
        for text in texts {
            embedder.embed_with([text], options.clone())?;
        }
        Ok(())
    })
}

/// How many texts a turn has time for, judged by a few that run one at a time.
fn texts_a_turn(
    seconds_a_turn: f64,
    embedder: &Embedder,
    texts: &[String],
    options: &EmbedOptions,
) -> Result<usize> {
    let few = spread(texts, PROBE);
    let mut probe = one_by_one(embedder, &few, options);
    probe()?;
    let started = Instant::now();
    probe()?;
    let seconds = started.elapsed().as_secs_f64().max(1e-9);
    Ok((few.len() as f64 * seconds_a_turn / seconds) as usize)
}

/// So many of the texts, at least one, from all parts of the list.
fn spread(texts: &[String], most: usize) -> Vec<&String> {
    let count = most.clamp(1, texts.len());
    (0..count)
        .map(|at| &texts[at * texts.len() / count])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_from_all_parts_of_the_list() {
        let texts: Vec<String> = (0..10).map(|text| text.to_string()).collect();
        assert_eq!(spread(&texts, 4), ["0", "2", "5", "7"]);
        assert_eq!(spread(&texts, 0), ["0"]);
        assert_eq!(spread(&texts, 99).len(), 10);
    }
}
