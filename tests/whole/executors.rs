//! The same calls on executors that have nothing in common: isovec brings its own threads and
//! timers, and asks an executor for nothing but to be polled when it was woken.

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use isovec::{DynamicBatcher, Embedder, EmbeddingConfig, Shutdown, blocking};
use isovec_test_support::{Which, engines, mixed_texts, tiny_model};

/// Every way in that waits, checked against the blocking one.
async fn everything(embedder: Embedder, expected: Vec<Vec<f32>>) {
    let texts = mixed_texts(expected.len());
    let close = |vector: &[f32], expected: &[f32]| {
        let differences = vector.iter().zip(expected).map(|(a, b)| (a - b).abs());
        assert!(differences.fold(0.0, f32::max) <= 1e-6);
    };
    let embedded = embedder.embed(&texts).await.unwrap();
    for (vector, expected) in embedded.iter().zip(&expected) {
        close(vector, expected);
    }
    let batcher = DynamicBatcher::new(&embedder);
    let calls = join_all(texts.iter().map(|text| batcher.embed_one(text))).await;
    for (vector, expected) in calls.into_iter().zip(&expected) {
        close(&vector.unwrap(), expected);
    }
    batcher.shutdown(Shutdown::Drain).await;
    let mut streamed = Box::pin(embedder.embed_stream(stream::iter(texts)));
    for expected in &expected {
        close(&streamed.next().await.unwrap().unwrap().vector, expected);
    }
    assert!(streamed.next().await.is_none());
}

fn each(run: impl Fn(Embedder, Vec<Vec<f32>>)) {
    for which in engines() {
        let blocking = load(which);
        let expected = blocking.embed(mixed_texts(24)).unwrap().into_vecs();
        run(blocking.into(), expected);
    }
}

fn load(which: Which) -> blocking::Embedder {
    let config = which.configure(EmbeddingConfig::default());
    blocking::Embedder::builder(tiny_model())
        .config(config)
        .load()
        .unwrap()
}

#[test]
fn tokio_with_threads() {
    // Without its timers and its reactor: nothing of ours uses them.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    each(|embedder, expected| {
        let task = runtime.spawn(everything(embedder, expected));
        runtime.block_on(task).unwrap();
    });
}

#[test]
fn tokio_on_one_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    each(|embedder, expected| runtime.block_on(everything(embedder, expected)));
}

#[test]
fn smol() {
    each(|embedder, expected| smol::block_on(smol::spawn(everything(embedder, expected))));
}

#[test]
fn no_executor_at_all() {
    each(|embedder, expected| pollster::block_on(everything(embedder, expected)));
}
