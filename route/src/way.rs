//! The way to a replica and back: one try.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::header::RETRY_AFTER;
#[cfg(feature = "tls")]
use axum::http::uri::Scheme;
use axum::http::{HeaderMap, HeaderName, Request, Response, StatusCode, Uri, Version};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use isovec_http::body::Whole;
use isovec_http::{MODELS, RETRY_AFTER_MS, access, deadline, header, trace};
use tokio::time::{Instant, timeout_at};
use tower::Service;
use tower::load::Load;
use tracing::{Instrument as _, Span};

use crate::attempt::{Answer, Attempt, Lost};
#[cfg(feature = "tls")]
use crate::error::Error;
use crate::error::Result;
use crate::head;
use crate::options::RouteOptions;
use crate::replica::Replica;
use crate::target::Target;

/// Bytes of an answer, at most: more than the vectors of 2,048 texts of 8,192 components take as digits.
pub(crate) const LARGEST_ANSWER: usize = 256 << 20;

/// How long a connection without a request is kept: less than a server keeps it, so that it does not end under a request.
const IDLE: Duration = Duration::from_secs(5);

/// How long a replica that is full is passed over, at most.
const LONGEST_FULL: Duration = Duration::from_secs(5);

/// What a replica that is full is behind all others by.
const FULL: u64 = 1 << 48;

/// A request's part of the load of a replica with weight 1. It is divided by weights, and so is large.
const LOAD: u64 = 1 << 20;

/// What opens connections.
#[cfg(not(feature = "tls"))]
type Connector = HttpConnector;
#[cfg(feature = "tls")]
type Connector = hyper_rustls::HttpsConnector<HttpConnector>;

type Http = Client<Connector, Full<Bytes>>;

/// Connections to replicas.
#[derive(Debug, Clone)]
pub(crate) struct Clients {
    /// HTTP/1.1, a connection a request.
    plain: Http,
    /// HTTP/2, for calls of gRPC.
    grpc: Http,
    /// A new connection each time: what probes ask is whether there is one.
    probes: Http,
}

impl Clients {
    /// # Errors
    /// A replica of TLS, and a system that trusts nobody.
    pub(crate) fn new(options: &RouteOptions, targets: &[Target]) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(options.connect_timeout));
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE);
        let [one, two] = connectors(connector, options, targets)?;
        let plain = builder.build(one.clone());
        let probes = builder.clone().pool_max_idle_per_host(0).build(one);
        let grpc = builder.http2_only(true).build(two);
        Ok(Self {
            plain,
            grpc,
            probes,
        })
    }

    /// Asks a replica whether it is ready: its models, or why not.
    pub(crate) async fn probe(&self, replica: &Replica) -> Result<axum::http::HeaderValue, String> {
        let request = Request::get(uri(replica, "/health/ready")?).body(Full::default());
        let request = request.map_err(|error| error.to_string())?;
        let response = self.probes.request(request).await;
        let response = response.map_err(|error| cause(&error))?;
        if response.status() != StatusCode::OK {
            return Err(format!(
                "/health/ready answers {}",
                response.status().as_u16()
            ));
        }
        let models = response.headers().get(MODELS).cloned();
        models.ok_or_else(|| {
            "it is no isovec server, or of another version: it does not name its models".into()
        })
    }
}

/// What opens connections of HTTP/1.1, and of HTTP/2.
#[cfg(not(feature = "tls"))]
fn connectors(connector: HttpConnector, _: &RouteOptions, _: &[Target]) -> Result<[Connector; 2]> {
    Ok([connector.clone(), connector])
}

/// The same over TLS, where an address asks for it.
#[cfg(feature = "tls")]
fn connectors(
    mut connector: HttpConnector,
    options: &RouteOptions,
    targets: &[Target],
) -> Result<[Connector; 2]> {
    use isovec_http::Trust;

    connector.enforce_http(false);
    let is_asked_for = targets
        .iter()
        .any(|target| *target.scheme() == Scheme::HTTPS);
    let trust = match &options.trust {
        Some(trust) => Ok(trust.clone()),
        None if is_asked_for => Trust::system(),
        None => Trust::nobody(),
    };
    let config = trust
        .map_err(|error| Error::Trust(error.to_string()))?
        .config();
    let builder = || {
        hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(config.clone())
            .https_or_http()
    };
    Ok([
        builder().enable_http1().wrap_connector(connector.clone()),
        builder().enable_http2().wrap_connector(connector),
    ])
}

/// The innermost cause, which says what the system said.
fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause.to_string()
}

fn uri(replica: &Replica, path: &str) -> Result<Uri, String> {
    let built = Uri::builder()
        .scheme(replica.target.scheme().clone())
        .authority(replica.target.authority().clone())
        .path_and_query(path)
        .build();
    built.map_err(|error| error.to_string())
}

/// The service of one replica: not ready while it is out of rotation.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) replica: Arc<Replica>,
    pub(crate) clients: Clients,
}

