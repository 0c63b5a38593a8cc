//! The native transport: HTTP over `ureq`. Each request has its own thread, so waiting blocks no other work, and
//! hashing and writing continue while bytes arrive.
//!
//! Root certificates are the platform's, so a company's own certificates work. If the platform has none (a container
//! without `ca-certificates`) and none were named (`SSL_CERT_FILE`, `SSL_CERT_DIR`), Mozilla's are used, with a
//! warning.

use std::future::poll_fn;
use std::io::Read;
use std::sync::{Arc, OnceLock, mpsc as std_mpsc};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_channel::{mpsc, oneshot};
use isovec_engine::error::{EngineError, Result};
use isovec_engine::maybe_send::BoxFuture;
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use super::proxy::ProxyConfig;
use super::transport::{Body, Method, Request, Response, Transport, TransportFailure};
use super::url::Url;

const CHUNK: usize = 128 << 10;
/// The headers of an answer may take so many silences, and so many bytes.
const HEADERS: u32 = 6;
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Chunks that may wait to be taken.
const CHUNKS_AHEAD: usize = 4;

/// HTTP/1.1 over TLS, with proxies.
#[derive(Debug)]
pub struct HttpTransport {
    settings: Arc<Settings>,
}

#[derive(Debug)]
struct Settings {
    proxy: ProxyConfig,
    connect_timeout: Duration,
    read_timeout: Duration,
    platform: Agents,
    mozilla: OnceLock<Agents>,
}

#[derive(Debug)]
struct Agents {
    direct: Agent,
    https: Option<Agent>,
    http: Option<Agent>,
}

impl HttpTransport {
    /// A transport with these proxies, giving up on a connection that is not made, or a server
    /// that says nothing, for so long.
    ///
    /// # Errors
    /// [`EngineError::Config`] when a proxy's address cannot be one.
    pub fn new(
        proxy: ProxyConfig,
        connect_timeout: Duration,
        read_timeout: Duration,
    ) -> Result<Self> {
        let platform = Agents::new(
            &proxy,
            connect_timeout,
            read_timeout,
            RootCerts::PlatformVerifier,
        )?;
        Ok(Self {
            settings: Arc::new(Settings {
                proxy,
                connect_timeout,
                read_timeout,
                platform,
                mozilla: OnceLock::new(),
            }),
        })
    }
}

impl Agents {
    fn new(
        proxy: &ProxyConfig,
        connect_timeout: Duration,
        read_timeout: Duration,
        roots: RootCerts,
    ) -> Result<Self> {
        let mut faults = Vec::new();
        let mut agent = |scheme: &str, address: Option<&String>| {
            let proxy = match address.map(|address| ureq::Proxy::new(address)).transpose() {
                Ok(proxy) => proxy,
                Err(_) => {
                    // Not shown: it may hold a password.
                    faults.push(format!(
                        "the proxy for {scheme} is not like http://host:port or socks5h://host:port"
                    ));
                    None
                }
            };
            Agent::new_with_config(
                Agent::config_builder()
                    .http_status_as_error(false)
                    .max_redirects(0)
                    .proxy(proxy)
                    .timeout_resolve(Some(connect_timeout))
                    .timeout_connect(Some(connect_timeout))
                    .timeout_per_read(Some(read_timeout))
                    // Bodies are measured where they are read.
                    .timeout_recv_response(Some(read_timeout.saturating_mul(HEADERS)))
                    .max_response_header_size(MAX_HEADER_BYTES)
                    .timeout_per_write(Some(read_timeout))
                    .tls_config(TlsConfig::builder().root_certs(roots.clone()).build())
                    .build(),
            )
        };
        let agents = Self {
            direct: agent("none", None),
            https: proxy
                .https
                .as_ref()
                .map(|address| agent("https", Some(address))),
            http: proxy
                .http
                .as_ref()
                .map(|address| agent("http", Some(address))),
        };
        if faults.is_empty() {
            Ok(agents)
        } else {
            Err(EngineError::Config(faults))
        }
    }

    fn pick(&self, proxy: &ProxyConfig, url: &Url) -> &Agent {
        let through = match url.scheme() {
            "https" => self.https.as_ref(),
            _ => self.http.as_ref(),
        };
        through
            .filter(|_| !proxy.is_direct(url))
            .unwrap_or(&self.direct)
    }
}

impl Settings {
    fn run(&self, request: &Request) -> Result<ureq::http::Response<ureq::Body>, TransportFailure> {
        let agents = self.mozilla.get().unwrap_or(&self.platform);
        match self.run_with(agents, request) {
            Err(error) if lacks_roots(&error) && self.mozilla.get().is_none() => {
                let named = |name| std::env::var_os(name).is_some();
                if named("SSL_CERT_FILE") || named("SSL_CERT_DIR") {
                    return Err(TransportFailure::permanent(
                        "TLS: SSL_CERT_FILE or SSL_CERT_DIR is set, but no certificate was found there",
                    ));
                }
                tracing::warn!(
                    "this system has no root certificates (is ca-certificates installed?); using Mozilla's"
                );
                let agents = Agents::new(
                    &self.proxy,
                    self.connect_timeout,
                    self.read_timeout,
                    RootCerts::WebPki,
                )
                .map_err(|error| TransportFailure::permanent(error.to_string()))?;
                let agents = self.mozilla.get_or_init(|| agents);
                self.run_with(agents, request)
                    .map_err(|error| failure(&error))
            }
            other => other.map_err(|error| failure(&error)),
        }
    }

