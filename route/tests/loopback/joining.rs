//! Requests that are joined on the way.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::puppet::{Puppet, says};
use crate::running::{MODEL, Routing, Served, options, post};

/// A wait that no test sees the end of: what is joined goes when there are 128 texts.
fn patient() -> isovec_route::RouteOptions {
    let mut options = options();
    options.join_wait = Some(Duration::from_secs(3600));
    options
}

/// Sixteen requests of eight texts, which together are enough.
fn requests(options: &Value) -> Vec<Value> {
    let words = [
        "a", "sequence", "of", "words", "that", "is", "longer", "than", "the", "model", "reads",
    ];
    let text = |at: usize| {
        words
            .iter()
            .cycle()
            .skip(at % 11)
            .take(1 + at * 3 % 400)
            .copied()
            .collect::<Vec<_>>()
            .join(" ")
    };
    (0..16)
        .map(|request| {
            let texts: Vec<String> = (0..8).map(|at| text(request * 8 + at)).collect();
            let mut body =
                json!({"model": MODEL, "input": texts, "user": format!("user {request}")});
            body.as_object_mut()
                .unwrap()
                .extend(options.as_object().unwrap().clone());
            body
        })
        .collect()
}

/// Sends all at the same time; the answers in their order.
async fn together(address: std::net::SocketAddr, requests: &[Value]) -> Vec<crate::client::Answer> {
    let mut all = JoinSet::new();
    for (at, body) in requests.iter().cloned().enumerate() {
        all.spawn(async move { (at, post(address, "/v1/embeddings", "", &body).await) });
    }
    let mut answers = all.join_all().await;
    answers.sort_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_joined_has_the_bytes_that_it_has_apart() {
    let served = Served::start().await;
    let router = Routing::before(&[served.address], patient()).await;
    let mut truncated = 0;
    for options in [
        json!({}),
        json!({"encoding_format": "base64"}),
        json!({"dimensions": 8}),
    ] {
        let requests = requests(&options);
        let before = router
            .of(served.address, "requests")
            .await
            .as_u64()
            .unwrap();
        let joined = together(router.address, &requests).await;
        assert_eq!(
            router.of(served.address, "requests").await,
            before + 1,
            "they were one request"
        );
        for (body, joined) in requests.iter().zip(joined) {
            let apart = post(served.address, "/v1/embeddings", "", body).await;
            assert_eq!((joined.status, joined.text()), (200, apart.text()));
            for name in [
                "x-isovec-truncated",
                "x-isovec-truncated-texts",
                "x-isovec-fingerprint",
                "x-isovec-text-tokens",
            ] {
                assert_eq!(joined.header(name), apart.header(name), "{name}");
            }
            truncated += usize::from(joined.header("x-isovec-truncated").is_some());
        }
    }
    assert!(truncated > 0, "some texts were longer than the model reads");
    let page = router.get("/metrics").await;
    for line in [
        "isovec_route_join_total{of=\"requests\"} 48",
        "isovec_route_join_total{of=\"joined\"} 3",
    ] {
        assert!(page.text().contains(line), "{}", page.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_the_error_of_another() {
    let served = Served::start().await;
    let router = Routing::before(&[served.address], patient()).await;
    let mut requests = requests(&json!({}));
    // JSON's grammar has it, and no text does.
    requests[5]["input"][3] = json!("LONE");
    let mut all = JoinSet::new();
    for (at, body) in requests.iter().enumerate() {
        let body = body.to_string().replace("LONE", "\\ud800");
        let address = router.address;
        all.spawn(async move {
            let bytes = crate::client::post("/v1/embeddings", "", body.as_bytes());
            (at, crate::client::send(address, &bytes).await)
        });
    }
    for (at, answer) in all.join_all().await {
        assert_eq!(
            answer.status,
            if at == 5 { 400 } else { 200 },
            "{at}: {}",
            answer.text()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_requests_of_one_sort_are_joined() {
    let puppet = Puppet::that(says(200, "", b"{}")).await;
    let router = Routing::before(&[puppet.address], patient()).await;
    // None of these waits for others, or it would wait for an hour.
    let long = "a ".repeat(10_000);
    for body in [
        json!({"model": MODEL, "input": [1, 2]}),
        json!({"model": MODEL, "input": [[1], [2]]}),
        json!({"model": MODEL, "input": []}),
        json!({"model": MODEL, "input": ""}),
        json!({"model": MODEL, "input": ["a", ""]}),
        json!({"model": MODEL, "input": vec!["a"; 17]}),
        json!({"model": MODEL, "input": long}),
        json!({"model": MODEL}),
        json!([]),
    ] {
        assert_eq!(
            post(router.address, "/v1/embeddings", "", &body)
                .await
                .status,
            200
        );
    }
    let plain = json!({"model": MODEL, "input": "a"});
    assert_eq!(post(router.address, "/embed", "", &plain).await.status, 200);
    for head in [
        "x-isovec-text-tokens: each\r\n",
        "content-encoding: identity\r\n",
    ] {
        assert_eq!(
            post(router.address, "/v1/embeddings", head, &plain)
                .await
                .status,
            200
        );
    }
    let twice = br#"{"input": "a", "input": "b"}"#;
    let answer = crate::client::send(
        router.address,
        &crate::client::post("/v1/embeddings", "", twice),
    )
    .await;
    assert_eq!(answer.status, 200);

    // Others wait, each sort for itself, until their deadline.
    let before = puppet.came().len();
    let mut waiting = JoinSet::new();
    for head in [
        "authorization: Bearer a\r\n",
        "authorization: Bearer b\r\n",
        "x-request-priority: low\r\n",
        "",
    ] {
        let (address, body) = (
            router.address,
            json!({"model": MODEL, "input": vec!["a"; 16]}),
        );
        waiting.spawn(async move {
            post(
                address,
                "/v1/embeddings",
                &format!("{head}x-request-timeout: 50ms\r\n"),
                &body,
            )
            .await
            .status
        });
    }
    let other = json!({"model": "other", "input": vec!["a"; 16]});
    let address = router.address;
    waiting.spawn(async move {
        post(
            address,
            "/v1/embeddings",
            "x-request-timeout: 50ms\r\n",
            &other,
        )
        .await
        .status
    });
    assert_eq!(waiting.join_all().await, [504; 5]);
    assert_eq!(puppet.came().len(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waited_for_nobody_is_sent_as_it_came() {
    let puppet = Puppet::that(says(200, "", b"{}")).await;
    let mut options = options();
    options.join_wait = Some(Duration::from_millis(1));
    let router = Routing::before(&[puppet.address], options).await;
    let body = json!({"model": MODEL, "input": "a"});
    assert_eq!(
        post(router.address, "/v1/embeddings", "", &body)
            .await
            .status,
        200
    );
    let [came] = &puppet.came()[..] else {
        panic!("one request")
    };
    assert_eq!(came.body, body.to_string().as_bytes());
    assert_eq!(came.header("x-isovec-text-tokens"), None);
}
