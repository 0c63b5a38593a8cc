//! Servers that are never silent and never done. The clock is the test's own, and a byte comes when
//! the one before it has arrived, so that nothing depends on how fast the machine is.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::BoxFuture;
use isovec_hub::{
    Body, FileSelection, HttpTransport, Hub, Request, Response, Transport, TransportFailure,
};
use isovec_test_server::{Gate, Seen};

use crate::repo::{ID, Repo, Site, WEIGHTS, assert_holds, assert_says};

/// Real HTTP, and a clock that moves on by nine seconds whenever somebody looks at it twice: as if
/// every chunk had taken so long.
#[derive(Debug)]
struct Slow {
    http: HttpTransport,
    looks: AtomicU64,
}

impl Transport for Slow {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportFailure>> {
        self.http.send(request)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn now(&self) -> Duration {
        let looks = self.looks.fetch_add(1, Ordering::SeqCst);
        Duration::from_secs(9 * looks.div_ceil(2))
    }
}

fn slow(site: &Site) -> Hub {
    let config = site.config.clone();
    let timeout = config.read_timeout;
    let http = HttpTransport::new(config.proxy.clone(), timeout, timeout).expect("no proxies");
    let looks = AtomicU64::new(0);
    Hub::with_transport(config, Arc::new(Slow { http, looks })).expect("a usable configuration")
}

/// A sender for each connection that is yet to come, and what the server takes them from.
fn gates(connections: usize) -> (Vec<Sender<()>>, Vec<Gate>) {
    let pairs: Vec<(Sender<()>, Receiver<()>)> = (0..connections).map(|_| channel()).collect();
    let (senders, receivers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let gates = receivers.into_iter().map(|one| Arc::new(Mutex::new(one)));
    (senders, gates.collect())
}

#[test]
fn a_server_that_drips_is_given_up_and_what_came_is_kept() {
    let repo = Repo::embedder();
    let (senders, gates) = gates(3);
    for sender in &senders {
        sender.send(()).expect("the first byte of each connection");
    }
    let count = AtomicUsize::new(0);
    let server = repo.start_with(move |repo, seen| {
        if repo.asked(seen) != Some(WEIGHTS) {
            return None;
        }
        let gate = gates.get(count.fetch_add(1, Ordering::SeqCst))?;
        let mut reply = repo.serve(seen);
        reply.gate = Some(Arc::clone(gate));
        Some(reply)
    });
    let mut site = Site::new(&server.url);
    site.config.retry.retries = 2;
    let hub = slow(&site);
    let wanted = FileSelection::files([WEIGHTS]);
    // Seven chunks of nine seconds are past a minute, so each connection brings seven bytes.
    let report = |progress: &isovec_hub::Progress| {
        if progress.file_bytes > 0 {
            let connection = (progress.file_bytes as usize - 1) / 7;
            if let Some(sender) = senders.get(connection) {
                // The last byte of a connection asks for one that nobody waits for.
                let _ = sender.send(());
            }
        }
    };
    let fetched = hub.fetch_blocking(ID, "main", &wanted, report, &Cancel::new());
    assert_says(
        fetched,
        &[WEIGHTS, "7 bytes in 63 seconds", "21 of 300000 bytes"],
    );
    let partial = site.blob(&format!("{}.incomplete", repo.etag(WEIGHTS)));
    let held = std::fs::read(partial).expect("what came is kept");
    assert!(held == repo.files[WEIGHTS][..21]);
    drop(senders);

    // The next server is a fast one; it is asked for the rest alone.
    let fetched = site.fetch_these("main", &wanted).expect("goes on");
    assert_holds(&fetched, &repo, &[WEIGHTS]);
    let ranges: Vec<_> = server
        .seen()
        .iter()
        .filter(|seen| repo.asked(seen) == Some(WEIGHTS))
        .map(Seen::range_start)
        .collect();
    assert_eq!(ranges, [None, Some(7), Some(14), Some(21)]);
}

/// A list without end, a byte at a time.
#[derive(Debug, Default)]
struct Drip {
    looks: AtomicU64,
    asked: AtomicUsize,
}

struct OneByte;

impl Body for OneByte {
    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportFailure>> {
        Box::pin(async { Ok(Some(Bytes::from_static(b" "))) })
    }
}

impl Transport for Drip {
    fn send(&self, _: Request) -> BoxFuture<'_, Result<Response, TransportFailure>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            Ok(Response {
                status: 200,
                headers: Vec::new(),
                body: Box::new(OneByte),
            })
        })
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn now(&self) -> Duration {
        Duration::from_secs(9 * self.looks.fetch_add(1, Ordering::SeqCst).div_ceil(2))
    }
}

#[test]
fn a_list_that_drips_is_given_up() {
    let mut site = Site::new("http://hub.test");
    site.config.retry.retries = 2;
    let drip = Arc::new(Drip::default());
    let hub = Hub::with_transport(site.config.clone(), Arc::clone(&drip) as Arc<dyn Transport>);
    let fetched = hub.expect("a usable configuration").fetch_blocking(
        ID,
        "main",
        &FileSelection::embedding(),
        |_| {},
        &Cancel::new(),
    );
    assert_says(fetched, &["bytes in 63 seconds"]);
    assert_eq!(drip.asked.load(Ordering::SeqCst), 3);
    // Seven chunks of each, and the look that follows them.
    assert!(drip.looks.load(Ordering::SeqCst) <= 3 * 2 * 8);
}
