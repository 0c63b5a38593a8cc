//! Fetches one file: from where an earlier attempt stopped, through cut connections, until its
//! checksum is right.

use bytes::Bytes;
use isovec_engine::cancel::Cancel;
use isovec_engine::error::Result;
use isovec_engine::maybe_send::{EngineFuture, MaybeSend};

use super::checksum::{Checksum, Hasher};
use super::client::{Answer, Failed, HubClient, Patience, Subject};
use super::client::{is_transient, retry_after, unreachable};
use super::hub_error;
use super::id::ModelId;
use super::pace::Chunk;
use super::progress::Tracker;
use super::range::ContentRange;
use super::transport::{Method, TransportFailure};
use super::url::Url;

/// An attempt that gains less than this, and less than a hundredth of the file, has gained
/// nothing: a server that feeds a byte a connection does not keep us for ever.
const GROUND: u64 = 64 << 10;

/// A file as the hub describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its path in the repository, checked.
    pub path: String,
    /// Its size in bytes. More or fewer are an error.
    pub size: u64,
    /// Its entity tag without quotes: the name of its blob in a cache.
    pub etag: String,
    /// The expected hash of its bytes, if the hub states it.
    pub checksum: Option<Checksum>,
}

/// Where the bytes of one file go. It may hold some from an earlier attempt.
///
/// Methods return futures, because a browser's storage is asynchronous.
pub trait Sink: MaybeSend {
    /// How many bytes are held.
    ///
    /// # Errors
    /// As the storage has them.
    fn held(&mut self) -> EngineFuture<'_, u64>;

    /// Some bytes from that offset on, at least one where any are held there.
    ///
    /// # Errors
    /// As the storage has them.
    fn read_at(&mut self, offset: u64) -> EngineFuture<'_, Bytes>;

    /// Adds bytes at the end.
    ///
    /// # Errors
    /// As the storage has them.
    fn append(&mut self, chunk: Bytes) -> EngineFuture<'_, ()>;

    /// Drops what is held.
    ///
    /// # Errors
    /// As the storage has them.
    fn clear(&mut self) -> EngineFuture<'_, ()>;
}

/// A sink in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemorySink(pub Vec<u8>);

impl Sink for MemorySink {
    fn held(&mut self) -> EngineFuture<'_, u64> {
        Box::pin(async { Ok(self.0.len() as u64) })
    }

    fn read_at(&mut self, offset: u64) -> EngineFuture<'_, Bytes> {
        Box::pin(async move {
            let rest = usize::try_from(offset)
                .ok()
                .and_then(|offset| self.0.get(offset..))
                .unwrap_or_default();
            Ok(Bytes::copy_from_slice(&rest[..rest.len().min(1 << 20)]))
        })
    }

    fn append(&mut self, chunk: Bytes) -> EngineFuture<'_, ()> {
        Box::pin(async move {
            self.0.extend_from_slice(&chunk);
            Ok(())
        })
    }

    fn clear(&mut self) -> EngineFuture<'_, ()> {
        Box::pin(async {
            self.0.clear();
            Ok(())
        })
    }
}

/// How far the present file has come.
struct Filling {
    held: u64,
    /// The most bytes ever held. More than this counts as progress.
    furthest: u64,
    hasher: Option<Hasher>,
}

/// How one attempt ended.
enum Attempt {
    /// It may go on where it is.
    Cut(String),
    /// The held part does not fit the server's answer; the download must begin again.
    Restart(String),
    /// It came too slowly, and may go on where it is.
    Slow(String),
}

