//! An engine that only counts, and a tokenizer that gives word `wN` the id N. Tests of planning, feeding, batching
//! and collecting use them.
#![allow(clippy::unwrap_used)] // Only tests see this file.

use std::collections::BTreeMap;
use std::sync::Mutex;

use bytes::Bytes;
use futures_util::future::select;
use isovec_engine::EngineError;
use isovec_engine::config::MemoryConfig;
use isovec_engine::description::{Dim, ModelDescription, ValueDescription};
use isovec_engine::engine::{Batch, Capabilities, ProviderInfo, RunOutput};
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::stats::EngineStats;
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_model::head;
use isovec_tokenize::{Limits, Tokenizer};

use super::reader::TextReader;
use super::*;
use crate::cache::Scope;
use crate::config::{EmbeddingConfig, TextConfig};
use crate::sentence_transformers::ModelFiles;

pub(crate) const PAD: u32 = 0;
/// A row with this id gets a vector that is not finite.
pub(crate) const NAN: u32 = 90;
/// A row with this id gets a vector without a direction.
pub(crate) const ZERO: u32 = 91;
/// A batch with this id fails.
pub(crate) const POISON: u32 = 92;
/// A batch with this id waits until it is let go, or cancelled.
pub(crate) const HELD: u32 = 93;
/// A batch with this id panics.
pub(crate) const PANIC: u32 = 94;

/// Gives row `[a, b, c]` the unit vector of direction `[1, a + b + c, 3]`, from what the mask
/// says is real.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) provider: ProviderInfo,
    pub(crate) description: ModelDescription,
    pub(crate) capabilities: Capabilities,
    pub(crate) effective: EffectiveConfig,
    pub(crate) shapes: Mutex<Vec<Vec<usize>>>,
    /// Whether every run is remembered there.
    pub(crate) keeps_shapes: bool,
    /// Bytes that a position is foretold to take.
    pub(crate) bytes_per_position: Option<u64>,
    /// Runs never end by themselves.
    pub(crate) stuck: bool,
    /// Lets batches go that are held; "cancelled" is "now".
    pub(crate) let_go: Cancel,
    /// Engines of one run at a time take turns.
    pub(crate) turn: futures_util::lock::Mutex<()>,
    /// Runs that are held.
    pub(crate) held: Mutex<usize>,
}

impl Counting {
    pub(crate) fn new(rows: Dim, positions: Dim, dtype: DType) -> Self {
        let input = |name: &str| ValueDescription {
            name: name.into(),
            dtype: Some(dtype),
            dims: Some(vec![rows.clone(), positions.clone()]),
        };
        let mut capabilities = Capabilities::default();
        capabilities.concurrent_runs = 2;
        Self {
            provider: ProviderInfo::new("counting", "CPU", "1"),
            description: ModelDescription {
                inputs: vec![
                    input("input_ids"),
                    input("attention_mask"),
                    input("token_type_ids"),
                ],
                ..ModelDescription::default()
            },
            capabilities,
            effective: EffectiveConfig::default(),
            bytes_per_position: None,
            shapes: Mutex::default(),
            keeps_shapes: true,
            stuck: false,
            let_go: Cancel::new(),
            held: Mutex::default(),
            turn: futures_util::lock::Mutex::new(()),
        }
    }

    pub(crate) fn free() -> Self {
        Self::new(
            Dim::Symbolic("batch".into()),
            Dim::Symbolic("sequence".into()),
            DType::I64,
        )
    }

    fn values(tensor: &Tensor) -> Vec<i64> {
        match tensor.dtype() {
            DType::I32 => tensor
                .as_slice::<i32>()
                .unwrap()
                .iter()
                .copied()
                .map(i64::from)
                .collect(),
            _ => tensor.as_slice::<i64>().unwrap().to_vec(),
        }
    }
}

impl Engine for Counting {
    fn provider(&self) -> &ProviderInfo {
        &self.provider
    }

