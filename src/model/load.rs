//! Loads a model from a source of files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::budget::Budget;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::fingerprint::{ARCHITECTURE, DIMENSION, Fingerprint, NORMALIZE, SPACE, UNKNOWN};
use isovec_engine::maybe_send::{MaybeSend, MaybeSync};
use isovec_engine::profile::Profiler;
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::convert::{self, Half, architecture};
use isovec_model::head::Pooling;
use isovec_model::onnx;
use isovec_model::pictures::{self, PictureInput};
use isovec_model::precision::widened;
use isovec_tokenize::{Limits, TruncationSide};

use super::allowance::Allowance;
use super::batching;
use super::calibration::Calibration;
use super::feed::Feed;
use super::frame;
use super::head::{
    Head, classifying_head, late_head, pooling_name, resolve_head, sparse_head, token_weights_head,
};
use super::origin::Origin;
use super::query_words::QueryWords;
use super::reader::{Input, Reader, TextReader};
use super::small::{self, Stored};
use super::{Model, Prompts, precision, vocabulary};
use crate::backend;
use crate::backend::small_forms::Keep;
use crate::cache::{EmbeddingCache, Scope};
use crate::classifier::Labels;
use crate::config::{Dtype, EmbeddingConfig, Truncation};
use crate::effective::{self, EffectiveConfig};
use crate::error::{Error, Result};
use crate::fallback::{self, Engines};
use crate::json;
use crate::loading::Asked;
use crate::multi_vector::LateReader;
use crate::reranker::{activation, chat};
use crate::sentence_transformers::{self, ModelFiles};
use crate::source::ModelSource;
use crate::stats::Recorder;

/// Where no file of the model says how long a text may be: what BERT was trained with.
const DEFAULT_MAX_LENGTH: usize = 512;

/// How far loading has come.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Files come from a hub. The counts only grow.
    Downloading {
        /// The file that is under way.
        file: String,
        /// Bytes of all files that are here.
        bytes: u64,
        /// Bytes of all files.
        total: u64,
    },
    /// The files are opened and the graph is completed.
    Reading,
    /// The engine takes the weights and prepares the graph.
    Preparing,
}

/// Something that is told how far loading has come; any suitable closure is one. It is called
/// from isovec's threads and should return soon.
pub trait OnProgress: Fn(Progress) + MaybeSend + MaybeSync {}
impl<F: Fn(Progress) + MaybeSend + MaybeSync> OnProgress for F {}

/// Who watches a load, and can stop it.
#[derive(Clone, Default)]
pub(crate) struct Watch {
    pub(crate) progress: Option<Arc<dyn OnProgress>>,
    pub(crate) cancel: Cancel,
}

impl Watch {
    pub(crate) fn report(&self, progress: Progress) {
        if let Some(report) = &self.progress {
            report(progress);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("progress", &self.progress.is_some())
            .field("cancel", &self.cancel)
            .finish()
    }
}

/// A model with its head on, and what is known of it before an engine takes it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) bundle: ModelBundle,
    pub(crate) head: Head,
    pub(crate) stored: Stored,
    files: ModelFiles,
}

/// What a graph gives its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// The file's own output: no head is added.
    AsFile,
    /// A vector for each text, by a pooling head.
    Vectors,
    /// A number for each text and label.
    Labels,
    /// One number for each pair of texts.
    Relevance,
    /// A weight for each word of the vocabulary.
    Sparse,
    /// A vector for each token.
    Tokens,
}

/// What a bundle is prepared for.
#[derive(Debug, Clone)]
pub(crate) struct Purpose {
    /// What the graph is to give.
    pub(crate) output: Output,
    /// Where weights that are made smaller are kept for the next time.
    pub(crate) keep: Option<Keep>,
    /// Which half of a model that has two is wanted.
    pub(crate) half: Half,
}

impl Purpose {
    /// For an engine.
    pub(crate) fn run(config: &EmbeddingConfig, output: Output) -> Self {
        Self {
            output,
            keep: Keep::in_cache(config),
            half: Half::Texts,
        }
    }
}

/// Loads a model of texts.
pub(crate) async fn load(asked: Asked, output: Output) -> Result<Model> {
    load_for(asked, output, Input::Texts).await
}

