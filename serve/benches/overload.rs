//! Ten times as many requests as the machine can serve: how many are served, how soon, and how soon the others are told.
//!
//! First so many clients ask that the machine is never idle, each again when it is answered: that is what it can serve. Then requests
//! come at ten times that rate, whether others are answered or not, each with twice `batching.target_latency` as its time. Both take
//! turns in one process, so that whatever else the machine does slows both. Clients take their part of the processor: with texts this
//! long it is small.
//!
//! `cargo bench -p isovec-serve --bench overload`, on all-MiniLM-L6-v2 where set-up put it, else on the tiny model.
#![allow(clippy::unwrap_used, reason = "a benchmark ends at the first surprise")]

mod common;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use common::client::Client;
use common::{median, model, serve};

/// The default of `batching.target_latency`.
const TARGET: Duration = Duration::from_millis(100);

const ROUNDS: usize = 15;
const EACH: Duration = Duration::from_secs(3);

/// Clients that ask again and again.
const CLOSED: usize = 16;

/// How many times as many requests come as can be served.
const TIMES: f64 = 10.0;

/// What came of requests: the times of each status.
type Times = BTreeMap<u16, Vec<Duration>>;

#[tokio::main]
async fn main() {
    let embedder = model().await;
    println!("{} on {}", embedder.model_name(), embedder.provider());
    let address = serve(embedder).await;

    let text = "the quick brown fox jumps over the lazy dog ".repeat(14);
    let head = format!("x-request-timeout: {}ms\r\n", 2 * TARGET.as_millis());
    // What it learns of its own speed, it learns here.
    closed(address, &text).await;
    let (mut parts, mut all) = (Vec::new(), Times::new());
    for _ in 0..ROUNDS {
        let can = closed(address, &text).await;
        let (served, times) = open(address, &text, &head, can * TIMES).await;
        println!("{can:.0} requests a second can be served; of ten times as many {served:.0} were");
        parts.push(served / can);
        for (status, times) in times {
            all.entry(status).or_default().extend(times);
        }
    }
    println!(
        "served of what can be, at the median of {ROUNDS} rounds: {:.3}",
        median(parts)
    );
    for (status, mut times) in all {
        times.sort_unstable();
        let at = |part: f64| times[(times.len() as f64 * part) as usize];
        println!(
            "{status}: {} requests, p50 {:.2?}, p99 {:.2?}, p99.9 {:.2?}",
            times.len(),
            at(0.5),
            at(0.99),
            at(0.999)
        );
    }
}

/// Requests a second that are served when the machine is never idle.
async fn closed(address: SocketAddr, text: &str) -> f64 {
    let clients = (0..CLOSED).map(|_| Client::connect(address, text));
    let clients = join_all(clients).await;
    let start = Instant::now();
    let end = start + EACH;
    let served = clients.into_iter().map(|mut client| async move {
        let mut served = 0_u32;
        while Instant::now() < end {
            served += u32::from(client.ask().await);
        }
        served
    });
    let served: u32 = join_all(served).await.into_iter().sum();
    // The last ones were answered after the end.
    f64::from(served) / start.elapsed().as_secs_f64()
}

/// Sends requests at a rate, and waits for all answers. Says how many a second were served until the last one was.
async fn open(address: SocketAddr, text: &str, head: &str, rate: f64) -> (f64, Times) {
    let idle = Arc::<Mutex<Vec<Client>>>::default();
    let mut asked = JoinSet::new();
    let start = tokio::time::Instant::now();
    let mut sent = 0_u32;
    while start.elapsed() < EACH {
        sleep_until(start + Duration::from_secs_f64(f64::from(sent) / rate)).await;
        sent += 1;
        let (idle, text, head) = (Arc::clone(&idle), text.to_owned(), head.to_owned());
        asked.spawn(async move {
            let client = idle.lock().unwrap().pop();
            let mut client = match client {
                Some(client) => client,
                None => Client::with_head(address, &text, &head).await,
            };
            let since = Instant::now();
            let status = client.status().await;
            let took = since.elapsed();
            idle.lock().unwrap().push(client);
            (status, took, start.elapsed())
        });
    }
    let (mut times, mut last) = (Times::new(), Duration::ZERO);
    while let Some(answered) = asked.join_next().await {
        let (status, took, at) = answered.unwrap();
        if status == 200 {
            last = last.max(at);
        }
        times.entry(status).or_default().push(took);
    }
    let served = times.get(&200).map_or(0, Vec::len) as f64;
    (served / last.as_secs_f64().max(f64::MIN_POSITIVE), times)
}
