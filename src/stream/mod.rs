//! Streams of any number of texts, in constant memory.

mod windows;

use std::fmt;
use std::sync::Arc;
use std::task::{Poll, ready};

use futures_util::{Stream, StreamExt, stream};
use isovec_engine::maybe_send::{MaybeSend, MaybeSync};

use crate::embedder::Embedder;
use crate::error::{Error, Result};
use crate::model::{EmbedOptions, Item, Model, OwnedItem, Task, Vectors};
use windows::{Window, Windows};

/// Windows that are under way at the same time: while one runs, the next is tokenised.
const AT_ONCE: usize = 2;

/// The result for one text of a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Embedded {
    /// The vector.
    pub vector: Vec<f32>,
    /// Tokens that the model saw, special ones included.
    pub tokens: u32,
    /// Whether the model saw only a part of the text.
    pub truncated: bool,
}

/// How far a stream has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamProgress {
    /// Texts that were worked on, failed ones included.
    pub texts: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Texts that failed.
    pub failed: u64,
}

/// Hears how far a stream has come.
pub trait OnStreamProgress: Fn(StreamProgress) + MaybeSend + MaybeSync {}
impl<T: Fn(StreamProgress) + MaybeSend + MaybeSync> OnStreamProgress for T {}

/// How a stream is embedded.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct StreamOptions {
    /// Prompt and cancellation.
    pub embed: EmbedOptions,
    /// Told after every window of up to 512 texts, on the thread that polls the stream.
    pub on_progress: Option<Arc<dyn OnStreamProgress>>,
}

impl StreamOptions {
    /// Chooses the prompt and the cancellation.
    #[must_use]
    pub fn with_embed(mut self, options: EmbedOptions) -> Self {
        self.embed = options;
        self
    }

    /// Reports how far the stream has come.
    #[must_use]
    pub fn with_progress(mut self, on_progress: impl OnStreamProgress + 'static) -> Self {
        self.on_progress = Some(Arc::new(on_progress));
        self
    }
}

impl fmt::Debug for StreamOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamOptions")
            .field("embed", &self.embed)
            .field("on_progress", &self.on_progress.is_some())
            .finish()
    }
}

impl Embedder {
    /// Embeds a stream of any length in flat memory: results in order, one a text. Texts are read
    /// as results are taken, a few thousand ahead at most; while some run, the next are tokenised.
    ///
    /// A text that fails gives an error in its place, and the stream goes on; an error that is no
    /// single text's (a lost device, a cancellation) is its last item.
    pub fn embed_stream<S>(&self, texts: S) -> impl Stream<Item = Result<Embedded>> + use<S>
    where
        S: Stream,
        S::Item: AsRef<str>,
    {
        self.try_embed_stream(texts.map(Ok::<_, Error>), StreamOptions::default())
    }

    /// The same for a stream that may fail itself: its first error comes after the results of the
    /// texts before it, and is the last item.
    pub fn try_embed_stream<S, T, E>(
        &self,
        texts: S,
        options: StreamOptions,
    ) -> impl Stream<Item = Result<Embedded, E>> + use<S, T, E>
    where
        S: Stream<Item = Result<T, E>>,
        T: AsRef<str>,
        E: From<Error>,
    {
        let StreamOptions { embed, on_progress } = options;
        rows::<Vectors, _, _, _>(Arc::clone(&self.model), texts, embed, on_progress)
    }
}

/// The rows that a task makes of a stream of items.
pub(crate) fn rows<K, S, I, E>(
    model: Arc<Model>,
    items: S,
    options: K::Options,
    on_progress: Option<Arc<dyn OnStreamProgress>>,
) -> impl Stream<Item = Result<K::Row, E>> + use<K, S, I, E>
where
    K: Task,
    I: Item,
    S: Stream<Item = Result<I, E>>,
    E: From<Error>,
{
    let mut progress = StreamProgress::default();
    let mut results = Box::pin(
        Windows::new(items)
            .map(move |window| window_of::<K, _, E>(Arc::clone(&model), window, options.clone()))
            .buffered(AT_ONCE)
            .inspect(move |window: &Done<K::Row, E>| {
                if let Some(on_progress) = &on_progress {
                    window.add_to::<K>(&mut progress);
                    on_progress(progress);
                }
            })
            .flat_map(|window| {
                let Done { results, error } = window;
                let results = results.into_iter().map(|result| Outcome {
                    last: matches!(&result, Err(error) if !error.is_one_texts()),
                    result: result.map_err(E::from),
                });
                let error = error.map(|error| Outcome {
                    last: true,
                    result: Err(error),
                });
                stream::iter(results.chain(error))
            }),
    );
    let mut ended = false;
    stream::poll_fn(move |context| {
        if ended {
            return Poll::Ready(None);
        }
        let next = ready!(results.as_mut().poll_next(context));
        ended = next.as_ref().is_none_or(|outcome| outcome.last);
        Poll::Ready(next.map(|outcome| outcome.result))
    })
}

/// The result for one item, and whether the stream ends with it.
struct Outcome<R, E> {
    result: Result<R, E>,
    last: bool,
}

/// A window that was worked on.
struct Done<R, E> {
    results: Vec<Result<R>>,
    error: Option<E>,
}

impl<R, E> Done<R, E> {
    fn add_to<K: Task<Row = R>>(&self, progress: &mut StreamProgress) {
        progress.texts += self.results.len() as u64;
        for result in &self.results {
            match result {
                Ok(row) => progress.tokens += u64::from(K::tokens(row)),
                Err(_) => progress.failed += 1,
            }
        }
    }
}

async fn window_of<K: Task, I: OwnedItem, E>(
    model: Arc<Model>,
    window: Window<I, E>,
    options: K::Options,
) -> Done<K::Row, E> {
    let Window {
        start,
        items,
        error,
    } = window;
    let mut results = Vec::with_capacity(items.len());
    // Parts that are still to run, the next one last.
    let mut parts = vec![items];
    while let Some(mut part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        let answer = Arc::clone(&model).call::<K, I>(part.clone(), options.clone());
        match answer.await {
            Ok(set) => results.extend(K::rows(set).map(Ok)),
            // In halves, until the item at fault is alone.
            Err(error) if part.len() > 1 && error.is_one_texts() => {
                let second = part.split_off(part.len() / 2);
                parts.push(second);
                parts.push(part);
            }
            Err(error) => {
                let error = error.moved_by(start + results.len());
                let last = !error.is_one_texts();
                results.push(Err(error));
                if last {
                    break;
                }
            }
        }
    }
    Done { results, error }
}

#[cfg(test)]
mod tests;