/// Requests in work for the replica's weight, with the one that would come.
impl Load for Way {
    type Metric = u64;

    fn load(&self) -> u64 {
        let load = (self.replica.in_flight() + 1).saturating_mul(LOAD)
            / u64::from(self.replica.target.weight());
        if self.replica.is_full() {
            load.saturating_add(FULL)
        } else {
            load
        }
    }
}

impl Service<Attempt> for Way {
    type Response = Answer;
    type Error = Lost;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Lost>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        self.replica.waker.register(cx.waker());
        if self.replica.is_in() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    fn call(&mut self, attempt: Attempt) -> Self::Future {
        // Counted before it is polled: the next choice sees it.
        let in_flight = self.replica.begin();
        let Self { replica, clients } = self.clone();
        Box::pin(async move {
            let _in_flight = in_flight;
            tried(&replica, &clients, attempt).await
        })
    }
}

/// Sends a request once, and says of the replica what came of it.
async fn tried(replica: &Replica, clients: &Clients, attempt: Attempt) -> Result<Answer, Lost> {
    use std::sync::atomic::Ordering::Relaxed;
    if attempt.tries > 0 {
        replica.counts.retries.fetch_add(1, Relaxed);
    }
    let to = replica.target.authority();
    let span = trace::sent(access::method(&attempt.method), to.as_str());
    let until = attempt.until;
    let sent = sent(replica, clients, attempt, &span).instrument(span.clone());
    let result = match timeout_at(until, sent).await {
        Ok(result) => result,
        Err(_) => Err(Lost::Late),
    };
    if result.is_err() {
        trace::failed(&span);
    }
    match &result {
        Ok(answer) => match answer.meaning() {
            StatusCode::SERVICE_UNAVAILABLE => replica.failed("it answers 503".into()),
            StatusCode::TOO_MANY_REQUESTS => replica.fills(wait(&answer.headers)),
            _ => replica.answered(),
        },
        Err(Lost::Unreached(why) | Lost::Broken(why) | Lost::Foreign(why)) => {
            replica.failed(why.clone())
        }
        // A request may be late because it asked for much in little time. Whether the replica is stuck is for probes to say.
        Err(_) => {
            replica.counts.failures.fetch_add(1, Relaxed);
        }
    }
    result
}

async fn sent(
    replica: &Replica,
    clients: &Clients,
    attempt: Attempt,
    span: &Span,
) -> Result<Answer, Lost> {
    let Attempt {
        method,
        path,
        mut headers,
        body,
        is_grpc,
        until,
        tries,
        ..
    } = attempt;
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Lost::Late);
    }
    if is_grpc {
        // Up to eight digits: a day in milliseconds.
        let millis = left.as_millis().clamp(1, 86_400_000);
        headers.insert(deadline::GRPC, header(format!("{millis}m")));
    } else {
        headers.insert(
            deadline::HEADER,
            header(format!("{:.6}", left.as_secs_f64().max(1e-6))),
        );
    }
    let uri = uri(replica, path.as_str()).map_err(Lost::Unreached)?;
    trace::pass_on(span, &mut headers);
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    let client = if is_grpc {
        *request.version_mut() = Version::HTTP_2;
        &clients.grpc
    } else {
        &clients.plain
    };
    let response = client.request(request).await.map_err(|error| {
        let why = cause(&error);
        if error.is_connect() {
            Lost::Unreached(why)
        } else {
            Lost::Broken(why)
        }
    })?;
    let (status, mut headers, body, trailers) = held(response).await?;
    trace::ended(span, status.as_u16());
    let named = headers.get(MODELS);
    // An error may come from before there are models, or while they are exchanged.
    if named.is_some() || status.is_success() {
        replica.check(named).map_err(Lost::Foreign)?;
    }
    head::end_to_end(&mut headers);
    Ok(Answer {
        status,
        headers,
        body,
        trailers,
        replica: Arc::clone(&replica.name),
        tries: tries + 1,
    })
}

/// The whole of an answer, in memory.
async fn held<B>(
    response: Response<B>,
) -> Result<(StatusCode, HeaderMap, Bytes, Option<HeaderMap>), Lost>
where
    B: axum::body::HttpBody<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    let (head, mut body) = response.into_parts();
    let (mut whole, mut trailers) = (Whole::default(), None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Lost::Broken(cause(&error)))?;
        match frame.into_data() {
            Ok(data) if whole.len() + data.len() > LARGEST_ANSWER => {
                return Err(Lost::TooLarge(LARGEST_ANSWER));
            }
            Ok(data) => whole.push(data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    Ok((head.status, head.headers, whole.bytes(), trailers))
}

/// How long a replica says that it has no room.
fn wait(headers: &HeaderMap) -> Duration {
    let number = |name: &HeaderName| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let exact = number(&RETRY_AFTER_MS).map(Duration::from_millis);
    let wait = exact.or_else(|| number(&RETRY_AFTER).map(Duration::from_secs));
    wait.unwrap_or(Duration::ZERO).min(LONGEST_FULL)
}
