//! Chrome traces as `isovec trace` reads them, against `serde_json` on the whole input: what is JSON is read to its end, with every
//! value of its list, and what is not is said to be cut, broken or no trace; and the same is said whether the input comes at once
//! or byte by byte.

use std::io::Read;

use isovec_cli::reading::trace;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::bounds::ours;

/// Tries one input: a file.
pub fn run(data: &[u8]) {
    let whole = ours(data.len(), || trace(|| Ok(data)));
    let bytewise = ours(data.len(), || trace(|| Ok(Bytewise(data))));
    assert_eq!(bytewise, whole, "byte by byte");
    // The one minds what strings and numbers hold, and the other does not.
    let is_json = serde_json::from_slice::<Value>(data).is_ok();
    let may_be = serde_json::from_slice::<IgnoredAny>(&without_last_commas(data)).is_ok();
    let (told, text) = match whole {
        Ok(told) => told,
        Err(why) => {
            let events = is_json.then(|| values(data)).flatten();
            assert!(events.is_none(), "{why}: {events:?}");
            return;
        }
    };
    let faults: Vec<&str> = told["faults"].as_array().map_or(Vec::new(), |faults| {
        faults.iter().filter_map(Value::as_str).collect()
    });
    let says = |words: &str| faults.iter().any(|fault| fault.contains(words));
    let whole = !says("the trace ends at byte") && !says("after the trace's end, is not read");
    assert!(if whole { may_be } else { !is_json }, "{faults:?}");
    for fault in &faults {
        assert!(text.contains(fault), "{fault} is not shown");
    }
    if let Some(values) = is_json.then(|| values(data)).flatten() {
        let none = faults
            .iter()
            .find_map(|fault| fault.strip_suffix(" values are no events"));
        let none: u64 = none.map_or(0, |count| count.parse().expect("a number"));
        let events = told["events"].as_u64().expect("a number");
        assert_eq!(events + none, values, "{faults:?}");
    }
}

/// Without the commas after which a list or an object ends: who writes an event at a time leaves them there.
fn without_last_commas(data: &[u8]) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::with_capacity(data.len());
    let (mut inside, mut escaped) = (false, false);
    for &byte in data {
        if !inside && matches!(byte, b']' | b'}') {
            let last = kept.iter().rposition(|one| !b" \t\n\r".contains(one));
            if let Some(comma) = last.filter(|&at| kept[at] == b',') {
                kept[comma] = b' ';
            }
        }
        inside ^= byte == b'"' && !escaped;
        escaped = inside && byte == b'\\' && !escaped;
        kept.push(byte);
    }
    kept
}

/// How many values the list has; nothing where there is not one list alone, or a number that only `serde_json` refuses.
fn values(data: &[u8]) -> Option<u64> {
    let list = match serde_json::from_slice(data).ok()? {
        Value::Array(list) => list,
        // Escapes could hide a second one, and it is the last of two that `serde_json` keeps.
        Value::Object(mut object) if object.len() == 1 => match object.remove("traceEvents")? {
            Value::Array(list) if once(data) => list,
            _ => return None,
        },
        _ => return None,
    };
    Some(list.len() as u64)
}

/// Whether the name occurs once, and nothing is escaped.
fn once(data: &[u8]) -> bool {
    let name = b"traceEvents";
    let times = data
        .windows(name.len())
        .filter(|bytes| bytes == name)
        .count();
    times == 1 && !data.contains(&b'\\')
}

/// Gives a byte at a time.
struct Bytewise<'d>(&'d [u8]);

impl Read for Bytewise<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = into.len().min(1);
        self.0.read(&mut into[..most])
    }
}
