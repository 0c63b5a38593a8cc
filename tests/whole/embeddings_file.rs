//! The embeddings file between the SDKs: what `isovec embed` wrote and what the npm package wrote
//! are one set, with the same hits. `bindings/js/tests/file.test.mjs` holds the other half.

use std::path::PathBuf;

use isovec::blocking::{MultiVectorEmbedder, SparseEmbedder};
use isovec::{
    CompactEmbeddings, CompactForm, EmbeddingConfig, Embeddings, Hit, MultiVectorEmbeddings,
    SparseEmbeddings,
};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/embeddings")
        .join(name)
}

#[test]
fn both_sdks_read_what_the_other_wrote_and_find_the_same() {
    let native = Embeddings::load(data("native.safetensors")).unwrap();
    let npm = Embeddings::load(data("npm.safetensors")).unwrap();
    assert_eq!(native, npm);
    assert_eq!(native.labels().unwrap()[3], "Δοκιμή: größer, 深い海, 🐈");

    let hits = std::fs::read_to_string(data("hits.json")).unwrap();
    let hits: Vec<Vec<Hit>> = serde_json::from_str(&hits).unwrap();
    assert_eq!(native.search(&npm, 3).unwrap(), hits);
}

#[test]
fn what_is_written_is_what_was_read() {
    let bytes = std::fs::read(data("native.safetensors")).unwrap();
    let set = Embeddings::from_bytes(&bytes).unwrap();
    assert_eq!(set.to_bytes().unwrap(), bytes);
}

/// `ISOVEC_WRITE_LISTS=1` writes the files and the hits anew, to which JavaScript is held as well.
#[test]
fn compact_sets_are_the_same_bytes_in_both_sdks() {
    let set = Embeddings::load(data("native.safetensors")).unwrap();
    let forms = [CompactForm::Int8, CompactForm::Binary];
    let writes = std::env::var_os("ISOVEC_WRITE_LISTS").is_some();
    let mut hits = Vec::new();
    for form in forms {
        let compact = set.compact(form).unwrap();
        let file = data(&format!("{form}.safetensors"));
        if writes {
            compact.save(&file).unwrap();
        }
        assert_eq!(compact.to_bytes().unwrap(), std::fs::read(&file).unwrap());
        assert_eq!(CompactEmbeddings::load(&file).unwrap(), compact);
        hits.push(compact.search(&set, 3).unwrap());
    }
    if writes {
        let text = serde_json::to_string_pretty(&hits).unwrap() + "\n";
        std::fs::write(data("compact-hits.json"), text).unwrap();
    }
    let expected = std::fs::read_to_string(data("compact-hits.json")).unwrap();
    let expected: Vec<Vec<Vec<Hit>>> = serde_json::from_str(&expected).unwrap();
    assert_eq!(hits, expected);
}

/// `ISOVEC_WRITE_LISTS=1` writes the files and the hits anew. JavaScript reads the files, finds the same, and writes the same bytes
/// (`bindings/js/tests/sparse.test.mjs` and its neighbour).
#[test]
fn sets_of_words_and_of_tokens_are_the_same_bytes_in_both_sdks() {
    let texts = [
        "the dog is an animal",
        "",
        "money in the bank",
        "a cat and a dog",
    ];
    if std::env::var_os("ISOVEC_WRITE_LISTS").is_some() {
        // A file says which model made it: a folder that means the same on every machine.
        let config = isovec_test_support::Which::Portable.configure(EmbeddingConfig::default());
        let words = SparseEmbedder::builder("tests/data/tiny-splade");
        let words = words.config(config.clone()).load().unwrap();
        let tokens = MultiVectorEmbedder::builder("tests/data/tiny-colbert");
        let tokens = tokens.config(config).load().unwrap();
        let passages = tokens.embed_passages(texts).unwrap();
        let compact = passages.compact(CompactForm::Int8);
        let sparse = words.embed(texts).unwrap();
        sparse.save(data("sparse.safetensors")).unwrap();
        passages.save(data("tokens.safetensors")).unwrap();
        compact.save(data("tokens-int8.safetensors")).unwrap();
        let binary = passages.compact(CompactForm::Binary);
        binary.save(data("tokens-binary.safetensors")).unwrap();
    }
    let bytes = |name: &str| std::fs::read(data(name)).unwrap();
    let sparse = SparseEmbeddings::load(data("sparse.safetensors")).unwrap();
    assert_eq!(sparse.to_bytes().unwrap(), bytes("sparse.safetensors"));
    let of_tokens = MultiVectorEmbeddings::load(data("tokens.safetensors")).unwrap();
    assert_eq!(of_tokens.to_bytes().unwrap(), bytes("tokens.safetensors"));
    let compact = [CompactForm::Int8, CompactForm::Binary].map(|form| of_tokens.compact(form));
    let [int8, binary] = &compact;
    assert_eq!(int8.to_bytes().unwrap(), bytes("tokens-int8.safetensors"));
    assert_eq!(
        binary.to_bytes().unwrap(),
        bytes("tokens-binary.safetensors")
    );
    let hits = [
        sparse.search(&sparse, 3).unwrap(),
        of_tokens.search(&of_tokens, 3).unwrap(),
        int8.search(&of_tokens, 3).unwrap(),
        binary.search(&of_tokens, 3).unwrap(),
    ];
    let file = data("text-hits.json");
    if std::env::var_os("ISOVEC_WRITE_LISTS").is_some() {
        let text = serde_json::to_string_pretty(&hits).unwrap() + "\n";
        std::fs::write(&file, text).unwrap();
    }
    let expected: Vec<Vec<Vec<Hit>>> =
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let counts = |sets: &[Vec<Vec<Hit>>]| -> Vec<Vec<usize>> {
        let of_one = |set: &Vec<Vec<Hit>>| set.iter().map(Vec::len).collect();
        sets.iter().map(of_one).collect()
    };
    assert_eq!(counts(&hits), counts(&expected));
    for (own, wanted) in hits
        .iter()
        .flatten()
        .flatten()
        .zip(expected.iter().flatten().flatten())
    {
        assert_eq!(own.index, wanted.index);
        assert!(
            (own.score - wanted.score).abs() <= 1e-5,
            "{own:?} {wanted:?}"
        );
    }
}

