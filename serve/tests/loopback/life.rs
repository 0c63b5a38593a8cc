//! Start, readiness, draining.

use std::net::Ipv4Addr;
use std::time::Duration;

use isovec::{Embedder, EmbeddingConfig};
use isovec_serve::{Error, Server};
use isovec_test_support::data;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client::{self, send};
use crate::running::{MODEL, Running, options, tiny, waits_for};

const LIVE: &[u8] = b"GET /health/live HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
const READY: &[u8] = b"GET /health/ready HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";

fn embed() -> Vec<u8> {
    let body = json!({"model": MODEL, "input": "a text"}).to_string();
    client::post("/v1/embeddings", "", body.as_bytes())
}

/// A client whose text waits in the queue.
async fn waiting(server: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&embed()).await.unwrap();
    server
        .until("isovec_serve_queue_texts{model=\"tiny\"}", 1)
        .await;
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn the_port_is_open_before_the_model_is_there() {
    let (server, load) = Running::without_model(options()).await;
    let address = server.address;
    assert_eq!(send(address, LIVE).await.status, 200);
    let unready = send(address, READY).await;
    assert_eq!(unready.status, 503);
    assert_eq!(unready.tei_error().1, "unhealthy");
    let refused = send(address, &embed()).await;
    assert_eq!(refused.status, 503);
    assert!(refused.openai_error().0.contains("being loaded"));
    assert_eq!(refused.header("retry-after"), Some("1"));

    load.send(tiny(EmbeddingConfig::default()).await).unwrap();
    while send(address, READY).await.status != 200 {}
    assert_eq!(send(address, &embed()).await.status, 200);
    server.stop().await.unwrap();
    assert!(
        TcpStream::connect(address).await.is_err(),
        "the port is closed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_stops_while_its_model_is_being_loaded_and_ends_if_it_cannot_be() {
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Server::bind(any, options()).await.unwrap();
    let never = std::future::pending::<isovec::Result<Embedder>>();
    server.run(never, async {}).await.unwrap();

    let server = Server::bind(any, options()).await.unwrap();
    let nowhere = Embedder::load(data("choice"));
    let error = server
        .run(nowhere, std::future::pending())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Model { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_does_not_move_makes_the_server_unready_until_it_moves() {
    let mut options = options();
    options.probe_timeout = Duration::from_millis(50);
    let server = Running::with(waits_for(2), options).await;
    let unready = server.get("/health/ready").await;
    assert_eq!(unready.status, 503);
    assert!(unready.tei_error().0.contains("no text came through"));
    assert_eq!(server.get("/health").await.status, 503);
    assert_eq!(server.get("/health/live").await.status, 200);
    // The probes have left the queue.
    server
        .until("isovec_serve_queue_texts{model=\"tiny\"}", 0)
        .await;
    // Vectors that were given out within the last second say as much as a probe.
    loop {
        assert_eq!(server.openai(&["a", "b"]).await.status, 200);
        if server.get("/health/ready").await.status == 200 {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_is_answered_by_the_engine_and_not_by_a_cache() {
    let config = EmbeddingConfig::default().with_embedding_cache_memory(1 << 20);
    let server = Running::with(config, options()).await;
    let ran = || server.model.stats().engine.sessions.run.count;
    let mut before = ran();
    for _ in 0..2 {
        assert_eq!(server.get("/health/ready").await.status, 200);
        let after = ran();
        assert!(before < after);
        before = after;
        // What was computed a second ago proves nothing.
        tokio::time::sleep(Duration::from_millis(1_001)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_server_lives_and_is_not_ready_and_lets_nobody_in() {
    // A probe that comes before the stop waits with the one that is inside, and completes nothing.
    let server = Running::with(waits_for(3), options()).await;
    let address = server.address;
    let inside = waiting(&server).await;
    let ended = server.begin_stop();
    while !send(address, READY).await.text().contains("stopping") {}
    assert_eq!(send(address, LIVE).await.status, 200);
    let refused = send(address, &embed()).await;
    assert_eq!(refused.status, 503);
    assert!(refused.openai_error().0.contains("stopping"));
    assert_eq!(refused.header("connection"), Some("close"));
    assert!(!ended.is_finished(), "somebody is inside");
    drop(inside);
    ended.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_finished_in_time_is_told_so() {
    let mut options = options();
    options.drain_timeout = Duration::from_millis(20);
    let server = Running::with(waits_for(2), options).await;
    let mut inside = waiting(&server).await;
    let error = server.stop().await.unwrap_err();
    assert!(matches!(error, Error::Cut { requests: 1 }), "{error}");
    let answer = client::read(&mut inside).await.unwrap();
    assert_eq!(answer.status, 503);
    assert!(answer.openai_error().0.contains("stopped before"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_does_not_hold_a_drain_up() {
    let server = Running::start().await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    let mut kept = TcpStream::connect(server.address).await.unwrap();
    kept.write_all(b"GET /health/live HTTP/1.1\r\nhost: test\r\n\r\n")
        .await
        .unwrap();
    kept.readable().await.unwrap();
    server.stop().await.unwrap();
    drop((silent, kept));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_that_no_count_of_connections_reaches_is_none() {
    let mut options = options();
    options.max_connections = usize::MAX;
    let server = Running::with(EmbeddingConfig::default(), options).await;
    assert_eq!(send(server.address, LIVE).await.status, 200);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_service_manager_hears_when_requests_are_answered_and_when_the_server_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = tokio::net::UnixDatagram::bind(&path).unwrap();
    let mut options = options();
    options.notify_socket = Some(path.into_os_string());
    let (server, load) = Running::without_model(options).await;
    let mut said = [0; 64];
    assert_eq!(send(server.address, LIVE).await.status, 200);
    assert!(socket.try_recv(&mut said).is_err(), "no model is there");
    load.send(tiny(EmbeddingConfig::default()).await).unwrap();
    let length = socket.recv(&mut said).await.unwrap();
    assert_eq!(&said[..length], b"READY=1");
    let ended = server.begin_stop();
    let length = socket.recv(&mut said).await.unwrap();
    assert_eq!(&said[..length], b"STOPPING=1");
    ended.await.unwrap().unwrap();
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_service_manager_that_is_gone_harms_nobody() {
    let mut options = options();
    options.notify_socket = Some("/nowhere/notify".into());
    let server = Running::with(EmbeddingConfig::default(), options).await;
    assert_eq!(send(server.address, &embed()).await.status, 200);
    server.stop().await.unwrap();
}
