//! What goes around every request: its id, its key, its line in the log, its place in the metrics, and the answer to a
//! panic.
//!
//! A line has the route, never the path or the query; sizes, never texts; and no header but the request's id.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt as _;

use crate::app::App;
use crate::call::{Computed, header};
use crate::dialect::Dialect;
use crate::failure::{Failure, Kind};
use crate::health;
use crate::status;

/// A client's own id for its request, or one that the server gives it; in the answer and in the log.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of a client's id, at most.
const LONGEST_ID: usize = 128;

/// The status in the log and the metrics of a request whose client went away, as nginx has it.
const CLIENT_WENT: u16 = 499;

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
}

impl Drop for Line {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        self.app.metrics.answered(&self.route, self.status, took);
        let computed = self.computed.as_ref();
        let seen = computed.map(|computed| &computed.seen);
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
    let mut line = Line {
        started: Instant::now(),
        method: name(request.method()),
        route: route.map_or(NO_ROUTE.into(), |route| route.as_str().to_owned().into()),
        id: id(&request),
        status: CLIENT_WENT,
        computed: None,
        app,
    };
    let mut response = if refused(&line.app, &mut request) {
        unauthorized(dialect)
    } else {
        // The shared state behind it is locked for moments that do not panic.
        let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
        answered.unwrap_or_else(|_| {
            let message = "the server panicked; please report it";
            dialect.failed(&Failure::new(Kind::Broken, message))
        })
    };
    response.headers_mut().insert(REQUEST_ID, line.id.clone());
    // gRPC has a status of its own, and HTTP's says that there is one.
    let failed: Option<Kind> = response.extensions_mut().remove();
    line.status = failed.map_or(response.status(), Kind::status).as_u16();
    line.computed = response.extensions_mut().remove();
    response
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

/// A method that HTTP has; any other word of a client belongs in no log.
fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn id(request: &Request) -> HeaderValue {
    let given = request.headers().get(REQUEST_ID);
    let usable = given.filter(|id| id.len() <= LONGEST_ID && id.to_str().is_ok());
    usable.cloned().unwrap_or_else(new_id)
}

/// The process's start in microseconds, and a number.
fn new_id() -> HeaderValue {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static START: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let start = START.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_micros() as u64)
    });
    header(format!(
        "{start:x}-{:x}",
        NEXT.fetch_add(1, Ordering::Relaxed)
    ))
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
        name(request.method())
    );
    dialect.failed(&Failure::new(Kind::Method, message))
}
