//! Asks a hub which files a model has, and where each is. It handles redirects, retries and refusals, over any
//! [`Transport`].

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use isovec_engine::cancel::Cancel;
use isovec_engine::error::{EngineError, Result};

use super::checksum::Checksum;
use super::download::RemoteFile;
use super::hub_error;
use super::id::{ModelId, Revision};
use super::listing::{Listing, RepoFile};
use super::pace::{self, Chunk, Pace};
use super::transport::{Method, Request, Response, Transport, TransportFailure};
use super::url::Url;

const USER_AGENT: &str = concat!("isovec/", env!("CARGO_PKG_VERSION"));
const MAX_REDIRECTS: usize = 10;
/// How the cache calls the beginning of a blob, so no blob is called so.
pub(super) const INCOMPLETE: &str = ".incomplete";
/// The largest file list that is read; real ones are some kilobytes.
const MAX_LISTING_BYTES: usize = 32 << 20;

/// How often a request is tried again after a cut connection, a 429 or a 5xx, and how long is
/// waited in between: twice as long every time, or as long as the hub's `Retry-After` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries after the first. A download that makes progress resets the count.
    pub retries: u32,
    /// The wait before the first of them.
    pub first_wait: Duration,
    /// No wait is longer; a `Retry-After` past it is an error at once.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    /// Five retries, half a second to one minute.
    fn default() -> Self {
        Self {
            retries: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
        }
    }
}

/// One hub, seen through one transport.
#[derive(Clone)]
pub struct HubClient {
    pub(super) transport: Arc<dyn Transport>,
    endpoint: Url,
    token: Option<String>,
    pub(super) retry: RetryPolicy,
    slowest: Duration,
}

impl std::fmt::Debug for HubClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubClient")
            .field("endpoint", &self.endpoint.as_str())
            .field("token", &self.token.as_ref().map(|_| "(hidden)"))
            .finish_non_exhaustive()
    }
}

/// Why a hub gave no answer that can be used.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The error, for the caller.
    pub error: EngineError,
    /// The hub was not reached, or has an internal error: an earlier answer may still be used.
    pub unreachable: bool,
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        Self {
            error,
            unreachable: false,
        }
    }
}

/// What a request is about, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) id: &'a ModelId,
    pub(super) revision: &'a str,
    pub(super) file: Option<&'a str>,
}

/// The last answer of a chain of redirects, with what the hub itself said on the way: the
/// server that a redirect leads to knows nothing of commits and checksums.
pub(super) struct Answer {
    pub(super) response: Response,
    pub(super) url: Url,
    repo_commit: Option<String>,
    linked_etag: Option<String>,
    linked_size: Option<u64>,
}

pub(super) enum Failed {
    Transport(TransportFailure, Url),
    Fatal(EngineError),
}

