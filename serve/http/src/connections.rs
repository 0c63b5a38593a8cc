//! Connections: accepted by hyper and not by `axum::serve`, which knows no time limits for heads and for clients that read nothing,
//! no bound of connections and no time for the last answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderValue, Method, Request, Version};
use axum::response::Response;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutWriter;
use tower::util::ServiceExt as _;
use tower::{Service, service_fn};

#[cfg(feature = "tls")]
use crate::begun::Begun;
#[cfg(feature = "tls")]
use crate::tls::{self, Tls};
use crate::unread::{discard, lent};

/// How a connection of HTTP/2 begins (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// That a connection ends with this answer.
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// Bytes of a request's head, at most.
const LARGEST_HEAD: usize = 64 << 10;

/// How long answers may take to be written after the last request has ended.
pub const LAST_WORDS: Duration = Duration::from_secs(5);

/// How long a connection whose first bytes tell no version is left alone.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long nothing is accepted after the system had no room for a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// What bounds connections, and what is around them.
#[derive(Debug, Clone)]
pub struct Terms {
    most: usize,
    time: Duration,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Terms {
    /// How many may be open; more wait to be accepted. And how long a client has for its handshake, for the head of a request, and for
    /// nothing at all, and may take nothing of an answer.
    ///
    /// There is no TLS. It is no parameter, because whoever is built without it may stand beside somebody who is built with it.
    pub fn new(most: usize, time: Duration) -> Self {
        Self {
            most,
            time,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Every connection is of TLS, if there is any.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self, tls: Option<Tls>) -> Self {
        self.tls = tls;
        self
    }
}

/// The connections of a port.
#[derive(Debug)]
pub struct Connections {
    close: watch::Sender<()>,
    accepting: JoinHandle<GracefulShutdown>,
}

impl Connections {
    /// Accepts connections in a task of its own and answers their requests, over HTTP/1.1 and HTTP/2.
    pub fn accept<S>(listener: TcpListener, service: S, terms: Terms) -> Self
    where
        S: Service<Request<Body>, Response = Response, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        let (close, closing) = watch::channel(());
        Self {
            close,
            accepting: tokio::spawn(accept(listener, service, terms, closing)),
        }
    }

    /// Accepts no more, and returns when the last answers are written, or after [`LAST_WORDS`].
    pub async fn end(self) {
        // Nobody hears it if the task is gone, and then there is nothing to close.
        let _ = self.close.send(());
        if let Ok(connections) = self.accepting.await
            && timeout(LAST_WORDS, connections.shutdown()).await.is_err()
        {
            tracing::warn!("connections were closed whose clients did not read their answers");
        }
    }
}

/// Accepts connections until it is told to close, and gives them back to be ended.
async fn accept<S>(
    listener: TcpListener,
    service: S,
    terms: Terms,
    mut closing: watch::Receiver<()>,
) -> GracefulShutdown
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let connections = GracefulShutdown::new();
    // More than a semaphore holds is as good as no bound.
    let places = Arc::new(Semaphore::new(terms.most.min(Semaphore::MAX_PERMITS)));
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(terms.time)
        .max_buf_size(LARGEST_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(terms.time)
        .max_header_list_size(LARGEST_HEAD as u32);
    let service = TowerToHyperService::new(service_fn(move |request: Request<Incoming>| {
        answer(service.clone(), request)
    }));
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            _ = closing.changed() => return connections,
        };
        let (stream, _) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Too many open files, or a client that was gone before it was looked at.
                tracing::warn!(%error, "a connection was not accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        let (watcher, mut closing) = (connections.watcher(), closing.clone());
        let (builder, service) = (builder.clone(), service.clone());
        let terms = terms.clone();
        tokio::spawn(async move {
            let _place = place;
            // Small answers leave at once.
            let _ = stream.set_nodelay(true);
            #[cfg(feature = "tls")]
            if let Some(tls) = &terms.tls {
                let stream = taking(stream, terms.time);
                let begun = tokio::select! {
                    begun = shaken(stream, tls, terms.time) => begun,
                    _ = closing.changed() => None,
                };
                if let Some((stream, chosen)) = begun {
                    let builder = of_version(builder, chosen.as_deref());
                    serve(stream, &builder, service, watcher, closing).await;
                }
                return;
            }
            let begun = tokio::select! {
                begun = begins(&stream, terms.time) => begun,
                _ = closing.changed() => false,
            };
            if begun {
                let stream = taking(stream, terms.time);
                serve(stream, &builder, service, watcher, closing).await;
            }
        });
    }
}

