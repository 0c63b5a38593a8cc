//! From a file to spans: numbers and interned names, some 40 bytes each.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::TraceError;
use super::event::{Any, RawEvent};
use super::faults::Faults;
use super::json::{Got, Json, read};

/// Spans that are kept, at most.
const MOST: usize = 3_000_000;

/// What of a trace is looked at.
#[derive(Debug, Default, Clone)]
pub(crate) struct Filter {
    pub(crate) stages: Vec<String>,
    /// Since the trace's first event.
    pub(crate) start: Option<Duration>,
    pub(crate) end: Option<Duration>,
    pub(crate) request: Option<u64>,
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
pub(crate) struct Loaded {
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

/// Reads a trace.
pub(crate) fn load(path: &Path, filter: &Filter) -> Result<Loaded, TraceError> {
    load_from(|| File::open(path), filter)
}

/// The same from whatever can be opened again.
pub(super) fn load_from<R: Read>(
    open: impl Fn() -> io::Result<R>,
    filter: &Filter,
) -> Result<Loaded, TraceError> {
    // Where the trace begins is known when all of it was read: traces are not in order.
    let windowed = filter.start.is_some() || filter.end.is_some();
    let first = match windowed {
        true => pass(open()?, Pass::FindStart)?.first,
        false => None,
    };
    let micros = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e6);
    let from = first.unwrap_or(0.0) + micros(filter.start).unwrap_or(f64::NEG_INFINITY);
    let to = first.unwrap_or(0.0) + micros(filter.end).unwrap_or(f64::INFINITY);
    let mut reader = pass(open()?, Pass::Keep { from, to })?;
    reader.leave_open();
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
    if loaded.spans.is_empty() && !reader.stages.is_empty() {
        let stages = reader.stages.iter().map(|&stage| loaded.word(stage));
        return Err(TraceError::NothingLeft {
            stages: stages.collect::<Vec<_>>().join(", "),
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

/// The track of spans that may overlap.
const ASYNCHRONOUS: u32 = 0;

/// What is done with the events.
#[derive(Debug, Clone, Copy)]
enum Pass {
    FindStart,
    Keep { from: f64, to: f64 },
}

fn pass(file: impl Read, pass: Pass) -> Result<Reader, TraceError> {
    let mut json = Json::new(file);
    let mut reader = Reader::new(pass);
    match json.peek()? {
        None => return Err(TraceError::Empty),
        Some(0x1f) => return Err(TraceError::Packed),
        Some(b'[') => {
            json.take(b'[')?;
            reader.array(&mut json)?;
        }
        Some(b'{') => {
            json.take(b'{')?;
            reader.object(&mut json)?;
        }
        Some(byte) => {
            let begins = char::from(byte).escape_default();
            return Err(TraceError::NoTrace(format!("it begins with {begins}")));
        }
    }
    Ok(reader)
}

/// What is known of the whole trace.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OtherData {
    producer: String,
    dropped: u64,
}

/// A span that has begun.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: f64,
    name: u32,
    stage: u32,
    request: u32,
    batch: u32,
}

/// Takes events in.
struct Reader {
    pass: Pass,
    loaded: Loaded,
    numbers: HashMap<String, u32>,
    tracks: HashMap<(u64, u64), u32>,
    requests: HashMap<u64, u32>,
    batches: HashMap<u64, u32>,
    /// Open spans of threads, and of what has an id.
    open: HashMap<u32, Vec<Open>>,
    open_by_id: HashMap<(u32, u32, u64), Vec<Open>>,
    /// Stages of all spans, those that the filter leaves out too.
    stages: BTreeSet<u32>,
    first: Option<f64>,
    last: Option<f64>,
}

impl Reader {
    fn new(pass: Pass) -> Self {
        Self {
            pass,
            loaded: Loaded::default(),
            numbers: HashMap::new(),
            tracks: HashMap::new(),
            requests: HashMap::new(),
            batches: HashMap::new(),
            open: HashMap::new(),
            open_by_id: HashMap::new(),
            stages: BTreeSet::new(),
            first: None,
            last: None,
        }
    }

    /// The events of an array, up to its end or the cut.
    fn array(&mut self, json: &mut Json<impl Read>) -> Result<bool, TraceError> {
        loop {
            if json.take(b']')? {
                return Ok(true);
            }
            match json.value(|bytes| read(bytes, |event| self.event(&event)))? {
                Got::Value(()) => {}
                Got::Other => self.loaded.faults.no_events += 1,
                Got::Cut if json.peek()?.is_none() => {
                    return self.cut(json, "its array has no end");
                }
                Got::Cut => return self.cut(json, "an event is not whole"),
                Got::Broken(why) => return self.cut(json, &format!("it is no JSON ({why})")),
            }
            if !json.take(b',')? && json.peek()? != Some(b']') {
                return self.cut(json, "its array has no end");
            }
        }
    }

    /// The fields of an object, of which one holds the events.
    fn object(&mut self, json: &mut Json<impl Read>) -> Result<(), TraceError> {
        let mut found = false;
        while !json.take(b'}')? {
            let Got::Value(key) = json.value(|bytes| read(bytes, |key: String| key))? else {
                self.cut(json, "a field has no name")?;
                break;
            };
            if !json.take(b':')? {
                self.cut(json, "a field has no value")?;
                break;
            }
            let whole = match key.as_str() {
                "traceEvents" if json.take(b'[')? => {
                    found = true;
                    self.array(json)?
                }
                "otherData" => {
                    let got = json.value(|bytes| read(bytes, |data: OtherData| data))?;
                    let whole = !matches!(got, Got::Cut | Got::Broken(_));
                    if let Got::Value(data) = got {
                        self.loaded.producer = data.producer;
                        self.loaded.faults.dropped = data.dropped;
                    }
                    whole || self.cut(json, "a field is not whole")?
                }
                _ => match json.skip::<()>()? {
                    Got::Value(()) | Got::Other => true,
                    Got::Cut | Got::Broken(_) => self.cut(json, "a field is not whole")?,
                },
            };
            if !whole {
                break;
            }
            if !json.take(b',')? && json.peek()? != Some(b'}') {
                self.cut(json, "the object has no end")?;
                break;
            }
        }
        match found {
            true => Ok(()),
            false => {
                let why = match &self.loaded.faults.cut {
                    Some((at, why)) => format!("it ends at byte {at} ({why}), before traceEvents"),
                    None => "it has no list traceEvents".into(),
                };
                Err(TraceError::NoTrace(why))
            }
        }
    }

    /// Notes that there is nothing to read any more.
    fn cut(&mut self, json: &Json<impl Read>, why: &str) -> Result<bool, TraceError> {
        let cut = &mut self.loaded.faults.cut;
        cut.get_or_insert_with(|| (json.position(), why.to_owned()));
        Ok(false)
    }

    fn event(&mut self, event: &RawEvent<'_>) {
        let kind = event.ph.text();
        if kind.is_empty() {
            self.loaded.faults.no_events += 1;
            return;
        }
        self.loaded.events += 1;
        if kind == "M" {
            return;
        }
        let Some(ts) = event.ts.number() else {
            self.loaded.faults.no_time += 1;
            return;
        };
        let took = event.dur.number();
        self.first = Some(self.first.map_or(ts, |first| first.min(ts)));
        let end = ts + took.unwrap_or(0.0).max(0.0);
        self.last = Some(self.last.map_or(end, |last| last.max(end)));
        let Pass::Keep { from, to } = self.pass else {
            return;
        };
        match kind {
            "X" => {
                let opened = self.opened(event, ts);
                let track = self.track(event);
                self.close(opened, ts + took.unwrap_or(0.0), track, from, to);
            }
            "B" => {
                let opened = self.opened(event, ts);
                let track = self.track(event);
                self.open.entry(track).or_default().push(opened);
            }
            "E" => {
                let track = self.track(event);
                match self.open.get_mut(&track).and_then(Vec::pop) {
                    Some(opened) => self.close(opened, ts, track, from, to),
                    None => self.loaded.faults.ends += 1,
                }
            }
            "b" | "S" => {
                let opened = self.opened(event, ts);
                let key = (opened.stage, opened.name, event.id.identity());
                self.open_by_id.entry(key).or_default().push(opened);
            }
            "e" | "F" => {
                let key = (
                    self.stage(event).0,
                    self.intern(event.name.text()),
                    event.id.identity(),
                );
                match self.open_by_id.get_mut(&key).and_then(Vec::pop) {
                    Some(opened) => self.close(opened, ts, ASYNCHRONOUS, from, to),
                    None => self.loaded.faults.ends += 1,
                }
            }
            // Moments, numbers, arrows, samples, objects, marks, contexts.
            "i" | "I" | "R" | "n" | "T" | "p" | "C" | "s" | "t" | "f" | "P" | "N" | "O" | "D"
            | "V" | "v" | "c" | "(" | ")" | "=" => {}
            other => self.loaded.faults.is_unknown(other),
        }
    }

    /// What an event says of its span, but for its end.
    fn opened(&mut self, event: &RawEvent<'_>, start: f64) -> Open {
        let (stage, name) = self.stage(event);
        let request = self.request(event);
        let batch = self.batch(event);
        Open {
            start,
            name: name.unwrap_or_else(|| self.intern(event.name.text())),
            stage,
            request,
            batch,
        }
    }

    fn close(&mut self, opened: Open, end: f64, track: u32, from: f64, to: f64) {
        let Open {
            start,
            name,
            stage,
            request,
            batch,
        } = opened;
        let took = end - start;
        self.loaded.faults.negative += u64::from(took < 0.0);
        self.stages.insert(stage);
        if end.max(start) < from || start > to {
            return;
        }
        if self.loaded.spans.len() == MOST {
            self.loaded.faults.too_many += 1;
            return;
        }
        self.loaded.spans.push(Span {
            start,
            took: took.max(0.0),
            name,
            stage,
            track,
            request,
            batch,
        });
    }

    /// An event's stage: our traces write it as the category. ONNX Runtime's categories are fewer
    /// than the things that it measures; its operators get a name that several nodes share.
    fn stage(&mut self, event: &RawEvent<'_>) -> (u32, Option<u32>) {
        let name = event.name.text();
        match event.cat.text() {
            "" => (self.intern("other"), None),
            "Node" if name.ends_with("_kernel_time") => {
                let operator = match event.args.op_name.text() {
                    "" => name.trim_end_matches("_kernel_time"),
                    operator => operator,
                };
                (self.intern("operator"), Some(self.intern(operator)))
            }
            "Node" => (self.intern("fence"), None),
            "Session" if name == "model_run" => (self.intern("run"), None),
            "Session" => (self.intern("session"), None),
            other => (self.intern(other), None),
        }
    }

    fn request(&mut self, event: &RawEvent<'_>) -> u32 {
        let Some(id) = event.args.request.count() else {
            return 0;
        };
        let requests = &mut self.loaded.requests;
        let place = *self.requests.entry(id).or_insert_with(|| {
            requests.push(Request {
                id,
                ..Request::default()
            });
            requests.len() as u32
        });
        if let (Some(request), "request") = (requests.get_mut(place as usize - 1), event.cat.text())
        {
            request.texts = event.args.texts.count().unwrap_or(0);
            request.ended = event.args.ended.text().to_owned();
        }
        place
    }

    fn batch(&mut self, event: &RawEvent<'_>) -> u32 {
        let Some(id) = event.args.batch.count() else {
            return 0;
        };
        let batches = &mut self.loaded.batches;
        let place = *self.batches.entry(id).or_insert_with(|| {
            batches.push(Batch::default());
            batches.len() as u32
        });
        if let (Some(batch), Any::List(requests)) =
            (batches.get_mut(place as usize - 1), &event.args.requests)
        {
            let count = |of: &Any<'_>| of.count().unwrap_or(0);
            batch.rows = count(&event.args.rows);
            batch.tokens = count(&event.args.tokens);
            batch.positions = count(&event.args.positions);
            batch.requests.clone_from(requests);
        }
        place
    }

    fn track(&mut self, event: &RawEvent<'_>) -> u32 {
        let next = self.tracks.len() as u32 + ASYNCHRONOUS + 1;
        let key = (event.pid.identity(), event.tid.identity());
        *self.tracks.entry(key).or_insert(next)
    }

    fn intern(&mut self, word: &str) -> u32 {
        /// Different names, at most: some programs write numbers into them.
        const MOST_WORDS: usize = 200_000;
        if let Some(&number) = self.numbers.get(word) {
            return number;
        }
        let full = self.loaded.words.len() >= MOST_WORDS;
        let word = if full { "(others)" } else { word };
        if let Some(&number) = self.numbers.get(word) {
            return number;
        }
        let number = self.loaded.words.len() as u32;
        self.loaded.words.push(word.to_owned());
        self.numbers.insert(word.to_owned(), number);
        number
    }

    /// Counts the spans that never ended.
    fn leave_open(&mut self) {
        let open = self.open.values().chain(self.open_by_id.values());
        self.loaded.faults.open = open.map(|open| open.len() as u64).sum();
    }
}
