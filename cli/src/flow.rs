//! Sends rows through the SDK's streams and returns each with its result.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::{Stream, StreamExt};
use isovec::blocking::{Classifier, Embedder, MultiVectorEmbedder, SparseEmbedder};
use isovec::stream::StreamProgress;
use isovec::{
    Classified, ClassifyOptions, EmbedOptions, Embedded, MultiVectorEmbedded, MultiVectorOptions,
    SparseEmbedded, SparseOptions, StreamOptions,
};

use crate::error::{CliError, Result};
use crate::input::Row;
use crate::input::feed::Feed;

/// A row and what became of its text.
pub(crate) struct Done<R> {
    pub(crate) row: Row,
    pub(crate) result: R,
    /// Whether it is the last of the texts that were worked on together.
    pub(crate) ends_window: bool,
}

/// The texts of rows.
type Texts = Pin<Box<dyn Stream<Item = Result<String>>>>;

/// Embeds rows in their order, in flat memory: rows are read a few windows ahead of what is taken.
/// An error is the last item, after all rows before it.
pub(crate) fn embed(
    embedder: &Embedder,
    rows: Feed,
    options: EmbedOptions,
) -> impl Iterator<Item = Result<Done<Embedded>>> + use<> {
    let embedder = isovec::Embedder::from(embedder.clone());
    through(rows, move |texts, progress| {
        let options = StreamOptions::default().with_embed(options);
        let options = options.with_progress(move |at| progress.heard(at));
        embedder.try_embed_stream(texts, options)
    })
}

/// Classifies rows in the same way.
pub(crate) fn classify(
    classifier: &Classifier,
    rows: Feed,
    options: ClassifyOptions,
) -> impl Iterator<Item = Result<Done<Classified>>> + use<> {
    let classifier = isovec::Classifier::from(classifier.clone());
    through(rows, move |texts, progress| {
        classifier.try_classify_stream(texts, options, move |at| progress.heard(at))
    })
}

/// Gives rows weights of words in the same way.
pub(crate) fn embed_sparse(
    embedder: &SparseEmbedder,
    rows: Feed,
    options: SparseOptions,
) -> impl Iterator<Item = Result<Done<SparseEmbedded>>> + use<> {
    let embedder = isovec::SparseEmbedder::from(embedder.clone());
    through(rows, move |texts, progress| {
        embedder.try_embed_stream(texts, options, move |at| progress.heard(at))
    })
}

/// Gives every token of rows a vector in the same way.
pub(crate) fn embed_multi_vector(
    embedder: &MultiVectorEmbedder,
    rows: Feed,
    options: MultiVectorOptions,
) -> impl Iterator<Item = Result<Done<MultiVectorEmbedded>>> + use<> {
    let embedder = isovec::MultiVectorEmbedder::from(embedder.clone());
    through(rows, move |texts, progress| {
        embedder.try_embed_stream(texts, options, move |at| progress.heard(at))
    })
}

/// How many texts the stream has worked on. It says so after each window, before it gives the window's results.
#[derive(Clone, Default)]
struct Reported(Arc<AtomicU64>);

impl Reported {
    fn heard(&self, progress: StreamProgress) {
        self.0.store(progress.texts, Relaxed);
    }

    fn texts(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

fn through<R, S>(
    rows: Feed,
    start: impl FnOnce(Texts, Reported) -> S,
) -> impl Iterator<Item = Result<Done<R>>>
where
    S: Stream<Item = Result<R>>,
{
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
    let reported = Reported::default();
    let mut results = Box::pin(start(texts.boxed_local(), reported.clone()));
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
        Some(done.map(|(row, result)| Done {
            row,
            result,
            ends_window: count == reported.texts(),
        }))
    })
}

fn pair<R>(result: Result<R>, row: Option<Row>) -> Result<(Row, R)> {
    match (result, row) {
        (Ok(result), Some(row)) => Ok((row, result)),
        (Ok(_), None) => Err(CliError::Sdk(isovec::Error::InvalidOutput {
            wanted: "one result a row".into(),
            got: "a result more".into(),
        })),
        (Err(CliError::Sdk(error)), Some(row)) if !error.is_cancelled() => {
            Err(CliError::text(&row, error))
        }
        (Err(error), _) => Err(error),
    }
}
