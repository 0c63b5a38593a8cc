//! Requests, and where each one's time went.

use std::collections::HashMap;

use serde::Serialize;

use super::load::{Loaded, Span};
use super::summary::Times;

/// A request. Times are in seconds.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RequestRow {
    pub(super) request: u64,
    /// Since the trace's first event.
    pub(super) start: f64,
    pub(super) seconds: f64,
    pub(super) texts: u64,
    pub(super) ended: String,
    pub(super) tokenize: f64,
    pub(super) queue: f64,
    /// While any of its texts was in a batch.
    pub(super) batch: f64,
    /// What is none of these.
    pub(super) other: f64,
    /// Batches that its texts were in.
    pub(super) batches: usize,
}

/// All requests.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Requests {
    pub(super) well: usize,
    pub(super) failed: usize,
    pub(super) cancelled: usize,
    /// Requests a second, from the first one's start to the last one's end.
    pub(super) per_second: f64,
    pub(super) times: Times,
}

impl Requests {
    pub(super) fn of(rows: &[RequestRow]) -> Option<Self> {
        if rows.is_empty() {
            return None;
        }
        let ended = |how: &str| rows.iter().filter(|row| row.ended == how).count();
        let start = rows
            .iter()
            .map(|row| row.start)
            .fold(f64::INFINITY, f64::min);
        let end = rows.iter().map(|row| row.start + row.seconds);
        let extent = end.fold(0.0, f64::max) - start;
        Some(Self {
            well: ended("well"),
            failed: ended("failed"),
            cancelled: ended("cancelled"),
            per_second: if extent > 0.0 {
                rows.len() as f64 / extent
            } else {
                0.0
            },
            times: Times::of("request", rows.iter().map(|row| row.seconds).collect()),
        })
    }
}

/// Every request whose own span is in the trace, by when it began.
pub(super) fn rows(loaded: &Loaded) -> Vec<RequestRow> {
    let stages = ["request", "tokenize", "queue", "batch"].map(|stage| loaded.number(stage));
    let [request, tokenize, queue, batch] = stages;
    let mut of_batches: HashMap<u64, Vec<&Span>> = HashMap::new();
    let mut own: HashMap<u32, [f64; 2]> = HashMap::new();
    for span in &loaded.spans {
        let stage = Some(span.stage);
        if stage == batch && span.batch > 0 {
            let requests = loaded.batches.get(span.batch as usize - 1);
            for id in requests.iter().flat_map(|batch| &batch.requests) {
                of_batches.entry(*id).or_default().push(span);
            }
        } else if span.request > 0 && (stage == tokenize || stage == queue) {
            own.entry(span.request).or_default()[usize::from(stage == queue)] += span.took;
        }
    }
    let spans = loaded.spans.iter();
    let spans = spans.filter(|span| Some(span.stage) == request && span.request > 0);
    let mut rows: Vec<RequestRow> = spans
        .filter_map(|span| {
            let known = loaded.requests.get(span.request as usize - 1)?;
            let batches = of_batches.get(&known.id).map_or(&[][..], Vec::as_slice);
            let [tokenize, queue] = own.get(&span.request).copied().unwrap_or_default();
            let in_batches = covered(batches, span);
            let other = span.took - tokenize - queue - in_batches;
            Some(RequestRow {
                request: known.id,
                start: span.start / 1e6,
                seconds: span.took / 1e6,
                texts: known.texts,
                ended: known.ended.clone(),
                tokenize: tokenize / 1e6,
                queue: queue / 1e6,
                batch: in_batches / 1e6,
                other: other.max(0.0) / 1e6,
                batches: batches.len(),
            })
        })
        .collect();
    rows.sort_by(|a, b| a.start.total_cmp(&b.start));
    rows
}

/// The time within `span` in which any of these was under way.
fn covered(batches: &[&Span], span: &Span) -> f64 {
    let mut times: Vec<(f64, f64)> = batches
        .iter()
        .map(|batch| (batch.start.max(span.start), batch.end().min(span.end())))
        .filter(|(start, end)| start < end)
        .collect();
    times.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut covered, mut until) = (0.0, f64::NEG_INFINITY);
    for (start, end) in times {
        covered += (end - start.max(until)).max(0.0);
        until = until.max(end);
    }
    covered
}
