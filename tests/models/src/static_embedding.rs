//! Seeded models of static embeddings, in the files of Model2Vec and of sentence-transformers, and their vectors at f64.

use std::collections::BTreeMap;
use std::sync::Arc;

use half::f16;
use isovec_model::safetensors::TensorSet;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

use crate::rng::Rng;
use crate::tiny::{pretty, tokenizer, vocabulary};

/// The id of the token that stands for whatever the vocabulary lacks.
pub const UNKNOWN: i64 = 1;

/// A model.
#[derive(Clone, Debug)]
pub struct StaticModel {
    /// Components of a vector.
    pub width: usize,
    /// The rows of the table, one after another.
    pub table: Vec<f32>,
    /// The row of each token, where that is not its id.
    pub mapping: Option<Vec<i64>>,
    /// The factor of each token.
    pub weights: Option<Vec<f32>>,
    /// Whether vectors have length 1.
    pub normalize: bool,
}

/// How the table is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// Whole numbers of 8 bits, which have no scale.
    I8,
}

/// Whose files a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Model2Vec's, with what it writes for sentence-transformers.
    Model2Vec,
    /// Model2Vec's own files alone.
    Model2VecAlone,
    /// sentence-transformers', with a folder for its step.
    SentenceTransformers,
    /// sentence-transformers', with its step in the root.
    SentenceTransformersRoot,
}

impl Layout {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Model2Vec,
        Self::Model2VecAlone,
        Self::SentenceTransformers,
        Self::SentenceTransformersRoot,
    ];

    /// Whether unknown tokens are left out, and 512 tokens are read.
    pub fn is_model2vec(self) -> bool {
        matches!(self, Self::Model2Vec | Self::Model2VecAlone)
    }

    /// Where the table is.
    pub fn table_file(self) -> &'static str {
        match self {
            Self::SentenceTransformers => "0_StaticEmbedding/model.safetensors",
            _ => "model.safetensors",
        }
    }
}

/// A model with a row for each of so many tokens.
pub fn plain(tokens: usize, width: usize) -> StaticModel {
    let mut rng = Rng::new(20_261_125);
    StaticModel {
        width,
        table: (0..tokens * width).map(|_| rng.normal() as f32).collect(),
        mapping: None,
        weights: None,
        normalize: true,
    }
}

/// A model whose tokens share so many rows, each token with a factor of its own.
pub fn quantised(tokens: usize, rows: usize, width: usize) -> StaticModel {
    let mut rng = Rng::new(7);
    let mapping = (0..tokens).map(|_| rng.below(rows as u64) as i64).collect();
    let weights = (0..tokens)
        .map(|_| (0.05 + rng.unit() * 3.0) as f32)
        .collect();
    StaticModel {
        mapping: Some(mapping),
        weights: Some(weights),
        ..plain(rows, width)
    }
}

impl StaticModel {
    /// Tokens that have a vector.
    pub fn tokens(&self) -> usize {
        let mapped = self.mapping.as_ref().map(Vec::len);
        mapped.unwrap_or(self.table.len() / self.width)
    }

    /// What storing leaves of the table.
    pub fn rounded(mut self, stored: Stored) -> Self {
        for value in &mut self.table {
            *value = match stored {
                Stored::F32 => *value,
                Stored::F16 => f16::from_f32(*value).to_f32(),
                Stored::I8 => byte(*value).into(),
            };
        }
        self
    }

    /// The vector of a text of these tokens, of at least one.
    pub fn vector(&self, ids: &[i64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.width];
        for &id in ids {
            let token = id as usize;
            let row = self
                .mapping
                .as_ref()
                .map_or(token, |rows| rows[token] as usize);
            let factor = self
                .weights
                .as_ref()
                .map_or(1.0, |all| f64::from(all[token]));
            for (column, sum) in sum.iter_mut().enumerate() {
                *sum += factor * f64::from(self.table[row * self.width + column]);
            }
        }
        let count = ids.len() as f64;
        let mean: Vec<f64> = sum.into_iter().map(|sum| sum / count).collect();
        let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        let by = if self.normalize { length } else { 1.0 };
        mean.into_iter().map(|x| x / by).collect()
    }

