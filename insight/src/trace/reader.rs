//! Turns JSON into spans, with the duration and the owner of each, up to a limit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::io::Read;

use super::TraceError;
use super::event::{Any, RawEvent};
use super::load::{ASYNCHRONOUS, Batch, Limits, Loaded, Request, Span};
use super::open::{Ended, Open, Owner};
use super::stages::Stages;
use super::walk::walk;

/// What is done with the events.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pass {
    FindStart,
    Keep(Window),
}

/// What is wholly outside is left out. In microseconds, counted as in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Window {
    fn holds(self, start: f64, end: f64) -> bool {
        end.max(start) >= self.from && start <= self.to
    }
}

/// Reads a file once.
pub(super) fn pass(file: impl Read, pass: Pass, limits: Limits) -> Result<Reader, TraceError> {
    let mut reader = Reader::new(pass, limits);
    let seen = walk(file, |event| reader.event(event))?;
    let loaded = &mut reader.loaded;
    loaded.producer = seen.producer;
    let faults = &mut loaded.faults;
    faults.cut = seen.cut;
    faults.more = seen.more;
    faults.dropped = seen.dropped;
    faults.no_events += seen.no_events;
    faults.open = reader.open.count() as u64;
    Ok(reader)
}

/// Takes events in.
pub(super) struct Reader {
    pass: Pass,
    limits: Limits,
    pub(super) loaded: Loaded,
    numbers: HashMap<String, u32>,
    tracks: HashMap<(u64, u64), u32>,
    requests: HashMap<u64, u32>,
    batches: HashMap<u64, u32>,
    /// Requests of all batches together.
    shares: usize,
    open: Open,
    /// Stages of all spans, those that the window leaves out too.
    pub(super) stages: Stages,
    pub(super) first: Option<f64>,
    pub(super) last: Option<f64>,
}

impl Reader {
    fn new(pass: Pass, limits: Limits) -> Self {
        Self {
            pass,
            limits,
            loaded: Loaded::default(),
            numbers: HashMap::new(),
            tracks: HashMap::new(),
            requests: HashMap::new(),
            batches: HashMap::new(),
            shares: 0,
            open: Open::default(),
            stages: Stages::default(),
            first: None,
            last: None,
        }
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
        let Pass::Keep(window) = self.pass else {
            return;
        };
        let thread = Owner::Thread(event.thread());
        match kind {
            "X" => match took {
                Some(took) => self.whole(event, thread, (ts, ts + took), window),
                None => self.loaded.faults.no_duration += 1,
            },
            "B" => self.begin(event, thread, ts, window),
            "E" => self.end(thread, ts, window),
            "b" | "S" => self.begin(event, Owner::Identity(event.identity()), ts, window),
            "e" | "F" => self.end(Owner::Identity(event.identity()), ts, window),
            // Moments, numbers, arrows, samples, objects, marks, contexts.
            "i" | "I" | "R" | "n" | "T" | "p" | "C" | "s" | "t" | "f" | "P" | "N" | "O" | "D"
            | "V" | "v" | "c" | "(" | ")" | "=" => {}
            other => self.loaded.faults.is_unknown(other),
        }
    }

    /// A span of which the beginning and the end are known at once.
    fn whole(
        &mut self,
        event: &RawEvent<'_>,
        owner: Owner,
        (start, end): (f64, f64),
        window: Window,
    ) {
        if !window.holds(start, end) {
            self.leave_out(event);
        } else if let Some(span) = self.span(event, owner, start) {
            self.keep(span, end);
        }
    }

    /// A span has begun.
    fn begin(&mut self, event: &RawEvent<'_>, owner: Owner, start: f64, window: Window) {
        let span = if start > window.to {
            self.leave_out(event);
            None
        } else {
            self.span(event, owner, start)
        };
        self.open.begin(owner, span);
    }

    /// A span has ended.
    fn end(&mut self, owner: Owner, end: f64, window: Window) {
        match self.open.end(owner) {
            Ended::Span(span) if window.holds(span.start, end) => self.keep(span, end),
            Ended::Span(span) => self.stages.add(span.stage),
            Ended::LeftOut => {}
            // It may be the end of a span that was left out.
            Ended::Unknown if end > window.to || self.loaded.faults.too_many > 0 => {}
            Ended::Unknown => self.loaded.faults.ends += 1,
        }
    }

    fn keep(&mut self, span: Span, end: f64) {
        let took = end - span.start;
        self.loaded.faults.negative += u64::from(took < 0.0);
        self.stages.add(span.stage);
        self.loaded.spans.push(Span {
            took: took.max(0.0),
            ..span
        });
    }

    /// Nothing is known of a span outside the window but its stage.
    fn leave_out(&mut self, event: &RawEvent<'_>) {
        if !self.stages.are_enough() {
            let (stage, _) = event.stage_and_name();
            let stage = self.intern(stage);
            self.stages.add(stage);
        }
    }