/// Answers a request. A body that nobody wanted is read all the same, before the answer leaves: most clients write first and read then.
async fn answer<S>(service: S, request: Request<Incoming>) -> Result<Response, Infallible>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    let is_tunnel = request.method() == Method::CONNECT && request.version() < Version::HTTP_2;
    // Whoever waits for a word before sending the body is not asked for it.
    let is_there = request.body().is_end_stream() || request.headers().contains_key(EXPECT);
    let mut answer = if is_there || is_tunnel {
        service.oneshot(request.map(Body::new)).await?
    } else {
        let (head, body) = request.into_parts();
        let (body, mut unread) = lent(body);
        let answer = service.oneshot(Request::from_parts(head, body)).await?;
        if let Ok(body) = unread.try_recv() {
            discard(body).await;
        }
        answer
    };
    if is_tunnel {
        // Nobody here is a proxy. What follows is for whoever the client hoped to reach, and no request.
        answer.headers_mut().insert(CONNECTION, CLOSE);
    }
    Ok(answer)
}

/// A connection that ends with an error if nothing could be written to it for so long: its client reads no answers.
type Taking = Pin<Box<TimeoutWriter<TcpStream>>>;

fn taking(stream: TcpStream, time: Duration) -> Taking {
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(time));
    Box::pin(stream)
}

/// Answers the requests of a connection.
async fn serve<S>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    builder: &Builder<TokioExecutor>,
    service: TowerToHyperService<S>,
    watcher: Watcher,
    closing: watch::Receiver<()>,
) where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let connection = watcher.watch(connection.into_owned());
    tokio::select! {
        // Clients that break off are no news.
        _ = connection => {}
        () = over(closing) => {}
    }
}

/// Shakes hands, and waits for as much of the first request as [`begins`] does. Gives the version of HTTP, too, if the client chose one
/// (RFC 7301). `None` for a client that is no client of TLS, or takes too long.
#[cfg(feature = "tls")]
async fn shaken(
    stream: Taking,
    tls: &Tls,
    time: Duration,
) -> Option<(
    Begun<tokio_rustls::server::TlsStream<Taking>>,
    Option<Vec<u8>>,
)> {
    let shaken = timeout(time, tls.acceptor().accept(stream)).await;
    let stream = shaken.ok()?.ok()?;
    let chosen = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    let begun = timeout(time, Begun::read(stream, PREFACE)).await;
    Some((begun.ok()??, chosen))
}

/// Answers the version of HTTP that was chosen and no other. Where none was, the first bytes tell.
#[cfg(feature = "tls")]
fn of_version(builder: Builder<TokioExecutor>, chosen: Option<&[u8]>) -> Builder<TokioExecutor> {
    match chosen {
        Some(tls::HTTP_2) => builder.http2_only(),
        Some(_) => builder.http1_only(),
        None => builder,
    }
}

/// Completes when the server is gone.
async fn over(mut closing: watch::Receiver<()>) {
    while closing.changed().await.is_ok() {}
}

/// Waits for as much of a connection's first request as tells the version of HTTP; false for a client that does not send
/// it in time. What reads the version afterwards knows no time.
async fn begins(stream: &TcpStream, time: Duration) -> bool {
    let mut start = [0; PREFACE.len()];
    let told = async {
        loop {
            match stream.peek(&mut start).await {
                Err(_) | Ok(0) => return false,
                Ok(read) if read == start.len() || start[..read] != PREFACE[..read] => return true,
                // The same bytes are there to be seen again at once.
                Ok(_) => sleep(LOOK_AGAIN).await,
            }
        }
    };
    timeout(time, told).await.unwrap_or(false)
}
