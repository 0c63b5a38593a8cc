//! What a subscriber of `tracing` sees. Alone in this program: what a subscriber wants is known of
//! every callsite to all threads.
#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

use std::sync::{Arc, Mutex};

use isovec_engine::counters::Ended;
use isovec_engine::profile::{Detail, Profiler, Scope, Stage, TARGET};

/// A span that was opened.
#[derive(Debug)]
struct Opened {
    name: &'static str,
    parent: Option<&'static str>,
    recorded: String,
}

/// Notes the spans that it is given.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Opened>>>);

impl tracing::Subscriber for Heard {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut heard = self.0.lock().unwrap();
        let parent = span
            .parent()
            .map(|id| heard[id.into_u64() as usize - 1].name);
        heard.push(Opened {
            name: span.metadata().name(),
            parent,
            recorded: String::new(),
        });
        tracing::span::Id::from_u64(heard.len() as u64)
    }

    fn record(&self, id: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        self.0.lock().unwrap()[id.into_u64() as usize - 1].recorded += &format!("{values:?}");
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_subscriber_sees_the_same_spans_without_a_session() {
    let heard = Heard::default();
    tracing::subscriber::with_default(heard.clone(), || {
        let mut request = Profiler::default().request(2);
        request.ended(Ended::Well);
        let batch = Scope::batch([request.scope()]);
        let run = batch.scope().span(Stage::Run);
        let begun = run.scope().operator().unwrap();
        let detail = Detail::Operator {
            rows: 1,
            inner: 0,
            width: 384,
            multiply_adds: 1,
            bytes: 1,
        };
        run.scope().ran(begun, "norm", detail);
    });
    let heard = heard.0.lock().unwrap();
    let shape: Vec<_> = heard.iter().map(|one| (one.name, one.parent)).collect();
    assert_eq!(
        shape,
        [
            ("request", None),
            ("batch", Some("request")),
            ("run", Some("batch")),
            ("operator", Some("run")),
        ]
    );
    assert!(heard[0].recorded.contains("well"), "{heard:?}");
    assert!(heard[3].recorded.contains("norm"), "{heard:?}");
}
