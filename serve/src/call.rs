//! A request on its way: read, let in, computed, answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use bytes::Bytes;
use isovec::{DynamicBatcher, EmbedOptions, Embeddings};
use isovec_http::body::{self as http_body, Room as _};
use isovec_http::coding::{self, Coding};
use isovec_http::{
    COMPUTED_BY, Dialect, FINGERPRINT, TEXT_TOKENS, TRUNCATED, TRUNCATED_TEXTS, apart, deadline,
    header, ranges, trace,
};
use serde::de::DeserializeOwned;
use tokio::time::timeout_at;
use tracing::Span;

use crate::admission::{End, Place};
use crate::app::App;
use crate::failure::{Failure, Kind};
use crate::priority::Priority;
use crate::seen::{Counted, Seen};
use crate::served::{Queued, Served};
use crate::tokens::Items;
use crate::{body, failure, priority};

/// What a request came to, for the log and the metrics.
#[derive(Debug, Clone)]
pub(crate) struct Computed {
    /// The name of the model.
    pub(crate) model: Arc<str>,
    pub(crate) seen: Seen,
    /// From admission to the result: the queue, tokenising and the engine.
    pub(crate) took: Duration,
}

/// A request on its way. Dropping it, as the server does when its client goes away, cancels what is computed for it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    /// When its head was there.
    pub(crate) started: Instant,
    until: tokio::time::Instant,
    priority: Priority,
    /// Whether the answer is to list the tokens of each text.
    lists_tokens: bool,
    place: Place,
    /// Until it is let in.
    admission: Span,
    admitted: bool,
    computed: Option<Computed>,
}

impl Call {
    pub(crate) fn new(app: Arc<App>) -> Self {
        let started = Instant::now();
        Self {
            until: tokio::time::Instant::from_std(started) + app.options.request_timeout,
            place: app.gate.place(),
            started,
            priority: Priority::default(),
            lists_tokens: false,
            admission: trace::part("admission"),
            admitted: false,
            computed: None,
            app,
        }
    }