impl HubClient {
    /// A client of the hub at `endpoint`, with an access token where one is needed.
    ///
    /// # Errors
    /// [`EngineError::Config`] when the endpoint is not a plain `http` or `https` address, or the
    /// token cannot be one.
    pub fn new(
        transport: Arc<dyn Transport>,
        endpoint: &str,
        token: Option<String>,
        retry: RetryPolicy,
    ) -> Result<Self> {
        let mut faults = Vec::new();
        let url = Url::parse(endpoint).filter(|url| url.is_plain() && !endpoint.contains('#'));
        if url.is_none() {
            faults.push(format!(
                "the hub's endpoint is {endpoint:?}; it must be like https://huggingface.co, with no user, query or fragment"
            ));
        }
        if token
            .as_ref()
            .is_some_and(|token| token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()))
        {
            faults.push(
                "the hub's token is empty or holds a space or a character outside ASCII".into(),
            );
        }
        match url {
            Some(endpoint) if faults.is_empty() => Ok(Self {
                transport,
                endpoint,
                token,
                retry,
                slowest: pace::WINDOW,
            }),
            _ => Err(EngineError::Config(faults)),
        }
    }

    /// Takes at most so long for 60 KiB of a file; one minute unless called. A slower server is treated like a cut
    /// connection: the part that arrived is kept.
    #[must_use]
    pub fn with_slowest(mut self, window: Duration) -> Self {
        self.slowest = window;
        self
    }

    /// Where the hub is.
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str().trim_end_matches('/')
    }

    /// The files of a model at a revision, and the commit that the revision stands for.
    ///
    /// # Errors
    /// [`EngineError::Hub`], saying whether the model, the revision, the token or the network is
    /// at fault; [`EngineError::Cancelled`].
    pub async fn list(
        &self,
        id: &ModelId,
        revision: &Revision,
        retries: u32,
        cancel: &Cancel,
    ) -> Result<Listing, Refusal> {
        let segments = ["api", "models"].into_iter().chain(id.parts());
        let segments = segments.chain(["revision", revision.as_str()]);
        let url = self
            .endpoint
            .with_segments(segments)
            .with_query("blobs=true");
        let subject = Subject {
            id,
            revision: revision.as_str(),
            file: None,
        };
        let mut patience = self.patience(retries, cancel);
        loop {
            let mut answer = self.ask(Method::Get, &url, subject, &mut patience).await?;
            match self.read_all(&mut answer, cancel).await {
                Ok(bytes) => {
                    return Listing::from_api(&bytes).map_err(|detail| Refusal {
                        error: hub_error(answer.url.shown(), detail, NOT_A_HUB),
                        unreachable: true,
                    });
                }
                Err(Failed::Fatal(error)) => return Err(error.into()),
                Err(Failed::Transport(failure, url)) => {
                    if !failure.transient || !patience.wait(None).await? {
                        return Err(unreachable(&failure, &url));
                    }
                }
            }
        }
    }

    /// The facts that a download of a file needs: from the listing, or else from the headers of the file.
    ///
    /// # Errors
    /// [`EngineError::Hub`] when neither has them, or the hub refuses.
    pub async fn locate(
        &self,
        id: &ModelId,
        commit: &str,
        path: &str,
        listed: &RepoFile,
        cancel: &Cancel,
    ) -> Result<RemoteFile> {
        if let (Some(size), Some(checksum)) = (listed.size, &listed.checksum) {
            return Ok(RemoteFile {
                path: path.to_owned(),
                size,
                etag: checksum.hex().to_owned(),
                checksum: Some(checksum.clone()),
            });
        }
        let url = self.file_url(id, commit, path);
        let subject = Subject {
            id,
            revision: commit,
            file: Some(path),
        };
        let mut patience = self.patience(self.retry.retries, cancel);
        let answer = self
            .ask(Method::Head, &url, subject, &mut patience)
            .await
            .map_err(|refusal| refusal.error)?;
        answer.check(commit, None)?;
        let unusable = |detail: &str| Err(hub_error(url.shown(), detail, NOT_A_HUB));
        let Some(etag) = answer.etag() else {
            return unusable("the answer has no ETag, so the file cannot be told apart");
        };
        // It becomes a file name.
        if etag.is_empty()
            || etag.len() > 128
            || etag.starts_with('.')
            || etag.ends_with(INCOMPLETE)
            || !etag
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        {
            return unusable("the answer's ETag has characters that isovec does not take");
        }
        let Some(size) = answer
            .linked_size
            .or_else(|| answer.response.header("content-length")?.parse().ok())
        else {
            return unusable("the answer does not state the size of the file");
        };
        let checksum = Checksum::from_etag(&etag);
        if checksum.is_none() {
            tracing::warn!(
                file = path,
                etag,
                "the hub names no checksum; only the size is verified"
            );
        }
        Ok(RemoteFile {
            path: path.to_owned(),
            size,
            etag,
            checksum,
        })
    }

    pub(super) fn file_url(&self, id: &ModelId, commit: &str, path: &str) -> Url {
        let segments = id.parts().chain(["resolve", commit]).chain(path.split('/'));
        self.endpoint.with_segments(segments)
    }

    pub(super) fn patience<'a>(&'a self, retries: u32, cancel: &'a Cancel) -> Patience<'a> {
        Patience {
            client: self,
            cancel,
            retries,
            failures: 0,
        }
    }

    /// Asks until the answer is a success or will not become one.
    async fn ask(
        &self,
        method: Method,
        url: &Url,
        subject: Subject<'_>,
        patience: &mut Patience<'_>,
    ) -> Result<Answer, Refusal> {
        loop {
            match self.exchange(method, url, None, patience.cancel).await {
                Ok(answer) if answer.response.status == 200 => {
                    if answer.is_html() {
                        return Err(Refusal {
                            error: answer.html_error(),
                            unreachable: true,
                        });
                    }
                    return Ok(answer);
                }
                Ok(answer) => {
                    let transient = is_transient(answer.response.status);
                    if !transient || !patience.wait(retry_after(&answer.response)).await? {
                        return Err(Refusal {
                            error: self.status_error(&answer, subject),
                            unreachable: transient,
                        });
                    }
                }
                Err(Failed::Fatal(error)) => return Err(error.into()),
                Err(Failed::Transport(failure, url)) => {
                    if !failure.transient || !patience.wait(None).await? {
                        return Err(unreachable(&failure, &url));
                    }
                }
            }
        }
    }

    /// One request, with the redirects that it leads to. The token goes to the hub's own origin
    /// and to no other, and nobody is led from https to http.
    pub(super) async fn exchange(
        &self,
        method: Method,
        url: &Url,
        from_byte: Option<u64>,
        cancel: &Cancel,
    ) -> Result<Answer, Failed> {
        let mut url = url.clone();
        let (mut repo_commit, mut linked_etag, mut linked_size) = (None, None, None);
        for _ in 0..=MAX_REDIRECTS {
            let mut headers = vec![
                ("user-agent", USER_AGENT.to_owned()),
                // The bytes are counted and checksummed as the hub stores them.
                ("accept-encoding", "identity".to_owned()),
            ];
            if let Some(token) = &self.token
                && url.same_origin(&self.endpoint)
            {
                headers.push(("authorization", format!("Bearer {token}")));
            }
            if let Some(start) = from_byte {
                headers.push(("range", format!("bytes={start}-")));
            }
            let request = Request {
                method,
                url: url.clone(),
                headers,
            };
            let response = or_cancelled(cancel, self.transport.send(request))
                .await
                .map_err(Failed::Fatal)?
                .map_err(|failure| Failed::Transport(failure, url.clone()))?;
            let note = |known: &mut Option<String>, name| {
                if known.is_none() {
                    *known = response.header(name).map(|v| plain_etag(v).to_owned());
                }
            };
            note(&mut repo_commit, "x-repo-commit");
            note(&mut linked_etag, "x-linked-etag");
            linked_size = linked_size.or_else(|| response.header("x-linked-size")?.parse().ok());
            let redirect = matches!(response.status, 301 | 302 | 303 | 307 | 308);
            let known = method == Method::Head && linked_etag.is_some() && linked_size.is_some();
            if !redirect || known {
                // What is counted and checksummed are the file's own bytes.
                if let Some(coding) = response.coding().filter(|_| !redirect) {
                    return Err(Failed::Fatal(hub_error(
                        url.shown(),
                        format!("the answer is coded ({coding}), though it was asked not to be"),
                        "A proxy or a mirror on the way changes the file; try another network or HF_ENDPOINT",
                    )));
                }
                let mut response = response;
                if redirect {
                    response.status = 200;
                }
                return Ok(Answer {
                    response,
                    url,
                    repo_commit,
                    linked_etag,
                    linked_size,
                });
            }
            let next = response
                .header("location")
                .and_then(|location| url.join(location));
            match next {
                Some(next) if url.scheme() == "https" && next.scheme() == "http" => {
                    return Err(Failed::Fatal(hub_error(
                        url.shown(),
                        format!("redirects from https to http ({})", next.shown()),
                        "isovec does not follow it; check HF_ENDPOINT and the proxy variables",
                    )));
                }
                Some(next) => url = next,
                None => {
                    return Err(Failed::Fatal(hub_error(
                        url.shown(),
                        format!("answered {} with no address to go to", response.status),
                        NOT_A_HUB,
                    )));
                }
            }
        }
        Err(Failed::Fatal(hub_error(
            url.shown(),
            format!("redirected more than {MAX_REDIRECTS} times"),
            NOT_A_HUB,
        )))
    }

    /// Measures how fast one body arrives.
    pub(super) fn pace(&self) -> Pace {
        Pace::new(self.slowest)
    }

    /// A body as a whole, where it is not too large.
    async fn read_all(&self, answer: &mut Answer, cancel: &Cancel) -> Result<Vec<u8>, Failed> {
        let mut bytes = Vec::new();
        let mut pace = self.pace();
        let failed = |failure| Err(Failed::Transport(failure, answer.url.clone()));
        loop {
            let response = &mut answer.response;
            let next = pace.next_chunk(&*self.transport, response, cancel).await;
            match next.map_err(Failed::Fatal)? {
                Chunk::Bytes(chunk) if chunk.len() > MAX_LISTING_BYTES - bytes.len() => {
                    return Err(Failed::Fatal(EngineError::InputTooLarge {
                        asked: bytes.len() as u64 + chunk.len() as u64,
                        limit: MAX_LISTING_BYTES as u64,
                        unit: "bytes of a hub's file list",
                    }));
                }
                Chunk::Bytes(chunk) => bytes.extend_from_slice(&chunk),
                Chunk::End => return Ok(bytes),
                Chunk::Failed(failure) => return failed(failure),
                Chunk::TooSlow(why) => return failed(TransportFailure::transient(why)),
            }
        }
    }

    /// What a status that is not a success means.
    pub(super) fn status_error(&self, answer: &Answer, subject: Subject<'_>) -> EngineError {
        let Subject { id, revision, file } = subject;
        let status = answer.response.status;
        let code = answer.response.header("x-error-code").unwrap_or_default();
        let what = match (file, code) {
            (_, "RepoNotFound") | (None, "") => format!("model {id}"),
            (_, "RevisionNotFound") => format!("revision {revision} of {id}"),
            (Some(file), _) => format!("{file} of {id} at {revision}"),
            (None, _) => format!("model {id} at {revision}"),
        };
        let said = answer
            .response
            .header("x-error-message")
            .map(|text| text.chars().filter(|c| !c.is_control()).take(200).collect())
            .filter(|text: &String| !text.is_empty())
            .map(|text| format!(" ({text})"))
            .unwrap_or_default();
        let page = format!("{}/{id}", self.endpoint());
        let (detail, hint) = match status {
            404 => (
                format!("{what} was not found (404){said}"),
                if self.token.is_some() {
                    "Check the spelling; for a private model, check that the token may read it"
                        .into()
                } else {
                    "Check the spelling; a private model needs a token (HF_TOKEN)".into()
                },
            ),
            401 if self.token.is_none() => (
                format!("{what} does not exist, or needs a token (401){said}"),
                "Check the spelling; for a private or gated model, set HF_TOKEN to an access token"
                    .into(),
            ),
            401 => (
                format!("{what} was refused (401){said}"),
                "The hub does not accept the token: check HF_TOKEN, and whether it has expired"
                    .into(),
            ),
            403 => (
                format!("access to {what} is denied (403){said}"),
                if self.token.is_some() {
                    format!(
                        "If the model is gated, accept its terms at {page} with the token's account"
                    )
                } else {
                    format!("If the model is gated, accept its terms at {page} and set HF_TOKEN")
                },
            ),
            429 => (
                format!("too many requests (429){said}"),
                "Wait a while; a token (HF_TOKEN) raises the hub's limits".into(),
            ),
            500.. => (
                format!("the hub is in trouble ({status}){said}"),
                "Try again later; a model that is cached loads with HF_HUB_OFFLINE=1".into(),
            ),
            _ => (
                format!("answered with status {status}{said}"),
                NOT_A_HUB.to_owned(),
            ),
        };
        hub_error(answer.url.shown(), detail, hint)
    }
}

