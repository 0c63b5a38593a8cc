//! Many callers, one engine: their texts run together.

mod core;
mod driver;
mod guards;
mod queue;
mod state;
mod steering;

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::{Either, select};
use isovec_engine::EngineError;
use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::BoxFuture;
use isovec_engine::profile::{Scope, Stage};

use self::core::{Admitted, Core};
use self::guards::Call;
use self::queue::Priority;
use self::state::Answer;
use crate::backend;
use crate::embedder::{Embedder, owned};
use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::model::encoded::Encoded;
use crate::model::rows::Rows;
use crate::model::{
    EmbedOptions, FlowOptions, Model, OwnCancel, OwnedItem, Prompt, Task, TokenIds, Vectors,
    tokenized,
};
use crate::sync::Instant;

pub use self::state::QueueCounts;

/// Texts of one call that are in the queue at the same time, at most, and the part of the queue
/// that they may take: the rest of a large call waits outside, where it takes no place from others.
const SHARE: usize = 512;
/// Numbers that wait for the rest of a part of a call, at most: 16 MB. Rows of words are a hundred times as wide as others.
const VALUES: usize = 4 << 20;
const PART_OF_QUEUE: usize = 4;

/// Joins the calls of many tasks into batches, so that a server with many short requests runs few
/// large batches instead of many small ones. Clones share one queue; when the last is dropped and
/// its calls are over, so is its driver.
///
/// - **At once, if the engine is idle.** A call that finds the engine idle runs by itself, without a detour. While
///   the engine works, calls gather, and the next batch takes what fits together: texts of like length, so that
///   little is padded, or of any length where the engine pads nothing.
/// - **Fair.** The caller that was given the fewest tokens is served next; a call with ten thousand texts takes turns
///   with a call that has one.
/// - **In two priorities.** The calls of [`low_priority`](Self::low_priority) leave their place to others.
/// - **Bounded.** Past `batching.max_queue` texts or `batching.max_queue_tokens` tokens a call is
///   refused at once with [`Error::Overloaded`], which says when to try again.
/// - **Nobody is harmed by another.** Dropping a call's future gives up its place, and cancels its
///   batch if nobody else is in it; a text that no run survives fails its own call alone.
/// - **Steered.** With `batching.dynamic_batching` (the default) batches are made as large as
///   `batching.target_latency` allows, by measured times, or, with
///   `batching.throughput_optimization`, as large as still brings more texts a second.
///
/// The vectors are those of [`Embedder::embed`], within the bounds of the parity suite.
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::{DynamicBatcher, Embedder, Shutdown, models};
///
/// let embedder = Embedder::load(models::ALL_MINILM_L6_V2).await?;
/// let batcher = DynamicBatcher::new(&embedder);
/// // In as many tasks as there are requests:
/// let vectors = batcher.embed(["a request's text"]).await?;
/// // When the server stops:
/// batcher.shutdown(Shutdown::Drain).await;
/// # Ok(()) }
/// ```
pub struct DynamicBatcher<H = Embedder> {
    owner: Arc<Owner>,
    priority: Priority,
    /// The handle whose calls are batched.
    handle: PhantomData<fn() -> H>,
}

impl<H> Clone for DynamicBatcher<H> {
    fn clone(&self) -> Self {
        Self {
            owner: Arc::clone(&self.owner),
            ..*self
        }
    }
}

impl<H> fmt::Debug for DynamicBatcher<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DynamicBatcher").field(&self.owner).finish()
    }
}

/// How a batcher ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shutdown {
    /// Calls that were let in are answered; new ones are refused.
    Drain,
    /// Everybody is answered now, with [`Error::ShutDown`]; runs are cancelled.
    Cancel,
}

/// Ends the driver when the last handle, and the last call, is gone.
#[derive(Debug)]
struct Owner(Arc<Core>);

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.0.shut_down(true));
    }
}

impl DynamicBatcher {
    /// A batcher over a model, with the `batching` knobs of the model's configuration. Each has
    /// its own queue.
    pub fn new(embedder: &Embedder) -> Self {
        Self::over(Arc::clone(&embedder.model))
    }

