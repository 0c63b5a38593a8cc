//! What the server adds to the library's own time: one client, one short text a request, over a connection that stays open. Both
//! sides take turns in one process, so that whatever else the machine does slows both.
//!
//! `cargo bench -p isovec-serve --bench serve`, on all-MiniLM-L6-v2 where set-up put it, else on the tiny model.
#![allow(clippy::unwrap_used, reason = "a benchmark ends at the first surprise")]

mod client;

use std::net::Ipv4Addr;
use std::time::Instant;

use isovec::{Embedder, EmbeddingConfig};
use isovec_serve::{ServeOptions, Server};
use isovec_test_support::{Which, minilm, tiny_model};

use client::{Client, median};

const TEXT: &str = "the quick brown fox jumps over the lazy dog";

const ROUNDS: usize = 2000;
const WARM_UP: usize = 200;

fn main() {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(measure());
}

async fn measure() {
    let source = minilm().unwrap_or_else(tiny_model);
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let embedder = Embedder::builder(source).config(config).load().await;
    let embedder = embedder.unwrap();
    let options = ServeOptions::default();
    let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), options);
    let server = server.await.unwrap();
    let address = server.address().unwrap();
    let served = embedder.clone();
    tokio::spawn(server.run(async { Ok(served) }, std::future::pending()));

    let mut client = Client::connect(address, TEXT).await;
    let (mut library, mut http) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        let start = Instant::now();
        embedder.embed_one(TEXT).await.unwrap();
        let alone = start.elapsed();
        let start = Instant::now();
        let is_vector = client.ask().await;
        let asked = start.elapsed();
        if round >= WARM_UP {
            assert!(is_vector, "the model is there");
            library.push(alone);
            http.push(asked);
        }
    }
    let (alone, asked) = (median(library), median(http));
    println!(
        "{} on {}: library p50 {alone:.1?}, one client p50 {asked:.1?}: {:.1?} more, {:.2} times",
        embedder.model_name(),
        embedder.provider(),
        asked.saturating_sub(alone),
        asked.as_secs_f64() / alone.as_secs_f64(),
    );
}
