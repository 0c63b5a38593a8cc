//! Many calls and endless texts, on the one thread that a page has.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{join, join_all};
use futures_util::stream;
use isovec::{DynamicBatcher, Embedder, EmbeddingConfig, Shutdown};
use js_sys::{Function, Promise};
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::wasm_bindgen_test;

use crate::load;

const TEXTS: [&str; 4] = [
    "one",
    "two words",
    "three words here",
    "and four words here",
];

async fn tiny(config: EmbeddingConfig) -> Embedder {
    load("/tests/data/tiny-bert", config).await
}

fn near(one: &[f32], other: &[f32]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| (a - b).abs() <= 1e-6)
}

/// Lets the others go on. They may wait for timers, so a microtask would be too soon.
async fn turn() {
    let window = web_sys::window().expect("the suite runs in a page");
    let mut later = |resolve: Function, _| {
        let set = window.set_timeout_with_callback(&resolve);
        set.expect("a timer");
    };
    let turned = JsFuture::from(Promise::new(&mut later)).await;
    turned.expect("a timer that ends");
}

#[wasm_bindgen_test]
async fn calls_join_and_each_gets_its_own_answer() {
    let config = EmbeddingConfig::default()
        .with_preferred_batch_size(TEXTS.len())
        .with_max_wait(Duration::from_secs(30))
        .with_dynamic_batching(false);
    let embedder = tiny(config).await;
    let alone = embedder.embed(TEXTS).await.expect("vectors");
    let batcher = DynamicBatcher::new(&embedder);
    let joined = join_all(TEXTS.map(|text| batcher.embed_one(text))).await;
    for (one, other) in alone.iter().zip(joined) {
        assert!(near(one, &other.expect("a vector")));
    }
    let counts = batcher.counts();
    assert_eq!(
        (counts.batched_texts, counts.direct, counts.texts),
        (4, 0, 0)
    );
}

#[wasm_bindgen_test]
async fn a_wait_for_companions_ends() {
    let config = EmbeddingConfig::default().with_max_wait(Duration::from_millis(5));
    let batcher = DynamicBatcher::new(&tiny(config).await);
    batcher.embed_one("alone").await.expect("a vector");
    assert_eq!(batcher.counts().batches, 1);
}

/// Nothing here ends by time, unless a machine takes a minute for two words.
#[wasm_bindgen_test]
async fn a_full_queue_refuses_and_a_drain_answers() {
    let config = EmbeddingConfig::default()
        .with_max_wait(Duration::from_secs(60))
        .with_max_queue(1);
    let batcher = DynamicBatcher::new(&tiny(config).await);
    let (first, ()) = join(batcher.embed_one("first"), async {
        // After the call was let in.
        while batcher.counts().texts == 0 {
            turn().await;
        }
        let second = batcher.embed_one("second").await;
        assert_eq!(
            second.expect_err("there is room for one").kind(),
            "Overloaded"
        );
        batcher.shutdown(Shutdown::Drain).await;
    })
    .await;
    first.expect("a vector");
    let late = batcher.embed_one("late").await;
    assert_eq!(late.expect_err("nobody is let in").kind(), "ShutDown");
}

#[wasm_bindgen_test]
async fn a_stream_gives_what_a_list_gives() {
    let embedder = tiny(EmbeddingConfig::default()).await;
    let texts: Vec<String> = (0..40).map(|n| "word ".repeat(n % 7 + 1)).collect();
    let list = embedder.embed(&texts).await.expect("vectors");
    let streamed: Vec<_> = embedder.embed_stream(stream::iter(texts)).collect().await;
    assert_eq!(streamed.len(), list.len());
    for (one, other) in list.iter().zip(streamed) {
        assert!(near(one, &other.expect("a vector").vector));
    }
}