    /// The file of the tensors, the table under this name.
    pub fn tensors(&self, table: &str, stored: Stored) -> Vec<u8> {
        let values = self.table.iter();
        let (dtype, bytes): (_, Vec<u8>) = match stored {
            Stored::F32 => (Dtype::F32, values.flat_map(|v| v.to_le_bytes()).collect()),
            Stored::F16 => {
                let halves = values.flat_map(|&v| f16::from_f32(v).to_le_bytes());
                (Dtype::F16, halves.collect())
            }
            Stored::I8 => (Dtype::I8, values.map(|&v| byte(v) as u8).collect()),
        };
        let rows = self.table.len() / self.width;
        let mut all = vec![(table, dtype, vec![rows, self.width], bytes)];
        if let Some(mapping) = &self.mapping {
            let bytes = mapping.iter().flat_map(|row| row.to_le_bytes()).collect();
            all.push(("mapping", Dtype::I64, vec![mapping.len()], bytes));
        }
        if let Some(weights) = &self.weights {
            let bytes = weights.iter().flat_map(|&w| f64::from(w).to_le_bytes());
            all.push(("weights", Dtype::F64, vec![weights.len()], bytes.collect()));
        }
        file(&all)
    }

    /// The tensors as the conversion takes them.
    pub fn tensor_set(&self, table: &str, stored: Stored) -> Arc<TensorSet> {
        set(self.tensors(table, stored))
    }

    /// Every file of the model, which has the tokenizer of the tiny BERT.
    pub fn files(&self, layout: Layout, stored: Stored) -> BTreeMap<String, Vec<u8>> {
        let words = vocabulary();
        assert_eq!(words.len(), self.tokens(), "the tokenizer's vocabulary");
        let step = |path: &str, class: &str| json!({"path": path, "type": format!("sentence_transformers.models.{class}")});
        let (folder, table) = match layout {
            Layout::Model2Vec | Layout::Model2VecAlone => (".", "embeddings"),
            Layout::SentenceTransformers => ("0_StaticEmbedding", "embedding.weight"),
            Layout::SentenceTransformersRoot => ("", "embedding.weight"),
        };
        let mut steps = vec![step(folder, "StaticEmbedding")];
        steps.extend(self.normalize.then(|| step("1_Normalize", "Normalize")));
        let beside = |name: &str| match layout {
            Layout::SentenceTransformers => format!("{folder}/{name}"),
            _ => name.to_owned(),
        };
        let mut files = BTreeMap::from([
            (beside("tokenizer.json"), pretty(&tokenizer(&words))),
            (layout.table_file().to_owned(), self.tensors(table, stored)),
        ]);
        if layout.is_model2vec() {
            files.insert("config.json".into(), pretty(&self.config()));
        }
        if layout != Layout::Model2VecAlone {
            files.insert("modules.json".into(), pretty(&Value::Array(steps)));
        }
        files
    }

    /// What Model2Vec writes into `config.json`.
    pub fn config(&self) -> Value {
        json!({
            "model_type": "model2vec",
            "architectures": ["StaticModel"],
            "hidden_dim": self.width,
            "seq_length": 1_000_000,
            "normalize": self.normalize,
        })
    }
}

/// A tensor's name, type, extents and bytes.
pub type Tensor<'a> = (&'a str, Dtype, Vec<usize>, Vec<u8>);

/// A file of tensors.
pub fn file(tensors: &[Tensor<'_>]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        let view = TensorView::new(*dtype, shape.clone(), bytes).expect("the length fits");
        (*name, view)
    });
    safetensors::serialize(views, None).expect("the tensors can be written")
}

/// A file as the conversion takes it.
pub fn set(file: Vec<u8>) -> Arc<TensorSet> {
    let files = vec![("model.safetensors".into(), file.into())];
    Arc::new(TensorSet::from_files("static", files).expect("a valid file"))
}

fn byte(value: f32) -> i8 {
    (value * 30.0).round().clamp(-127.0, 127.0) as i8
}