    /// Embeds texts together with those of other callers: `[n, dim]` in their order.
    ///
    /// # Errors
    /// As [`Embedder::embed`], and [`Error::Overloaded`] and [`Error::ShutDown`].
    pub fn embed<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_with(texts, EmbedOptions::default())
    }

    /// Embeds texts with options of the call: a prompt, a dimension, unit length, a cancellation. Calls
    /// with different options run together all the same.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: EmbedOptions,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.call::<Vectors, _>(owned(texts), options)
    }

    /// The same of texts that are there as the ids that this model's tokenizer gives them, without special tokens. The
    /// special tokens are put around them, and what is too long is cut, as for a text. The ids of a prompt stand before
    /// them: a tokenizer that joins the prompt's last word with the text's first would have given both others.
    ///
    /// # Errors
    /// As [`embed_with`](Self::embed_with); [`Tokenize`](crate::Error::Tokenize) also for an id beyond the vocabulary.
    pub fn embed_tokens(
        &self,
        texts: impl IntoIterator<Item = Vec<u32>>,
        options: EmbedOptions,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        let texts: Vec<TokenIds> = texts.into_iter().map(TokenIds).collect();
        self.call::<Vectors, _>(texts, options)
    }

    /// The vector of one text.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_one(&self, text: impl AsRef<str>) -> BoxFuture<'static, Result<Vec<f32>>> {
        let embedding = self.embed([text]);
        Box::pin(async move { Ok(embedding.await?.into_vec()) })
    }

    /// Embeds texts to search with, under the model's query prompt. For one, see
    /// [`embed_query`](Self::embed_query).
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_queries<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_with(texts, EmbedOptions::default().with_prompt(Prompt::Query))
    }

    /// Embeds a text to search with, under the model's query prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_query(&self, text: impl AsRef<str>) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_queries([text])
    }

    /// Embeds a text to search in, under the model's passage prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passage(&self, text: impl AsRef<str>) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_passages([text])
    }

    /// Embeds texts to search in, under the model's passage prompt.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passages<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_with(texts, EmbedOptions::default().with_prompt(Prompt::Passage))
    }
}

impl<H> DynamicBatcher<H> {
    /// A batcher over a model.
    pub(crate) fn over(model: Arc<Model>) -> Self {
        Self {
            owner: Arc::new(Owner(Arc::new(Core::new(model)))),
            priority: Priority::default(),
            handle: PhantomData,
        }
    }

    /// Does a task together with the calls of others.
    pub(crate) fn call<T: Task, I: OwnedItem>(
        &self,
        items: Vec<I>,
        options: T::Options,
    ) -> BoxFuture<'static, Result<T::Set>> {
        let (owner, priority) = (Arc::clone(&self.owner), self.priority);
        Box::pin(async move { owner.call::<T, I>(items, options, priority).await })
    }

    /// The same queue for calls that can wait. Their texts fill what other calls leave of a batch; a batch begins with them if no
    /// other call waits, and else each eighth time.
    #[must_use]
    pub fn low_priority(&self) -> Self {
        Self {
            priority: Priority::Low,
            ..self.clone()
        }
    }

    /// The waiting calls, and the counts so far.
    pub fn counts(&self) -> QueueCounts {
        self.owner.0.counts()
    }

    /// Accepts no more calls, and completes when nothing runs: after [`Shutdown::Drain`] when every accepted call is
    /// over (a call whose future is neither polled nor dropped keeps it waiting). May be called again, also to turn a
    /// drain into a cancel.
    pub fn shutdown(&self, how: Shutdown) -> BoxFuture<'static, ()> {
        let ended = self.owner.0.shut_down(how == Shutdown::Cancel);
        Box::pin(async move {
            // An error says that the batcher is gone, which is as good.
            let _ = ended.await;
        })
    }
}

impl Owner {
    async fn call<T: Task, I: OwnedItem>(
        &self,
        items: Vec<I>,
        options: T::Options,
        priority: Priority,
    ) -> Result<T::Set> {
        let model = &self.0.model;
        let call = model.recorder.call();
        let mut request = model.profiler.request(items.len());
        let all = self.all::<T, I>(items, options, priority, request.scope());
        let result = all.await;
        let result = result.map_err(|error| self.if_shut_down(error));
        request.ended(Error::ended(&result));
        call.ended(&result);
        result
    }

    async fn all<T: Task, I: OwnedItem>(
        &self,
        items: Vec<I>,
        options: T::Options,
        priority: Priority,
        scope: &Scope,
    ) -> Result<T::Set> {
        self.0.check_open()?;
        let model = &self.0.model;
        let task = T::of(model, &options)?;
        let rows = self.rows(items, T::flow(&options), priority, scope);
        task.set(model, rows.await?)
    }

