//! What the server adds to the library's own time: one client, one short text a request, over a connection that stays open. Both
//! sides take turns in one process, so that whatever else the machine does slows both.
//!
//! `cargo bench -p isovec-serve --bench serve`, on all-MiniLM-L6-v2 where set-up put it, else on the tiny model.
#![allow(clippy::unwrap_used, reason = "a benchmark ends at the first surprise")]

mod common;

use std::time::Instant;

use common::client::Client;
use common::{median, model, serve};

const TEXT: &str = "the quick brown fox jumps over the lazy dog";

const ROUNDS: usize = 2000;
const WARM_UP: usize = 200;

#[tokio::main]
async fn main() {
    let embedder = model().await;
    let address = serve(embedder.clone()).await;

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
