//! Counts the allocations of a warmed `embed` on the Rust heap: the tokenizer's own apart, the same number whatever
//! the number of texts, and far fewer than without pools and binding.
#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec_test_support::Which;
use isovec_tokenize::{Limits, TOKENIZER_FILE, Tokenizer};

/// Counts every request for memory of every thread; ONNX Runtime's own go past it.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: passes everything on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn counted<T>(work: impl FnOnce() -> T) -> u64 {
    let before = ALLOCATIONS.load(Relaxed);
    let result = work();
    let count = ALLOCATIONS.load(Relaxed) - before;
    drop(result);
    count
}

/// The numbers of texts that calls are made with.
const TEXTS: [usize; 3] = [16, 128, 1024];

/// Texts that the SDK gives the tokenizer at a time.
const SLICE: usize = 64;

/// What a warmed call may allocate for itself, the tokenizer's own apart: its lists and the result.
const ALLOWED: u64 = 20;

/// The times that a pool looks at the machine's memory, at the most, and what that allocates.
const LOOKS_A_SECOND: f64 = 10.0;
const ALLOCATIONS_A_LOOK: f64 = 8.0;

/// What calls were counted to allocate beside the tokenizer, by their number of texts, and the
/// seconds that they took.
#[derive(Debug)]
struct Counted {
    allocations: [u64; 3],
    seconds: [f64; 3],
}

fn count(folder: &Path, config: EmbeddingConfig) -> Counted {
    let embedder = Embedder::builder(folder).config(config).load().unwrap();
    let tokenizer = {
        let bytes = std::fs::read(folder.join(TOKENIZER_FILE)).unwrap();
        let files = BTreeMap::from([(TOKENIZER_FILE.to_owned(), bytes.into())]);
        Tokenizer::from_files(&files, "the test").unwrap()
    };
    let limits = Limits {
        max_tokens: Some(embedder.max_length()),
        truncation_side: tokenizer.truncation_side(),
    };
    let texts = isovec_test_support::mixed_texts(TEXTS[2]);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for n in TEXTS {
        embedder.embed(&texts[..n]).unwrap();
    }
    let tokenize = |texts: &[&str]| {
        for slice in texts.chunks(SLICE) {
            tokenizer.encode(slice, &limits).unwrap();
        }
    };
    tokenize(&texts);

    let mut seconds = [0.0; 3];
    let allocations = [0, 1, 2].map(|at| {
        let texts = &texts[..TEXTS[at]];
        let started = Instant::now();
        let all = counted(|| embedder.embed(texts).unwrap());
        seconds[at] = started.elapsed().as_secs_f64();
        let tokenizer = counted(|| tokenize(texts));
        println!(
            "{:>5} texts: {all:>5} allocations, the tokenizer's {tokenizer:>5}",
            texts.len()
        );
        all.checked_sub(tokenizer).unwrap()
    });
    Counted {
        allocations,
        seconds,
    }
}

#[test]
fn a_warmed_call_allocates_the_same_for_any_number_of_texts() {
    // SAFETY: the only test of this program, before any other thread is started. One thread for
    // the tokenizer: how rayon divides work among several, and what it takes for that, varies.
    unsafe { std::env::set_var("RAYON_NUM_THREADS", "1") };
    if !isovec_test_support::engines().contains(&Which::OnnxRuntime) {
        return;
    }
    let folders = [
        Some(isovec_test_support::data("tiny-bert")),
        isovec_test_support::minilm_folder(),
    ];
    for folder in folders.into_iter().flatten() {
        println!("{}", folder.display());
        let config = Which::OnnxRuntime
            .configure(EmbeddingConfig::default())
            .with_intra_op_threads(1)
            .with_pool_size(1);

        // Looks at the machine's memory go by the clock, so here they are off, and counted below.
        let still = config
            .clone()
            .with_memory_pressure_detection(false)
            .with_memory_prediction(false);
        let pooled = count(&folder, still.clone());
        let [few, some, many] = pooled.allocations;
        println!("pools and binding: {pooled:?}");
        assert!(few == some && some == many, "{pooled:?}");
        assert!(many <= ALLOWED, "{pooled:?}");

        let plain = still
            .with_memory_pool(false)
            .with_io_binding(false)
            .with_zero_copy(false);
        let plain = count(&folder, plain);
        println!("neither: {plain:?}");
        assert!(many * 10 <= plain.allocations[2], "{pooled:?} {plain:?}");

        let looking = count(&folder, config);
        println!("with looks at the memory: {looking:?}");
        for (allocations, seconds) in looking.allocations.into_iter().zip(looking.seconds) {
            let looks = (seconds * LOOKS_A_SECOND).ceil() + 1.0;
            let most = ALLOWED + (looks * ALLOCATIONS_A_LOOK) as u64;
            assert!(allocations <= most, "{looking:?}");
        }
    }
}