/// How files are damaged; `bindings/js/tests/mutations.test.mjs` makes the same ones.
#[derive(serde::Deserialize)]
struct Mutations {
    seed: u32,
    rounds: usize,
    bytes: Vec<u8>,
    replacements: Vec<(String, String)>,
}

/// Files whose verdicts are one line.
const BLOCK: usize = 100;

/// Marsaglia's xorshift with 32 bits.
struct Random(u32);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 as usize % end
    }
}

fn mutated(original: &[u8], how: &Mutations, next: &mut Random) -> Vec<u8> {
    let mut file = original.to_vec();
    for _ in 0..=next.below(3) {
        if file.is_empty() {
            break;
        }
        match next.below(9) {
            0 => {
                let at = next.below(file.len());
                file[at] ^= 1 << next.below(8);
            }
            1 => {
                let at = next.below(file.len());
                file[at] = how.bytes[next.below(how.bytes.len())];
            }
            2 => file.truncate(next.below(file.len())),
            3 => {
                let at = next.below(file.len() + 1);
                file.insert(at, how.bytes[next.below(how.bytes.len())]);
            }
            4 => {
                let at = next.below(file.len());
                let end = file.len().min(at + 1 + next.below(8));
                file.drain(at..end);
            }
            _ => {
                let which = next.below(how.replacements.len());
                let (from, to) = &how.replacements[which];
                let at = file
                    .windows(from.len())
                    .position(|part| part == from.as_bytes());
                let Some(at) = at.filter(|&at| at >= 8) else {
                    continue;
                };
                file.splice(at..at + from.len(), to.bytes());
                let length = u64::from_le_bytes(file[..8].try_into().expect("eight bytes"));
                let length = length
                    .wrapping_add(to.len() as u64)
                    .wrapping_sub(from.len() as u64);
                file[..8].copy_from_slice(&length.to_le_bytes());
            }
        }
    }
    file
}

/// Where FNV-1a with 32 bits begins.
const FNV: u32 = 0x811c_9dc5;

/// FNV-1a with 32 bits.
struct Fnv(u32);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0]);
    }

    /// Everything that a set says.
    fn set(&mut self, set: &Embeddings) {
        self.text(&format!("{} {}", set.len(), set.dim()));
        for value in set.as_slice() {
            self.bytes(&value.to_le_bytes());
        }
        for count in set.token_counts() {
            self.bytes(&count.to_le_bytes());
        }
        for &truncated in set.truncated() {
            self.bytes(&[truncated.into()]);
        }
        match set.labels() {
            None => self.text("none"),
            Some(labels) => {
                self.text("labels");
                labels.iter().for_each(|label| self.text(label));
            }
        }
        self.text(set.model());
        self.text(&format!("{:?}", set.metric()).to_lowercase());
        self.text(&set.fingerprint().precision.to_string());
        for (name, value) in &set.fingerprint().identity {
            self.text(name);
            self.text(value);
        }
        match set.prompt() {
            None => self.text("none"),
            Some(prompt) => self.text(&format!("prompt {prompt}")),
        }
    }
}

/// `ISOVEC_WRITE_LISTS=1` writes the verdicts anew, to which JavaScript's reader is held; with `ISOVEC_SHOW_VERDICTS=1`
/// both say the verdict of every round, to find one that differs.
#[test]
fn damaged_files_have_the_verdicts_that_javascript_is_held_to() {
    let how: Mutations =
        serde_json::from_str(&std::fs::read_to_string(data("mutations.json")).unwrap()).unwrap();
    let original = std::fs::read(data("native.safetensors")).unwrap();
    let mut next = Random(how.seed);
    let show = std::env::var_os("ISOVEC_SHOW_VERDICTS").is_some();
    let mut verdicts = String::new();
    for block in 0..how.rounds / BLOCK {
        let mut state = Fnv(FNV);
        for one in 0..BLOCK {
            let file = mutated(&original, &how, &mut next);
            let mut verdict = Fnv(FNV);
            match Embeddings::from_bytes(&file) {
                Ok(set) => verdict.set(&set),
                Err(error) => {
                    assert_eq!(error.kind(), "InvalidEmbeddings");
                    verdict.text("refused");
                }
            }
            if show {
                println!("{} {:x}", block * BLOCK + one, verdict.0);
            }
            state.bytes(&verdict.0.to_le_bytes());
        }
        verdicts.push_str(&format!("{:08x}\n", state.0));
    }
    if std::env::var_os("ISOVEC_WRITE_LISTS").is_some() {
        std::fs::write(data("verdicts.txt"), &verdicts).unwrap();
    }
    let expected = std::fs::read_to_string(data("verdicts.txt")).unwrap();
    for (block, (found, expected)) in verdicts.lines().zip(expected.lines()).enumerate() {
        let first = block * BLOCK;
        assert_eq!(found, expected, "rounds {first} to {}", first + BLOCK - 1);
    }
    assert_eq!(verdicts.lines().count(), expected.lines().count());
}
