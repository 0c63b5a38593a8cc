//! What goes around every request: its id, its key, its line in the log, its place in the metrics, and the answer to a
//! panic.
//!
//! A line has the route, never the path or the query; sizes, never texts; and no header but the request's id.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Collected};
use isovec_http::apart;
use isovec_http::coding::{self, Coding};
use isovec_http::{Dialect, MODELS, access, trace};
use tracing::{Instrument as _, Span};

use crate::app::App;
use crate::call::Computed;
use crate::failure::{Failure, Kind};
use crate::health;
use crate::status;

/// A path that no route has: it may be anything.
const NO_ROUTE: &str = "none";

/// A request's line in the log, which is written when it ends, however it does.
struct Line {
    app: Arc<App>,
    started: Instant,
    method: &'static str,
    route: Cow<'static, str>,
    id: HeaderValue,
    status: u16,
    computed: Option<Computed>,
    span: Span,
}

impl Drop for Line {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        self.app.metrics.answered(&self.route, self.status, took);
        let computed = self.computed.as_ref();
        let seen = computed.map(|computed| &computed.seen);
        trace::ended(&self.span, self.status);
        if let Some(computed) = computed {
            self.span.record("isovec.model", &*computed.model);
            self.span.record("isovec.texts", computed.seen.texts);
            self.span.record("isovec.tokens", computed.seen.tokens);
        }
        tracing::info!(
            target: "isovec_serve::access",
            id = self.id.to_str().unwrap_or_default(),
            method = self.method,
            route = &*self.route,
            status = self.status,
            milliseconds = took.as_secs_f64() * 1e3,
            model = computed.map(|computed| &*computed.model),
            texts = seen.map(|seen| seen.texts),
            tokens = seen.map(|seen| seen.tokens),
            truncated = seen.map(|seen| seen.truncated.len()),
        );
    }
}

pub(crate) async fn around(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let dialect = Dialect::of(request.uri().path());
    let route = request.extensions().get::<MatchedPath>();
    let route: Cow<'static, str> =
        route.map_or(NO_ROUTE.into(), |route| route.as_str().to_owned().into());
    let (method, id) = (access::method(request.method()), access::id(&request));
    let span = match is_routine(&route) {
        true => Span::none(),
        false => trace::taken(method, &route, Some(&route), &id, request.headers()),
    };
    let mut line = Line {
        started: Instant::now(),
        method,
        route,
        id,
        span: span.clone(),
        status: access::CLIENT_WENT,
        computed: None,
        app,
    };
    let models = line.app.models.id();
    let asked = coding::asked(request.headers());
    let mut response = if refused(&line.app, &mut request) {
        unauthorized(dialect)
    } else {
        // The shared state behind it is locked for moments that do not panic.
        let answered = AssertUnwindSafe(next.run(request))
            .catch_unwind()
            .instrument(span)
            .await;
        answered.unwrap_or_else(|_| dialect.failed(&Failure::panicked()))
    };
    // While models are exchanged, nobody can say which of them answered.
    if let Some(id) = models.filter(|id| line.app.models.id().as_ref() == Some(id)) {
        response.headers_mut().insert(MODELS, id);
    }
    if let Some((coding, level)) = asked.filter(|_| dialect != Dialect::Grpc) {
        response = compressed(response, dialect, coding, level).await;
    }
    response
        .headers_mut()
        .insert(access::REQUEST_ID, line.id.clone());
    line.status = access::status(&mut response);
    line.computed = response.extensions_mut().remove();
    response
}

/// Whether requests to a route come every second, and are in nobody's trace.
fn is_routine(route: &str) -> bool {
    health::is_asked_by(route) || route == "/metrics"
}

/// The same answer with a compressed body, if it is large enough to gain by it.
async fn compressed(response: Response, dialect: Dialect, coding: Coding, level: u32) -> Response {
    let (mut head, body) = response.into_parts();
    // It is in memory, whole.
    let Ok(whole) = body.collect().await.map(Collected::to_bytes) else {
        let message = "the answer cannot be written";
        return dialect.failed(&Failure::new(Kind::Broken, message));
    };
    if whole.len() < coding::LEAST {
        return Response::from_parts(head, whole.into());
    }
    let plain = whole.clone();
    match apart(move || coding.encode(&whole, level)).await {
        Ok(Ok(small)) => {
            head.headers.insert(CONTENT_ENCODING, coding.into());
            head.headers.remove(CONTENT_LENGTH);
            return Response::from_parts(head, small.into());
        }
        Ok(Err(error)) => tracing::warn!(%error, %coding, "an answer is not compressed"),
        Err(failure) => {
            tracing::warn!(error = failure.message, %coding, "an answer is not compressed")
        }
    }
    Response::from_parts(head, plain.into())
}

/// Whether a key is asked for and missing; one that is right goes on with the request. Whoever looks after the process
/// has none: health says nothing else.
fn refused(app: &App, request: &mut Request) -> bool {
    let Some(keys) = &app.options.api_keys else {
        return false;
    };
    match keys.admit(request.headers()) {
        Some(key) => {
            request.extensions_mut().insert(key);
            false
        }
        None => {
            let path = request.uri().path();
            !health::is_asked_by(path) && !status::is_asked_by(path)
        }
    }
}

fn unauthorized(dialect: Dialect) -> Response {
    let mut response = dialect.failed(&Failure::new(
        Kind::Unauthorized,
        "the API key is missing or wrong; send it as \"authorization: Bearer KEY\"",
    ));
    let headers = response.headers_mut();
    headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// The answer to a path that no route has.
pub(crate) async fn no_route(request: Request) -> Response {
    let dialect = Dialect::of(request.uri().path());
    dialect.failed(&Failure::new(
        Kind::NoRoute,
        "there is no such route; the chapter \"Serving\" of isovec's book lists them",
    ))
}

/// The answer to a method that a route does not have.
pub(crate) async fn no_method(request: Request) -> Response {
    let dialect = Dialect::of(request.uri().path());
    let message = format!(
        "the method {} is not for this route",
        access::method(request.method())
    );
    dialect.failed(&Failure::new(Kind::Method, message))
}
