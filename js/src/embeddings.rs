//! Vector sets behind the TypeScript class `Embeddings`.

use isovec::Embeddings;
use js_sys::{Float32Array, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::error::to_js;

/// A set of vectors.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct RawEmbeddings(Embeddings);

impl From<Embeddings> for RawEmbeddings {
    fn from(embeddings: Embeddings) -> Self {
        Self(embeddings)
    }
}

#[wasm_bindgen]
impl RawEmbeddings {
    /// Opens a saved set.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    #[wasm_bindgen(js_name = fromBytes)]
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, JsValue> {
        Embeddings::from_bytes(bytes)
            .map(Self)
            .map_err(|error| to_js(&error))
    }

    /// The set as a file.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    #[wasm_bindgen(js_name = toBytes)]
    pub fn to_bytes(&self) -> Result<Uint8Array, JsValue> {
        let bytes = self.0.to_bytes().map_err(|error| to_js(&error))?;
        Ok(Uint8Array::from(&bytes[..]))
    }

    /// All vectors, row after row.
    pub fn values(&self) -> Float32Array {
        Float32Array::from(self.0.as_slice())
    }

    /// Components of a vector.
    #[wasm_bindgen(getter)]
    pub fn dimension(&self) -> usize {
        self.0.dim()
    }

    /// Number of vectors.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> usize {
        self.0.len()
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

    /// The texts or names that go with the vectors, if any.
    pub fn labels(&self) -> Option<Vec<String>> {
        self.0.labels().map(<[String]>::to_vec)
    }

    /// The same set with labels.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    #[wasm_bindgen(js_name = withLabels)]
    pub fn with_labels(&self, labels: Vec<String>) -> Result<Self, JsValue> {
        self.0
            .clone()
            .with_labels(labels)
            .map(Self)
            .map_err(|error| to_js(&error))
    }

    /// What made the vectors, as JSON.
    pub fn fingerprint(&self) -> String {
        serde_json::json!(self.0.fingerprint()).to_string()
    }

    /// The nearest `k` vectors of this set for each query: JSON, a list of `{index, score}` a query.
    ///
    /// # Errors
    /// `IncompatibleIndex` when another model made the queries.
    pub fn search(&self, queries: &Self, k: usize) -> Result<String, JsValue> {
        let hits = self
            .0
            .search(&queries.0, k)
            .map_err(|error| to_js(&error))?;
        let hits: Vec<Vec<_>> = hits
            .iter()
            .map(|hits| {
                hits.iter()
                    .map(|hit| serde_json::json!({"index": hit.index, "score": hit.score}))
                    .collect()
            })
            .collect();
        Ok(serde_json::json!(hits).to_string())
    }
}