    /// Reads the request.
    ///
    /// # Errors
    /// A server that has no model, a body that is not said to be JSON, and all errors of [`body`](Self::body) and [`body::parse`].
    pub(crate) async fn read<T: DeserializeOwned + Send + 'static>(
        &mut self,
        request: Request<Body>,
    ) -> Result<T, Failure> {
        self.app.models.loaded()?;
        body::check_is_json(request.headers())?;
        body::parse(self.body(request).await?).await
    }

    /// Reads the request's bytes, whatever they are.
    ///
    /// # Errors
    /// A head that cannot be followed, and all errors of [`body::read`].
    pub(crate) async fn body(&mut self, request: Request<Body>) -> Result<Bytes, Failure> {
        let options = &self.app.options;
        let time = deadline::of(request.headers(), options.request_timeout)?;
        self.priority = priority::of(request.headers())?;
        self.lists_tokens = request.headers().contains_key(TEXT_TOKENS);
        self.place.key = request.extensions().get().copied();
        let started = tokio::time::Instant::from_std(self.started);
        self.until = self.until.min(started + time);
        let until = self.until.min(started + options.read_timeout);
        let most = options.max_body;
        let coding = coding::of(request.headers())?;
        let read = http_body::read(request, &mut self.place, most, until).await;
        let read = read.map_err(|failure| match failure.kind {
            Kind::SlowBody if tokio::time::Instant::now() >= self.until => self.too_late(),
            _ => failure,
        })?;
        let Some(coding) = coding else {
            return Ok(read);
        };
        self.decoded(coding, read).await
    }

    /// The same bytes as they were before they were compressed.
    ///
    /// # Errors
    /// What is damaged or becomes too large, and what there is no room for.
    pub(crate) async fn decoded(&mut self, coding: Coding, bytes: Bytes) -> Result<Bytes, Failure> {
        let most = self.app.options.max_body;
        let whole = apart(move || coding.decode(&bytes, most)).await??;
        self.place.take(whole.len())?;
        Ok(whole)
    }

    /// The request's own limit on its time, which its body names; it never lengthens what there is.
    pub(crate) fn within(&mut self, time: Duration) {
        let until = self.started.checked_add(time);
        if let Some(until) = until.map(tokio::time::Instant::from_std) {
            self.until = self.until.min(until);
        }
    }

    /// The same as `work`, if it is there by the request's deadline.
    ///
    /// # Errors
    /// A deadline that has passed; `work` is dropped then.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let in_time = timeout_at(self.until, work).await;
        in_time.map_err(|_| self.too_late())
    }

    /// The request's priority, which its body names.
    pub(crate) fn matters(&mut self, priority: Priority) {
        self.priority = priority;
    }

    /// Computes something for so many texts, together with the texts of other requests. `work` begins it, once the
    /// request was let in.
    ///
    /// # Errors
    /// No room, a deadline that has passed, and the SDK's.
    pub(crate) async fn compute<T: Counted, F>(
        &mut self,
        served: &Served,
        texts: usize,
        work: impl FnOnce() -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = isovec::Result<T>>,
    {
        let left = self
            .until
            .saturating_duration_since(tokio::time::Instant::now());
        if left.is_zero() {
            return Err(self.too_late());
        }
        self.place.admit(texts, left, &served.pace, self.priority)?;
        self.admitted = true;
        self.admission = Span::none();
        let since = Instant::now();
        let result = self.in_time(work()).await?;
        let result = result.map_err(failure::of)?;
        self.computed = Some(Computed {
            model: Arc::clone(&served.name),
            seen: result.seen(),
            took: since.elapsed(),
        });
        Ok(result)
    }

    /// Computes the vectors of all texts.
    ///
    /// No vector of the result holds NaN or infinity, and none of a model that gives unit length is off it: the SDK
    /// checks every row (`isovec::Error::NotFinite`, `NotNormalized`). Vectors that have no length to keep are checked
    /// for zeros here.
    ///
    /// # Errors
    /// As [`compute`](Self::compute), and a model that gives no vectors.
    pub(crate) async fn embed(
        &mut self,
        served: &Served,
        texts: Vec<String>,
        options: EmbedOptions,
    ) -> Result<Embeddings, Failure> {
        let batcher = self.queue(served.embedder()?);
        let count = texts.len();
        let work = move || batcher.embed_with(texts, options);
        self.vectors(served, count, work).await
    }

    /// The same of texts, token ids or pictures.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub(crate) async fn embed_items(
        &mut self,
        served: &Served,
        items: Items,
        options: EmbedOptions,
    ) -> Result<Embeddings, Failure> {
        match items {
            Items::Texts(texts) => self.embed(served, texts, options).await,
            Items::Tokens(texts) => self.embed_tokens(served, texts, options).await,
            #[cfg(feature = "image")]
            Items::Images(pictures) => self.embed_images(served, pictures, options).await,
            // There is no model for them.
            #[cfg(not(feature = "image"))]
            Items::Images(_) => Err(served.is_no("a model of pictures")),
        }
    }

    /// The same of texts that are there as token ids.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    async fn embed_tokens(
        &mut self,
        served: &Served,
        texts: Vec<Vec<u32>>,
        options: EmbedOptions,
    ) -> Result<Embeddings, Failure> {
        let batcher = self.queue(served.embedder()?);
        let count = texts.len();
        let work = move || batcher.embed_tokens(texts, options);
        self.vectors(served, count, work).await
    }

    /// The same of pictures, each the bytes of a file.
    ///
    /// # Errors
    /// As [`embed`](Self::embed), and pictures that cannot be read.
    #[cfg(feature = "image")]
    async fn embed_images(
        &mut self,
        served: &Served,
        pictures: Vec<Vec<u8>>,
        options: EmbedOptions,
    ) -> Result<Embeddings, Failure> {
        let batcher = self.queue(served.images()?);
        let count = pictures.len();
        let work = move || batcher.embed_with(pictures, options);
        self.vectors(served, count, work).await
    }

    async fn vectors<F>(
        &mut self,
        served: &Served,
        texts: usize,
        work: impl FnOnce() -> F,
    ) -> Result<Embeddings, Failure>
    where
        F: Future<Output = isovec::Result<Embeddings>>,
    {
        let set = self.compute(served, texts, work).await?;
        if let Some(text) = zero(&set) {
            self.computed = None;
            return Err(Failure::new(
                Kind::Broken,
                format!("the vector of text {text} is zero; the model's weights are broken"),
            ));
        }
        Ok(set)
    }

    /// The model's queue, for a request of this priority.
    pub(crate) fn queue<H>(&self, queued: &Queued<H>) -> DynamicBatcher<H> {
        match self.priority {
            Priority::Normal => queued.batcher.clone(),
            Priority::Low => queued.batcher.low_priority(),
        }
    }

    fn too_late(&self) -> Failure {
        Failure::new(
            Kind::TimedOut,
            format!("the deadline passed after {:.1?}", self.started.elapsed()),
        )
    }

    /// What was computed, once it was.
    pub(crate) fn computed(&self) -> Option<&Computed> {
        self.computed.as_ref()
    }

    /// The tokens that the model saw.
    pub(crate) fn tokens(&self) -> u64 {
        self.computed.as_ref().map_or(0, |done| done.seen.tokens)
    }

    /// The places of the texts of which the model saw only a part.
    pub(crate) fn truncated(&self) -> &[usize] {
        self.computed
            .as_ref()
            .map_or(&[], |done| &done.seen.truncated)
    }

    /// What every dialect's answer says in its head of what was computed, under the settings that `fingerprint` names.
    pub(crate) fn describe(&self, served: &Served, fingerprint: String) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(FINGERPRINT, header(fingerprint));
        headers.insert(COMPUTED_BY, header(served.provider().to_string()));
        let truncated = self.truncated();
        if !truncated.is_empty() {
            headers.insert(TRUNCATED, header(truncated.len().to_string()));
            headers.insert(TRUNCATED_TEXTS, header(ranges(truncated.iter().copied())));
        }
        headers
    }

    /// The same of vectors, with the tokens of each text if the request asks for them.
    pub(crate) fn describe_set(&self, served: &Served, set: &Embeddings) -> HeaderMap {
        let mut headers = self.describe(served, set.fingerprint().id());
        if self.lists_tokens {
            let counts = set.token_counts().iter().map(u32::to_string);
            let list = counts.collect::<Vec<_>>().join(",");
            headers.insert(TEXT_TOKENS, header(list));
        }
        headers
    }

    /// Ends the request, and says it in a dialect.
    pub(crate) fn end(mut self, dialect: Dialect, result: Result<Response, Failure>) -> Response {
        if self.admitted {
            self.place.ends(match &result {
                Ok(_) => End::Answered,
                Err(failure) => match failure.kind {
                    Kind::Overloaded => End::Overloaded,
                    Kind::TimedOut => End::Late,
                    _ => End::Failed,
                },
            });
        }
        match result {
            Ok(mut response) => {
                if let Some(computed) = self.computed.take() {
                    self.app.metrics.computed(&computed);
                    response.extensions_mut().insert(computed);
                }
                response
            }
            Err(failure) => dialect.failed(&failure),
        }
    }
}

/// The first vector without a direction.
fn zero(set: &Embeddings) -> Option<usize> {
    set.iter()
        .position(|vector| vector.iter().all(|value| *value == 0.0))
}