/// Loads a model of whatever its caller is going to hand in.
pub(crate) async fn load_for(asked: Asked, output: Output, input: Input) -> Result<Model> {
    let Asked {
        source,
        config,
        watch,
    } = asked;
    let config = config.build()?;
    fallback::check(&config.runtime)?;
    let cancel = watch.cancel.clone();
    let name = source.to_string();
    let (source, hub) = resolve(source, &config, &watch).await?.split();
    cancel.check()?;
    watch.report(Progress::Reading);
    let has_files = !matches!(source, ModelSource::Contents { .. });
    let (asked, stop) = (config.clone(), cancel.clone());
    let (prepared, mut reader) = backend::offload("reading the model", async move {
        let purpose = Purpose {
            half: input.half(),
            ..Purpose::run(&asked, output)
        };
        let mut prepared = prepare(source, &asked, purpose, &stop).await?;
        let Prepared { bundle, files, .. } = &mut prepared;
        let reader = Reader::read(bundle, &input, files.lowercase, files.table.as_ref())?;
        Ok((prepared, reader))
    })
    .await?;
    cancel.check()?;
    let bundle = &prepared.bundle;
    // As engines will hold the weights, however they are stored.
    let held = widened(bundle);
    // Before the engine's work: what is wrong with the configuration is known by now.
    let mut words = None;
    let (max_length, why_length) = match &mut reader {
        Reader::Texts(reader) => {
            let rows = vocabulary::embedding_rows(&held).or(prepared.files.vocab_size);
            vocabulary::check(&bundle.origin, reader.tokenizer.max_id(), rows)?;
            if let Some(files) = &prepared.files.token_weights {
                let ids = files.unweighed.iter();
                let ids = ids.filter_map(|token| reader.tokenizer.token_to_id(token));
                reader.unweighed = Some(ids.collect::<BTreeSet<u32>>().into_iter().collect());
                words = rows.or(Some(reader.tokenizer.max_id() as usize + 1));
            }
            let own = prepared.files.table.as_ref().map(|_| {
                let own = reader.tokenizer.own_max_tokens();
                own.map_or((convert::LONGEST_STATIC, "nothing limits it"), |own| {
                    (own, "tokenizer.json")
                })
            });
            max_length(&config, &prepared.files, own)?
        }
        reader => (reader.frame()?.positions(), "a picture's parts"),
    };

    memory_for_weights(&held, &config)?;

    watch.report(Progress::Preparing);
    let engines = Engines::load(bundle, &config.runtime, &cancel).await?;
    let engine = engines.current();
    let adapters = convert::adapters(&bundle.graph);
    let mut feed = Feed::new(
        &bundle.origin,
        engine.description(),
        reader.padding(),
        adapters.len(),
    )?;
    if let Ok(frame) = reader.frame() {
        feed.positions = Some(frame.positions());
    }
    let dim = prepared
        .head
        .dim
        .ok_or_else(|| EngineError::UnsupportedModel {
            origin: bundle.origin.clone(),
            reason: "its graph does not state the number of components of its vectors".into(),
            hint: "Set text.dimension to that number".into(),
        })?;
    let positions = feed.positions.or(convert::filled(&bundle.graph));
    let (max_length, why_length) = match positions {
        Some(positions) if positions < max_length => (
            positions,
            "the graph is made for exactly this many positions",
        ),
        _ => (max_length, why_length),
    };

    let prompts = Prompts::new(&prepared.files, &config.text).with_adapters(adapters);
    if let Some(head) = &prepared.files.head
        && !head.include_prompt
        && prompts.any()
    {
        return Err(EngineError::UnsupportedModel {
            origin: bundle.origin.clone(),
            reason: "its prompts are left out of the pooling (include_prompt is false)".into(),
            hint: "isovec pools all of a text's tokens; choose another model".into(),
        }
        .into());
    }

    let optimize = config.runtime.io.batch_optimization.unwrap_or(true);

    let (mut late, mut query_words) = (None, None);
    let read = match &mut reader {
        Reader::Texts(reader) => {
            reader.limits = Limits {
                max_tokens: Some(max_length),
                truncation_side: match config.text.truncation {
                    Some(truncation) => truncation.side(),
                    None => reader.tokenizer.truncation_side(),
                },
            };
            if output == Output::Relevance {
                reader.frame = chat::frame(bundle)?;
            }
            let mut read = texts_identity(reader, max_length, &prompts);
            if let Some(frame) = &reader.frame {
                read.push(("pair", frame.identity()));
            }
            if let Some(score) = convert::logit_score(&bundle.graph) {
                read.push(("logits", score.to_owned()));
            }
            if let Some(unweighed) = &reader.unweighed {
                let ids: Vec<String> = unweighed.iter().map(u32::to_string).collect();
                read.push(("without weight", ids.join(" ")));
            }
            if let (Output::Sparse, Some(files)) = (output, &prepared.files.query_words) {
                let own = QueryWords::new(bundle, files, &config.text, words.unwrap_or(dim))?;
                read.push(("weights of queries", own.identity()));
                query_words = Some(Arc::new(own));
            }
            if let (Output::Tokens, Some(files)) = (output, &prepared.files.late) {
                let positions = prepared.files.positions;
                let own = LateReader::new(bundle, files, &reader.tokenizer, max_length, positions)?;
                read.push(("late interaction", own.identity()));
                late = Some(own);
            }
            read
        }
        reader => vec![("pixels", reader.frame()?.identity().to_owned())],
    };
    let precision = precision::computed(&prepared.bundle, &**engine);
    let fingerprint = Fingerprint {
        identity: identity(&prepared, read, words.unwrap_or(dim)),
        precision,
        claimed: claimed(&prepared.bundle),
    };
    let metric = prepared.files.similarity.unwrap_or_default();
    let labels = match output {
        Output::Labels => Some(Labels::read(&bundle.origin, &bundle.files, dim)?),
        Output::Relevance => Some(activation::read(&bundle.origin, &bundle.files, dim)?),
        Output::AsFile | Output::Vectors | Output::Sparse | Output::Tokens => None,
    };
    let mut effective = EffectiveConfig::default();
    effective::note_runtime(&mut effective, &config, &engines);
    hub.note(&mut effective, &config);
    effective.note_own(
        "model.onnx_file",
        config.model.onnx_file.as_ref(),
        &bundle.model_file,
        "the file of the model that isovec prefers",
    );
    prepared
        .stored
        .note(&mut effective, config.model.dtype, precision);
    match &reader {
        Reader::Texts(reader) => {
            effective.note(
                "text.max_length",
                config.text.max_length,
                max_length,
                why_length,
            );
            effective.note_own(
                "text.truncation",
                config.text.truncation.as_ref(),
                Truncation::of(reader.limits.truncation_side),
                "the tokenizer's files, else the default",
            );
        }
        _ => {
            let why = "the model reads pictures";
            effective.note_unused("text.max_length", config.text.max_length, why);
            let truncation = config.text.truncation.as_ref().map(ToString::to_string);
            effective.note_unused("text.truncation", truncation, why);
        }
    }
    let head = &prepared.head;
    effective.note(
        "text.pooling",
        config.text.pooling.map(pooling_name),
        &head.pooling,
        head.why,
    );
    effective.note(
        "text.normalize",
        config.text.normalize,
        head.normalize,
        head.why,
    );
    effective.note_own(
        "text.dimension",
        config.text.dimension.as_ref(),
        words.unwrap_or(dim),
        "the model's own",
    );
    prompts.note(&mut effective, &config.text);
    let mixer = bundle::row_mixer(&bundle.graph);
    let record = batching::record(&bundle.identity, &**engine, max_length, &config);
    let resolved = batching::resolve(
        &config,
        &**engine,
        &feed,
        mixer.as_ref(),
        record.read().await,
        &mut effective,
    );
    effective.note_own(
        "io.batch_optimization",
        config.runtime.io.batch_optimization.as_ref(),
        optimize,
        "the default",
    );
    let memory = Allowance::new(&config.runtime.memory, engine, &mut effective);
    effective.note_own(
        "memory.mmap",
        config.runtime.memory.mmap.as_ref(),
        config.runtime.memory.mmap.unwrap_or(true),
        "the default, for large files that the source has on disk",
    );

    let is_onnx = bundle.model_file.ends_with(".onnx");
    let verifies = !has_files || is_onnx || backend::identities(&config).is_none();
    let asked = config.model.verify;
    let why = match verifies {
        _ if asked == Some(verifies) => "the configuration",
        true => "hashes are kept of checkpoints in files, where there is a cache",
        false => "the default: files that did not change are hashed once",
    };
    effective.note("model.verify", asked.as_ref(), verifies, why);

    let options = json::text(&config.runtime.providers.options);
    let scope = Scope::of(&fingerprint, &bundle.graph, &engines, &effective, &options);
    let width = match output {
        Output::Sparse | Output::Tokens => None,
        _ => Some(dim),
    };
    let cache = EmbeddingCache::open(&config.embedding_cache, width, scope, &mut effective)?;

    Ok(Model {
        name,
        config,
        dim,
        max_length,
        fingerprint: Arc::new(fingerprint),
        metric,
        labels,
        weighting: prepared.head.weighting,
        words,
        query_words,
        late,
        effective,
        prompts,
        reader,
        normalized: prepared.head.normalize,
        budget: resolved.budget,
        batching: resolved.batching,
        calibration: Calibration::new(resolved.to_measure, Some(record), engine.provider().clone()),
        optimize,
        memory,
        feed,
        recorder: Recorder::default(),
        profiler: Profiler::default(),
        cache,
        engines,
    })
}

