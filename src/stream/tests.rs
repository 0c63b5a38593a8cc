use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use futures_util::FutureExt;
use isovec_engine::cancel::Cancel;

use super::*;
use crate::backend::wait;
use crate::model::counting::*;

fn embedder() -> (Embedder, Arc<Counting>) {
    let (model, engine) = model(Counting::free());
    (Embedder { model }, engine)
}

fn wanted(words: &[u32]) -> Vec<f32> {
    let ids: Vec<i64> = words.iter().copied().map(i64::from).collect();
    vector(&ids).to_vec()
}

/// Word `n` of an endless list.
fn word(n: usize) -> u32 {
    (n % 80) as u32 + 1
}

#[test]
fn results_come_in_order_however_many_there_are() {
    let (embedder, _engine) = embedder();
    let texts = stream::iter((0..5000).map(|n| text(&vec![word(n); n % 3 + 1])));
    let results: Vec<Result<Embedded>> = wait(embedder.embed_stream(texts).collect());
    assert_eq!(results.len(), 5000);
    for (n, result) in results.into_iter().enumerate() {
        let embedded = result.unwrap();
        assert_eq!(embedded.vector, wanted(&vec![word(n); n % 3 + 1]));
        assert_eq!(
            (embedded.tokens, embedded.truncated),
            ((n % 3 + 1) as u32, false)
        );
    }
    let none = stream::empty::<String>();
    assert!(wait(embedder.embed_stream(none).next()).is_none());
}

#[test]
fn what_a_stream_gives_makes_the_set_that_a_call_gives() {
    let (embedder, _engine) = embedder();
    let texts: Vec<String> = (0..20).map(|n| text(&vec![word(n); n % 9 + 1])).collect();
    let whole = wait(embedder.embed(&texts)).unwrap();
    let mut set = embedder.empty_set(&EmbedOptions::default()).unwrap();
    assert!(set.is_empty());
    for result in wait(
        embedder
            .embed_stream(stream::iter(texts))
            .collect::<Vec<_>>(),
    ) {
        set.push(result.unwrap()).unwrap();
    }
    assert_eq!(set, whole);
}

#[test]
fn texts_are_read_as_results_are_taken() {
    let (embedder, _engine) = embedder();
    let read = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&read);
    let endless = stream::iter((0..).map(move |n| {
        counter.fetch_add(1, SeqCst);
        text(&[word(n)])
    }));
    let mut results = Box::pin(embedder.embed_stream(endless));
    for n in 0..10_000 {
        let embedded = wait(results.next()).unwrap().unwrap();
        assert_eq!(embedded.vector, wanted(&[word(n)]));
        let ahead = read.load(SeqCst) - n;
        assert!(
            ahead <= (AT_ONCE + 1) * windows::ITEMS,
            "{ahead} texts ahead"
        );
    }
}

#[test]
fn long_texts_make_small_windows() {
    let (embedder, _engine) = embedder();
    let read = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&read);
    let megabyte = format!("w7{}", " ".repeat(1 << 20));
    let endless = stream::iter(std::iter::repeat_with(move || {
        counter.fetch_add(1, SeqCst);
        megabyte.clone()
    }));
    let mut results = Box::pin(embedder.embed_stream(endless));
    assert_eq!(wait(results.next()).unwrap().unwrap().vector, wanted(&[7]));
    assert!(read.load(SeqCst) <= AT_ONCE + 1);
}

#[test]
fn a_slow_stream_is_not_waited_for() {
    let (embedder, _engine) = embedder();
    let slow = stream::iter([text(&[1]), text(&[2])]).chain(stream::pending());
    let mut results = Box::pin(embedder.embed_stream(slow));
    assert_eq!(wait(results.next()).unwrap().unwrap().vector, wanted(&[1]));
    assert_eq!(wait(results.next()).unwrap().unwrap().vector, wanted(&[2]));
    assert!(results.next().now_or_never().is_none());
}

#[test]
fn a_text_that_fails_does_so_in_its_place() {
    let (embedder, _engine) = embedder();
    let texts = (0..2500).map(|n| match n {
        700 | 2100 => text(&[NAN]),
        701 => text(&[POISON]),
        1500 => String::new(),
        n => text(&[word(n)]),
    });
    let results: Vec<Result<Embedded>> = wait(embedder.embed_stream(stream::iter(texts)).collect());
    assert_eq!(results.len(), 2500);
    for (n, result) in results.into_iter().enumerate() {
        match (n, result) {
            (700 | 2100, Err(Error::NotFinite { text })) => assert_eq!(text, n),
            (701, Err(error)) => assert_eq!(error.kind(), "Runtime"),
            (1500, Err(Error::NoTokens { text })) => assert_eq!(text, n),
            (n, result) => assert_eq!(result.unwrap().vector, wanted(&[word(n)])),
        }
    }
}

#[test]
fn a_stream_that_breaks_gives_what_came_before_and_then_its_error() {
    let (embedder, _engine) = embedder();
    let broken = Error::InvalidEmbeddings {
        origin: "the stream".into(),
        detail: "broken".into(),
    };
    let texts = stream::iter([Ok(text(&[1])), Ok(text(&[2])), Err(broken), Ok(text(&[3]))]);
    let results: Vec<_> = wait(
        embedder
            .try_embed_stream(texts, StreamOptions::default())
            .collect(),
    );
    assert_eq!(results.len(), 3);
    assert_eq!(results[1].as_ref().unwrap().vector, wanted(&[2]));
    assert_eq!(results[2].as_ref().unwrap_err().kind(), "InvalidEmbeddings");
}

