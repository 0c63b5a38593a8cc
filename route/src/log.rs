//! A request's line in the log. It has sizes and no texts, no path, and no header but the request's id.

use std::sync::Arc;
use std::time::Instant;

use axum::http::HeaderValue;
use isovec_http::{Dialect, access, trace};
use tracing::Span;

use crate::app::App;

/// What is known of a request, which is written when it ends, however it does.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) app: Arc<App>,
    pub(crate) started: Instant,
    pub(crate) method: &'static str,
    pub(crate) dialect: Dialect,
    pub(crate) id: HeaderValue,
    pub(crate) status: u16,
    /// Who answered, if a replica did.
    pub(crate) replica: Option<Arc<str>>,
    /// How often the request was sent.
    pub(crate) tries: u32,
    /// The request's part of a trace, if it has any.
    pub(crate) span: Span,
}

impl Line {
    pub(crate) fn new(
        app: Arc<App>,
        method: &'static str,
        dialect: Dialect,
        id: HeaderValue,
    ) -> Self {
        Self {
            app,
            started: Instant::now(),
            method,
            dialect,
            id,
            status: access::CLIENT_WENT,
            replica: None,
            tries: 0,
            span: Span::none(),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        trace::ended(&self.span, self.status);
        self.span.record("isovec.tries", self.tries);
        self.app.metrics.answered(self.status, took);
        tracing::info!(
            target: "isovec_route::access",
            id = self.id.to_str().unwrap_or_default(),
            method = self.method,
            protocol = self.dialect.name(),
            status = self.status,
            milliseconds = took.as_secs_f64() * 1e3,
            replica = self.replica.as_deref(),
            tries = self.tries,
        );
    }
}
