//! A server at rest holds no more after many requests than after some: the bytes of Rust's heap are counted. Those of its threads'
//! stacks, and what allocators keep for later, are not among them; `benches/serve/measure.py` looks at resident memory.
#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use isovec::{Embedder, EmbeddingConfig};
use isovec_serve::{ServeOptions, Server};
use isovec_test_support::{Which, tiny_model};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Clients, each with one open connection.
const CLIENTS: usize = 8;

/// Requests of a client between two looks, and looks.
const REQUESTS: usize = 400;
const LOOKS: usize = 6;

/// Looks before the one that the last is compared with. Meanwhile what is held grows in steps, less and less often.
const WARMING: usize = 2;

/// Bytes that may come and go between two looks: a timer here, a buffer of a thread there, and in one run of ten 21 to 26 KB at once that
/// come late. It is four bytes for each request between the looks that are compared.
const SLACK: usize = 4 * CLIENTS * REQUESTS * (LOOKS - 1 - WARMING);

/// Keeps count of the bytes that are held.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A client with one open connection, and the numbers that it draws.
struct Client {
    stream: TcpStream,
    drawn: u64,
    answer: Vec<u8>,
}

impl Client {
    async fn new(address: SocketAddr, seed: u64) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            drawn: seed,
            answer: Vec::with_capacity(1 << 20),
        }
    }

    /// A number below `limit` (Knuth's generator, The Art of Computer Programming 3.3.4).
    fn below(&mut self, limit: u64) -> u64 {
        self.drawn = self
            .drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.drawn >> 33) % limit
    }

    fn text(&mut self) -> String {
        let words = [1, 3, 8, 30][self.below(4) as usize];
        let words = (0..words).map(|_| format!("word{} ", self.below(5_000)));
        words.collect()
    }

    /// A request of any kind, and the status that it gets.
    fn request(&mut self) -> (String, u16) {
        let texts = [1, 1, 1, 4][self.below(4) as usize];
        let texts: Vec<String> = (0..texts).map(|_| self.text()).collect();
        let (path, body, status) = match self.below(20) {
            0..10 => ("/embed", json!({"inputs": texts}), 200),
            10..14 => {
                let body = json!({"model": "m", "input": texts, "encoding_format": "base64"});
                ("/v1/embeddings", body, 200)
            }
            14..16 => ("/tokenize", json!({"inputs": texts}), 200),
            16 => ("/embed", json!({"inputs": 7}), 422),
            17 => {
                let nobody = format!("nobody{}", self.below(1 << 30));
                (
                    "/v1/embeddings",
                    json!({"model": nobody, "input": "a"}),
                    404,
                )
            }
            18 => return (self.framed("/v2/models/nobody/infer", &json!({})), 404),
            _ => {
                let path = format!("/nowhere/{}", self.below(1 << 30));
                return (self.framed(&path, &json!({})), 404);
            }
        };
        (self.framed(path, &body), status)
    }

    fn framed(&self, path: &str, body: &Value) -> String {
        let body = body.to_string();
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    }

    async fn ask(&mut self) {
        let (request, wanted) = self.request();
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.answer.clear();
        loop {
            assert_ne!(self.stream.read_buf(&mut self.answer).await.unwrap(), 0);
            let end = self.answer.windows(4).position(|four| four == b"\r\n\r\n");
            let Some(end) = end else {
                continue;
            };
            let head = std::str::from_utf8(&self.answer[..end]).unwrap();
            let status = head.split(' ').nth(1).unwrap().parse::<u16>().unwrap();
            assert_eq!(status, wanted, "{request}");
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if self.answer.len() >= end + 4 + length.unwrap().parse::<usize>().unwrap() {
                return;
            }
        }
    }
}

/// The bytes that are held when nothing goes on: the least of some looks, since threads end when they like.
async fn at_rest() -> usize {
    let mut least = usize::MAX;
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        least = least.min(HELD.load(Relaxed));
    }
    least
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_leave_nothing_behind() {
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let model = Embedder::builder(tiny_model()).config(config).load();
    let model = model.await.unwrap();
    let mut options = ServeOptions::default();
    options.name = Some("m".into());
    let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), options);
    let server = server.await.unwrap();
    let address = server.address().unwrap();
    tokio::spawn(server.run(async { Ok(model) }, std::future::pending()));
    let mut clients = Vec::new();
    for seed in 0..CLIENTS {
        clients.push(Client::new(address, seed as u64).await);
    }
    // The port is open before the model is there.
    while readiness(address).await != 200 {}
    let mut held = Vec::new();
    for _ in 0..LOOKS {
        join_all(clients.iter_mut().map(|client| async {
            for _ in 0..REQUESTS {
                client.ask().await;
            }
        }))
        .await;
        held.push(at_rest().await);
    }
    assert!(
        held[LOOKS - 1] <= held[WARMING] + SLACK,
        "bytes at rest: {held:?}"
    );
}

/// The status of `/health/ready`.
async fn readiness(address: SocketAddr) -> u16 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET /health/ready HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}
