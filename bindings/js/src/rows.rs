//! Passes the rows of a call to JavaScript, where the classes `Embeddings` and `Classifications` hold them.

use isovec::{Classifications, Embeddings, MultiVectorEmbeddings, SparseEmbeddings};
use js_sys::{Float32Array, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::wasm_bindgen;

/// The result of one call: a row of numbers for each text.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawRows(Set);

#[derive(Debug)]
enum Set {
    Vectors(Embeddings),
    Labels(Classifications),
    Words(SparseEmbeddings),
    Tokens(MultiVectorEmbeddings),
}

impl From<Embeddings> for RawRows {
    fn from(set: Embeddings) -> Self {
        Self(Set::Vectors(set))
    }
}

impl From<Classifications> for RawRows {
    fn from(set: Classifications) -> Self {
        Self(Set::Labels(set))
    }
}

impl From<SparseEmbeddings> for RawRows {
    fn from(set: SparseEmbeddings) -> Self {
        Self(Set::Words(set))
    }
}

impl From<MultiVectorEmbeddings> for RawRows {
    fn from(set: MultiVectorEmbeddings) -> Self {
        Self(Set::Tokens(set))
    }
}

#[wasm_bindgen]
impl RawRows {
    /// All rows, one after another.
    pub fn values(&self) -> Float32Array {
        Float32Array::from(match &self.0 {
            Set::Vectors(set) => set.as_slice(),
            Set::Labels(set) => set.as_slice(),
            Set::Words(set) => set.values(),
            Set::Tokens(set) => set.as_slice().unwrap_or_default(),
        })
    }

    /// Of weights of words: the ids of their tokens.
    pub fn indices(&self) -> Uint32Array {
        Uint32Array::from(match &self.0 {
            Set::Words(set) => set.indices(),
            _ => &[],
        })
    }

    /// Of weights of words, and of tokens' vectors: where each text's begin, and at last where they end.
    pub fn offsets(&self) -> Uint32Array {
        let offsets = match &self.0 {
            Set::Words(set) => set.offsets(),
            Set::Tokens(set) => set.offsets(),
            _ => &[],
        };
        let offsets: Vec<u32> = offsets.iter().map(|&offset| offset as u32).collect();
        Uint32Array::from(&offsets[..])
    }

    /// 1 for each text of which the model saw only a part, else 0.
    pub fn truncated(&self) -> Uint8Array {
        let marks = match &self.0 {
            Set::Vectors(set) => set.truncated(),
            Set::Labels(set) => set.truncated(),
            Set::Words(set) => set.truncated(),
            Set::Tokens(set) => set.truncated(),
        };
        let marks: Vec<u8> = marks.iter().map(|&truncated| u8::from(truncated)).collect();
        Uint8Array::from(&marks[..])
    }

    /// Tokens of each text.
    #[wasm_bindgen(js_name = tokenCounts)]
    pub fn token_counts(&self) -> Uint32Array {
        Uint32Array::from(match &self.0 {
            Set::Vectors(set) => set.token_counts(),
            Set::Labels(set) => set.token_counts(),
            Set::Words(set) => set.token_counts(),
            Set::Tokens(set) => set.token_counts(),
        })
    }

    /// Numbers of a row.
    #[wasm_bindgen(getter)]
    pub fn dimension(&self) -> usize {
        match &self.0 {
            Set::Vectors(set) => set.dim(),
            Set::Labels(set) => set.labels().len(),
            Set::Words(set) => set.vocabulary_size(),
            Set::Tokens(set) => set.dim(),
        }
    }

    /// What made the vectors, as JSON; of labels, nothing.
    pub fn fingerprint(&self) -> Option<String> {
        let fingerprint = match &self.0 {
            Set::Vectors(set) => Some(set.fingerprint()),
            Set::Words(set) => Some(set.fingerprint()),
            Set::Tokens(set) => Some(set.fingerprint()),
            Set::Labels(_) => None,
        };
        fingerprint.and_then(|own| serde_json::to_string(own).ok())
    }

    /// The name of the prompt that was put before the texts, if one was.
    pub fn prompt(&self) -> Option<String> {
        match &self.0 {
            Set::Vectors(set) => set.prompt().map(str::to_owned),
            Set::Words(set) => set.prompt().map(str::to_owned),
            Set::Tokens(set) => set.prompt().map(str::to_owned),
            Set::Labels(_) => None,
        }
    }
}
