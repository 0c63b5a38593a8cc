//! A model whose files are kept elsewhere, as a page keeps them: it is read a little at a time,
//! and let go when it is loaded.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isovec::blocking::Embedder;
use isovec::source::{ByteSource, Content};
use isovec::{EmbeddingConfig, ModelSource};
use isovec_test_support::Which;

const FILES: [&str; 7] = [
    "config.json",
    "config_sentence_transformers.json",
    "tokenizer.json",
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
    "model.safetensors",
];

/// A file from which no more than so many bytes can be read.
#[derive(Debug)]
struct Elsewhere {
    bytes: Vec<u8>,
    left: AtomicUsize,
    /// The most bytes that were asked for at once.
    largest: Arc<AtomicUsize>,
}

impl ByteSource for Elsewhere {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn read(&self, from: usize, into: &mut [u8]) -> io::Result<()> {
        self.largest.fetch_max(into.len(), Ordering::Relaxed);
        let left = self.left.load(Ordering::Relaxed).checked_sub(into.len());
        let left = left.ok_or_else(|| io::Error::other("the line is dead"))?;
        self.left.store(left, Ordering::Relaxed);
        into.copy_from_slice(&self.bytes[from..from + into.len()]);
        Ok(())
    }
}

/// The files of a folder, the weights kept elsewhere, and the most that was asked of those at once.
fn elsewhere(folder: &Path, readable: usize) -> (ModelSource, Arc<AtomicUsize>) {
    let largest = Arc::new(AtomicUsize::new(0));
    let files = FILES.map(|name| {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let content = if name.ends_with(".safetensors") {
            Content::elsewhere(Elsewhere {
                bytes,
                left: AtomicUsize::new(readable),
                largest: Arc::clone(&largest),
            })
        } else {
            Content::from(bytes)
        };
        (name.to_owned(), content)
    });
    (ModelSource::contents("elsewhere", files), largest)
}

fn load(source: ModelSource) -> isovec::Result<Embedder> {
    let config = Which::Portable.configure(EmbeddingConfig::default());
    Embedder::builder(source).config(config).load()
}

fn same_as_the_folder(folder: &Path, largest_matrix: usize) {
    let texts = ["a text", "and another that is longer"];
    let (source, largest) = elsewhere(folder, usize::MAX);
    let (one, other) = (load(source).unwrap(), load(folder.into()).unwrap());
    assert_eq!(one.fingerprint(), other.fingerprint());
    let vectors = |embedder: &Embedder| embedder.embed(texts).unwrap().as_slice().to_vec();
    assert!(vectors(&one) == vectors(&other));
    let read = largest.load(Ordering::Relaxed);
    assert!(read <= largest_matrix, "{read} bytes at once");
    // The one that is left is the test's own.
    assert_eq!(Arc::strong_count(&largest), 1, "the file is let go");
}

#[test]
fn the_tiny_model() {
    // All its tables are smaller than a piece of one.
    same_as_the_folder(&isovec_test_support::data("tiny-bert"), 64 << 10);
}

#[test]
fn minilm() {
    if let Some(folder) = isovec_test_support::minilm_folder() {
        // A matrix of the feed-forward layers; the table of words has 47 MB.
        same_as_the_folder(&folder, 384 * 1536 * 4);
    }
}

#[test]
fn a_file_that_cannot_be_read_to_its_end_is_an_error_wherever_that_is() {
    let folder = isovec_test_support::data("tiny-bert");
    let size = std::fs::metadata(folder.join("model.safetensors")).unwrap();
    let size = usize::try_from(size.len()).unwrap();
    // The header, the hash over everything, the weights themselves.
    for readable in [0, 6000, size, size * 3 / 2] {
        let (source, _) = elsewhere(&folder, readable);
        let error = load(source).unwrap_err().to_string();
        assert!(error.contains("the line is dead"), "{readable}: {error}");
    }
}