/// Refuses a limit that the weights alone are past.
pub(crate) fn memory_for_weights(bundle: &ModelBundle, config: &EmbeddingConfig) -> Result<()> {
    let Some(limit) = config.runtime.memory.memory_limit else {
        return Ok(());
    };
    let weights = bundle.weights.weights().iter();
    let bytes: u64 = weights.map(|weight| weight.byte_len() as u64).sum();
    if bytes > limit {
        return Err(Error::Config(vec![format!(
            "memory.memory_limit is {limit} bytes, and the weights of {} alone take {bytes}",
            bundle.origin
        )]));
    }
    Ok(())
}

/// Turns a model id into a folder; everything else is what it is.
pub(crate) async fn resolve(
    source: ModelSource,
    config: &EmbeddingConfig,
    watch: &Watch,
) -> Result<Origin> {
    match source {
        ModelSource::Hub(id) => Ok(Origin::fetched(backend::fetch(&id, config, watch).await?)),
        other => Ok(Origin::at_hand(other)),
    }
}

/// Opens the files, stores the weights as the configuration says, and puts the head on.
pub(crate) async fn prepare(
    source: ModelSource,
    config: &EmbeddingConfig,
    purpose: Purpose,
    cancel: &Cancel,
) -> Result<Prepared> {
    let bundle = open(source, config, &purpose, cancel)?;
    complete(bundle, config, purpose, cancel).await
}

