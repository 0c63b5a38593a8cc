//! More than the server can do, and clients that leave.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client::{self, Answer};
use crate::running::{MODEL, Running, options, waits_for};

const OVERLOADED: &str = "isovec_serve_requests_refused_total{why=\"overloaded\"}";
const ANSWERED: &str = "isovec_serve_requests_ended_total{end=\"answered\"}";
const FAILED: &str = "isovec_serve_requests_ended_total{end=\"failed\"}";
const CANCELLED: &str = "isovec_serve_requests_ended_total{end=\"cancelled\"}";

/// The bytes of a request for a text.
fn asks(text: &str, head: &str) -> Vec<u8> {
    let body = json!({"model": MODEL, "input": text}).to_string();
    client::post("/v1/embeddings", head, body.as_bytes())
}

/// A client that asked and has not read its answer.
async fn asked(server: &Running, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&asks(text, "")).await.unwrap();
    stream
}

fn check_refused(answer: &Answer) {
    assert_eq!(answer.status, 429, "{answer:?}");
    let (_, kind, _, code) = answer.openai_error();
    assert_eq!(
        (kind, code),
        (json!("rate_limit_error"), json!("rate_limit_exceeded"))
    );
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    let millis: u64 = answer.header("retry-after-ms").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds) && millis <= seconds * 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_times_the_load_a_tenth_is_let_in_and_the_rest_is_told_when_to_come_again() {
    let mut options = options();
    options.max_requests = 8;
    // Eight texts wait for a ninth, so that the server stays full.
    let server = Running::with(waits_for(9), options).await;
    let mut inside = Vec::new();
    for at in 0..8 {
        inside.push(asked(&server, &format!("text {at}")).await);
    }
    server.until("isovec_serve_requests_in_work", 8).await;
    let refused = join_all((0..72).map(|_| server.openai(&["one more"]))).await;
    refused.iter().for_each(check_refused);
    assert_eq!(server.metric(OVERLOADED).await, 72);

    // One gives up, and another takes its place with two texts: the nine are complete.
    drop(inside.pop());
    server.until(CANCELLED, 1).await;
    let last = server.openai(&["text 8", "text 9"]).await;
    assert_eq!(last.status, 200);
    for (at, mut stream) in inside.into_iter().enumerate() {
        let answer = client::read(&mut stream).await.unwrap();
        let wanted = server.model.embed_one(format!("text {at}")).await.unwrap();
        assert_eq!(answer.vector(), wanted);
    }
    for (name, value) in [(ANSWERED, 8), (FAILED, 0), (CANCELLED, 1), (OVERLOADED, 72)] {
        assert_eq!(server.metric(name).await, value, "{name}");
    }
    assert_eq!(server.metric("isovec_serve_requests_in_work").await, 0);
    assert_eq!(server.metric("isovec_serve_texts_in_work").await, 0);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_that_was_let_in_is_accounted_for_whatever_clients_do() {
    let mut options = options();
    options.max_requests = 16;
    let server = Running::with(isovec::EmbeddingConfig::default(), options).await;
    let answers = join_all((0..400).map(|at| {
        let server = &server;
        async move {
            let text = format!("text {at}");
            match at % 5 {
                // Goes away without an answer.
                0 => {
                    drop(asked(server, &text).await);
                    None
                }
                // Has no time.
                1 => Some(
                    server
                        .raw(&asks(&text, "x-request-timeout: 0.00001\r\n"))
                        .await,
                ),
                _ => {
                    let answer = server.raw(&asks(&text, "")).await;
                    if answer.status == 200 {
                        let wanted = server.model.embed_one(&text).await.unwrap();
                        assert_eq!(answer.vector(), wanted);
                    }
                    Some(answer)
                }
            }
        }
    }))
    .await;
    server.until("isovec_serve_requests_in_work", 0).await;
    let with = |status| {
        answers
            .iter()
            .flatten()
            .filter(|answer| answer.status == status)
            .count() as u64
    };
    answers
        .iter()
        .flatten()
        .filter(|answer| answer.status == 429)
        .for_each(check_refused);
    assert_eq!(
        with(200) + with(429) + with(504),
        320,
        "every client that stayed has an answer"
    );
    assert!(with(200) > 0);
    // Those who left may have been refused, answered or noticed.
    let counts = [ANSWERED, FAILED, CANCELLED, OVERLOADED].map(|name| server.metric(name));
    let [answered, failed, cancelled, overloaded] = join_all(counts).await[..] else {
        panic!("four counts");
    };
    assert!(answered >= with(200) && overloaded >= with(429));
    // A deadline may have passed before the request was let in.
    assert!(failed <= with(504));
    assert!(answered + failed + cancelled + overloaded <= 400);
    assert_eq!(
        server
            .metric("isovec_serve_queue_texts{model=\"tiny\"}")
            .await,
        0
    );
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_texts_of_a_client_that_left_are_not_computed() {
    let server = Running::with(waits_for(3), options()).await;
    let gone = asked(&server, "never mind").await;
    server
        .until("isovec_serve_queue_texts{model=\"tiny\"}", 1)
        .await;
    drop(gone);
    server.until(CANCELLED, 1).await;
    server
        .until("isovec_serve_calls_left_total{model=\"tiny\"}", 1)
        .await;
    assert_eq!(
        server
            .metric("isovec_serve_queue_texts{model=\"tiny\"}")
            .await,
        0
    );
    assert_eq!(server.openai(&["a", "b", "c"]).await.status, 200);
    // The three, and not the one.
    assert_eq!(
        server
            .metric("isovec_serve_batched_texts_total{model=\"tiny\"}")
            .await,
        3
    );
    assert_eq!(
        server
            .metric("isovec_serve_texts_total{model=\"tiny\"}")
            .await,
        3
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_not_computed_by_its_deadline_is_told_so_and_leaves() {
    let server = Running::with(waits_for(2), options()).await;
    for (time, status) in [("0.05", 504), ("50ms", 504), ("soon", 400), ("0", 400)] {
        let head = format!("x-request-timeout: {time}\r\n");
        let answer = server.raw(&asks("late", &head)).await;
        assert_eq!(answer.status, status, "{time}");
        answer.openai_error();
    }
    server
        .until("isovec_serve_queue_texts{model=\"tiny\"}", 0)
        .await;
    assert_eq!(server.metric(FAILED).await, 2);

    let mut options = options();
    options.request_timeout = Duration::from_millis(50);
    let server = Running::with(waits_for(2), options).await;
    // A client cannot ask for more than the server allows.
    let answer = server
        .raw(&asks("late", "x-request-timeout: 3600\r\n"))
        .await;
    assert_eq!(answer.status, 504);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_there_is_no_room_for_is_refused_as_overload() {
    let mut options = options();
    options.max_body = 600;
    options.max_bytes = 1000;
    let server = Running::with(waits_for(2), options).await;
    let long = "a ".repeat(250);
    let first = asked(&server, &long).await;
    server
        .until("isovec_serve_queue_texts{model=\"tiny\"}", 1)
        .await;
    check_refused(&server.openai(&[&long]).await);
    drop(first);
    server.until("isovec_serve_bytes_in_work", 0).await;
    assert_eq!(server.openai(&["a", "b"]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_queue_itself_refuses_is_overload_too() {
    // Fewer texts than the server lets in.
    let server = Running::with(waits_for(2).with_max_queue(1), options()).await;
    let first = asked(&server, "text 1").await;
    server
        .until("isovec_serve_queue_texts{model=\"tiny\"}", 1)
        .await;
    check_refused(&server.openai(&["text 2"]).await);
    assert_eq!(server.metric(OVERLOADED).await, 1);
    assert_eq!(server.metric(FAILED).await, 0);
    drop(first);
    server.until("isovec_serve_requests_in_work", 0).await;
}