#[test]
fn a_cancellation_is_the_last_item() {
    let (embedder, _engine) = embedder();
    let cancel = Cancel::new();
    let options =
        StreamOptions::default().with_embed(EmbedOptions::default().with_cancel(cancel.clone()));
    let endless = stream::iter((0..).map(|n| Ok::<_, Error>(text(&[word(n)]))));
    let mut results = Box::pin(embedder.try_embed_stream(endless, options));
    wait(results.next()).unwrap().unwrap();
    cancel.cancel();
    let rest: Vec<Result<Embedded>> = wait(results.collect());
    let (last, before) = rest.split_last().unwrap();
    assert!(last.as_ref().unwrap_err().is_cancelled());
    assert!(before.len() <= AT_ONCE * windows::ITEMS);
    assert!(before.iter().all(Result::is_ok));
}

#[test]
fn nothing_comes_after_the_last_item_though_the_source_is_open() {
    let (embedder, _engine) = embedder();
    let cancel = Cancel::new();
    cancel.cancel();
    let options = StreamOptions::default().with_embed(EmbedOptions::default().with_cancel(cancel));
    let open = stream::iter([Ok::<_, Error>(text(&[1]))]).chain(stream::pending());
    let mut results = Box::pin(embedder.try_embed_stream(open, options));
    assert!(wait(results.next()).unwrap().unwrap_err().is_cancelled());
    assert!(wait(results.next()).is_none());
}

#[test]
fn progress_counts_texts_tokens_and_failures() {
    let (embedder, _engine) = embedder();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&seen);
    let options = StreamOptions::default()
        .with_progress(move |progress| heard.lock().unwrap().push(progress));
    let texts =
        (0..1500).map(|n| Ok::<_, Error>(if n == 3 { text(&[NAN]) } else { text(&[1, 2]) }));
    let results: Vec<_> = wait(
        embedder
            .try_embed_stream(stream::iter(texts), options)
            .collect(),
    );
    assert_eq!(results.len(), 1500);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1500_usize.div_ceil(windows::ITEMS));
    assert_eq!(
        seen.last(),
        Some(&StreamProgress {
            texts: 1500,
            tokens: 2 * 1499,
            failed: 1
        })
    );
}

#[test]
fn a_panic_in_the_callback_reaches_who_polls_and_nobody_else() {
    let (embedder, _engine) = embedder();
    let texts = || stream::iter((0..2500).map(|n| Ok::<_, Error>(text(&[word(n)]))));
    let options = StreamOptions::default().with_progress(|progress: StreamProgress| {
        assert!(progress.texts <= windows::ITEMS as u64, "as it was told to");
    });
    let mut panicking = Box::pin(embedder.try_embed_stream(texts(), options));
    let mut other = Box::pin(embedder.try_embed_stream(texts(), StreamOptions::default()));
    let first = wait(other.next()).unwrap().unwrap();
    assert_eq!(first.vector, wanted(&[word(0)]));

    let mut came = 0;
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        while let Some(result) = wait(panicking.next()) {
            result.unwrap();
            came += 1;
        }
    }));
    let message = caught.unwrap_err();
    assert_eq!(message.downcast_ref(), Some(&"as it was told to"));
    // The window before it was given out.
    assert_eq!(came, windows::ITEMS);
    drop(panicking);

    let rest: Vec<Result<Embedded>> = wait(other.collect());
    assert_eq!(rest.len(), 2499);
    assert!(rest.iter().all(Result::is_ok));
    wait(embedder.embed([text(&[1])])).unwrap();
}

#[test]
fn a_text_that_no_memory_holds_fails_in_its_place() {
    let mut engine = Counting::free();
    engine.bytes_per_position = Some(10);
    let mut memory = isovec_engine::config::MemoryConfig::default();
    memory.memory_limit = Some(100);
    let (model, _engine) = model_within(engine, &memory);
    let embedder = Embedder { model };
    let texts = (0..3000).map(|n| match n {
        1500 => text(&[9; 8]),
        n => text(&[word(n)]),
    });
    let results: Vec<_> = wait(embedder.embed_stream(stream::iter(texts)).collect());
    assert_eq!(results.len(), 3000);
    for (n, result) in results.iter().enumerate() {
        match result {
            Ok(embedded) => assert_eq!(embedded.vector, wanted(&[word(n)])),
            Err(error) => assert_eq!((n, error.kind()), (1500, "InputTooLarge")),
        }
    }
    assert!(results[1500].is_err());
}

/// Ten million texts through an engine that only counts: what the process holds after the first
/// hundred thousand is what it holds in the end. Minutes; `cargo xtask bench stream` runs it.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "takes minutes; `cargo xtask bench stream` runs it"]
fn ten_million_texts_take_no_more_memory_than_a_hundred_thousand() {
    fn peak_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
    let mut engine = Counting::free();
    engine.keeps_shapes = false;
    let embedder = Embedder {
        model: model(engine).0,
    };
    let texts = stream::iter((0..10_000_000).map(|n| text(&vec![word(n); n % 7 + 1])));
    let mut results = Box::pin(embedder.embed_stream(texts));
    let mut early = 0;
    let mut count = 0_u64;
    while let Some(result) = wait(results.next()) {
        result.unwrap();
        count += 1;
        if count == 100_000 {
            early = peak_kib();
        }
    }
    let late = peak_kib();
    println!("peak after 100,000 texts: {early} KiB; after {count}: {late} KiB");
    assert_eq!(count, 10_000_000);
    // A peak is the worst coincidence of two windows so far, and moves by a few hundred KiB.
    assert!(late <= early + 512, "{early} KiB, then {late} KiB");
}
