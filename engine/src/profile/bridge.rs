//! The same spans for `tracing`.

use tracing::field::Empty;
use tracing::{Level, Span};

use super::event::{Detail, Stage};

/// The target of all spans that isovec gives to `tracing`.
pub const TARGET: &str = "isovec::profile";

/// A span of `tracing` under `parent` (a request: under the caller's own), disabled where no
/// subscriber wants it.
pub(super) fn open(stage: Stage, parent: &Span, request: Option<u64>, batch: Option<u64>) -> Span {
    macro_rules! child {
        ($level:ident, $name:literal $(, $field:ident)*) => {
            tracing::span!(
                target: TARGET,
                parent: parent.id(),
                Level::$level,
                $name,
                request,
                batch,
                $($field = Empty),*
            )
        };
    }
    match stage {
        Stage::Request => tracing::span!(
            target: TARGET,
            Level::INFO,
            "request",
            request,
            texts = Empty,
            ended = Empty
        ),
        Stage::Tokenize => child!(DEBUG, "tokenize", texts, tokens),
        Stage::Queue => child!(DEBUG, "queue"),
        Stage::Batch => child!(DEBUG, "batch", rows, tokens, positions),
        Stage::Wait => child!(DEBUG, "wait"),
        Stage::Run => child!(DEBUG, "run"),
        Stage::Operator => child!(TRACE, "operator", operator, rows, width),
        Stage::Copy => child!(DEBUG, "copy"),
        // What users record themselves they give to `tracing` themselves.
        Stage::Other => Span::none(),
    }
}

/// Tells `tracing` what is known at a span's end.
pub(super) fn close(span: &Span, name: &str, detail: &Detail) {
    if span.is_disabled() {
        return;
    }
    match detail {
        Detail::None => {}
        Detail::Request { texts, ended } => {
            span.record("texts", texts);
            span.record("ended", ended.name());
        }
        Detail::Texts { texts, tokens } => {
            span.record("texts", texts);
            span.record("tokens", tokens);
        }
        Detail::Batch {
            rows,
            tokens,
            positions,
            ..
        } => {
            span.record("rows", rows);
            span.record("tokens", tokens);
            span.record("positions", positions);
        }
        Detail::Operator { rows, width, .. } => {
            span.record("operator", name);
            span.record("rows", rows);
            span.record("width", width);
        }
        #[cfg(feature = "node-names")]
        Detail::Node { .. } => {
            span.record("operator", name);
        }
    }
}
