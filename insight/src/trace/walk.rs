//! Reads the events of a file one at a time. Only the current event is in memory.

use std::io::Read;

use serde::Deserialize;

use super::TraceError;
use super::event::RawEvent;
use super::json::{Got, Json, read};

/// What is known of the whole trace.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OtherData {
    producer: String,
    dropped: u64,
}

/// What was seen of a file besides its events.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The program that wrote it, where it says so.
    pub(super) producer: String,
    /// Events that this program had no room for.
    pub(super) dropped: u64,
    /// Values among the events that are none.
    pub(super) no_events: u64,
    /// Where the file ends before the trace does, and why.
    pub(crate) cut: Option<(u64, String)>,
    /// Where something follows after the trace's end.
    pub(super) more: Option<u64>,
}

/// Gives every event of a file to `event`, up to its end or to where it is no trace any more.
pub(crate) fn walk(file: impl Read, event: impl FnMut(&RawEvent<'_>)) -> Result<Seen, TraceError> {
    let mut json = Json::new(file);
    let mut walk = Walk {
        event,
        seen: Seen::default(),
    };
    match json.peek()? {
        None => return Err(TraceError::Empty),
        Some(0x1f) => return Err(TraceError::Packed),
        Some(b'[') => {
            json.take(b'[')?;
            walk.array(&mut json)?;
        }
        Some(b'{') => {
            json.take(b'{')?;
            walk.object(&mut json)?;
        }
        Some(byte) => {
            let begins = char::from(byte).escape_default();
            return Err(TraceError::NoTrace(format!("it begins with {begins}")));
        }
    }
    let mut seen = walk.seen;
    if seen.cut.is_none() && json.peek()?.is_some() {
        seen.more = Some(json.position());
    }
    Ok(seen)
}

struct Walk<F> {
    event: F,
    seen: Seen,
}

impl<F: FnMut(&RawEvent<'_>)> Walk<F> {
    /// The events of an array, up to its end or the cut.
    fn array(&mut self, json: &mut Json<impl Read>) -> Result<bool, TraceError> {
        loop {
            if json.take(b']')? {
                return Ok(true);
            }
            match json.value(|bytes| read(bytes, |event| (self.event)(&event)))? {
                Got::Value(()) => {}
                Got::Other => self.seen.no_events += 1,
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
                        self.seen.producer = data.producer;
                        self.seen.dropped = data.dropped;
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
                let why = match &self.seen.cut {
                    Some((at, why)) => format!("it ends at byte {at} ({why}), before traceEvents"),
                    None => "it has no list traceEvents".into(),
                };
                Err(TraceError::NoTrace(why))
            }
        }
    }

    /// Notes that there is nothing to read any more.
    fn cut(&mut self, json: &Json<impl Read>, why: &str) -> Result<bool, TraceError> {
        let cut = &mut self.seen.cut;
        cut.get_or_insert_with(|| (json.position(), why.to_owned()));
        Ok(false)
    }
}
