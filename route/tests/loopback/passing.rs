//! What goes through, and what does not.

use isovec_test_support::mixed_texts;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client;
use crate::puppet::{Puppet, says};
use crate::running::{MODEL, Routing, Served, embed, get, options, post};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_the_servers_byte_for_byte() {
    let (one, two) = (Served::start().await, Served::start().await);
    let router = Routing::before(&[one.address, two.address], options()).await;
    let texts = mixed_texts(30);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for texts in texts.chunks(7) {
        let (direct, routed) = (embed(one.address, texts).await, router.embed(texts).await);
        assert_eq!((routed.status, &routed.body), (200, &direct.body));
        for name in [
            "content-type",
            "x-isovec-fingerprint",
            "x-isovec-computed-by",
            "x-isovec-truncated",
        ] {
            assert_eq!(routed.header(name), direct.header(name), "{name}");
        }
    }
    for (path, body) in [
        ("/embed", json!({"inputs": "a text"})),
        ("/v1/embeddings", json!({"input": ""})),
        ("/embed", json!({"inputs": []})),
        ("/v1/rerank", json!({"query": "a", "documents": ["b"]})),
        ("/nothing", json!({})),
    ] {
        let (direct, routed) = (
            post(one.address, path, "", &body).await,
            post(router.address, path, "", &body).await,
        );
        assert_eq!(
            (routed.status, &routed.body),
            (direct.status, &direct.body),
            "{path}"
        );
    }
    let (direct, routed) = (
        get(one.address, "/v1/models/tiny").await,
        router.get("/v1/models/tiny").await,
    );
    assert_eq!(
        (routed.status, routed.json()["id"].clone()),
        (direct.status, json!(MODEL))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_keeps_its_id_and_key_and_loses_what_was_of_its_connection() {
    let puppet = Puppet::that(says(200, "keep-alive: timeout=9\r\nx-own: 1\r\n", b"{}")).await;
    let router = Routing::before(&[puppet.address], options()).await;
    let head = "authorization: Bearer k\r\nx-request-id: mine\r\nte: trailers\r\nx-private: 1\r\n\
                connection: close, x-private\r\nproxy-authorization: p\r\nx-request-timeout: 5\r\n";
    let answer = post(router.address, "/embed?a=b", head, &json!({"inputs": "x"})).await;
    assert_eq!(
        (answer.status, answer.header("x-request-id")),
        (200, Some("mine"))
    );
    assert_eq!(
        (answer.header("x-own"), answer.header("keep-alive")),
        (Some("1"), None)
    );
    let [came] = &puppet.came()[..] else {
        panic!("one request")
    };
    assert!(
        came.head.starts_with("post /embed?a=b http/1.1"),
        "{}",
        came.head
    );
    assert_eq!(came.body, br#"{"inputs":"x"}"#);
    assert_eq!(came.header("authorization"), Some("bearer k"));
    assert_eq!(came.header("x-request-id"), Some("mine"));
    assert_eq!(came.header("host"), Some(&*puppet.address.to_string()));
    for name in ["te", "x-private", "proxy-authorization", "connection"] {
        assert_eq!(came.header(name), None, "{name}");
    }
    // Some of the time is spent.
    let left: f64 = came.header("x-request-timeout").unwrap().parse().unwrap();
    assert!(left > 0.0 && left < 5.0, "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_two_requests_to_somebody_else_is_refused() {
    let puppet = Puppet::that(says(200, "", b"{}")).await;
    let router = Routing::before(&[puppet.address], options()).await;
    let post = "POST /embed HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n";
    let second = "GET /info HTTP/1.1\r\nhost: test\r\n\r\n";
    for bytes in [
        format!("{post}content-length: 4\r\ncontent-length: 44\r\n\r\nabcd{second}"),
        format!("{post}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{second}"),
        format!("{post}content-length: +4\r\n\r\nabcd{second}"),
        format!("{post}content-length: -1\r\n\r\n{second}"),
        format!("{post}content-length : 4\r\n\r\nabcd{second}"),
        format!("{post}transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n{second}"),
    ] {
        let mut stream = TcpStream::connect(router.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let answer = client::read(&mut stream).await;
        assert!(
            answer.as_ref().is_none_or(|answer| answer.status >= 400),
            "{bytes}: {answer:?}"
        );
    }
    // A client that asks for a tunnel may not wait for the answer, and what follows is for the other end of the tunnel.
    let tunnel = format!("CONNECT 10.0.0.1:80 HTTP/1.1\r\nhost: test\r\n\r\n{second}");
    let answer = client::send(router.address, tunnel.as_bytes()).await;
    assert_eq!(
        (answer.status, answer.header("connection")),
        (405, Some("close"))
    );
    assert_eq!(puppet.came().len(), 0, "{:?}", puppet.came());
    // A length beside chunks is not read (RFC 9112, 6.3): the connection ends with the answer, and what may be a second request
    // with it.
    let both =
        format!("{post}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{second}");
    let answer = client::send(router.address, both.as_bytes()).await;
    assert_eq!(
        (answer.status, answer.header("connection"), answer.text()),
        (200, Some("close"), "{}")
    );
    let [came] = &puppet.came()[..] else {
        panic!("one request")
    };
    assert_eq!(
        (
            came.header("content-length"),
            came.header("transfer-encoding")
        ),
        (None, None)
    );
    assert!(came.body.is_empty());
    // A host that the request names is not asked.
    let elsewhere =
        b"GET http://10.0.0.1:9/info HTTP/1.1\r\nhost: 10.0.0.1:9\r\nconnection: close\r\n\r\n";
    assert_eq!(client::send(router.address, elsewhere).await.status, 200);
    let came = puppet.came();
    assert!(came[1].head.starts_with("get /info http/1.1"), "{came:?}");
    assert_eq!(came[1].header("host"), Some(&*puppet.address.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_a_limit_are_refused_in_their_protocol() {
    let puppet = Puppet::that(says(200, "", b"{}")).await;
    let mut limited = options();
    limited.max_body = 100;
    let router = Routing::before(&[puppet.address], limited).await;
    let answer = router
        .embed(&[
            "a text of more than one hundred bytes, with all that is around it as JSON; and more",
        ])
        .await;
    assert_eq!(answer.status, 413);
    assert!(answer.openai_error().0.contains("100 bytes"));
    let answer = post(
        router.address,
        "/embed",
        "x-request-timeout: soon\r\n",
        &json!({}),
    )
    .await;
    assert_eq!(answer.status, 422);
    assert!(answer.tei_error().0.contains("x-request-timeout"));
    let page = router.get("/metrics").await;
    let line = "isovec_route_http_answers_total{status=\"422\"} 1";
    assert!(page.text().contains(line), "{}", page.text());
    assert_eq!(puppet.came().len(), 0);
}
