//! The summary of a trace, in numbers.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::load::{Batch, Loaded};
use super::path::{self, CriticalPath};
use super::requests::{self, RequestRow, Requests};

/// The summary of a trace. Times are in seconds.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub(super) file: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) producer: String,
    pub(super) events: u64,
    pub(super) spans: usize,
    /// From the first event to the last.
    pub(super) seconds: f64,
    /// By the time that they took together.
    pub(super) stages: Vec<Times>,
    /// Operators, or where there are none the names of all spans, by the same.
    pub(super) names: Vec<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) batches: Option<BatchFill>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requests: Option<Requests>,
    pub(super) slowest_requests: Vec<RequestRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) critical_path: Option<CriticalPath>,
    /// What was wrong with the trace.
    pub(super) faults: Vec<String>,
}

/// The times of one stage.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub(super) struct Times {
    pub(super) name: String,
    pub(super) count: usize,
    pub(super) total: f64,
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// All spans of one name.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) count: usize,
    pub(super) total: f64,
    /// Of the time of all that are listed here or would be.
    pub(super) share: f64,
}

/// How full batches were.
#[derive(Debug, Clone, Serialize)]
pub(super) struct BatchFill {
    pub(super) count: usize,
    /// Texts of a batch, on average.
    pub(super) mean_rows: f64,
    /// The batch that half of them have at most as many texts as.
    pub(super) p50_rows: u64,
    pub(super) most_rows: u64,
    /// Requests whose texts a batch has, on average.
    pub(super) mean_requests: f64,
    pub(super) tokens: u64,
    /// Rows times the longest row, added up.
    pub(super) positions: u64,
    /// The part of the positions that are tokens; the rest is padding, which the portable engine does
    /// not compute.
    pub(super) fill: f64,
}

impl Summary {
    /// Counts a trace up; `top` lines of each list.
    pub fn new(file: String, loaded: &Loaded, top: usize) -> Self {
        let stages = stages(loaded);
        let rows = requests::rows(loaded);
        let mut slowest = rows.clone();
        slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        slowest.truncate(top);
        Self {
            file,
            producer: loaded.producer.clone(),
            events: loaded.events,
            spans: loaded.spans.len(),
            seconds: loaded.extent / 1e6,
            stages,
            names: names(loaded, top),
            batches: fill(loaded),
            requests: Requests::of(&rows),
            critical_path: path::critical(loaded, slowest.first(), top),
            slowest_requests: slowest,
            faults: loaded.faults.sentences(),
        }
    }
}

fn stages(loaded: &Loaded) -> Vec<Times> {
    let mut by_stage: HashMap<u32, Vec<f64>> = HashMap::new();
    for span in &loaded.spans {
        by_stage
            .entry(span.stage)
            .or_default()
            .push(span.took / 1e6);
    }
    let times = by_stage.into_iter();
    let mut stages: Vec<Times> = times
        .map(|(stage, times)| Times::of(loaded.word(stage), times))
        .collect();
    stages.sort_by(|a, b| b.total.total_cmp(&a.total).then(a.name.cmp(&b.name)));
    stages
}

impl Times {
    pub(super) fn of(name: &str, mut seconds: Vec<f64>) -> Self {
        seconds.sort_unstable_by(f64::total_cmp);
        let total: f64 = seconds.iter().sum();
        Self {
            name: name.to_owned(),
            count: seconds.len(),
            total,
            mean: total / seconds.len().max(1) as f64,
            p50: at(&seconds, 0.5),
            p99: at(&seconds, 0.99),
            max: seconds.last().copied().unwrap_or(0.0),
        }
    }
}

/// The value that this part of the sorted ones is at most as large as.
pub(super) fn at<T: Copy + Default>(sorted: &[T], part: f64) -> T {
    let place = (sorted.len() as f64 * part).ceil() as usize;
    sorted
        .get(place.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

fn names(loaded: &Loaded, top: usize) -> Vec<Named> {
    let operator = loaded.number("operator");
    let has_any = loaded.spans.iter().any(|span| Some(span.stage) == operator);
    let mut all = 0.0;
    let mut by_name: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    for span in &loaded.spans {
        if has_any && Some(span.stage) != operator {
            continue;
        }
        let (count, total) = by_name.entry(span.name).or_default();
        *count += 1;
        *total += span.took / 1e6;
        all += span.took / 1e6;
    }
    let mut names: Vec<Named> = by_name
        .into_iter()
        .map(|(name, (count, total))| Named {
            name: loaded.word(name).to_owned(),
            count,
            total,
            share: if all > 0.0 { total / all } else { 0.0 },
        })
        .collect();
    names.sort_by(|a, b| b.total.total_cmp(&a.total).then(a.name.cmp(&b.name)));
    names.truncate(top);
    names
}

fn fill(loaded: &Loaded) -> Option<BatchFill> {
    let stage = loaded.number("batch");
    let spans = loaded.spans.iter();
    let of_batches = spans.filter(|span| Some(span.stage) == stage && span.batch > 0);
    let batches: Vec<&Batch> = of_batches
        .filter_map(|span| loaded.batches.get(span.batch as usize - 1))
        .collect();
    if batches.is_empty() {
        return None;
    }
    let count = batches.len() as f64;
    let mut rows: Vec<u64> = batches.iter().map(|batch| batch.rows).collect();
    rows.sort_unstable();
    let requests: usize = batches.iter().map(|batch| batch.requests.len()).sum();
    // What a trace says need not be true, nor add up to a number of 64 bits.
    let sum = |of: fn(&Batch) -> u64| {
        let numbers = batches.iter().map(|batch| of(batch));
        numbers.fold(0, u64::saturating_add)
    };
    let (tokens, positions) = (sum(|batch| batch.tokens), sum(|batch| batch.positions));
    Some(BatchFill {
        count: batches.len(),
        mean_rows: rows.iter().map(|&rows| rows as f64).sum::<f64>() / count,
        p50_rows: at(&rows, 0.5),
        most_rows: at(&rows, 1.0),
        mean_requests: requests as f64 / count,
        tokens,
        positions,
        fill: tokens as f64 / (positions as f64).max(1.0),
    })
}