    /// What an event says of its span, but for its end; `None` where there is no room for it.
    fn span(&mut self, event: &RawEvent<'_>, owner: Owner, start: f64) -> Option<Span> {
        let span = self.fit(event, owner, start);
        self.loaded.faults.too_many += u64::from(span.is_none());
        span
    }

    fn fit(&mut self, event: &RawEvent<'_>, owner: Owner, start: f64) -> Option<Span> {
        if self.loaded.spans.len() + self.open.count() >= self.limits.spans {
            return None;
        }
        let track = match owner {
            Owner::Thread(thread) => place(&mut self.tracks, thread, self.limits.entries)?,
            Owner::Identity(_) => ASYNCHRONOUS,
        };
        let request = self.request(event)?;
        let batch = self.batch(event)?;
        let (stage, name) = event.stage_and_name();
        Some(Span {
            start,
            took: 0.0,
            name: self.intern(name),
            stage: self.intern(stage),
            track,
            request,
            batch,
        })
    }

    /// The place of an event's request, 0 if it has none; `None` where there is no room for it.
    fn request(&mut self, event: &RawEvent<'_>) -> Option<u32> {
        /// Characters that are kept of how it ended.
        const LONGEST: usize = 40;
        let Some(id) = event.args.request.count() else {
            return Some(0);
        };
        let place = place(&mut self.requests, id, self.limits.entries)?;
        let requests = &mut self.loaded.requests;
        if requests.len() < place as usize {
            requests.push(Request {
                id,
                ..Request::default()
            });
        }
        if let (Some(request), "request") = (requests.get_mut(place as usize - 1), event.cat.text())
        {
            request.texts = event.args.texts.count().unwrap_or(0);
            request.ended = event.args.ended.text().chars().take(LONGEST).collect();
        }
        Some(place)
    }

    /// The same of its batch.
    fn batch(&mut self, event: &RawEvent<'_>) -> Option<u32> {
        let Some(id) = event.args.batch.count() else {
            return Some(0);
        };
        let place = place(&mut self.batches, id, self.limits.entries)?;
        let batches = &mut self.loaded.batches;
        if batches.len() < place as usize {
            batches.push(Batch::default());
        }
        if let (Some(batch), Any::List(requests)) =
            (batches.get_mut(place as usize - 1), &event.args.requests)
        {
            let shares = self.shares - batch.requests.len() + requests.len();
            if shares > self.limits.shares {
                return None;
            }
            self.shares = shares;
            let count = |of: &Any<'_>| of.count().unwrap_or(0);
            *batch = Batch {
                rows: count(&event.args.rows),
                tokens: count(&event.args.tokens),
                positions: count(&event.args.positions),
                requests: requests.clone(),
            };
        }
        Some(place)
    }

    /// The number of a word.
    fn intern(&mut self, word: &str) -> u32 {
        /// Bytes of one that are kept.
        const LONGEST: usize = 500;
        let word = &word[..word.floor_char_boundary(LONGEST)];
        if let Some(&number) = self.numbers.get(word) {
            return number;
        }
        let full = self.loaded.words.len() >= self.limits.words;
        let word = if full { "(others)" } else { word };
        if let Some(&number) = self.numbers.get(word) {
            return number;
        }
        let number = self.loaded.words.len() as u32;
        self.loaded.words.push(word.to_owned());
        self.numbers.insert(word.to_owned(), number);
        number
    }
}