    /// Past the queue where all rows are kept. It knows no task, so that it is compiled once for all of them.
    async fn rows<I: OwnedItem>(
        &self,
        items: Vec<I>,
        options: FlowOptions,
        priority: Priority,
        scope: &Scope,
    ) -> Result<Rows> {
        let compute = |items| self.compute(items, options.clone(), priority, scope);
        self.0.model.cached(items, &options, compute).await
    }

    async fn compute<I: OwnedItem>(
        &self,
        items: Vec<I>,
        options: FlowOptions,
        priority: Priority,
        scope: &Scope,
    ) -> Result<Rows> {
        let core = &self.0;
        let model = &core.model;
        let (lead, prompt) = model.prompts.resolve(&options.prompt)?;
        let part = model.batching.max_queue / PART_OF_QUEUE;
        let few = (VALUES / model.dim.max(1)).max(1);
        let share = part.clamp(1, SHARE.min(I::WINDOW).min(few));
        core.check_room(items.len().min(share))?;
        let cancel = OwnCancel::linked(options.cancel.as_ref());
        let mut rows = model.new_rows(items.len(), prompt)?;
        let mut items = items.into_iter();
        let mut start = 0;
        let mut call = None;
        loop {
            let window: Vec<I> = items.by_ref().take(share).collect();
            if window.is_empty() {
                break;
            }
            let (encoder, lead) = (Arc::clone(model), lead.clone());
            let encode = move |items: &[I]| Ok(lead.adapt(I::encode(&encoder, items, &lead)?));
            let since = Instant::now();
            let span = scope.span(Stage::Tokenize);
            let encodings =
                backend::in_slices("tokenising", window, cancel.0.clone(), encode).await?;
            tokenized(span, &encodings);
            model.recorder.tokenized(since.elapsed(), &encodings);
            rows.note(start, &encodings)?;
            let count = encodings.len();
            let admitted = match &call {
                Some(call) => self.admit_more(call, encodings, &cancel.0).await?,
                None => core.admit(
                    call.insert(core.enter(priority, &cancel.0, scope)),
                    encodings,
                )?,
            };
            match admitted {
                Admitted::Direct(direct, encodings) => {
                    let run = model.run(start, &encodings, &cancel.0, &mut rows, scope);
                    run.await?;
                    direct.ran();
                }
                Admitted::Queued(seat, answered) => {
                    let values = cancellable(answered, &cancel.0).await?;
                    drop(seat);
                    let _copy = scope.span(Stage::Copy);
                    rows.place_values(start, &values)?;
                }
            }
            start += count;
        }
        Ok(rows)
    }

    /// A shutdown cancels what callers run themselves, which a call of several parts may find out
    /// while it tokenises the next one.
    fn if_shut_down(&self, error: Error) -> Error {
        if error.is_cancelled() && self.0.is_closed() {
            Error::ShutDown
        } else {
            error
        }
    }

    /// Waits for room, as a call may that was let in.
    async fn admit_more(
        &self,
        call: &Call,
        encodings: Vec<Encoded>,
        cancel: &Cancel,
    ) -> Result<Admitted> {
        let mut waiting = Some(encodings);
        let room = poll_fn(move |context| {
            let Some(encodings) = waiting.take() else {
                return Poll::Ready(Err(Error::ShutDown));
            };
            match self.0.admit_more(call, encodings, context.waker()) {
                Err(error) => Poll::Ready(Err(error)),
                Ok(Ok(admitted)) => Poll::Ready(Ok(admitted)),
                Ok(Err(encodings)) => {
                    waiting = Some(encodings);
                    Poll::Pending
                }
            }
        });
        match select(room, cancel.cancelled()).await {
            Either::Left((admitted, _)) => admitted,
            Either::Right(((), _)) => Err(EngineError::Cancelled.into()),
        }
    }
}

/// Waits for the answer or the caller's own cancellation.
async fn cancellable(
    answered: futures_channel::oneshot::Receiver<Answer>,
    cancel: &Cancel,
) -> Answer {
    match select(answered, cancel.cancelled()).await {
        Either::Left((Ok(answer), _)) => answer,
        Either::Left((Err(_), _)) => Err(Error::ShutDown),
        Either::Right(((), _)) => Err(EngineError::Cancelled.into()),
    }
}

#[cfg(test)]
mod tests;