    fn run_with(
        &self,
        agents: &Agents,
        request: &Request,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let mut builder = ureq::http::Request::builder()
            .method(match request.method {
                Method::Get => "GET",
                Method::Head => "HEAD",
            })
            .uri(request.url.as_str());
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        agents
            .pick(&self.proxy, &request.url)
            .run(builder.body(())?)
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportFailure>> {
        let settings = Arc::clone(&self.settings);
        Box::pin(async move {
            let (head, answer) = oneshot::channel();
            let (chunks, body) = mpsc::channel(CHUNKS_AHEAD);
            thread::Builder::new()
                .name("isovec-http".into())
                .spawn(move || serve(&settings, &request, head, chunks))
                .map_err(|error| {
                    TransportFailure::permanent(format!("cannot start a thread: {error}"))
                })?;
            let (status, headers) = answer
                .await
                .map_err(|_| TransportFailure::permanent("the HTTP thread ended early"))??;
            Ok(Response {
                status,
                headers,
                body: Box::new(Chunks { body }),
            })
        })
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (done, woken) = oneshot::channel();
            // Dropping this future drops `held`, which ends the thread at once.
            let (held, dropped) = std_mpsc::channel::<()>();
            let timer = thread::Builder::new()
                .name("isovec-wait".into())
                .spawn(move || {
                    let _ = dropped.recv_timeout(duration);
                    let _ = done.send(());
                });
            if timer.is_ok() {
                let _ = woken.await;
            }
            drop(held);
        })
    }
}

type Head = (u16, Vec<(String, String)>);
type Chunk = Result<Bytes, TransportFailure>;

/// Runs one request on this thread; ends when it is over or nobody listens any more.
fn serve(
    settings: &Settings,
    request: &Request,
    head: oneshot::Sender<Result<Head, TransportFailure>>,
    mut chunks: mpsc::Sender<Chunk>,
) {
    let response = match settings.run(request) {
        Ok(response) => response,
        Err(failure) => {
            let _ = head.send(Err(failure));
            return;
        }
    };
    let (parts, body) = response.into_parts();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect();
    if head.send(Ok((parts.status.as_u16(), headers))).is_err() || request.method == Method::Head {
        return;
    }
    let mut reader = body.into_with_config().limit(u64::MAX).reader();
    let mut buffer = vec![0; CHUNK];
    loop {
        let chunk = match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => Ok(Bytes::copy_from_slice(&buffer[..read])),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => Err(failure(&ureq::Error::from(error))),
        };
        let last = chunk.is_err();
        if pollster::block_on(poll_fn(|cx| chunks.poll_ready(cx))).is_err()
            || chunks.start_send(chunk).is_err()
            || last
        {
            return;
        }
    }
}

struct Chunks {
    body: mpsc::Receiver<Chunk>,
}

impl Body for Chunks {
    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportFailure>> {
        // A closed channel is the end of the body: an error would have been sent before.
        Box::pin(async { self.body.recv().await.ok().transpose() })
    }
}

fn lacks_roots(error: &ureq::Error) -> bool {
    error.to_string().contains("No CA certificates were loaded")
}

fn failure(error: &ureq::Error) -> TransportFailure {
    use std::io::ErrorKind;
    use ureq::Error;

    const CERTIFICATES: &str = "if something on the way inspects TLS, add its certificate to the system's, or name it in SSL_CERT_FILE";
    match error {
        Error::Io(io) if io.kind() == ErrorKind::InvalidData => {
            TransportFailure::permanent(format!("TLS: {io}; {CERTIFICATES}"))
        }
        Error::Io(io) => TransportFailure::transient(format!("the connection failed: {io}")),
        Error::Timeout(which) => {
            TransportFailure::transient(format!("no answer in time ({which})"))
        }
        Error::ConnectionFailed => TransportFailure::transient("the connection failed"),
        Error::Protocol(protocol) => {
            TransportFailure::transient(format!("the answer is not HTTP: {protocol}"))
        }
        Error::HostNotFound => TransportFailure::permanent("no such host"),
        Error::ConnectProxyFailed(why) => {
            TransportFailure::permanent(format!("the proxy refused: {why}"))
        }
        Error::Rustls(_) | Error::Tls(_) => {
            TransportFailure::permanent(format!("TLS: {error}; {CERTIFICATES}"))
        }
        other => TransportFailure::permanent(other.to_string()),
    }
}
