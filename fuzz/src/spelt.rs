//! What a normaliser makes of a text, through the tokenizer alone: a vocabulary of bytes, whose ids
//! are the bytes of the normalised text.

use std::collections::BTreeMap;

use isovec_tokenize::{Limits, Result, Tokenizer};
use serde_json::{Map, Value, json};

/// A tokenizer that does nothing but normalise.
pub fn tokenizer(normalizer: Value) -> Result<Tokenizer> {
    let vocab: Map<String, Value> = (0..=255)
        .map(|byte| (format!("<0x{byte:02X}>"), json!(byte)))
        .collect();
    let json = json!({
        "version": "1.0", "normalizer": normalizer,
        "model": {"type": "BPE", "byte_fallback": true, "vocab": vocab, "merges": []},
    });
    let files = BTreeMap::from([("tokenizer.json".to_owned(), json.to_string().into())]);
    Tokenizer::from_files(&files, "fuzz")
}

/// The normalised text.
pub fn normalized(tokenizer: &Tokenizer, text: &str) -> Result<String> {
    let ids = tokenizer.encode(&[text], &Limits::default())?.remove(0).ids;
    let bytes: Vec<u8> = ids.iter().map(|&id| id as u8).collect();
    Ok(String::from_utf8(bytes).expect("normalised text is text"))
}
