//! The code that a careful user would write by hand: `tokenizers`, `ort`, and a mutex around the session.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use isovec::{EmbeddingConfig, ExportOptions};
use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::TensorRef;

use crate::AnyError;

/// A tokenizer and a session, whose `run` wants it exclusively.
pub struct Raw {
    session: Mutex<Session>,
    tokenizer: tokenizers::Tokenizer,
}

impl Raw {
    /// Loads the graph that isovec exports for a model, its pooling head included. Texts are cut
    /// at `max_tokens`; `threads` of 0 are as many as ONNX Runtime takes by itself. The library
    /// must be loaded: an embedder of isovec sees to that.
    ///
    /// # Errors
    /// Of the export, the tokenizer and ONNX Runtime.
    pub fn load(model: &Path, threads: usize, max_tokens: usize) -> Result<Self, AnyError> {
        let folder = tempfile::tempdir()?;
        isovec::blocking::export(
            model,
            folder.path(),
            EmbeddingConfig::default(),
            ExportOptions::default(),
        )?;
        let mut tokenizer = tokenizers::Tokenizer::from_file(model.join("tokenizer.json"))?;
        tokenizer.with_padding(None);
        tokenizer.with_truncation(Some(tokenizers::TruncationParams {
            max_length: max_tokens,
            ..Default::default()
        }))?;
        let session = Session::builder(environment()?)?
            .with_optimization_level(GraphOptimizationLevel::Level3)
            .map_err(|error| error.to_string())?
            .with_intra_threads(threads)
            .map_err(|error| error.to_string())?
            .commit_from_file(folder.path().join("model.onnx"))?;
        Ok(Self {
            session: Mutex::new(session),
            tokenizer,
        })
    }

    /// The vector of a text. Only the run holds the lock.
    ///
    /// # Errors
    /// Of the tokenizer and ONNX Runtime.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, AnyError> {
        let encoding = self.tokenizer.encode_fast(text, true)?;
        let wide = |values: &[u32]| {
            values
                .iter()
                .map(|&value| i64::from(value))
                .collect::<Vec<i64>>()
        };
        let (ids, mask, types) = (
            wide(encoding.get_ids()),
            wide(encoding.get_attention_mask()),
            wide(encoding.get_type_ids()),
        );
        let shape = [1, ids.len()];
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = session.run(ort::inputs![
            "input_ids" => TensorRef::from_array_view((shape, &ids[..]))?,
            "attention_mask" => TensorRef::from_array_view((shape, &mask[..]))?,
            "token_type_ids" => TensorRef::from_array_view((shape, &types[..]))?,
        ])?;
        let (_, vector) = outputs["sentence_embedding"].try_extract_tensor::<f32>()?;
        Ok(vector.to_vec())
    }
}

/// The environment that sessions of this process share: `ort` lets a process build one, and gives no way to ask for it again.
///
/// # Errors
/// Of ONNX Runtime.
pub fn environment() -> Result<&'static Environment, AnyError> {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    if let Some(environment) = ENVIRONMENT.get() {
        return Ok(environment);
    }
    let built = ort::init().build()?;
    Ok(ENVIRONMENT.get_or_init(|| built))
}
