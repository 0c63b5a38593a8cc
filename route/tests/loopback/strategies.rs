//! Which replica gets how much.

use std::time::Duration;

use isovec_route::Strategy;
use serde_json::json;

use crate::puppet::{Does, Puppet, says};
use crate::running::{Routing, options, post};

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_as_many_as_weights_say() {
    let (light, heavy) = (
        Puppet::that(says(200, "", b"[]")).await,
        Puppet::that(says(200, "", b"[]")).await,
    );
    let targets = vec![
        format!("http://{}", light.address).parse().unwrap(),
        format!("http://{}=3", heavy.address).parse().unwrap(),
    ];
    let mut options = options();
    options.strategy = Strategy::RoundRobin;
    let router = Routing::start(targets, options).await;
    for replica in [light.address, heavy.address] {
        router.until(replica, "state", &json!("in")).await;
    }
    for _ in 0..20 {
        assert_eq!(router.embed(&["a"]).await.status, 200);
    }
    assert_eq!((light.came().len(), heavy.came().len()), (5, 15));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_less_loaded_replica_is_asked() {
    let (busy, idle) = (
        Puppet::that(Does::Stalls).await,
        Puppet::that(says(200, "", b"[]")).await,
    );
    let router = Routing::before(&[busy.address, idle.address], options()).await;
    // Sooner or later one goes to the puppet that stalls, and stays there.
    let (address, mut sent) = (router.address, Vec::new());
    while busy.came().is_empty() {
        let body = json!({"inputs": "a"});
        sent.push(tokio::spawn(async move {
            post(address, "/embed", "", &body).await
        }));
        while idle.came().len() + busy.came().len() < sent.len() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        router.until(idle.address, "in_flight", &json!(0)).await;
    }
    let before = busy.came().len();
    for _ in 0..20 {
        assert_eq!(router.embed(&["a"]).await.status, 200);
    }
    assert_eq!(busy.came().len(), before);
    sent.iter().for_each(tokio::task::JoinHandle::abort);
}