impl HubClient {
    /// Fetches a file into a sink, and verifies it. The part that the sink holds already is kept if the server can
    /// continue from there. On success the sink holds exactly the file; on an error it holds a part that can be
    /// continued later.
    ///
    /// # Errors
    /// [`EngineError::Hub`](isovec_engine::EngineError::Hub) when the server refuses, gives up, or twice sends bytes that do not
    /// match; the sink's errors; [`EngineError::Cancelled`](isovec_engine::EngineError::Cancelled).
    pub async fn download(
        &self,
        id: &ModelId,
        commit: &str,
        file: &RemoteFile,
        sink: &mut dyn Sink,
        tracker: &mut Tracker<'_>,
        cancel: &Cancel,
    ) -> Result<()> {
        let url = self.file_url(id, commit, &file.path);
        let subject = Subject {
            id,
            revision: commit,
            file: Some(&file.path),
        };
        for last in [false, true] {
            let found = self
                .fill(&url, subject, file, sink, tracker, cancel)
                .await?;
            match (&file.checksum, found) {
                (Some(wanted), Some(found)) if *wanted != found => {
                    sink.clear().await?;
                    tracing::warn!(file = file.path, %wanted, %found, "wrong checksum");
                    if last {
                        return Err(hub_error(
                            url.shown(),
                            format!(
                                "the bytes that arrived are not the file: {found} where the hub promises {wanted}, twice"
                            ),
                            "A proxy or a mirror on the way changes the file; try another network or HF_ENDPOINT",
                        ));
                    }
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Fills the sink to the file's size and returns the checksum of its content.
    async fn fill(
        &self,
        url: &Url,
        subject: Subject<'_>,
        file: &RemoteFile,
        sink: &mut dyn Sink,
        tracker: &mut Tracker<'_>,
        cancel: &Cancel,
    ) -> Result<Option<Checksum>> {
        let mut filling = Filling {
            held: 0,
            furthest: 0,
            hasher: file.new_hasher(),
        };
        let held = sink.held().await?;
        if held > file.size {
            sink.clear().await?;
        } else {
            while filling.held < held {
                cancel.check()?;
                let chunk = sink.read_at(filling.held).await?;
                if chunk.is_empty() {
                    break;
                }
                filling.take(&chunk);
            }
            if filling.held != held {
                restart(&mut filling, file, sink).await?;
            }
        }
        filling.furthest = filling.held;
        tracker.at(filling.held);

        let mut patience = self.patience(self.retry.retries, cancel);
        // Ground that is gained slowly buys no further tries, or a small file would take for ever.
        let mut slow = 0;
        while filling.held < file.size {
            let from = (filling.held > 0).then_some(filling.held);
            let answer = match self.exchange(Method::Get, url, from, cancel).await {
                Ok(answer) => answer,
                Err(Failed::Fatal(error)) => return Err(error),
                Err(Failed::Transport(failure, url)) => {
                    if failure.transient && patience.wait(None).await? {
                        continue;
                    }
                    return Err(unreachable(&failure, &url).error);
                }
            };
            let status = answer.response.status;
            if !matches!(status, 200 | 206 | 416) {
                if is_transient(status) && patience.wait(retry_after(&answer.response)).await? {
                    continue;
                }
                return Err(self.status_error(&answer, subject));
            }
            answer.check(subject.revision, Some(file))?;
            if answer.is_html() && !file.path.ends_with(".html") {
                return Err(answer.html_error());
            }
            let shown_url = answer.url.shown();
            let ended = self
                .take_answer(answer, file, sink, &mut filling, &mut patience, tracker)
                .await?;
            let why = match ended {
                None => continue,
                Some(Attempt::Cut(why)) => why,
                Some(Attempt::Slow(why)) => {
                    slow += 1;
                    why
                }
                Some(Attempt::Restart(why)) => {
                    restart(&mut filling, file, sink).await?;
                    why
                }
            };
            tracing::debug!(
                file = file.path,
                held = filling.held,
                why,
                "a download was cut"
            );
            if slow > self.retry.retries || !patience.wait(None).await? {
                return Err(hub_error(
                    shown_url,
                    format!("{} could not be fetched whole: {why}", file.path),
                    "Try again: the part that arrived is cached, and the download continues from there",
                ));
            }
        }
        Ok(filling.hasher.map(Hasher::finish))
    }

    /// Takes one answer's body into the sink; `None` when the file is then complete.
    async fn take_answer(
        &self,
        mut answer: Answer,
        file: &RemoteFile,
        sink: &mut dyn Sink,
        filling: &mut Filling,
        patience: &mut Patience<'_>,
        tracker: &mut Tracker<'_>,
    ) -> Result<Option<Attempt>> {
        // Without a checksum either, parts of two states would not be told apart.
        if answer.response.status == 206 && file.checksum.is_none() && !answer.has_etag() {
            return Ok(Some(Attempt::Restart(
                "the server does not state the version of the file of which it sends a part"
                    .to_owned(),
            )));
        }
        let response = &mut answer.response;
        let due = match response.status {
            416 => {
                return Ok(Some(Attempt::Restart(format!(
                    "the server has no byte {} of it, but the hub states {} bytes",
                    filling.held, file.size
                ))));
            }
            206 => {
                let value = response.header("content-range").unwrap_or_default();
                match ContentRange::parse(value) {
                    Some(range) if range.continues(filling.held, file.size) => range.bytes(),
                    _ => {
                        return Ok(Some(Attempt::Restart(format!(
                            "the server answered with the range {value:?}"
                        ))));
                    }
                }
            }
            // The whole file, whether or not a part was asked for.
            _ => file.size,
        };
        if let Some(declared) = response
            .header("content-length")
            .and_then(|length| length.parse::<u64>().ok())
            && declared != due
        {
            return Ok(Some(Attempt::Cut(format!(
                "the server sends {declared} bytes where {due} are due"
            ))));
        }
        // Not before it is likely that something better comes.
        if response.status != 206 && filling.held > 0 {
            restart(filling, file, sink).await?;
        }
        let start = filling.furthest;
        let mut pace = self.pace();
        loop {
            let next = pace.next_chunk(&*self.transport, response, patience.cancel);
            match next.await? {
                Chunk::Bytes(chunk) => {
                    if chunk.len() as u64 > file.size - filling.held {
                        return Ok(Some(Attempt::Restart(format!(
                            "the server sends more than the {} bytes that the hub declares",
                            file.size
                        ))));
                    }
                    filling.take(&chunk);
                    sink.append(chunk).await?;
                    tracker.at(filling.held);
                    filling.furthest = filling.furthest.max(filling.held);
                    if filling.furthest - start >= GROUND.min(file.size / 100 + 1) {
                        patience.renew();
                    }
                }
                // All of it is here; how the connection ended does not matter.
                Chunk::End | Chunk::Failed(_) | Chunk::TooSlow(_) if filling.held == file.size => {
                    return Ok(None);
                }
                Chunk::End => {
                    return Ok(Some(Attempt::Cut(format!(
                        "the answer ended after {} of {} bytes",
                        filling.held, file.size
                    ))));
                }
                Chunk::Failed(TransportFailure { detail, .. }) => {
                    return Ok(Some(Attempt::Cut(format!(
                        "{detail} after {} of {} bytes",
                        filling.held, file.size
                    ))));
                }
                Chunk::TooSlow(why) => {
                    return Ok(Some(Attempt::Slow(format!(
                        "{why}, after {} of {} bytes",
                        filling.held, file.size
                    ))));
                }
            }
        }
    }
}

async fn restart(filling: &mut Filling, file: &RemoteFile, sink: &mut dyn Sink) -> Result<()> {
    sink.clear().await?;
    filling.held = 0;
    filling.hasher = file.new_hasher();
    Ok(())
}

impl RemoteFile {
    fn new_hasher(&self) -> Option<Hasher> {
        self.checksum
            .as_ref()
            .map(|checksum| checksum.hasher(self.size))
    }
}

impl Filling {
    fn take(&mut self, chunk: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(chunk);
        }
        self.held += chunk.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::super::client::RetryPolicy;
    use super::super::id::Revision;
    use super::super::progress::Progress;
    use super::super::transport::{Body, Request, Response, Transport};
    use super::*;
    use isovec_engine::error::EngineError;
    use isovec_engine::maybe_send::BoxFuture;

    /// Answers from memory, as a browser's transport would from `fetch`, cutting every body
    /// after so many bytes.
    #[derive(Debug)]
    struct Canned {
        bytes: &'static [u8],
        cut: usize,
        asked: Mutex<Vec<String>>,
        slept: Mutex<Vec<Duration>>,
    }

    struct Once(Vec<Result<Option<Bytes>, TransportFailure>>);

    impl Body for Once {
        fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportFailure>> {
            Box::pin(async { self.0.pop().unwrap_or(Ok(None)) })
        }
    }

    impl Transport for Canned {
        fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportFailure>> {
            Box::pin(async move {
                let range = request.headers.iter().find(|(name, _)| *name == "range");
                let range = range.map(|(_, value)| value.clone()).unwrap_or_default();
                let start: usize = range
                    .trim_matches(|c: char| !c.is_ascii_digit())
                    .parse()
                    .unwrap_or(0);
                self.asked
                    .lock()
                    .expect("no panic")
                    .push(format!("{} {range}", request.url.as_str()));
                let end = self.bytes.len().min(start + self.cut);
                let mut chunks = vec![Ok(Some(Bytes::from_static(&self.bytes[start..end])))];
                if end < self.bytes.len() {
                    chunks.insert(0, Err(TransportFailure::transient("cut")));
                }
                let total = self.bytes.len();
                let content_range = format!("bytes {start}-{}/{total}", total - 1);
                Ok(Response {
                    status: if start > 0 { 206 } else { 200 },
                    headers: vec![("content-range".into(), content_range)],
                    body: Box::new(Once(chunks)),
                })
            })
        }

        fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
            self.slept.lock().expect("no panic").push(duration);
            Box::pin(async {})
        }
    }

    fn client(transport: &Arc<Canned>) -> HubClient {
        HubClient::new(
            Arc::clone(transport) as Arc<dyn Transport>,
            "https://hub.example/mirror/",
            None,
            RetryPolicy::default(),
        )
        .expect("a usable configuration")
    }

    fn canned(bytes: &'static [u8], cut: usize) -> Arc<Canned> {
        Arc::new(Canned {
            bytes,
            cut,
            asked: Mutex::default(),
            slept: Mutex::default(),
        })
    }

    /// Runs a future that never waits.
    fn now<T>(future: impl Future<Output = T> + Send) -> T {
        let mut future = std::pin::pin!(future);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(value) => value,
            std::task::Poll::Pending => panic!("nothing here waits"),
        }
    }

    #[test]
    fn any_transport_and_any_sink_will_do() {
        let id = ModelId::parse("a/b").expect("an id");
        let file = RemoteFile {
            path: "sub folder/hello#1.txt".into(),
            size: 6,
            etag: "ce013625030ba8dba906f756967f9e9ca394464a".into(),
            checksum: Checksum::from_etag("ce013625030ba8dba906f756967f9e9ca394464a"),
        };
        let transport = canned(b"hello\n", 2);
        let mut sink = MemorySink(b"h".to_vec());
        let silent = |_: &Progress| {};
        let mut tracker = Tracker::new(&silent, 1, 6);
        tracker.begin(&file.path, file.size);
        let (client, cancel) = (client(&transport), Cancel::new());
        now(client.download(&id, "main", &file, &mut sink, &mut tracker, &cancel))
            .expect("three pieces make a whole");
        assert_eq!(sink.0, b"hello\n");
        let url = "https://hub.example/mirror/a/b/resolve/main/sub%20folder/hello%231.txt";
        assert_eq!(
            *transport.asked.lock().expect("no panic"),
            [1, 3, 5].map(|start| format!("{url} bytes={start}-"))
        );
        // Each piece gained ground, so each wait is the first one.
        assert_eq!(
            *transport.slept.lock().expect("no panic"),
            [Duration::from_millis(500); 2]
        );
    }

    #[test]
    fn waits_double_and_are_bounded() {
        let transport = canned(b"hello\n", 0);
        let id = ModelId::parse("a/b").expect("an id");
        let file = RemoteFile {
            path: "x".into(),
            size: 6,
            etag: "e".into(),
            checksum: None,
        };
        let mut client = client(&transport);
        client.retry.retries = 9;
        let silent = |_: &Progress| {};
        let (mut sink, mut tracker) = (MemorySink::default(), Tracker::new(&silent, 1, 6));
        let error =
            now(client.download(&id, "main", &file, &mut sink, &mut tracker, &Cancel::new()))
                .expect_err("nothing comes");
        assert!(error.to_string().contains("after 0 of 6 bytes"), "{error}");
        let slept: Vec<u128> = transport
            .slept
            .lock()
            .expect("no panic")
            .iter()
            .map(Duration::as_millis)
            .collect();
        assert_eq!(
            slept,
            [500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]
        );
    }

    #[test]
    fn a_revision_with_a_slash_is_one_segment() {
        let transport = canned(br#"{"sha":"x"}"#, 100);
        let id = ModelId::parse("a/b").expect("an id");
        let revision = Revision::parse("refs/pr/1").expect("a revision");
        let refusal = now(client(&transport).list(&id, &revision, 0, &Cancel::new()))
            .expect_err("that is no list");
        assert!(matches!(refusal.error, EngineError::Hub { .. }));
        assert_eq!(
            *transport.asked.lock().expect("no panic"),
            ["https://hub.example/mirror/api/models/a/b/revision/refs%2Fpr%2F1?blobs=true "]
        );
    }
}
