//! Passes vectors to JavaScript, where the class `Embeddings` holds them.

use isovec::Embeddings;
use js_sys::{Float32Array, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::wasm_bindgen;

/// The result of one call.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawEmbeddings(Embeddings);

impl From<Embeddings> for RawEmbeddings {
    fn from(embeddings: Embeddings) -> Self {
        Self(embeddings)
    }
}

#[wasm_bindgen]
impl RawEmbeddings {
    /// All vectors, row after row.
    pub fn values(&self) -> Float32Array {
        Float32Array::from(self.0.as_slice())
    }

    /// 1 for each text of which the model saw only a part, else 0.
    pub fn truncated(&self) -> Uint8Array {
        let marks: Vec<u8> = self
            .0
            .truncated()
            .iter()
            .map(|&truncated| u8::from(truncated))
            .collect();
        Uint8Array::from(&marks[..])
    }

    /// Tokens of each text.
    #[wasm_bindgen(js_name = tokenCounts)]
    pub fn token_counts(&self) -> Uint32Array {
        Uint32Array::from(self.0.token_counts())
    }

    /// Components of a vector.
    #[wasm_bindgen(getter)]
    pub fn dimension(&self) -> usize {
        self.0.dim()
    }

    /// The fingerprint of the vectors, as JSON.
    pub fn fingerprint(&self) -> String {
        serde_json::json!(self.0.fingerprint()).to_string()
    }

    /// The name of the prompt that was put before the texts, if one was.
    pub fn prompt(&self) -> Option<String> {
        self.0.prompt().map(str::to_owned)
    }
}