/// The place of a key among those that are known, from 1 on; `None` where there is no room for it.
fn place<K: Eq + Hash>(known: &mut HashMap<K, u32>, key: K, most: usize) -> Option<u32> {
    let next = known.len() + 1;
    match known.entry(key) {
        Entry::Occupied(place) => Some(*place.get()),
        Entry::Vacant(_) if next > most => None,
        Entry::Vacant(place) => Some(*place.insert(next as u32)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::trace::load::{Filter, load_from};

    /// Reads events.
    fn within(limits: Limits, filter: &Filter, events: &str) -> Loaded {
        load_from(|| Ok(events.as_bytes()), filter, limits).unwrap()
    }

    /// When each span began, what it took, and its name.
    fn spans(loaded: &Loaded) -> Vec<(f64, f64, &str)> {
        let spans = loaded.spans.iter();
        spans
            .map(|span| (span.start, span.took, loaded.word(span.name)))
            .collect()
    }

    fn said(loaded: &Loaded) -> String {
        loaded.faults.sentences().join("; ")
    }

    #[test]
    fn a_span_that_has_not_ended_needs_room_too() {
        let limits = Limits {
            spans: 2,
            ..Limits::default()
        };
        let loaded = within(
            limits,
            &Filter::default(),
            r#"[
{"ph":"B","ts":0,"name":"a","pid":1,"tid":1},
{"ph":"B","ts":1,"name":"b","pid":1,"tid":1},
{"ph":"B","ts":2,"name":"c","pid":1,"tid":1},
{"ph":"B","ts":2,"name":"elsewhere","pid":1,"tid":2},
{"ph":"E","ts":3,"pid":1,"tid":1},
{"ph":"E","ts":4,"pid":1,"tid":2},
{"ph":"E","ts":5,"pid":1,"tid":1},
{"ph":"b","ts":6,"name":"d","id":1,"pid":1},
{"ph":"X","ts":7,"dur":1,"name":"e","pid":1,"tid":1},
{"ph":"e","ts":8,"name":"d","id":1,"pid":1},
{"ph":"E","ts":9,"pid":1,"tid":1}
]"#,
        );
        assert_eq!(spans(&loaded), [(0.0, 9.0, "a"), (1.0, 4.0, "b")]);
        let said = said(&loaded);
        assert!(said.starts_with("4 spans exceed the limit"), "{said}");
        assert_eq!((loaded.faults.ends, loaded.faults.open), (0, 0));
    }

    #[test]
    fn what_is_outside_the_window_takes_no_room() {
        let limits = Limits {
            spans: 1,
            entries: 1,
            words: 4,
            ..Limits::default()
        };
        let mut events = String::from("[");
        for n in 0..60 {
            let at = n * 10;
            events += &format!(
                r#"
{{"ph":"X","ts":{at},"dur":1,"name":"x{n}","pid":1,"tid":{n},"args":{{"request":{n},"batch":{n},"requests":[{n}]}}}},
{{"ph":"b","ts":{at},"name":"load","id":{n},"pid":1}},
{{"ph":"e","ts":{},"name":"load","id":{n},"pid":1}},"#,
                at + 1
            );
        }
        events += r#"
{"ph":"X","ts":1000,"dur":5,"name":"kept","pid":1,"tid":99,"args":{"request":99,"batch":99,"requests":[99]}},
{"ph":"B","ts":2000,"name":"later","pid":1,"tid":99},
{"ph":"E","ts":2001,"pid":1,"tid":99}
]"#;
        let filter = Filter {
            start: Some(Duration::from_micros(900)),
            end: Some(Duration::from_micros(1100)),
            ..Filter::default()
        };
        let loaded = within(limits, &filter, &events);
        assert_eq!(spans(&loaded), [(1000.0, 5.0, "kept")]);
        assert_eq!((loaded.requests[0].id, loaded.batches.len()), (99, 1));
        assert_eq!(said(&loaded), "");
    }

    #[test]
    fn the_end_of_a_span_after_the_window_is_its_own() {
        let filter = Filter {
            end: Some(Duration::from_micros(5)),
            ..Filter::default()
        };
        let loaded = within(
            Limits::default(),
            &filter,
            r#"[
{"ph":"B","ts":0,"name":"around","pid":1,"tid":1},
{"ph":"B","ts":10,"name":"within","pid":1,"tid":1},
{"ph":"E","ts":12,"pid":1,"tid":1},
{"ph":"E","ts":20,"pid":1,"tid":1}
]"#,
        );
        assert_eq!(spans(&loaded), [(0.0, 20.0, "around")]);
        assert_eq!(said(&loaded), "");
    }

    #[test]
    fn threads_requests_batches_and_their_shares_need_room() {
        let limits = Limits {
            entries: 2,
            shares: 3,
            ..Limits::default()
        };
        let event = |name: &str, tid: u32, args: &str| {
            format!(
                r#"{{"ph":"X","ts":0,"dur":1,"name":"{name}","pid":1,"tid":{tid},"args":{{{args}}}}}"#
            )
        };
        let events = [
            event("a", 1, r#""request":1,"batch":1,"requests":[1]"#),
            event("b", 2, r#""request":2,"batch":2,"requests":[1,2]"#),
            event("a third thread", 3, ""),
            event("a third request", 1, r#""request":3"#),
            event("a third batch", 1, r#""batch":3"#),
            event("a fourth share", 1, r#""batch":1,"requests":[1,2]"#),
            event("the same again", 1, r#""batch":2,"requests":[2,1]"#),
        ];
        let events = format!("[{}]", events.join(","));
        let loaded = within(limits, &Filter::default(), &events);
        let mut names: Vec<&str> = spans(&loaded).iter().map(|&(.., name)| name).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "the same again"]);
        assert_eq!(loaded.faults.too_many, 4);
        assert_eq!((loaded.requests.len(), loaded.batches.len()), (2, 2));
        assert_eq!(loaded.batches[0].requests, [1]);
        assert_eq!(loaded.batches[1].requests, [2, 1]);
    }

    #[test]
    fn names_are_as_many_and_as_long_as_there_is_room_for() {
        let limits = Limits {
            words: 2,
            ..Limits::default()
        };
        let long = "\u{e9}".repeat(1000);
        let events = [long.as_str(), "b", "c"]
            .map(|name| format!(r#"{{"ph":"X","ts":0,"dur":1,"name":"{name}","pid":1,"tid":1}}"#));
        let events = format!("[{}]", events.join(","));
        let loaded = within(limits, &Filter::default(), &events);
        let cut = "\u{e9}".repeat(250);
        assert_eq!(loaded.words, [cut.as_str(), "other", "(others)"]);
    }
}