    fn description(&self) -> &ModelDescription {
        &self.description
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn effective(&self) -> &EffectiveConfig {
        &self.effective
    }

    fn stats(&self) -> EngineStats {
        EngineStats::default()
    }

    fn predicted_bytes(&self, rows: usize, row_length: usize) -> Option<u64> {
        Some(self.bytes_per_position? * (rows * row_length) as u64)
    }

    fn run<'a>(&'a self, batch: Batch, cancel: &'a Cancel) -> EngineFuture<'a, RunOutput> {
        Box::pin(async move {
            let _turn = match self.capabilities.concurrent_runs {
                1 => Some(self.turn.lock().await),
                _ => None,
            };
            if self.stuck {
                cancel.cancelled().await;
            }
            let ids = batch.input("input_ids").map(Self::values);
            let has = |id| ids.as_ref().is_some_and(|ids| ids.contains(&i64::from(id)));
            assert!(!has(PANIC), "as it was told to");
            if has(HELD) {
                *self.held.lock().unwrap() += 1;
                select(self.let_go.cancelled(), cancel.cancelled()).await;
                *self.held.lock().unwrap() -= 1;
            }
            if has(POISON) {
                return Err(EngineError::Runtime {
                    engine: "counting",
                    doing: "running",
                    detail: "poisoned".into(),
                });
            }
            self.run_blocking(batch, cancel)
        })
    }

    fn run_blocking(&self, batch: Batch, cancel: &Cancel) -> isovec_engine::Result<RunOutput> {
        cancel.check()?;
        batch.check(&self.description)?;
        let ids = batch.input("input_ids").unwrap();
        let [rows, positions] = *ids.shape() else {
            panic!("{ids:?}")
        };
        if self.keeps_shapes {
            self.shapes.lock().unwrap().push(ids.shape().to_vec());
        }
        let (ids, mask) = (
            Self::values(ids),
            Self::values(batch.input("attention_mask").unwrap()),
        );
        let mut values = Vec::new();
        for row in 0..rows {
            let span = row * positions..(row + 1) * positions;
            let real: usize = mask[span.clone()]
                .iter()
                .map(|&real| usize::try_from(real).unwrap())
                .sum();
            assert_eq!(real, batch.row_lengths[row]);
            assert!(
                ids[span.clone()][real..]
                    .iter()
                    .all(|&id| id == i64::from(PAD))
            );
            values.extend(vector(&ids[span][..real]));
        }
        let mut output = RunOutput::default();
        let tensor = Tensor::from_slice(&[rows, 3], &values)?;
        output.outputs.push(NamedTensor::new(head::OUTPUT, tensor));
        Ok(output)
    }
}

pub(crate) fn vector(ids: &[i64]) -> [f32; 3] {
    if ids.contains(&i64::from(NAN)) {
        return [f32::NAN, 0.0, 1.0];
    }
    if ids.contains(&i64::from(ZERO)) {
        return [0.0; 3];
    }
    let (sum, count) = (ids.iter().sum::<i64>() as f32, ids.len() as f32);
    let norm = (1.0 + sum * sum + count * count).sqrt();
    [1.0 / norm, sum / norm, count / norm]
}

pub(crate) fn tokenizer() -> Tokenizer {
    let vocabulary: Vec<String> = (1..100).map(|id| format!("\"w{id}\": {id}")).collect();
    let json = format!(
        r#"{{"model": {{"type": "WordLevel", "vocab": {{"[PAD]": 0, {}}}, "unk_token": "w1"}},
            "pre_tokenizer": {{"type": "WhitespaceSplit"}}, "added_tokens": []}}"#,
        vocabulary.join(", ")
    );
    let files = BTreeMap::from([("tokenizer.json".to_owned(), Bytes::from(json))]);
    Tokenizer::from_files(&files, "test").unwrap()
}

pub(crate) fn model(engine: Counting) -> (Arc<Model>, Arc<Counting>) {
    model_within(engine, &MemoryConfig::default())
}

pub(crate) fn model_within(engine: Counting, memory: &MemoryConfig) -> (Arc<Model>, Arc<Counting>) {
    let config = EmbeddingConfig::default()
        .with_max_batch_size(4)
        .with_max_batch_tokens(12);
    with_config(engine, memory, &config)
}

/// A model with the batching knobs of a configuration.
pub(crate) fn with_config(
    engine: Counting,
    memory: &MemoryConfig,
    config: &EmbeddingConfig,
) -> (Arc<Model>, Arc<Counting>) {
    let engine = Arc::new(engine);
    let shared = Arc::clone(&engine) as Arc<dyn Engine>;
    let mut effective = EffectiveConfig::default();
    let feed = Feed::new("test", engine.description(), (PAD, 0), 0).unwrap();
    let resolved = batching::resolve(config, &*engine, &feed, None, None, &mut effective);
    let who = (&engine.provider, "");
    let scope = Scope::new(&Fingerprint::default(), who, &effective, "");
    let cache =
        EmbeddingCache::open(&config.embedding_cache, Some(3), scope, &mut effective).unwrap();
    let model = Model {
        memory: Allowance::new(memory, &shared, &mut effective),
        optimize: true,
        recorder: Recorder::default(),
        profiler: Profiler::default(),
        feed,
        batching: resolved.batching,
        engines: Engines::only(shared),
        name: "test".into(),
        config: config.clone(),
        dim: 3,
        max_length: 8,
        fingerprint: Arc::default(),
        metric: Similarity::Cosine,
        labels: None,
        weighting: None,
        words: None,
        query_words: None,
        late: None,
        effective,
        prompts: Prompts::new(&ModelFiles::default(), &TextConfig::default()),
        reader: Reader::Texts(Box::new(TextReader {
            tokenizer: tokenizer(),
            limits: Limits::tokens(8),
            lowercase: false,
            filled: None,
            frame: None,
            unweighed: None,
        })),
        normalized: true,
        budget: resolved.budget,
        calibration: Calibration::default(),
        cache,
    };
    (Arc::new(model), engine)
}

/// A text of so many words.
pub(crate) fn text(words: &[u32]) -> String {
    words.iter().map(|word| format!("w{word} ")).collect()
}
