//! A profile as a Chrome trace, which Perfetto reads too
//! (<https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>).
//!
//! Spans on one track of that format have to lie within one another. Operators and runs do so on their threads,
//! except those of a device, where a thread sends a batch while another still runs. Requests and batches overlap, so
//! each gets a lane that is free while it lasts, and its events are drawn in that lane.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use web_time::SystemTime;

use super::event::{Detail, Event, Kind, Stage};
use super::session::Profile;

/// The number that all our events have for a process.
const PROCESS: u32 = 1;
/// Where the numbers of lanes begin; those below are of threads.
const REQUEST_LANES: u32 = 1_000_000;
const BATCH_LANES: u32 = 2_000_000;

impl Profile {
    /// Writes the profile as a Chrome trace: JSON with an event a line. Perfetto
    /// (<https://ui.perfetto.dev>), `chrome://tracing` and `isovec trace` read it.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn write_chrome_trace(&self, mut out: impl Write) -> io::Result<()> {
        let began = self.began.duration_since(SystemTime::UNIX_EPOCH);
        let head = Head {
            producer: concat!("isovec ", env!("CARGO_PKG_VERSION")),
            started_at_unix_ms: began.unwrap_or_default().as_secs_f64() * 1e3,
            seconds: self.took.as_secs_f64(),
            dropped: self.dropped,
        };
        out.write_all(b"{\"displayTimeUnit\":\"ms\",\"otherData\":")?;
        serde_json::to_writer(&mut out, &head)?;
        out.write_all(b",\"traceEvents\":[")?;
        let mut first = true;
        let mut line = |event: &Line<'_>| -> io::Result<()> {
            out.write_all(if first { b"\n" } else { b",\n" })?;
            first = false;
            Ok(serde_json::to_writer(&mut out, event)?)
        };
        let crossing = crossing(&self.events);
        let on = |event: &Event| on(event, &crossing);
        let requests = Lanes::new(&self.events, |event| on(event).request());
        let batches = Lanes::new(&self.events, |event| on(event).batch());
        line(&named("process_name", PROCESS, "isovec"))?;
        let mut names = self.threads.clone();
        for (first, what, lanes) in [
            (REQUEST_LANES, "requests", &requests),
            (BATCH_LANES, "batches", &batches),
        ] {
            let lanes = 0..lanes.count;
            names.extend(lanes.map(|lane| (first + lane, format!("{what} {}", lane + 1))));
        }
        for (thread, name) in &names {
            line(&named("thread_name", *thread, name))?;
        }
        for event in &self.events {
            let track = match on(event) {
                Track::Thread => event.thread,
                Track::Request(id) => REQUEST_LANES + requests.lane(id),
                Track::Batch(id) => BATCH_LANES + batches.lane(id),
            };
            line(&Line {
                name: &event.name,
                cat: event.stage.name(),
                ph: match event.kind {
                    Kind::Span { .. } => "X",
                    Kind::Instant => "i",
                    Kind::Counter { .. } => "C",
                },
                ts: micros(event.start),
                dur: match event.kind {
                    Kind::Span { took } => Some(micros(took)),
                    _ => None,
                },
                s: matches!(event.kind, Kind::Instant).then_some("t"),
                pid: PROCESS,
                tid: track,
                args: Args::Of(event),
            })?;
        }
        out.write_all(b"\n]}\n")?;
        out.flush()
    }

    /// The same as text.
    pub fn to_chrome_trace(&self) -> String {
        let mut text = Vec::new();
        // A vector takes all that is written.
        let _ = self.write_chrome_trace(&mut text);
        String::from_utf8(text).unwrap_or_default()
    }
}

/// What an event is drawn on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Track {
    Thread,
    Request(u64),
    Batch(u64),
}

impl Track {
    fn request(self) -> Option<u64> {
        match self {
            Self::Request(id) => Some(id),
            _ => None,
        }
    }

    fn batch(self) -> Option<u64> {
        match self {
            Self::Batch(id) => Some(id),
            _ => None,
        }
    }
}

/// Batches that were run while their thread's run before was not over.
fn crossing(events: &[Event]) -> HashSet<u64> {
    let mut crossing = HashSet::new();
    // Of each thread the run that lasts longest so far. The events are in the order of their start.
    let mut last: HashMap<u32, (Duration, u64)> = HashMap::new();
    for event in events.iter().filter(|event| event.stage == Stage::Run) {
        let Some(batch) = event.batch else { continue };
        let end = event.start + event.took();
        match last.get(&event.thread) {
            Some(&(before, other)) if event.start < before => {
                crossing.extend([batch, other]);
                last.insert(
                    event.thread,
                    (before.max(end), if end > before { batch } else { other }),
                );
            }
            _ => drop(last.insert(event.thread, (end, batch))),
        }
    }
    crossing
}

