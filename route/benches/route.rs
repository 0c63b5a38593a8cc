//! What the router adds to a direct request: one client, one short text a request, over connections that stay open. Both sides take
//! turns in one process, so that whatever else the machine does slows both. Then 10,000 requests of 16 clients, with one of two
//! replicas killed among them: how many were lost.
//!
//! `cargo bench -p isovec-route`, on all-MiniLM-L6-v2 where set-up put it, else on the tiny model. The replicas are
//! `isovec-serve`'s, in the same process.
#![allow(clippy::unwrap_used, reason = "a benchmark ends at the first surprise")]

#[path = "../../serve/benches/common/mod.rs"]
mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use isovec_route::{RouteOptions, Router};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use common::client::Client;
use common::{median, model, serve};

const TEXT: &str = "the quick brown fox jumps over the lazy dog";

const ROUNDS: usize = 2000;
const WARM_UP: usize = 200;

const LOAD: usize = 10_000;
const CLIENTS: usize = 16;

fn main() {
    let runtime = || Builder::new_multi_thread().enable_all().build().unwrap();
    let (main, stays, dies) = (runtime(), runtime(), runtime());
    let embedder = main.block_on(model());
    // Each server has threads of its own.
    let first = stays.block_on(serve(embedder.clone()));
    let second = dies.block_on(serve(embedder.clone()));
    println!("{} on {}", embedder.model_name(), embedder.provider());
    main.block_on(async {
        let router = route(&[first]).await;
        added(first, router).await;
        let router = route(&[first, second]).await;
        lost(router, dies).await;
    });
}

async fn route(replicas: &[SocketAddr]) -> SocketAddr {
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let targets = replicas
        .iter()
        .map(|address| format!("http://{address}").parse().unwrap());
    let router = Router::bind(any, targets.collect(), RouteOptions::default())
        .await
        .unwrap();
    let address = router.address().unwrap();
    tokio::spawn(router.run(std::future::pending()));
    address
}

/// The time that a request takes more through the router.
async fn added(server: SocketAddr, router: SocketAddr) {
    let mut direct = Client::connect(server, TEXT).await;
    let mut routed = Client::connect(router, TEXT).await;
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..WARM_UP + ROUNDS {
        for (client, times) in [&mut direct, &mut routed].into_iter().zip(&mut times) {
            let start = Instant::now();
            let is_vector = client.ask().await;
            let took = start.elapsed();
            if round >= WARM_UP {
                assert!(is_vector, "the replica is in rotation");
                times.push(took);
            }
        }
    }
    let [direct, routed] = times.map(median);
    println!(
        "direct p50 {direct:.1?}, routed p50 {routed:.1?}: {:.1?} more, {:.2} times",
        routed.saturating_sub(direct),
        routed.as_secs_f64() / direct.as_secs_f64(),
    );
}

/// Requests that got no vector while one of two replicas was killed.
async fn lost(router: SocketAddr, dies: Runtime) {
    while !Client::connect(router, TEXT).await.ask().await {}
    let (next, lost) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (next, lost) = (Arc::clone(&next), Arc::clone(&lost));
        clients.spawn(async move {
            let mut client = Client::connect(router, TEXT).await;
            while next.fetch_add(1, Ordering::Relaxed) < LOAD {
                if !client.ask().await {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    while next.load(Ordering::Relaxed) < LOAD / 3 {
        tokio::task::yield_now().await;
    }
    dies.shutdown_background();
    let killed = next.load(Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    println!(
        "{LOAD} requests of {CLIENTS} clients, a replica killed after {killed}: {} lost",
        lost.load(Ordering::Relaxed)
    );
}
