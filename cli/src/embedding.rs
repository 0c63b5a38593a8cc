//! Sends rows through the SDK's stream and returns each with its vector.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::StreamExt;
use isovec::blocking::Embedder;
use isovec::{EmbedOptions, Embedded, StreamOptions};

use crate::error::{CliError, Result};
use crate::input::Row;
use crate::input::feed::Feed;

/// A row and what became of its text.
pub(crate) struct Done {
    pub(crate) row: Row,
    pub(crate) embedded: Embedded,
    /// Whether it is the last of the texts that were worked on together.
    pub(crate) ends_window: bool,
}

/// Embeds rows in their order, in flat memory: rows are read a few windows ahead of what is taken.
/// An error is the last item, after all rows before it.
pub(crate) fn embed(
    embedder: &Embedder,
    rows: Feed,
    options: EmbedOptions,
) -> impl Iterator<Item = Result<Done>> + use<> {
    // The rows that the stream works on: those of a few windows.
    let beside = Rc::new(RefCell::new(VecDeque::new()));
    let waiting = Rc::clone(&beside);
    let texts = rows.map(move |row| {
        row.map(|row| {
            let text = row.text.clone();
            waiting.borrow_mut().push_back(row);
            text
        })
    });
    // The stream reports after each window, before it gives the window's results.
    let reported = Arc::new(AtomicU64::new(0));
    let window_end = Arc::clone(&reported);
    let options = StreamOptions::default()
        .with_embed(options)
        .with_progress(move |progress| reported.store(progress.texts, Relaxed));
    let embedder = isovec::Embedder::from(embedder.clone());
    let mut results = Box::pin(embedder.try_embed_stream(texts, options));
    let mut count = 0;
    let mut failed = false;
    std::iter::from_fn(move || {
        if failed {
            return None;
        }
        let result = pollster::block_on(results.next())?;
        let done = pair(result, beside.borrow_mut().pop_front());
        failed = done.is_err();
        count += 1;
        Some(done.map(|(row, embedded)| Done {
            row,
            embedded,
            ends_window: count == window_end.load(Relaxed),
        }))
    })
}

fn pair(result: Result<Embedded>, row: Option<Row>) -> Result<(Row, Embedded)> {
    match (result, row) {
        (Ok(embedded), Some(row)) => Ok((row, embedded)),
        (Ok(_), None) => Err(CliError::Sdk(isovec::Error::InvalidOutput {
            wanted: "one vector a row".into(),
            got: "a vector more".into(),
        })),
        (Err(CliError::Sdk(error)), Some(row)) if !error.is_cancelled() => {
            Err(CliError::text(&row, error))
        }
        (Err(error), _) => Err(error),
    }
}