pub(super) const NOT_A_HUB: &str = "Check that HF_ENDPOINT is a Hugging Face style hub, and that no proxy or sign-in page answers in its place";

impl Answer {
    pub(super) fn is_html(&self) -> bool {
        self.response.header("content-type").is_some_and(|kind| {
            kind.trim_start()
                .to_ascii_lowercase()
                .starts_with("text/html")
        })
    }

    pub(super) fn html_error(&self) -> EngineError {
        hub_error(
            self.url.shown(),
            "answered with an HTML page instead of the file",
            NOT_A_HUB,
        )
    }

    /// What the hub calls the content: of a redirected file its own word, where it says one.
    fn etag(&self) -> Option<String> {
        let own = || Some(plain_etag(self.response.header("etag")?).to_owned());
        self.linked_etag.clone().or_else(own)
    }

    /// Whether the server says which state of a file this is.
    pub(super) fn has_etag(&self) -> bool {
        self.etag().is_some()
    }

    /// Checks what the hub said on the way against what is expected.
    pub(super) fn check(&self, commit: &str, file: Option<&RemoteFile>) -> Result<()> {
        let differs = |what: &str, is: &str, expected: &str| {
            Err(hub_error(
                self.url.shown(),
                format!("the {what} is {is}, but {expected} was requested"),
                "The hub contradicts itself; try again later, or check HF_ENDPOINT",
            ))
        };
        match &self.repo_commit {
            Some(is) if is != commit => return differs("commit", is, commit),
            _ => {}
        }
        let Some(file) = file else {
            return Ok(());
        };
        // Without a checksum nothing but the entity tag tells one state of a file from another.
        let (is, expected) = match &file.checksum {
            Some(checksum) => (self.linked_etag.clone(), checksum.hex()),
            None => (self.etag(), file.etag.as_str()),
        };
        match is {
            Some(is) if is != expected => differs("checksum", &is, expected),
            _ => Ok(()),
        }
    }
}

