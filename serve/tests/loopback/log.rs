//! What the log says, and what it does not.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client;
use crate::running::{MODEL, Running};

const KEY: &str = "sk-secret-of-a-client";
const TEXT: &str = "a text that is nobody else's business";

/// A second subscriber. While there is one alone, whoever logs at a place first is asked for the subscriber of its own thread, and
/// the answer holds for all threads: a test that has none would take that place's events from one that has
/// (`tracing_core::callsite`).
static SECOND: LazyLock<tracing::Dispatch> =
    LazyLock::new(|| tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default()));

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Everything that is logged on this thread, until the guard goes.
    fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        LazyLock::force(&SECOND);
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines so far, which are taken out.
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

/// The lines of requests with this id.
fn lines(log: &str, id: &str) -> Vec<Value> {
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["target"] == "isovec_serve::access" && line["id"] == id)
        .collect()
}

/// On one thread, whose log this is.
#[tokio::test]
async fn the_log_has_a_line_for_each_request_without_texts_keys_and_paths() {
    let (log, _here) = Log::begin();
    let server = Running::start().await;
    let body = json!({"model": MODEL, "input": [TEXT, TEXT]}).to_string();
    let head = format!("authorization: Bearer {KEY}\r\nx-request-id: mine-7\r\n");
    let asked = client::post(&format!("/v1/embeddings?key={KEY}"), &head, body.as_bytes());
    let answer = server.raw(&asked).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-request-id"), Some("mine-7"));
    let broken = format!("{{\"model\": {TEXT}");
    let asked = client::post(&format!("/{KEY}"), &head, broken.as_bytes());
    assert_eq!(server.raw(&asked).await.status, 404);
    let asked = client::post("/embed", &head, broken.as_bytes());
    assert_eq!(server.raw(&asked).await.status, 422);
    server.stop().await.unwrap();

    let text = log.take();
    assert!(!text.contains(KEY) && !text.contains(TEXT), "{text}");
    let mine = lines(&text, "mine-7");
    let seen: Vec<(&Value, &Value)> = mine
        .iter()
        .map(|line| (&line["route"], &line["status"]))
        .collect();
    assert_eq!(
        seen,
        [
            (&json!("/v1/embeddings"), &json!(200)),
            (&json!("none"), &json!(404)),
            (&json!("/embed"), &json!(422)),
        ]
    );
    assert_eq!(
        (&mine[0]["texts"], &mine[0]["truncated"]),
        (&json!(2), &json!(0))
    );
    assert!(mine[0]["tokens"].as_u64().unwrap() > 4 && mine[0]["milliseconds"].is_f64());
    assert_eq!(mine[0]["method"], "POST");
}

/// Requests while the server stops are answered as the log says: what was let in is not lost.
#[tokio::test]
async fn a_drain_under_load_loses_nothing_that_was_let_in() {
    let (log, _here) = Log::begin();
    for _ in 0..10 {
        let server = Running::start().await;
        let address = server.address;
        let wanted = server.model.embed_one(TEXT).await.unwrap();
        let clients: Vec<_> = (0..16)
            .map(|_| {
                let wanted = wanted.clone();
                tokio::spawn(async move {
                    let body = json!({"model": MODEL, "input": TEXT}).to_string();
                    let asked =
                        client::post("/v1/embeddings", "x-request-id: load\r\n", body.as_bytes());
                    let mut answered = 0;
                    loop {
                        let Ok(mut stream) = TcpStream::connect(address).await else {
                            return answered;
                        };
                        let _ = stream.write_all(&asked).await;
                        // A connection that nobody accepted has no answer.
                        let Some(answer) = client::read(&mut stream).await else {
                            return answered;
                        };
                        if answer.status == 503 {
                            return answered;
                        }
                        assert_eq!(answer.status, 200, "{answer:?}");
                        assert_eq!(answer.vector(), wanted);
                        answered += 1;
                    }
                })
            })
            .collect();
        while server
            .metric("isovec_serve_requests_ended_total{end=\"answered\"}")
            .await
            < 50
        {}
        server.stop().await.unwrap();
        let mut answered = 0;
        for client in clients {
            answered += client.await.unwrap();
        }
        let loads = lines(&log.take(), "load");
        let with = |status: u16| loads.iter().filter(|line| line["status"] == status).count();
        assert_eq!(with(200), answered, "all vectors arrived");
        assert_eq!(with(200) + with(503), loads.len(), "{loads:?}");
        assert!(answered >= 50);
    }
}
