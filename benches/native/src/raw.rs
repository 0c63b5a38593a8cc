//! The code that a careful user would write by hand: `tokenizers`, `ort`, and a mutex around the session.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use isovec::{EmbeddingConfig, ExportOptions};
use ort::environment::Environment;
use ort::ep::CUDA;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
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
        Self::load_with(model, environment()?, max_tokens, |builder| {
            Ok(builder
                .with_intra_threads(threads)
                .map_err(|error| error.to_string())?)
        })
    }

    /// The same on the first NVIDIA GPU, in f32 without TF32. The environment has to be gone before the process ends,
    /// as CUDA's libraries then are.
    ///
    /// # Errors
    /// Of the export, the tokenizer and ONNX Runtime; where CUDA cannot be used, too.
    pub fn load_on_cuda(model: &Path, environment: &Environment) -> Result<Self, AnyError> {
        Self::load_with(model, environment, usize::MAX, |builder| {
            let cuda = CUDA::default().with_tf32(false).build().error_on_failure();
            Ok(builder
                .with_execution_providers([cuda])
                .map_err(|error| error.to_string())?)
        })
    }

    fn load_with(
        model: &Path,
        environment: &Environment,
        max_tokens: usize,
        options: impl FnOnce(SessionBuilder) -> Result<SessionBuilder, AnyError>,
    ) -> Result<Self, AnyError> {
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
        let builder = Session::builder(environment)?
            .with_optimization_level(GraphOptimizationLevel::Level3)
            .map_err(|error| error.to_string())?;
        let session = options(builder)?.commit_from_file(folder.path().join("model.onnx"))?;
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
        self.infer([1, ids.len()], &ids, &mask, &types)
    }

    /// The vectors, one after another, of texts of equally many tokens: `ids` has those of all of `rows` texts.
    ///
    /// # Errors
    /// Of ONNX Runtime.
    pub fn run(&self, ids: &[i64], rows: usize) -> Result<Vec<f32>, AnyError> {
        let (mask, types) = (vec![1; ids.len()], vec![0; ids.len()]);
        self.infer([rows, ids.len() / rows], ids, &mask, &types)
    }

    fn infer(
        &self,
        shape: [usize; 2],
        ids: &[i64],
        mask: &[i64],
        types: &[i64],
    ) -> Result<Vec<f32>, AnyError> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = session.run(ort::inputs![
            "input_ids" => TensorRef::from_array_view((shape, ids))?,
            "attention_mask" => TensorRef::from_array_view((shape, mask))?,
            "token_type_ids" => TensorRef::from_array_view((shape, types))?,
        ])?;
        let (_, vectors) = outputs["sentence_embedding"].try_extract_tensor::<f32>()?;
        Ok(vectors.to_vec())
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