/// Counts failures and waits between them.
pub(super) struct Patience<'a> {
    client: &'a HubClient,
    pub(super) cancel: &'a Cancel,
    retries: u32,
    failures: u32,
}

impl Patience<'_> {
    /// Waits before another try; false when there have been enough, or when the hub asks for
    /// more time than there is.
    pub(super) async fn wait(&mut self, asked: Option<Duration>) -> Result<bool> {
        let RetryPolicy {
            first_wait,
            longest_wait,
            ..
        } = self.client.retry;
        if self.failures >= self.retries || asked.is_some_and(|asked| asked > longest_wait) {
            return Ok(false);
        }
        let wait = first_wait.saturating_mul(1 << self.failures.min(16));
        let wait = wait.max(asked.unwrap_or_default()).min(longest_wait);
        self.failures += 1;
        tracing::debug!(?wait, failures = self.failures, "the hub is asked again");
        or_cancelled(self.cancel, self.client.transport.sleep(wait)).await?;
        Ok(true)
    }

    /// Ground was gained: failures count anew.
    pub(super) fn renew(&mut self) {
        self.failures = 0;
    }
}

pub(super) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// `Retry-After`: seconds, or a date, which is compared with the server's own clock.
pub(super) fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.header("retry-after")?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = httpdate::parse_http_date(value).ok()?;
    let now = httpdate::parse_http_date(response.header("date")?).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

pub(super) fn unreachable(failure: &TransportFailure, url: &Url) -> Refusal {
    Refusal {
        error: hub_error(
            url.shown(),
            failure.detail.clone(),
            "Check the network, HF_ENDPOINT and the proxy variables; a model that is cached loads with HF_HUB_OFFLINE=1",
        ),
        unreachable: true,
    }
}

/// An entity tag without its quotes and its mark of weakness.
fn plain_etag(etag: &str) -> &str {
    let etag = etag.trim();
    etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"')
}

/// The future's value, unless the caller gives up first.
pub(super) async fn or_cancelled<T>(cancel: &Cancel, future: impl Future<Output = T>) -> Result<T> {
    let mut future = pin!(future);
    let mut cancelled = pin!(cancel.cancelled());
    poll_fn(|cx| {
        if cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(EngineError::Cancelled));
        }
        future.as_mut().poll(cx).map(Ok)
    })
    .await
}
