//! The faults of a trace, so that its numbers are not overrated.

use std::collections::BTreeMap;

/// What was found while a trace was read.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Where the file ends before the trace does, and why.
    pub(super) cut: Option<(u64, String)>,
    /// Where something follows after the trace's end.
    pub(super) more: Option<u64>,
    /// Values among the events that are none.
    pub(super) no_events: u64,
    /// Events without a time, or with one that is no number.
    pub(super) no_time: u64,
    /// Spans without a duration, or with one that is no number.
    pub(super) no_duration: u64,
    /// Spans that end before they begin.
    pub(super) negative: u64,
    /// Spans that begin within another one of their track and end after it.
    pub(super) crossing: u64,
    /// Ends without a beginning, and beginnings without an end.
    pub(super) ends: u64,
    pub(super) open: u64,
    /// Kinds of events that are not known, by how often.
    pub(super) unknown: BTreeMap<String, u64>,
    /// Events that the program that wrote the trace had no room for.
    pub(super) dropped: u64,
    /// Spans past the number that is kept.
    pub(super) too_many: u64,
}

impl Faults {
    /// The same in sentences.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        if let Some((at, why)) = &self.cut {
            said.push(format!(
                "the trace ends at byte {at}: {why}; the part before it was read"
            ));
        }
        if let Some(at) = self.more {
            said.push(format!(
                "what begins at byte {at}, after the trace's end, is not read; if traces were joined, give each one in a file of its own"
            ));
        }
        let mut count = |number: u64, what: &str| {
            if number > 0 {
                said.push(format!("{number} {what}"));
            }
        };
        count(
            self.dropped,
            "earlier events had no room when the trace was taken",
        );
        count(
            self.too_many,
            "spans exceed the limit; choose some with --start and --end",
        );
        count(self.no_events, "values are no events");
        count(self.no_time, "events have no time");
        count(
            self.no_duration,
            "spans have no duration that is a number, and are left out",
        );
        count(
            self.negative,
            "spans end before they begin, and count as 0: the clock was set back",
        );
        count(
            self.crossing,
            "spans begin within another one of their thread and end after it: the clock was set, or threads share a number",
        );
        count(self.ends, "ends have no beginning");
        count(self.open, "spans have no end, and are left out");
        if !self.unknown.is_empty() {
            let kinds = self.unknown.iter();
            let kinds: Vec<String> = kinds
                .map(|(kind, count)| format!("{kind:?} ({count})"))
                .collect();
            said.push(format!(
                "events of unknown kinds are left out: {}",
                kinds.join(", ")
            ));
        }
        said
    }

    /// An event of a kind that is not known.
    pub(super) fn is_unknown(&mut self, kind: &str) {
        /// Different ones that are named.
        const MOST: usize = 8;
        /// Characters of one that are named.
        const LONGEST: usize = 16;
        let end = kind.char_indices().nth(LONGEST);
        let kind = end.map_or(kind, |(end, _)| &kind[..end]);
        if let Some(count) = self.unknown.get_mut(kind) {
            *count += 1;
        } else if self.unknown.len() < MOST {
            self.unknown.insert(kind.to_owned(), 1);
        } else {
            *self.unknown.entry("others".into()).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_kind_is_counted_by_what_is_named_of_it() {
        let mut faults = Faults::default();
        let kind = "\u{e9}".repeat(20);
        for _ in 0..1000 {
            faults.is_unknown(&kind);
        }
        let named = format!("{:?} (1000)", "\u{e9}".repeat(16));
        let said = faults.sentences();
        assert!(said.len() == 1 && said[0].ends_with(&named), "{said:?}");
    }
}
