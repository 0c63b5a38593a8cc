//! `engine/src`, the contract of all engines, names no engine, neither in code nor in comments. An engine can be added or
//! removed without a change there.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

/// Names of runtimes, of their providers and of text readers: lower case, without spaces.
const STRANGERS: [&str; 11] = [
    "onnxruntime",
    "cuda",
    "tensorrt",
    "rocm",
    "directml",
    "coreml",
    "openvino",
    "webgpu",
    "wgpu",
    "tract",
    "tokenizer",
];

/// The words of a text in lower case, each with its line. `OnnxRuntime` is two words.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut word = String::new();
        let mut before = ' ';
        for letter in line.chars() {
            let begins = letter.is_uppercase() && !before.is_uppercase();
            if (begins || !letter.is_alphanumeric()) && !word.is_empty() {
                words.push((at + 1, std::mem::take(&mut word)));
            }
            if letter.is_alphanumeric() {
                word.extend(letter.to_lowercase());
            }
            before = letter;
        }
        if !word.is_empty() {
            words.push((at + 1, word));
        }
    }
    words
}

/// The names in a text, each with its line. A name may be two words, also with a line break between them.
fn strangers(text: &str) -> Vec<(usize, &'static str)> {
    let words = words(text);
    let mut found = Vec::new();
    for (at, (line, word)) in words.iter().enumerate() {
        let next = words.get(at + 1).map_or("", |(_, next)| next);
        let both = format!("{word}{next}");
        // Only the start of a word counts: `contract` is not `tract`.
        let named = |name: &&&str| word.starts_with(**name) || both == **name;
        found.extend(STRANGERS.iter().find(named).map(|name| (*line, *name)));
    }
    found
}

#[test]
fn the_contract_names_no_runtime_and_no_reader_of_texts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders = vec![root.join("engine/src")];
    let mut files = 0;
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let text = fs::read_to_string(&path).unwrap();
            let file = path.strip_prefix(root).unwrap().display();
            for (line, name) in strangers(&text) {
                found.push(format!("{file}:{line} names {name}"));
            }
        }
    }
    assert!(files > 30, "{files}");
    assert!(
        found.is_empty(),
        "options of an engine belong to its own crate, and to src/config/:\n{}",
        found.join("\n")
    );
}

#[test]
fn names_are_found_however_they_are_written() {
    for (text, name) in [
        ("pub struct OnnxRuntime;", "onnxruntime"),
        ("/// As ONNX\n/// Runtime does it.", "onnxruntime"),
        ("onnxruntime_library: None", "onnxruntime"),
        ("CUDAExecutionProvider", "cuda"),
        ("pub cuda_streams: bool", "cuda"),
        ("TensorRtOptions", "tensorrt"),
        ("WebGpu", "webgpu"),
        ("wgpu::Device", "wgpu"),
        ("use tract_onnx::prelude", "tract"),
        ("a `tokenizer.json`", "tokenizer"),
    ] {
        assert_eq!(strangers(text).first(), Some(&(1, name)), "{text}");
    }
    for text in [
        "the contract",
        "an abstract",
        "ONNX graphs",
        "Tokenize",
        "a GPU",
    ] {
        assert_eq!(strangers(text), [], "{text}");
    }
}
