//! The events of a profile.

use std::borrow::Cow;
use std::time::Duration;

use crate::counters::Ended;

/// The stage of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Stage {
    /// A whole call of a user's.
    Request,
    /// Making token ids of a request's texts.
    Tokenize,
    /// A request's wait in a batcher's queue, until the first of its texts runs.
    Queue,
    /// A batch, from filling its tensors to having its vectors in the callers' memory.
    Batch,
    /// A batch's wait for the engine.
    Wait,
    /// The engine's run of a batch.
    Run,
    /// One operator of a run; pooling and normalisation are operators too.
    Operator,
    /// Copying vectors to where their callers have them.
    Copy,
    /// Events that users record, and events of no stage.
    #[default]
    Other,
}

impl Stage {
    /// The stage's name in traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Tokenize => "tokenize",
            Self::Queue => "queue",
            Self::Batch => "batch",
            Self::Wait => "wait",
            Self::Run => "run",
            Self::Operator => "operator",
            Self::Copy => "copy",
            Self::Other => "other",
        }
    }
}

/// Something that happened while a session was under way.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The kind of event, with its own data.
    pub kind: Kind,
    /// Its stage.
    pub stage: Stage,
    /// Its name: the stage's, an operator's, or one that a user chose.
    pub name: Cow<'static, str>,
    /// When it began, counted from the session's start.
    pub start: Duration,
    /// The thread that recorded it.
    pub thread: u32,
    /// Its request; `None` if it belongs to several requests or to none.
    pub request: Option<u64>,
    /// The batch that it is of.
    pub batch: Option<u64>,
    /// Details.
    pub detail: Detail,
}

/// The kind of an [`Event`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Something that took time.
    Span {
        /// How long.
        took: Duration,
    },
    /// A moment.
    Instant,
    /// A number that changed.
    Counter {
        /// The current value.
        value: f64,
    },
}

/// The details of an [`Event`], besides its times.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Detail {
    /// Nothing.
    #[default]
    None,
    /// Of a request.
    Request {
        /// Its texts.
        texts: usize,
        /// How it ended; one whose future was dropped was cancelled.
        ended: Ended,
    },
    /// Of tokenising.
    Texts {
        /// Texts.
        texts: usize,
        /// Their tokens, special ones included.
        tokens: usize,
    },
    /// Of a batch.
    Batch {
        /// Texts.
        rows: usize,
        /// Their tokens.
        tokens: usize,
        /// Positions that the batch has room for: rows times the longest row.
        positions: usize,
        /// The requests whose texts are in it, each once.
        requests: Box<[u64]>,
    },
    /// Of an operator.
    Operator {
        /// Rows that were computed.
        rows: usize,
        /// Columns of its input where that says more of it: `k` of a product, or the size of a head.
        inner: usize,
        /// Columns of its result.
        width: usize,
        /// Multiplications with additions.
        multiply_adds: u64,
        /// Bytes of the result.
        bytes: u64,
    },
    /// Of an operator of a runtime's own graph. Browsers have no such runtime, and no code for it.
    #[cfg(feature = "node-names")]
    Node {
        /// The node's name in that graph.
        node: Box<str>,
        /// The provider that ran it, as the runtime states it; may be empty.
        provider: Box<str>,
    },
}