fn on(event: &Event, crossing: &HashSet<u64>) -> Track {
    match (event.stage, event.request, event.batch) {
        (Stage::Run | Stage::Operator, _, Some(batch)) if crossing.contains(&batch) => {
            Track::Batch(batch)
        }
        (Stage::Batch | Stage::Wait | Stage::Copy, _, Some(batch)) => Track::Batch(batch),
        (Stage::Request | Stage::Tokenize | Stage::Queue | Stage::Copy, Some(request), _) => {
            Track::Request(request)
        }
        _ => Track::Thread,
    }
}

/// Lanes: no two that share one are there at the same time.
#[derive(Default)]
struct Lanes {
    /// Of what each id tells apart: until when it lasts, and its lane.
    of: HashMap<u64, (Duration, Option<u32>)>,
    count: u32,
}

impl Lanes {
    /// Gives everything that `id` tells apart a lane. The events are in the order of their start.
    fn new(events: &[Event], id: impl Fn(&Event) -> Option<u64>) -> Self {
        let mut lanes = Self::default();
        for event in events {
            if let Some(id) = id(event) {
                let (end, _) = lanes.of.entry(id).or_default();
                *end = (*end).max(event.start + event.took());
            }
        }
        // Lanes, the one that is free first in front.
        let mut taken: BinaryHeap<Reverse<(Duration, u32)>> = BinaryHeap::new();
        for event in events {
            let Some((end, lane @ None)) = id(event).and_then(|id| lanes.of.get_mut(&id)) else {
                continue;
            };
            let free = taken.peek().filter(|first| first.0.0 <= event.start);
            let own = match free {
                Some(&Reverse((_, lane))) => lane,
                None => lanes.count,
            };
            match own < lanes.count {
                true => drop(taken.pop()),
                false => lanes.count += 1,
            }
            *lane = Some(own);
            taken.push(Reverse((*end, own)));
        }
        lanes
    }

    fn lane(&self, id: u64) -> u32 {
        self.of.get(&id).and_then(|of| of.1).unwrap_or(0)
    }
}

/// Microseconds, of which the format wants its times.
fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    producer: &'static str,
    started_at_unix_ms: f64,
    seconds: f64,
    dropped: u64,
}

#[derive(Serialize)]
struct Line<'e> {
    name: &'e str,
    #[serde(skip_serializing_if = "str::is_empty")]
    cat: &'static str,
    ph: &'static str,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    pid: u32,
    tid: u32,
    args: Args<'e>,
}

fn named<'e>(what: &'e str, thread: u32, name: &'e str) -> Line<'e> {
    Line {
        name: what,
        cat: "",
        ph: "M",
        ts: 0.0,
        dur: None,
        s: None,
        pid: PROCESS,
        tid: thread,
        args: Args::Name(name),
    }
}

enum Args<'e> {
    Name(&'e str),
    Of(&'e Event),
}

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut args = serializer.serialize_map(None)?;
        let event = match self {
            Self::Name(name) => {
                args.serialize_entry("name", name)?;
                return args.end();
            }
            Self::Of(event) => event,
        };
        if let Kind::Counter { value } = event.kind {
            args.serialize_entry("value", &value)?;
        }
        if let Some(request) = event.request {
            args.serialize_entry("request", &request)?;
        }
        if let Some(batch) = event.batch {
            args.serialize_entry("batch", &batch)?;
        }
        match &event.detail {
            Detail::None => {}
            Detail::Request { texts, ended } => {
                args.serialize_entry("texts", texts)?;
                args.serialize_entry("ended", ended.name())?;
            }
            Detail::Texts { texts, tokens } => {
                args.serialize_entry("texts", texts)?;
                args.serialize_entry("tokens", tokens)?;
            }
            Detail::Batch {
                rows,
                tokens,
                positions,
                requests,
            } => {
                args.serialize_entry("rows", rows)?;
                args.serialize_entry("tokens", tokens)?;
                args.serialize_entry("positions", positions)?;
                args.serialize_entry("requests", requests)?;
            }
            Detail::Operator {
                rows,
                inner,
                width,
                multiply_adds,
                bytes,
            } => {
                args.serialize_entry("rows", rows)?;
                if *inner > 0 {
                    args.serialize_entry("inner", inner)?;
                }
                args.serialize_entry("width", width)?;
                args.serialize_entry("multiplyAdds", multiply_adds)?;
                args.serialize_entry("bytes", bytes)?;
            }
            #[cfg(feature = "node-names")]
            Detail::Node { node, provider } => {
                args.serialize_entry("node", node)?;
                if !provider.is_empty() {
                    args.serialize_entry("provider", provider)?;
                }
            }
        }
        args.end()
    }
}
