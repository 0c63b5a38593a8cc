//! Spans that have begun and not ended yet.

use std::collections::HashMap;

use super::load::Span;

/// Whose spans end in the order opposite to that in which they began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// A thread of a process.
    Thread((u64, u64)),
    /// What spans without a thread have in common.
    Identity(u64),
}

/// What ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The span that was given for its beginning.
    Span(Span),
    /// One that was left out.
    LeftOut,
    /// Nothing that is known to have begun.
    Unknown,
}

/// The spans that are open.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// The last to begin is at the end; who has none is not here.
    by_owner: HashMap<Owner, Vec<Begun>>,
    count: usize,
}

#[derive(Debug)]
struct Begun {
    span: Span,
    /// Spans that began within it, were left out, and end before whatever else ends.
    left_out: u64,
}

impl Open {
    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// A span has begun; `None` is one that is left out.
    pub(super) fn begin(&mut self, owner: Owner, span: Option<Span>) {
        match span {
            Some(span) => {
                let begun = Begun { span, left_out: 0 };
                self.by_owner.entry(owner).or_default().push(begun);
                self.count += 1;
            }
            // Or else its end would be taken for that of the span around it.
            None => {
                let around = self.by_owner.get_mut(&owner);
                if let Some(around) = around.and_then(|open| open.last_mut()) {
                    around.left_out += 1;
                }
            }
        }
    }

    /// An owner's last span has ended.
    pub(super) fn end(&mut self, owner: Owner) -> Ended {
        let Some(open) = self.by_owner.get_mut(&owner) else {
            return Ended::Unknown;
        };
        if let Some(around) = open.last_mut()
            && around.left_out > 0
        {
            around.left_out -= 1;
            return Ended::LeftOut;
        }
        let last = open.pop();
        if open.is_empty() {
            self.by_owner.remove(&owner);
        }
        match last {
            Some(begun) => {
                self.count -= 1;
                Ended::Span(begun.span)
            }
            None => Ended::Unknown,
        }
    }
}
