//! A client's request: read, sent, answered.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Request, Version};
use axum::response::Response;
use isovec_http::{Dialect, Failure, Kind, access, body, deadline, grpc, trace};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::app::App;
use crate::attempt::{Answer, Attempt};
use crate::log::Line;
use crate::{head, own};

/// The answer to a request, from a replica, from the router itself, or an error in the form of the path's protocol.
pub(crate) async fn answer(app: Arc<App>, mut request: Request<Body>) -> Response {
    let path = request.uri().path();
    let dialect = Dialect::of(path);
    let method = request.method().clone();
    let mut line = Line::new(
        Arc::clone(&app),
        access::method(&method),
        dialect,
        access::id(&request),
    );
    let mut response = match own::answer(&app, &method, path) {
        Some(response) => response,
        None => {
            request
                .headers_mut()
                .insert(access::REQUEST_ID, line.id.clone());
            let name = dialect.name();
            line.span = trace::taken(line.method, name, None, &line.id, request.headers());
            match routed(&app, request).instrument(line.span.clone()).await {
                Ok(answer) => {
                    line.replica = Some(Arc::clone(&answer.replica));
                    line.tries = answer.tries;
                    line.status = answer.meaning().as_u16();
                    let mut response = answer.response(&method);
                    response
                        .headers_mut()
                        .insert(access::REQUEST_ID, line.id.clone());
                    return response;
                }
                Err(failure) => dialect.failed(&failure),
            }
        }
    };
    response
        .headers_mut()
        .insert(access::REQUEST_ID, line.id.clone());
    line.status = access::status(&mut response);
    response
}

async fn routed(app: &App, request: Request<Body>) -> Result<Answer, Failure> {
    let started = Instant::now();
    let mut place = app.place()?;
    let (is_grpc, time) = checked(
        request.version(),
        request.headers(),
        app.options.request_timeout,
    )?;
    let until = started + time;
    let method = request.method().clone();
    let path = path(&request)?;
    own::check(path.path())?;
    let headers = request.headers().clone();
    let time = until.min(started + app.options.read_timeout);
    let body = body::read(request, &mut place, app.options.max_body, time).await?;
    let attempt = Attempt {
        method,
        path,
        headers: head::onward(headers, is_grpc),
        body,
        is_grpc,
        until,
        tries: 0,
        last: None,
    };
    if let Some(joiner) = &app.joiner
        && let Some(joined) = joiner.join(&attempt).await
    {
        return joined;
    }
    app.sender.send(attempt).await
}

/// Whether it is a call of gRPC, and the time that it has.
///
/// # Errors
/// What is no time.
fn checked(
    version: Version,
    headers: &HeaderMap,
    most: Duration,
) -> Result<(bool, Duration), Failure> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let is_grpc =
        version == Version::HTTP_2 && kind.is_some_and(|kind| kind.starts_with(grpc::KIND));
    let mut time = deadline::of(headers, most)?;
    if is_grpc && let Some(own) = deadline::of_grpc(headers)? {
        time = time.min(own);
    }
    Ok((is_grpc, time))
}

/// The path and the query. A host that the request names is not asked: the router has its own.
fn path(request: &Request<Body>) -> Result<PathAndQuery, Failure> {
    let path = request.uri().path_and_query().cloned();
    path.ok_or_else(|| {
        Failure::new(
            Kind::Method,
            "a router is no proxy for connections; send a request",
        )
    })
}
