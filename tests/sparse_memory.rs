//! Weights of words need no number for each token and each word at the same time: the memory of a call on the portable engine is
//! counted. ONNX Runtime allocates past the Rust heap; its graph is the same.
#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use isovec::blocking::SparseEmbedder;
use isovec::{EmbeddingConfig, ModelSource};
use isovec_test_models::sparse::{self, MAX};
use isovec_test_support::Which;

/// Words of the vocabulary of BERT.
const WORDS: usize = 30_522;

/// Texts of 64 tokens.
const TEXTS: usize = 32;
const TOKENS: usize = 64;

/// Keeps count of the bytes that are held, and of the most that were.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn took(bytes: usize) {
    MOST.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: passes everything on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = work();
    (result, MOST.load(Relaxed) - before)
}

#[test]
fn no_call_holds_a_number_for_each_token_and_word() {
    let model = sparse::bert_of_words(WORDS);
    let files = sparse::files(&model, MAX);
    let files = files.into_iter().map(|(name, bytes)| (name, bytes.into()));
    let mut config = Which::Portable.configure(
        EmbeddingConfig::default()
            .with_max_batch_size(TEXTS)
            .with_max_batch_tokens(TEXTS * TOKENS),
    );
    // One batch: smaller ones hold less, however they are computed.
    config.runtime.io.batch_optimization = Some(false);
    let source = ModelSource::bytes("a sparse model", files);
    let loaded = SparseEmbedder::builder(source)
        .config(config)
        .load()
        .unwrap();
    assert_eq!(loaded.vocabulary_size(), WORDS);
    let text = "the dog and the cat ".repeat(TOKENS);
    let texts = vec![text; TEXTS];
    loaded.embed(&texts[..1]).unwrap();
    let (set, peak) = peak_of(|| loaded.embed(&texts).unwrap());
    assert!(
        set.token_counts()
            .iter()
            .all(|&count| count as usize == TOKENS)
    );
    assert_eq!(loaded.stats().calls.batches, 2);
    let all = TEXTS * TOKENS * WORDS * size_of::<f32>();
    eprintln!("{peak} bytes at the most; all tokens and words are {all}");
    assert!(peak < all / 4, "{peak} bytes, and all are {all}");
}
