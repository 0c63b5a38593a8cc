//! Draining, and what the router says of itself.

use std::time::Duration;

use isovec_route::{Error, RouteOptions, Router};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client;
use crate::puppet::{Does, Puppet, says};
use crate::running::{Routing, get, options, post};

/// A client whose request is with a replica that stalls.
async fn inside(router: &Routing, stalls: &Puppet) -> TcpStream {
    let mut stream = TcpStream::connect(router.address).await.unwrap();
    stream
        .write_all(&client::post("/embed", "", b"{}"))
        .await
        .unwrap();
    router.until(stalls.address, "in_flight", &json!(1)).await;
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_router_lives_and_lets_nobody_in() {
    let puppet = Puppet::that(Does::Stalls).await;
    let router = Routing::before(&[puppet.address], options()).await;
    let address = router.address;
    let inside = inside(&router, &puppet).await;
    let ended = router.begin_stop();
    while get(address, "/health/ready").await.status != 503 {}
    assert_eq!(get(address, "/health/live").await.status, 200);
    let refused = post(address, "/embed", "", &json!({})).await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    assert!(refused.tei_error().0.contains("stopping"));
    assert!(!ended.is_finished(), "somebody is inside");
    drop(inside);
    ended.await.unwrap().unwrap();
    assert!(
        TcpStream::connect(address).await.is_err(),
        "the port is closed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_finished_in_time_is_cut_off() {
    let puppet = Puppet::that(Does::Stalls).await;
    let mut options = options();
    options.drain_timeout = Duration::from_millis(20);
    let router = Routing::before(&[puppet.address], options).await;
    let _inside = inside(&router, &puppet).await;
    let error = router.begin_stop().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Cut { requests: 1 }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_the_limit_are_told_to_come_again() {
    let puppet = Puppet::that(Does::Stalls).await;
    let mut options = options();
    options.max_requests = 1;
    let router = Routing::before(&[puppet.address], options).await;
    let _inside = inside(&router, &puppet).await;
    let answer = post(router.address, "/embed", "", &json!({})).await;
    assert_eq!(
        (answer.status, answer.header("retry-after-ms")),
        (429, Some("100"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_count_each_replica() {
    let puppet = Puppet::that(says(200, "", b"[]")).await;
    let router = Routing::before(&[puppet.address], options()).await;
    for _ in 0..3 {
        assert_eq!(router.embed(&["a"]).await.status, 200);
    }
    let page = router.get("/metrics").await;
    assert!(
        page.header("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    for line in [
        format!(
            "isovec_route_replica_requests_total{{replica=\"http://{}\"}} 3",
            puppet.address
        ),
        format!(
            "isovec_route_replica_in_rotation{{replica=\"http://{}\"}} 1",
            puppet.address
        ),
        format!(
            "isovec_route_replica_ejections_total{{replica=\"http://{}\"}} 0",
            puppet.address
        ),
        "isovec_route_http_answer_seconds_count".into(),
    ] {
        assert!(page.text().contains(&line), "{line}: {}", page.text());
    }
    assert!(page.text().ends_with("# EOF\n"));
}

#[tokio::test]
async fn a_router_that_cannot_work_does_not_start() {
    let any = ([127, 0, 0, 1], 0).into();
    let error = Router::bind(any, Vec::new(), RouteOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Options(_)), "{error}");
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let replicas = vec!["http://127.0.0.1:1".parse().unwrap()];
    let error = Router::bind(
        taken.local_addr().unwrap(),
        replicas,
        RouteOptions::default(),
    )
    .await
    .unwrap_err();
    assert!(matches!(error, Error::Bind { .. }), "{error}");
}
