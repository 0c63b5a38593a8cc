//! Measures a list of texts: planned by isovec, one by one, and in unsorted batches.

use std::fmt;
use std::time::Instant;

use isovec::blocking::Embedder;
use isovec::{Cancel, EmbedOptions};
use serde::Serialize;

use super::figure::{Figure, Of, Part};
use super::plan::Plan;
use super::turns::{Contestant, middle};
use super::{again, turns};
use crate::args::Bench;
use crate::error::Result;

/// Rows of a batch where nothing is sorted: many programs' default.
const IN_ORDER: usize = 32;
/// The longest text of each band, in tokens; the last band has no end.
const BANDS: [usize; 6] = [16, 32, 64, 128, 256, usize::MAX];
/// What all texts are embedded by.
const WAYS: [&str; 3] = [
    "isovec, in one call",
    "one text at a time",
    "batches of 32 in the given order",
];
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
    #[serde(flatten)]
    pub(super) lengths: Lengths,
    pub(super) texts: usize,
    pub(super) planned_texts_per_second: f64,
    pub(super) one_by_one_texts_per_second: f64,
}

/// Tokens of a band's texts.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Lengths {
    from: usize,
    /// `None` for the last band, which has no end.
    longest: Option<usize>,
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
    let groups = groups(&chosen, &lengths);
    let mut contestants = vec![
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
    for group in &groups {
        contestants.push(whole(embedder, &group.texts, &options));
        contestants.push(one_by_one(embedder, &group.texts, &options));
    }
    // All of them in the same rounds: turns of one thing are then spread over the whole time, and a slow moment does
    // not look like a slow band.
    let seconds = turns::take(plan.options.rounds, cancel, &mut contestants)?;
    let (of_ways, of_bands) = seconds.split_at(WAYS.len());
    let mut figures: Vec<Figure> = WAYS
        .into_iter()
        .zip(of_ways)
        .filter_map(|(name, seconds)| {
            Figure::new(Part::Offline, name, Of::Time, chosen.len(), seconds)
        })
        .collect();
    let ways = WAYS.into_iter().zip(padding).zip(of_ways);
    let ways = ways.map(|((name, padding), seconds)| {
        let seconds = middle(seconds).max(f64::MIN_POSITIVE);
        Way {
            name,
            texts_per_second: chosen.len() as f64 / seconds,
            tokens_per_second: tokens as f64 / seconds,
            padding,
        }
    });
    let of_groups = || groups.iter().zip(of_bands.chunks_exact(2));
    figures.extend(of_groups().flat_map(|(group, seconds)| group.figures(seconds)));
    let offline = Offline {
        texts: chosen.len(),
        given: texts.len(),
        tokens,
        ways: ways.collect(),
        bands: of_groups()
            .map(|(group, seconds)| group.band(seconds))
            .collect(),
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

/// The texts of a band.
struct Group<'a> {
    lengths: Lengths,
    texts: Vec<&'a String>,
}

/// The texts by their lengths, without the bands that have none.
fn groups<'a>(texts: &[&'a String], lengths: &[usize]) -> Vec<Group<'a>> {
    let mut shorter = 0;
    let groups = BANDS.map(|longest| {
        let from = shorter + 1;
        shorter = longest;
        let own = texts.iter().zip(lengths);
        let own = own.filter(|&(_, &tokens)| tokens >= from && tokens <= longest);
        Group {
            lengths: Lengths {
                from,
                longest: (longest != usize::MAX).then_some(longest),
            },
            texts: own.map(|(&text, _)| text).collect(),
        }
    });
    let some = |group: &Group<'_>| !group.texts.is_empty();
    groups.into_iter().filter(some).collect()
}

impl Group<'_> {
    /// Of the turns in one call, and of those one at a time.
    fn figures(&self, seconds: &[Vec<f64>]) -> Vec<Figure> {
        let ways = ["in one call", "one at a time"].into_iter().zip(seconds);
        ways.filter_map(|(way, seconds)| {
            let name = format!("{} tokens, {way}", self.lengths);
            Figure::new(Part::Lengths, name, Of::Time, self.texts.len(), seconds)
        })
        .collect()
    }

    fn band(&self, seconds: &[Vec<f64>]) -> Band {
        let rate = |way: usize| {
            let seconds = seconds.get(way).map_or(0.0, |seconds| middle(seconds));
            self.texts.len() as f64 / seconds.max(f64::MIN_POSITIVE)
        };
        Band {
            lengths: self.lengths,
            texts: self.texts.len(),
            planned_texts_per_second: rate(0),
            one_by_one_texts_per_second: rate(1),
        }
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.longest {
            Some(longest) => write!(f, "{} to {longest}", self.from),
            None => write!(f, "{} and more", self.from),
        }
    }
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

    #[test]
    fn a_band_says_the_same_as_its_figures_where_shorter_ones_have_no_texts() {
        let text = "a text".to_owned();
        let groups = groups(&[&text; 4], &[100, 100, 100, 300]);
        // The middle of an even number of turns lies between two of them.
        let turns = [[1.0; 4], [2.0; 4]].concat();
        let seconds = [turns.clone(), turns];
        let said: Vec<_> = groups
            .iter()
            .map(|group| {
                let (band, figures) = (group.band(&seconds), group.figures(&seconds));
                assert_eq!(
                    figures[0].key.name,
                    format!("{} tokens, in one call", band.lengths)
                );
                for (figure, rate) in figures.iter().zip([
                    band.planned_texts_per_second,
                    band.one_by_one_texts_per_second,
                ]) {
                    assert_eq!(figure.texts_per_second(), rate);
                }
                let json = serde_json::to_value(&band).unwrap();
                (
                    band.lengths.to_string(),
                    json["from"].as_u64(),
                    json["longest"].as_u64(),
                    band.planned_texts_per_second,
                )
            })
            .collect();
        assert_eq!(
            said,
            [
                ("65 to 128".to_owned(), Some(65), Some(128), 3.0 / 1.5),
                ("257 and more".to_owned(), Some(257), None, 1.0 / 1.5),
            ]
        );
    }
}
