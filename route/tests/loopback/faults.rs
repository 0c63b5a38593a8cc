//! Replicas that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isovec::EmbeddingConfig;
use serde_json::json;
use tokio::task::JoinSet;

use crate::client;
use crate::puppet::{Does, Puppet, says};
use crate::running::{MODEL, Routing, Served, embed, nobody, options, post, to};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_killed_under_load_loses_no_request() {
    /// Before it is killed, and after it.
    const REQUESTS: usize = 200;
    let (stays, dies) = (Served::start().await, Served::mortal().await);
    let router = Routing::before(&[stays.address, dies.address], options()).await;
    let texts: Vec<String> = (0..10)
        .map(|at| format!("the text with the number {at}"))
        .collect();
    let mut wanted = Vec::new();
    for text in &texts {
        wanted.push(embed(stays.address, &[text]).await.body);
    }
    let (next, wanted, texts) = (
        Arc::<AtomicUsize>::default(),
        Arc::new(wanted),
        Arc::new(texts),
    );
    let last = Arc::new(AtomicUsize::new(usize::MAX));
    let mut clients = JoinSet::new();
    for _ in 0..16 {
        let (next, last, wanted, texts, address) = (
            Arc::clone(&next),
            Arc::clone(&last),
            Arc::clone(&wanted),
            Arc::clone(&texts),
            router.address,
        );
        clients.spawn(async move {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at > last.load(Ordering::Relaxed) {
                    return;
                }
                let answer = embed(address, &[&texts[at % 10]]).await;
                assert_eq!(
                    (answer.status, &answer.body),
                    (200, &wanted[at % 10]),
                    "{answer:?}"
                );
            }
        });
    }
    while next.load(Ordering::Relaxed) < REQUESTS {
        tokio::task::yield_now().await;
    }
    let dead = dies.kill().await;
    last.store(next.load(Ordering::Relaxed) + REQUESTS, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    router.until(dead, "state", &json!("out")).await;
    assert_eq!(router.of(dead, "ejections").await, 1);

    let back = Served::with(dead, EmbeddingConfig::default()).await;
    router.until(back.address, "state", &json!("in")).await;
    let before = router.of(back.address, "requests").await;
    while router.of(back.address, "requests").await == before {
        assert_eq!(router.embed(&["a"]).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_fails_is_asked_once_and_another_answers() {
    let draining = says(503, "retry-after: 1\r\n", b"{}");
    let half = Does::Says(
        b"HTTP/1.1 200 OK\r\nx-isovec-models: puppets\r\ncontent-length: 100\r\n\r\n{".to_vec(),
    );
    let unnamed =
        Does::Says(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}".to_vec());
    for does in [Does::Breaks, draining, half, unnamed] {
        let (bad, good) = (
            Puppet::that(does.clone()).await,
            Puppet::that(says(200, "", b"[1]")).await,
        );
        // Whoever comes first is asked first: all loads are equal.
        let mut options = options();
        options.strategy = isovec_route::Strategy::RoundRobin;
        let router = Routing::before(&[bad.address, good.address], options).await;
        let answer = post(router.address, "/embed", "", &json!({"inputs": "a"})).await;
        assert_eq!(
            (answer.status, &answer.body[..]),
            (200, &b"[1]"[..]),
            "{does:?}"
        );
        assert_eq!((bad.came().len(), good.came().len()), (1, 1), "{does:?}");
        assert_eq!(router.of(bad.address, "failures").await, 1);
        assert_eq!(router.of(bad.address, "ejections").await, 1);
        assert_eq!(router.of(good.address, "retries").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_pure_is_asked_once() {
    let puppet = Puppet::that(Does::Breaks).await;
    let router = Routing::before(&[puppet.address], options()).await;
    let delete = b"DELETE /embed HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    assert_eq!(client::send(router.address, delete).await.status, 503);
    assert_eq!(puppet.came().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_room_is_passed_on_or_found_elsewhere() {
    let full = || {
        says(
            429,
            "retry-after: 2\r\nretry-after-ms: 1500\r\n",
            b"{\"error\":\"full\"}",
        )
    };
    let (one, two) = (Puppet::that(full()).await, Puppet::that(full()).await);
    let router = Routing::before(&[one.address, two.address], options()).await;
    let answer = post(router.address, "/embed", "", &json!({"inputs": "a"})).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("2"))
    );
    assert_eq!(
        (answer.header("retry-after-ms"), answer.text()),
        (Some("1500"), "{\"error\":\"full\"}")
    );
    assert_eq!(
        (one.came().len(), two.came().len()),
        (1, 1),
        "each was asked"
    );
    assert_eq!(router.of(one.address, "state").await, "in");

    let (full, free) = (
        Puppet::that(full()).await,
        Puppet::that(says(200, "", b"[1]")).await,
    );
    for strategy in [
        isovec_route::Strategy::RoundRobin,
        isovec_route::Strategy::LeastLoaded,
    ] {
        let mut options = options();
        options.strategy = strategy;
        let router = Routing::before(&[full.address, free.address], options).await;
        for _ in 0..10 {
            let answer = post(router.address, "/embed", "", &json!({"inputs": "a"})).await;
            assert_eq!(answer.status, 200);
        }
    }
    assert!(full.came().len() <= 2, "it is passed over while it is full");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stalls_is_not_waited_for_beyond_the_deadline() {
    let puppet = Puppet::that(Does::Stalls).await;
    let router = Routing::before(&[puppet.address], options()).await;
    let body = json!({"model": MODEL, "input": "a"});
    let answer = post(
        router.address,
        "/v1/embeddings",
        "x-request-timeout: 1\r\n",
        &body,
    )
    .await;
    assert_eq!(answer.status, 504);
    assert!(answer.openai_error().0.contains("deadline"));
    assert_eq!(
        (
            puppet.came().len(),
            router.of(puppet.address, "failures").await
        ),
        (1, json!(1))
    );
    router.until(puppet.address, "in_flight", &json!(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_replica_the_router_says_why() {
    let (_held, gone) = nobody();
    let router = Routing::start(vec![to(gone)], options()).await;
    router.until(gone, "state", &json!("out")).await;
    assert_eq!(router.get("/health/live").await.status, 200);
    for path in ["/health", "/health/ready", "/v2/health/ready"] {
        assert_eq!(router.get(path).await.status, 503, "{path}");
    }
    let answer = router.embed(&["a"]).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    assert!(answer.openai_error().0.contains("/status"));
    let why = router.of(gone, "why").await;
    assert!(why.as_str().unwrap().contains("refused"), "{why}");
}
