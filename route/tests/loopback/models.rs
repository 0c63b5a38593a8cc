//! No two models mix.

use std::time::Duration;

use isovec::EmbeddingConfig;
use isovec::config::Pooling;
use serde_json::json;

use crate::running::{Routing, Served, options, post, to};

fn other() -> EmbeddingConfig {
    EmbeddingConfig::default().with_pooling(Pooling::Cls)
}

/// What an answer to a text is of.
async fn fingerprint(router: &Routing) -> String {
    let answer = router.embed(&["a"]).await;
    assert_eq!(answer.status, 200);
    answer.header("x-isovec-fingerprint").unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_with_another_model_is_refused_until_it_has_the_same() {
    let (right, wrong) = (Served::start().await, Served::mortal().await.kill().await);
    let wrong = Served::with(wrong, other()).await;
    let router = Routing::start(vec![to(right.address), to(wrong.address)], options()).await;
    router
        .until(wrong.address, "state", &json!("refused"))
        .await;
    let why = router.of(wrong.address, "why").await;
    assert!(why.as_str().unwrap().contains("/info"), "{why}");
    let wanted = fingerprint(&router).await;
    for _ in 0..20 {
        assert_eq!(fingerprint(&router).await, wanted);
    }
    assert_eq!(router.of(wrong.address, "requests").await, 0);

    let address = wrong.kill().await;
    let now_right = Served::with(address, EmbeddingConfig::default()).await;
    router.until(now_right.address, "state", &json!("in")).await;
    while router.of(now_right.address, "requests").await == 0 {
        assert_eq!(fingerprint(&router).await, wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_model_that_no_probe_has_seen_is_not_given_out() {
    let (stays, changes) = (Served::start().await, Served::mortal().await);
    // The only probes are the first, and those that failures ask for.
    let mut options = options();
    options.probe_interval = Duration::from_secs(3600);
    options.strategy = isovec_route::Strategy::RoundRobin;
    let router = Routing::before(&[stays.address, changes.address], options).await;
    let wanted = fingerprint(&router).await;
    let changes = Served::with(changes.kill().await, other()).await;
    assert_eq!(router.of(changes.address, "state").await, "in");
    for _ in 0..10 {
        assert_eq!(fingerprint(&router).await, wanted);
    }
    assert_eq!(router.of(changes.address, "failures").await, 1);
    router
        .until(changes.address, "state", &json!("refused"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn models_that_all_replicas_have_are_the_new_ones() {
    let (one, two) = (Served::mortal().await, Served::mortal().await);
    let router = Routing::before(&[one.address, two.address], options()).await;
    let before = fingerprint(&router).await;
    let one = Served::with(one.kill().await, other()).await;
    router.until(one.address, "state", &json!("refused")).await;
    assert_eq!(fingerprint(&router).await, before);
    let two = Served::with(two.kill().await, other()).await;
    for replica in [one.address, two.address] {
        router.until(replica, "state", &json!("in")).await;
    }
    assert_ne!(fingerprint(&router).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_not_loaded_and_unloaded_through_a_router() {
    let server = Served::start().await;
    let router = Routing::before(&[server.address], options()).await;
    for (path, status) in [
        ("/v2/repository/models/tiny/unload", 403),
        ("/v2/repository/models/org/tiny/load", 403),
        ("/inference.GRPCInferenceService/RepositoryModelUnload", 200),
        ("/v2/repository/index", 200),
    ] {
        let answer = post(router.address, path, "", &json!({})).await;
        assert_eq!(answer.status, status, "{path}");
        // gRPC has a status of its own: 7 is PERMISSION_DENIED.
        if path.ends_with("Unload") {
            assert_eq!(answer.header("grpc-status"), Some("7"));
        }
    }
}
