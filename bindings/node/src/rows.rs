//! Passes the rows of a call to JavaScript, where the classes `Embeddings` and `Classifications` hold them.

use isovec::fingerprint::Fingerprint;
use isovec::{Classifications, Embeddings, MultiVectorEmbeddings, SparseEmbeddings};
use napi::bindgen_prelude::{Float32Array, Uint8Array, Uint32Array};
use napi_derive::napi;

/// The result of one call: a row of numbers for each text. What is taken out of it is JavaScript's own.
#[napi]
#[derive(Debug)]
pub struct RawRows {
    values: Vec<f32>,
    indices: Vec<u32>,
    offsets: Vec<u32>,
    token_counts: Vec<u32>,
    truncated: Vec<u8>,
    dimension: u32,
    fingerprint: Option<Fingerprint>,
    prompt: Option<String>,
}

impl From<Embeddings> for RawRows {
    fn from(set: Embeddings) -> Self {
        Self {
            token_counts: set.token_counts().to_vec(),
            truncated: set.truncated().iter().map(|&one| one.into()).collect(),
            dimension: set.dim() as u32,
            fingerprint: Some(set.fingerprint().clone()),
            prompt: set.prompt().map(str::to_owned),
            values: set.into_vec(),
            indices: Vec::new(),
            offsets: Vec::new(),
        }
    }
}

impl From<Classifications> for RawRows {
    fn from(set: Classifications) -> Self {
        Self {
            token_counts: set.token_counts().to_vec(),
            truncated: set.truncated().iter().map(|&one| one.into()).collect(),
            dimension: set.labels().len() as u32,
            fingerprint: None,
            prompt: None,
            values: set.into_vec(),
            indices: Vec::new(),
            offsets: Vec::new(),
        }
    }
}

impl From<SparseEmbeddings> for RawRows {
    fn from(set: SparseEmbeddings) -> Self {
        Self {
            token_counts: set.token_counts().to_vec(),
            truncated: set.truncated().iter().map(|&one| one.into()).collect(),
            dimension: set.vocabulary_size() as u32,
            fingerprint: Some(set.fingerprint().clone()),
            prompt: set.prompt().map(str::to_owned),
            values: set.values().to_vec(),
            indices: set.indices().to_vec(),
            offsets: set.offsets().iter().map(|&offset| offset as u32).collect(),
        }
    }
}

impl From<MultiVectorEmbeddings> for RawRows {
    fn from(set: MultiVectorEmbeddings) -> Self {
        Self {
            token_counts: set.token_counts().to_vec(),
            truncated: set.truncated().iter().map(|&one| one.into()).collect(),
            dimension: set.dim() as u32,
            fingerprint: Some(set.fingerprint().clone()),
            prompt: set.prompt().map(str::to_owned),
            values: set.as_slice().unwrap_or_default().to_vec(),
            indices: Vec::new(),
            offsets: set.offsets().iter().map(|&offset| offset as u32).collect(),
        }
    }
}

#[napi]
impl RawRows {
    /// All rows, one after another.
    #[napi]
    pub fn values(&mut self) -> Float32Array {
        std::mem::take(&mut self.values).into()
    }

    /// Of weights of words: the ids of their tokens.
    #[napi]
    pub fn indices(&mut self) -> Uint32Array {
        std::mem::take(&mut self.indices).into()
    }

    /// Of weights of words, and of tokens' vectors: where each text's begin, and at last where they end.
    #[napi]
    pub fn offsets(&mut self) -> Uint32Array {
        std::mem::take(&mut self.offsets).into()
    }

    /// 1 for each text of which the model saw only a part, else 0.
    #[napi]
    pub fn truncated(&mut self) -> Uint8Array {
        std::mem::take(&mut self.truncated).into()
    }

    /// Tokens of each text.
    #[napi]
    pub fn token_counts(&mut self) -> Uint32Array {
        std::mem::take(&mut self.token_counts).into()
    }

    /// Numbers of a row.
    #[napi(getter)]
    pub fn dimension(&self) -> u32 {
        self.dimension
    }

    /// What made the vectors, as JSON; of labels, nothing.
    #[napi]
    pub fn fingerprint(&self) -> Option<String> {
        serde_json::to_string(self.fingerprint.as_ref()?).ok()
    }

    /// The name of the prompt that was put before the texts, if one was.
    #[napi]
    pub fn prompt(&self) -> Option<String> {
        self.prompt.clone()
    }

    /// Frees what was not taken out.
    #[napi]
    pub fn free(&mut self) {
        (self.values, self.indices) = (Vec::new(), Vec::new());
    }
}
