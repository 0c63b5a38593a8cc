//! Warnings of isovec, for Python's `logging`. They are gathered where they arise, and handed over when a call returns: a
//! thread of isovec's never waits for the interpreter's lock in the middle of its work.

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The most warnings that wait for a call to return.
const MOST: usize = 1000;

static WAITING: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

/// Whether some wait, so that a call without any takes no lock.
static ANY: AtomicBool = AtomicBool::new(false);

/// Gathers warnings from now on.
pub(crate) fn gather() {
    // A second interpreter in this process finds the first one's.
    let _ = tracing::subscriber::set_global_default(Gatherer);
}

/// Hands over what was said to the logger `isovec`.
pub(crate) fn hand_over(py: Python<'_>) {
    if !ANY.swap(false, Ordering::Relaxed) {
        return;
    }
    let said = std::mem::take(&mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner));
    let log = || {
        let logger = py
            .import("logging")?
            .call_method1("getLogger", ("isovec",))?;
        for (level, text) in said {
            let method = if level == Level::ERROR {
                "error"
            } else {
                "warning"
            };
            logger.call_method1(method, ("%s", text))?;
        }
        Ok::<(), PyErr>(())
    };
    if let Err(error) = log() {
        error.write_unraisable(py, None);
    }
}

struct Gatherer;

impl Subscriber for Gatherer {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        // ONNX Runtime's own messages are about runs that isovec tries, and learns from.
        let ours = about.target().starts_with("isovec");
        ours && about.is_event() && *about.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST {
            waiting.push((*event.metadata().level(), text.0));
        }
        ANY.store(true, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // No span is enabled.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event in words: its message, and its fields behind it.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing into a String does not fail.
        let _ = match field.name() {
            "message" => {
                let fields = std::mem::take(&mut self.0);
                write!(self.0, "{value:?}{fields}")
            }
            name => write!(self.0, "; {name}: {value:?}"),
        };
    }
}