/// Opens the files.
pub(crate) fn open(
    source: ModelSource,
    config: &EmbeddingConfig,
    purpose: &Purpose,
    cancel: &Cancel,
) -> Result<ModelBundle> {
    let options = BundleOptions {
        half: purpose.half,
        vocabulary: purpose.output == Output::Sparse,
        onnx_file: config.model.onnx_file.clone(),
        smallest: config.model.dtype == Some(Dtype::Auto),
        read_into_memory: config.runtime.memory.mmap == Some(false),
        identities: backend::identities(config),
    };
    let mut budget = Budget::for_files(0).with_cancel(cancel);
    Ok(match source {
        ModelSource::Folder(path) => bundle::from_folder_within(path, &options, &mut budget)?,
        ModelSource::Files(files) => bundle::from_files_within(files, &options, &mut budget)?,
        ModelSource::Contents { origin, files } => {
            bundle::from_contents_within(&origin, files, &options, &mut budget)?
        }
        ModelSource::Hub(id) => {
            return Err(EngineError::MissingFile {
                origin: id,
                file: "folder".into(),
                hint: "Model ids are downloaded before they are read".into(),
            }
            .into());
        }
    })
}

/// Stores the weights of opened files as the configuration says, and puts the head on.
pub(crate) async fn complete(
    bundle: ModelBundle,
    config: &EmbeddingConfig,
    purpose: Purpose,
    cancel: &Cancel,
) -> Result<Prepared> {
    // Before anything is looked for in a graph that reads something else.
    if purpose.half == Half::Pictures {
        frame::input(&bundle)?;
    }
    let mut files = sentence_transformers::read(&bundle.origin, &bundle.files)?;
    // A model has these heads beside that of its vectors, so they are read only where they are wanted.
    match purpose.output {
        Output::Tokens if files.late.is_none() => {
            files.late = sentence_transformers::m3_late(&bundle.origin, &bundle.files)?;
        }
        Output::Sparse if files.late.is_none() && files.splade.is_none() => {
            let own = sentence_transformers::m3_token_weights(&bundle.origin, &bundle.files)?;
            files.token_weights = own;
        }
        _ => {}
    }
    let (mut bundle, stored) =
        small::store(bundle, config.model.dtype, purpose.keep, cancel).await?;
    let wrong = |reason: &str, handle: &str| EngineError::UnsupportedModel {
        origin: bundle.origin.clone(),
        reason: reason.into(),
        hint: format!("Load it with `{handle}`"),
    };
    let head = match (purpose.output, &files.late) {
        (Output::AsFile, _) => Head::default(),
        (Output::Labels, _) if convert::logit_score(&bundle.graph).is_some() => {
            let reason = "its answer to a pair of texts is a score (LogitScore in modules.json), and no label";
            return Err(wrong(reason, "Reranker").into());
        }
        (Output::Vectors | Output::Sparse | Output::Tokens, _) if files.scores_pairs => {
            let reason = "it scores pairs of texts (LogitScore in modules.json, or model_type in config_sentence_transformers.json)";
            return Err(wrong(reason, "Reranker").into());
        }
        (Output::Tokens, Some(late)) => late_head(&mut bundle, &config.text, late)?,
        (Output::Tokens, None) => {
            let reason = "its files describe no vectors of tokens, and it has no colbert_linear.pt";
            return Err(wrong(reason, "Embedder").into());
        }
        (_, Some(_)) => {
            let reason = "it gives a vector for each token, for late interaction";
            return Err(wrong(reason, "MultiVectorEmbedder").into());
        }
        (Output::Sparse, None) if let Some(own) = &files.token_weights => {
            token_weights_head(&mut bundle, &config.text, own)?
        }
        (Output::Sparse, None) if files.head.is_some() => {
            let reason = "its modules.json describes vectors of components, and no SpladePooling, and it has no sparse_linear.pt";
            return Err(wrong(reason, "Embedder").into());
        }
        (Output::Sparse, None) => sparse_head(&mut bundle, &config.text, files.splade)?,
        (Output::Vectors, None) if files.splade.is_some() => {
            let reason =
                "it gives a weight for each word of its vocabulary (SpladePooling in modules.json)";
            return Err(wrong(reason, "SparseEmbedder").into());
        }
        (Output::Vectors, None) => {
            let input = PictureInput::of(&bundle.graph);
            if let Some(PictureInput::Whole { .. }) = input {
                keep_features(&mut bundle)?;
            }
            // Their first token stands for the picture; texts have no such rule.
            let usual = input.map(|_| Pooling::Cls);
            resolve_head(&mut bundle, &config.text, files.head.as_ref(), usual)?
        }
        (Output::Labels | Output::Relevance, None) => {
            if let Some(PictureInput::Whole { .. }) = PictureInput::of(&bundle.graph) {
                pictures::keep_scores(&mut bundle)?;
            }
            classifying_head(&mut bundle, &config.text)?
        }
    };
    Ok(Prepared {
        bundle,
        head,
        stored,
        files,
    })
}

