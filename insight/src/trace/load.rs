//! The requested spans of a file: numbers and interned names, about 40 bytes each.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use super::TraceError;
use super::faults::Faults;
use super::reader::{Pass, Window, pass};

/// What is kept, at most, whatever is in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Spans, those that have not ended yet among them.
    pub(super) spans: usize,
    /// Different names of spans and stages: some programs write numbers into them.
    pub(super) words: usize,
    /// Threads, requests and batches, of each so many.
    pub(super) entries: usize,
    /// Requests of all batches together.
    pub(super) shares: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            spans: 3_000_000,
            words: 200_000,
            entries: 1_000_000,
            shares: 4_000_000,
        }
    }
}

/// The part of a trace to load.
#[derive(Debug, Default, Clone)]
pub struct Filter {
    /// Spans of these stages alone; all where it is empty.
    pub stages: Vec<String>,
    /// Spans that end after this time since the trace's first event.
    pub start: Option<Duration>,
    /// Spans that begin before this time since the trace's first event.
    pub end: Option<Duration>,
    /// Spans of this request, and of the batches that its texts were in.
    pub request: Option<u64>,
}

/// A span. Times are in microseconds since the trace's first event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub(super) start: f64,
    pub(super) took: f64,
    /// In [`Loaded::words`].
    pub(super) name: u32,
    pub(super) stage: u32,
    pub(super) track: u32,
    /// One more than its place in [`Loaded::requests`] and [`Loaded::batches`]; 0: none.
    pub(super) request: u32,
    pub(super) batch: u32,
}

impl Span {
    pub(super) fn end(&self) -> f64 {
        self.start + self.took
    }
}

/// A request of our own traces.
#[derive(Debug, Default, Clone)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) texts: u64,
    pub(super) ended: String,
}

/// A batch of our own traces.
#[derive(Debug, Default, Clone)]
pub(super) struct Batch {
    pub(super) rows: u64,
    pub(super) tokens: u64,
    pub(super) positions: u64,
    /// Ids of the requests whose texts are in it.
    pub(super) requests: Vec<u64>,
}

/// A trace that was read.
#[derive(Debug, Default)]
pub struct Loaded {
    pub(super) producer: String,
    /// Events of all kinds.
    pub(super) events: u64,
    /// From the first event to the last, in microseconds.
    pub(super) extent: f64,
    pub(super) spans: Vec<Span>,
    pub(super) words: Vec<String>,
    pub(super) requests: Vec<Request>,
    pub(super) batches: Vec<Batch>,
    pub(super) faults: Faults,
}

impl Loaded {
    pub(super) fn word(&self, number: u32) -> &str {
        self.words.get(number as usize).map_or("", String::as_str)
    }

    /// The number of a word, if any span has it.
    pub(super) fn number(&self, word: &str) -> Option<u32> {
        let at = self.words.iter().position(|one| one == word)?;
        u32::try_from(at).ok()
    }
}

/// Reads a trace from a file.
///
/// # Errors
/// [`TraceError`] for a file that cannot be opened or is no trace, and for a filter that leaves nothing.
pub fn load(path: &Path, filter: &Filter) -> Result<Loaded, TraceError> {
    load_from(|| File::open(path), filter, Limits::default())
}

/// The whole of a trace, from whatever can be opened again.
///
/// # Errors
/// As [`load`].
pub fn load_all<R: Read>(open: impl Fn() -> io::Result<R>) -> Result<Loaded, TraceError> {
    load_from(open, &Filter::default(), Limits::default())
}

/// The same from whatever can be opened again.
pub(super) fn load_from<R: Read>(
    open: impl Fn() -> io::Result<R>,
    filter: &Filter,
    limits: Limits,
) -> Result<Loaded, TraceError> {
    // Where the trace begins is known when all of it was read: traces are not in order.
    let windowed = filter.start.is_some() || filter.end.is_some();
    let first = match windowed {
        true => pass(open()?, Pass::FindStart, limits)?.first,
        false => None,
    };
    let micros = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e6);
    let from = first.unwrap_or(0.0) + micros(filter.start).unwrap_or(f64::NEG_INFINITY);
    let to = first.unwrap_or(0.0) + micros(filter.end).unwrap_or(f64::INFINITY);
    let mut reader = pass(open()?, Pass::Keep(Window { from, to }), limits)?;
    let mut loaded = std::mem::take(&mut reader.loaded);
    let begin = first.or(reader.first).unwrap_or(0.0);
    for span in &mut loaded.spans {
        span.start -= begin;
    }
    loaded.extent = reader.last.map_or(0.0, |last| last - begin);
    if let Some(id) = filter.request {
        only_request(&mut loaded, id);
    }
    loaded.faults.crossing = crossing(&mut loaded.spans);
    if !filter.stages.is_empty() {
        let stages: HashSet<u32> = filter
            .stages
            .iter()
            .filter_map(|stage| loaded.number(stage))
            .collect();
        loaded.spans.retain(|span| stages.contains(&span.stage));
    }
    if loaded.spans.is_empty() && !reader.stages.are_none() {
        return Err(TraceError::NothingLeft {
            stages: reader.stages.named(&loaded),
            seconds: loaded.extent / 1e6,
        });
    }
    Ok(loaded)
}

/// Leaves a request's own spans, and those of batches that its texts were in.
fn only_request(loaded: &mut Loaded, id: u64) {
    let batches = &loaded.batches;
    let own: HashSet<u32> = (0..)
        .zip(&loaded.requests)
        .filter(|(_, request)| request.id == id)
        .map(|(at, _)| at + 1)
        .collect();
    let with_it: HashSet<u32> = (0..)
        .zip(batches)
        .filter(|(_, batch)| batch.requests.contains(&id))
        .map(|(at, _)| at + 1)
        .collect();
    let spans = &mut loaded.spans;
    spans.retain(|span| own.contains(&span.request) || with_it.contains(&span.batch));
}

/// Puts spans into order by track and time, and counts those that cross another one.
fn crossing(spans: &mut [Span]) -> u64 {
    /// Writers round their times to microseconds.
    const ROUNDING: f64 = 2.0;
    spans.sort_unstable_by(|a, b| {
        let by_start = a.track.cmp(&b.track).then(a.start.total_cmp(&b.start));
        by_start.then(b.took.total_cmp(&a.took))
    });
    let (mut crossing, mut track) = (0, None);
    let mut around: Vec<f64> = Vec::new();
    for span in spans.iter().filter(|span| span.track != ASYNCHRONOUS) {
        if track != Some(span.track) {
            track = Some(span.track);
            around.clear();
        }
        while around.pop_if(|end| *end <= span.start).is_some() {}
        match around.last() {
            Some(&end) if span.end() > end + ROUNDING && span.start < end - ROUNDING => {
                crossing += 1;
            }
            _ => {}
        }
        around.push(span.end());
    }
    crossing
}

/// The track of spans that may overlap; threads count from 1.
pub(super) const ASYNCHRONOUS: u32 = 0;