/// Leaves a picture's features as the graph's output, and says which value that is.
fn keep_features(bundle: &mut ModelBundle) -> Result<()> {
    pictures::keep_features(bundle)?;
    let graphs = bundle.graph.graph.iter();
    let output = graphs.flat_map(|graph| &graph.output).next();
    let output = output.map_or("", |output| &output.name);
    tracing::info!(target: "isovec", "{}: the value {output} is a picture's features", bundle.origin);
    Ok(())
}

/// Tokens that the model sees of a text, and where the number comes from; `own` is what limits a model without positions.
fn max_length(
    config: &EmbeddingConfig,
    files: &ModelFiles,
    own: Option<(usize, &'static str)>,
) -> Result<(usize, &'static str)> {
    match (config.text.max_length, files.positions) {
        (Some(asked), Some(positions)) if asked > positions => Err(Error::Config(vec![format!(
            "text.max_length is {asked}, and the model has positions for {positions} tokens"
        )])),
        (Some(asked), _) => Ok((asked, "the configuration")),
        (None, _) => Ok(files
            .max_length
            .or(own)
            .unwrap_or((DEFAULT_MAX_LENGTH, "no file of the model says"))),
    }
}

/// What has to be equal of the way to a text's tokens.
fn texts_identity(
    reader: &TextReader,
    max_length: usize,
    prompts: &Prompts,
) -> Vec<(&'static str, String)> {
    let text = match reader.lowercase {
        true => "strip, lower-case",
        false => "strip",
    };
    vec![
        ("tokenizer", reader.tokenizer.identity()),
        ("text", text.to_owned()),
        ("truncation", cut(&reader.limits, max_length)),
        ("prompts", prompts.identity()),
    ]
}

/// How texts of more tokens are cut.
pub(super) fn cut(limits: &Limits, max_length: usize) -> String {
    let cut = match limits.truncation_side {
        TruncationSide::Start => "cut at the start",
        TruncationSide::Middle => "cut in the middle, a quarter from the start",
        _ => "cut at the end",
    };
    format!("{max_length} tokens, {cut}")
}

/// What has to be equal for vectors to be comparable, with what is said of the way from items to tokens.
fn identity(
    prepared: &Prepared,
    read: Vec<(&'static str, String)>,
    dim: usize,
) -> BTreeMap<String, String> {
    let head = &prepared.head;
    let mut identity: BTreeMap<String, String> = [
        ("weights", prepared.bundle.identity.0.clone()),
        ("pooling", head.pooling.clone()),
        (NORMALIZE, head.normalize.to_string()),
        (DIMENSION, dim.to_string()),
    ]
    .into_iter()
    .chain(read)
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    if let Some(space) = convert::space(&prepared.bundle.graph) {
        identity.insert(SPACE.into(), space.to_owned());
    }
    if !head.dense.is_empty() {
        identity.insert("dense".into(), head.dense.clone());
    }
    let config = prepared.bundle.files.get("config.json");
    let architecture = config.and_then(|config| architecture(config));
    identity.insert(
        ARCHITECTURE.into(),
        architecture.unwrap_or_else(|| UNKNOWN.into()),
    );
    identity
}

/// What of the identity a file only claims.
fn claimed(bundle: &ModelBundle) -> BTreeMap<String, String> {
    let own = onnx::claims_identity(&bundle.graph);
    own.map(|own| ("weights".to_owned(), own.to_owned()))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use isovec_engine::onnx::graph_identity;
    use isovec_engine::weights::WeightsIdentity;
    use isovec_model::onnx::{TENSORS_KEY, write_model};

    use super::*;

    fn tiny() -> ModelBundle {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny-bert");
        bundle::from_folder(folder, &BundleOptions::default()).unwrap()
    }

    fn written_and_read(bundle: &ModelBundle) -> ModelBundle {
        let file = backend::wait(write_model(bundle)).unwrap();
        let files = [("model.onnx".to_owned(), file.into())].into();
        bundle::from_bytes("file", files, &BundleOptions::default()).unwrap()
    }

    #[test]
    fn what_was_computed_is_no_claim_and_what_a_file_says_is_one() {
        let original = tiny();
        assert!(claimed(&original).is_empty());
        let exported = written_and_read(&original);
        assert_eq!(exported.identity, original.identity);
        let own = claimed(&exported)["weights"].clone();
        // Without its claim the same file is what its tensors are, which nobody has to believe.
        let mut plain = written_and_read(&original);
        plain.identity = WeightsIdentity(own.clone());
        let plain = written_and_read(&plain);
        assert_eq!(plain.identity.0, own);
        assert!(claimed(&plain).is_empty());
    }

    #[test]
    fn two_files_that_claim_the_same_share_no_cache() {
        let original = tiny();
        let mut other = written_and_read(&original);
        let graph = other.graph.graph.as_mut().unwrap();
        let mut bytes = graph.initializer[0].raw_data.to_vec();
        bytes[0] ^= 1;
        graph.initializer[0].raw_data = bytes.into();
        let (one, other) = (written_and_read(&original), written_and_read(&other));
        assert_eq!(one.identity, other.identity);
        assert_ne!(claimed(&one), claimed(&other));
        assert_ne!(graph_identity(&one.graph), graph_identity(&other.graph));
        let carries = |bundle: &ModelBundle| {
            let mut entries = bundle.graph.metadata_props.iter();
            entries.any(|entry| entry.key == TENSORS_KEY)
        };
        assert!(carries(&one) && !carries(&original));
    }
}
