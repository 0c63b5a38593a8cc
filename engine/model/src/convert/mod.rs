//! From `config.json` and safetensors to an ONNX graph, without leaving Rust.
//!
//! Most models are published as weights and a config, without a graph. This module has code that builds the graphs of
//! the families in use, each in a file of its own over shared blocks: the encoders BERT, RoBERTa (with XLM-R and
//! CamemBERT), MPNet, DistilBERT, ModernBERT, NomicBERT, GTE, JinaBERT, jina-embeddings-v3, DeBERTa-v2, T5, EuroBERT; the decoders Qwen2, Qwen3, Llama, Mistral, Gemma 3; of pictures ViT, DINOv2,
//! DINOv3; the two halves of CLIP and SigLIP; static embeddings; see [`Family`]. The graph is opset 17, uses only operators of the standard domain, leaves batch and
//! sequence open, and is the same, byte for byte, on every run. [`catalog`] lists well-known models and how each is loaded.
//!
//! Every tensor is checked against `config.json` when the graph is built, and read (and widened
//! to f32, and transposed) only when an engine asks for it.

mod activation;
mod adapters;
mod alibi;
mod architecture;
mod attention;
mod bert;
pub mod catalog;
mod classifier;
mod clip;
mod clip_text;
mod clip_vision;
mod config;
mod deberta;
mod decoder;
mod dinov2;
mod dinov3;
mod disentangled;
mod distilbert;
mod embeddings;
mod encoder;
mod experts;
mod gemma3;
mod gte;
mod jina;
mod jina_v3;
mod linear;
mod llama;
mod logit_score;
mod mask;
mod masked;
mod modernbert;
mod mpnet;
mod net;
mod nomicbert;
mod norm;
mod patches;
mod positions;
mod pre_norm;
mod projection;
mod qwen;
mod relative;
mod roberta;
mod rotary;
mod sight;
mod siglip_vision;
mod source;
mod static_embedding;
mod t5;
mod vit;
mod wavelengths;

use std::sync::Arc;

use isovec_engine::budget::{Budget, Resource};
use isovec_engine::error::Result;
use isovec_engine::onnx::proto::{
    GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto,
};
use isovec_engine::weights::{WeightSource, Weights};
use serde_json::Value;

pub use self::adapters::ADAPTER_IDS;
pub use self::architecture::architecture;
use self::config::Config;
pub use self::logit_score::LogitScore;
use self::net::Net;
pub use self::patches::{PATCHES, PatchGrid};
pub(crate) use self::static_embedding::CONFIG as STATIC_CONFIG;
pub use self::static_embedding::{LONGEST as LONGEST_STATIC, is_model2vec};
use crate::safetensors::TensorSet;

/// The operator set that the graphs use: the first with `LayerNormalization`.
const OPSET: i64 = 17;

/// The file format that came with it.
const IR_VERSION: i64 = 8;

/// Memory that each byte of JSON can ask for: two bytes of a list are a value of 32 in a list that doubles.
const JSON_COST: u64 = 32;

/// Memory that the nodes of a layer take, generously.
const LAYER_BYTES: u64 = 64 << 10;

/// Nodes of a layer, generously.
const LAYER_NODES: u64 = 128;

/// The metadata entry that holds the longest sequence the graph can take.
pub const MAX_SEQUENCE: &str = "isovec.max_sequence";

/// The metadata entry that holds the number of rows in the table of words: ids from there on are
/// not the model's.
pub const VOCABULARY: &str = "isovec.vocabulary";

/// A model as a graph with its weights apart.
#[derive(Debug, Clone)]
pub struct Converted {
    /// Inputs `input_ids`, `attention_mask` and, where the model has them, `token_type_ids` and [`ADAPTER_IDS`], i64
    /// `[batch, sequence]`; output `last_hidden_state`, f32 `[batch, sequence, hidden]`, and, of a classifier that is
    /// converted, `logits`, f32 `[batch, labels]`; where the vocabulary's layers are wanted,
    /// [`TOKEN_LOGITS`](crate::sparse::TOKEN_LOGITS); of ColBERT's class, [`TOKEN_VECTORS`](crate::tokens::TOKEN_VECTORS). Its metadata holds [`MAX_SEQUENCE`] and [`VOCABULARY`]. A model of pictures has
    /// the input [`PATCHES`] instead, and its metadata a [`PatchGrid`]; CLIP's output is `image_embeds`, f32 `[batch, projection]`.
    pub graph: ModelProto,
    /// Every tensor that the graph names and does not hold, converted when it is read.
    pub weights: Weights,
    /// The longest sequence that the graph can take. A longer one is an error of the engine, and
    /// not of the same kind in each, so cut or refuse it before.
    pub max_sequence: usize,
}

/// The architectures that can be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// BERT: MiniLM, BGE, E5, GTE, mxbai, Arctic and most others.
    Bert,
    /// RoBERTa, XLM-R and CamemBERT: the multilingual E5, BGE-M3.
    Roberta,
    /// MPNet: all-mpnet-base.
    Mpnet,
    /// DistilBERT.
    DistilBert,
    /// ModernBERT.
    ModernBert,
    /// NomicBERT: nomic-embed-text, Arctic's long model.
    NomicBert,
    /// GTE's newer architecture: gte-base-en-v1.5, gte-multilingual-base, Arctic's medium model 2.0.
    Gte,
    /// JinaBERT: jina-embeddings-v2.
    JinaBert,
    /// Jina's XLM-R: jina-embeddings-v3, with rotary positions and adapters; jina-colbert-v2; jina-reranker-v2, with XLM-R's positions.
    JinaV3,
    /// DeBERTa-v2 and v3: mxbai-rerank-v1, models of natural language inference.
    DebertaV2,
    /// The encoder of T5: sentence-t5, gtr-t5.
    T5,
    /// EuroBERT, a Llama whose tokens see both ways.
    EuroBert,
    /// Qwen2, a decoder.
    Qwen2,
    /// Qwen3, a decoder: Qwen3-Embedding.
    Qwen3,
    /// Llama, a decoder.
    Llama,
    /// Mistral, a decoder: e5-mistral, SFR-Embedding.
    Mistral,
    /// The part of Gemma 3 that reads texts: EmbeddingGemma.
    Gemma3,
    /// ViT and DeiT, which read pictures; DINO's first version is one.
    Vit,
    /// DINOv2, with registers or without, which reads pictures.
    Dinov2,
    /// DINOv3's ViT, which reads pictures.
    Dinov3,
    /// The half of CLIP that reads texts.
    ClipText,
    /// The half of CLIP that reads pictures.
    ClipVision,
    /// The half of SigLIP that reads texts.
    SiglipText,
    /// The half of SigLIP that reads pictures.
    SiglipVision,
    /// A vector for each token: Model2Vec, and sentence-transformers' `StaticEmbedding`.
    Static,
}

/// Which half of a model with two is meant. A model with one has no choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Half {
    /// The one that reads texts.
    #[default]
    Texts,
    /// The one that reads pictures.
    Pictures,
}

/// What is wanted of a checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Which half of a model that has two.
    pub half: Half,
    /// Whether the layers that score the words of the vocabulary are wanted too: of masked language models, for sparse vectors.
    pub vocabulary: bool,
    /// The tokens whose logits are the score, of a decoder that is asked for an answer.
    pub logit_score: Option<LogitScore>,
}

impl From<Half> for Wanted {
    fn from(half: Half) -> Self {
        Self {
            half,
            ..Self::default()
        }
    }
}

/// The metadata entry with the name of the space that both halves of a model share.
const SPACE: &str = "isovec.space";

/// The metadata entry with the number of tokens that every text is filled up to.
const FILLED: &str = "isovec.filled";

/// The metadata entry that says why a graph gives no logits, although its config or its checkpoint speaks of them.
pub(crate) const NO_LOGITS: &str = "isovec.no_logits";

/// The metadata entry with the tokens whose logits are a graph's score.
const LOGIT_SCORE: &str = "isovec.logit_score";

/// The metadata entry that says what decides a graph's numbers of words and no tensor shows.
pub(crate) const TOKEN_LOGITS_MADE: &str = "isovec.token_logits";

/// The number of tokens that every text is filled up to with the id of padding, of a model that was trained to see them as
/// tokens.
pub fn filled(model: &ModelProto) -> Option<usize> {
    let entry = model
        .metadata_props
        .iter()
        .find(|entry| entry.key == FILLED);
    entry.and_then(|entry| entry.value.parse::<u16>().ok().map(usize::from))
}

/// The tokens whose logits are the score, of a graph that ends in a decoder's answer, and the matrix that they are rows of.
pub fn logit_score(model: &ModelProto) -> Option<&str> {
    let entry = model
        .metadata_props
        .iter()
        .find(|entry| entry.key == LOGIT_SCORE);
    entry.map(|entry| entry.value.as_str())
}

/// The names of a model's adapters, in the order of their numbers; empty where it has none. A text without an adapter has their count
/// for [`ADAPTER_IDS`].
pub fn adapters(model: &ModelProto) -> Vec<String> {
    let entry = model
        .metadata_props
        .iter()
        .find(|entry| entry.key == adapters::NAMES);
    let names = entry.and_then(|entry| serde_json::from_str(&entry.value).ok());
    names.unwrap_or_default()
}

/// The name of the space that both halves of a graph's model share, if it is half of one.
pub fn space(model: &ModelProto) -> Option<&str> {
    let entry = model.metadata_props.iter().find(|entry| entry.key == SPACE);
    entry.map(|entry| entry.value.as_str())
}

impl Family {
    fn of(config: &Config, half: Half) -> Result<Self> {
        let model_type = match config.text_or("model_type", "")? {
            "" if jina_v3::is_read_by_own_class(config) => "xlm-roberta",
            named => named,
        };
        let family = match model_type {
            "bert" if jina::has_slopes(config)? => Self::JinaBert,
            "bert" => Self::Bert,
            "xlm-roberta" if jina_v3::is_of_family(config)? => Self::JinaV3,
            "roberta" | "xlm-roberta" | "camembert" => Self::Roberta,
            "mpnet" => Self::Mpnet,
            "distilbert" => Self::DistilBert,
            "modernbert" => Self::ModernBert,
            "nomic_bert" => Self::NomicBert,
            "new" | "gte" => Self::Gte,
            "deberta-v2" => Self::DebertaV2,
            "t5" => Self::T5,
            "eurobert" => Self::EuroBert,
            "qwen2" => Self::Qwen2,
            "qwen3" => Self::Qwen3,
            "llama" => Self::Llama,
            "mistral" => Self::Mistral,
            "gemma3_text" => Self::Gemma3,
            "vit" | "deit" => Self::Vit,
            "dinov2" | "dinov2_with_registers" => Self::Dinov2,
            "dinov3_vit" => Self::Dinov3,
            "clip" if half == Half::Texts => Self::ClipText,
            "clip" | "clip_vision_model" => Self::ClipVision,
            "clip_text_model" => Self::ClipText,
            "siglip" if half == Half::Texts => Self::SiglipText,
            "siglip" | "siglip_vision_model" => Self::SiglipVision,
            "siglip_text_model" => Self::SiglipText,
            "model2vec" | "static_embedding" => Self::Static,
            "" => return Err(config.unsupported("config.json has no model_type")),
            other => {
                return Err(config.unsupported(format!(
                    "model_type {other:?} is not one that can be converted (bert, roberta, \
                     xlm-roberta, camembert, mpnet, distilbert, modernbert, nomic_bert, new, gte, \
                     deberta-v2, t5, eurobert, qwen2, qwen3, llama, mistral, gemma3_text, vit, deit, dinov2, dinov2_with_registers, \
                     dinov3_vit, clip, siglip, model2vec)"
                )));
            }
        };
        match family {
            Self::Bert | Self::Roberta => bert::check(config)?,
            Self::Mpnet => mpnet::check(config)?,
            Self::DistilBert => distilbert::check(config)?,
            Self::ModernBert => modernbert::check(config)?,
            Self::NomicBert => nomicbert::check(config)?,
            Self::Gte => gte::check(config)?,
            Self::JinaBert => jina::check(config)?,
            Self::JinaV3 => jina_v3::check(config)?,
            Self::DebertaV2 => deberta::check(config)?,
            Self::T5 => t5::check(config)?,
            Self::EuroBert => drop(llama::eurobert(config)?),
            Self::Qwen2 => drop(qwen::qwen2(config)?),
            Self::Qwen3 => drop(qwen::qwen3(config)?),
            Self::Llama => drop(llama::llama(config)?),
            Self::Mistral => drop(llama::mistral(config)?),
            Self::Gemma3 => drop(gemma3::gemma3(config)?),
            Self::Vit => vit::check(config)?,
            Self::Dinov2 => dinov2::check(config)?,
            Self::Dinov3 => dinov3::check(config)?,
            Self::ClipText | Self::ClipVision | Self::SiglipText | Self::SiglipVision => {
                clip::check(config)?;
            }
            Self::Static => {}
        }
        // A repository with its own code borrows a well-known model_type and computes something
        // else under it.
        let own_code = config
            .value("auto_map")
            .and_then(|map| map.get("AutoModel"));
        if own_code.is_some_and(|class| !family.is_of_class(class)) {
            return Err(config.unsupported(format!(
                "the model brings its own code (auto_map in config.json), so it need not be the \
                 {model_type} that it is called"
            )));
        }
        Ok(family)
    }

    /// Whether the family's models are published with code of their own, which has this class: `repository--file.Class`.
    fn is_of_class(self, class: &serde_json::Value) -> bool {
        let class = class.as_str().unwrap_or_default();
        let class = class.rsplit('.').next().unwrap_or_default();
        match self {
            Self::NomicBert => true,
            Self::Gte => ["NewModel", "GteModel"].contains(&class),
            Self::JinaBert => class == "JinaBertModel",
            Self::JinaV3 => ["XLMRobertaLoRA", "XLMRobertaModel"].contains(&class),
            Self::EuroBert => class == "EuroBertModel",
            _ => false,
        }
    }

    fn anchor(self, tensors: &TensorSet) -> &'static str {
        match self {
            Self::Static => static_embedding::anchor(tensors),
            Self::JinaV3 => jina_v3::anchor(tensors),
            Self::ModernBert => modernbert::ANCHOR,
            Self::T5 => t5::ANCHOR,
            Self::EuroBert
            | Self::Qwen2
            | Self::Qwen3
            | Self::Llama
            | Self::Mistral
            | Self::Gemma3 => decoder::ANCHOR,
            Self::Vit | Self::Dinov2 | Self::Dinov3 => vit::ANCHOR,
            Self::ClipText | Self::SiglipText => clip_text::ANCHOR,
            Self::ClipVision => clip_vision::ANCHOR,
            Self::SiglipVision => siglip_vision::ANCHOR,
            _ => bert::ANCHOR,
        }
    }

    /// The number of layers.
    fn layers(self, config: &Config) -> Result<usize> {
        match self {
            Self::Bert
            | Self::Roberta
            | Self::Mpnet
            | Self::ModernBert
            | Self::Gte
            | Self::JinaBert
            | Self::JinaV3
            | Self::DebertaV2
            | Self::EuroBert
            | Self::Qwen2
            | Self::Qwen3
            | Self::Llama
            | Self::Mistral
            | Self::Gemma3
            | Self::Vit
            | Self::Dinov2
            | Self::Dinov3 => config.size("num_hidden_layers"),
            Self::DistilBert => config.size("n_layers"),
            Self::NomicBert => config.size("n_layer"),
            Self::T5 => config.size("num_layers"),
            Self::ClipText | Self::SiglipText => clip::text(config)?.layers_of(config),
            Self::ClipVision | Self::SiglipVision => clip::vision(config)?.layers_of(config),
            Self::Static => Ok(0),
        }
    }

    /// Whether a score is read at a text's last token, which has seen all others.
    pub fn is_decoder(self) -> bool {
        self.scoring_class().is_some()
    }

    /// The class of a decoder that has a layer of scores.
    fn scoring_class(self) -> Option<&'static str> {
        match self {
            Self::Qwen2 => Some("Qwen2ForSequenceClassification"),
            Self::Qwen3 => Some("Qwen3ForSequenceClassification"),
            Self::Llama => Some("LlamaForSequenceClassification"),
            Self::Mistral => Some("MistralForSequenceClassification"),
            Self::Gemma3 => Some("Gemma3TextForSequenceClassification"),
            _ => None,
        }
    }

    /// Rows of the table of words.
    fn vocabulary(self, config: &Config) -> Result<usize> {
        match self {
            Self::ClipText | Self::SiglipText => clip_text::vocabulary(config),
            _ => config.size("vocab_size"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bert => "bert",
            Self::Roberta => "roberta",
            Self::Mpnet => "mpnet",
            Self::DistilBert => "distilbert",
            Self::ModernBert => "modernbert",
            Self::NomicBert => "nomicbert",
            Self::Gte => "gte",
            Self::JinaBert => "jina_bert",
            Self::JinaV3 => "jina_v3",
            Self::DebertaV2 => "deberta_v2",
            Self::T5 => "t5",
            Self::EuroBert => "eurobert",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Llama => "llama",
            Self::Mistral => "mistral",
            Self::Gemma3 => "gemma3",
            Self::Vit => "vit",
            Self::Dinov2 => "dinov2",
            Self::Dinov3 => "dinov3",
            Self::ClipText => "clip_text",
            Self::ClipVision => "clip_vision",
            Self::SiglipText => "siglip_text",
            Self::SiglipVision => "siglip_vision",
            Self::Static => "static",
        }
    }
}

/// The family that a `config.json` belongs to, if [`convert`] takes it. Looks at the config
/// alone, so that a bundle can choose between safetensors and ONNX before opening either.
///
/// # Errors
/// [`EngineError::UnsupportedModel`](isovec_engine::EngineError::UnsupportedModel) with the reason when it cannot be converted,
/// [`EngineError::InvalidModel`](isovec_engine::EngineError::InvalidModel) when the config is not readable.
pub fn family(origin: &str, config_json: &[u8]) -> Result<Family> {
    Family::of(&Config::parse(origin, config_json)?, Half::Texts)
}

/// Builds the graph of a model.
///
/// Tensors are found under the family's names with whatever prefix the checkpoint puts before
/// them (`bert.`, `roberta.`, none); tensors that the graph does not need (poolers, language
/// model heads, stored positions) are ignored.
///
/// # Errors
/// [`EngineError::UnsupportedModel`](isovec_engine::EngineError::UnsupportedModel) for an architecture or an option that is not converted;
/// [`EngineError::InvalidModel`](isovec_engine::EngineError::InvalidModel) for a config that is not readable, lacks a size or contradicts
/// itself; [`EngineError::Weight`](isovec_engine::EngineError::Weight), naming the tensor, for one that is missing, has another
/// shape than the config asks for, or is not of a float type.
pub fn convert(config_json: &[u8], tensors: Arc<TensorSet>) -> Result<Converted> {
    let mut budget = Budget::for_files(tensors.byte_len());
    convert_within(config_json, &[], tensors, Half::Texts, &mut budget)
}

/// [`convert`] within a budget, of what is wanted of a model. `preprocessor_json` is `preprocessor_config.json`, empty where
/// there is none: a model that reads pictures of any size is made for those that it says.
///
/// # Errors
/// As [`convert`]; [`EngineError::OverBudget`](isovec_engine::EngineError::OverBudget) where `config.json` asks for more layers or
/// larger tables than files of the model's size may; [`EngineError::Cancelled`](isovec_engine::EngineError::Cancelled).
pub fn convert_within(
    config_json: &[u8],
    preprocessor_json: &[u8],
    tensors: Arc<TensorSet>,
    wanted: impl Into<Wanted>,
    budget: &mut Budget,
) -> Result<Converted> {
    let Wanted {
        half,
        vocabulary: words,
        logit_score,
    } = wanted.into();
    let place = format!("{}: config.json", tensors.origin());
    let json = (config_json.len() + preprocessor_json.len()) as u64;
    budget.add_file(json);
    budget.take(Resource::Bytes, json.saturating_mul(JSON_COST), &place)?;
    let config = Config::parse(tensors.origin(), config_json)?;
    let family = Family::of(&config, half)?;
    let layers = family.layers(&config)? as u64;
    budget.take(Resource::Bytes, layers * LAYER_BYTES, &place)?;
    budget.take(Resource::Nodes, layers * LAYER_NODES, &place)?;
    let mut graph = GraphProto {
        name: family.name().into(),
        ..GraphProto::default()
    };
    let anchor = family.anchor(&tensors);
    let mut net = Net::new(&mut graph, &config, tensors, anchor)?;
    let (mut grid, mut vocabulary) = (None, None);
    let max_sequence = match family {
        Family::Bert => bert::build(&config, &mut net)?,
        Family::Roberta => roberta::build(&config, &mut net)?,
        Family::Mpnet => mpnet::build(&config, &mut net)?,
        Family::DistilBert => distilbert::build(&config, &mut net)?,
        Family::ModernBert => modernbert::build(&config, &mut net)?,
        Family::NomicBert => nomicbert::build(&config, &mut net)?,
        Family::Gte => gte::build(&config, &mut net)?,
        Family::JinaBert => jina::build(&config, &mut net)?,
        Family::JinaV3 => jina_v3::build(&config, &mut net)?,
        Family::DebertaV2 => deberta::build(&config, &mut net)?,
        Family::T5 => t5::build(&config, &mut net)?,
        Family::EuroBert => llama::eurobert(&config)?.build(&mut net)?,
        Family::Qwen2 => qwen::qwen2(&config)?.build(&mut net)?,
        Family::Qwen3 => qwen::qwen3(&config)?.build(&mut net)?,
        Family::Llama => llama::llama(&config)?.build(&mut net)?,
        Family::Mistral => llama::mistral(&config)?.build(&mut net)?,
        Family::Gemma3 => gemma3::gemma3(&config)?.build(&mut net)?,
        Family::Vit => grid.insert(vit::build(&config, &mut net)?).tokens(),
        Family::Dinov2 => {
            let built = dinov2::build(&config, preprocessor_json, &mut net)?;
            grid.insert(built).tokens()
        }
        Family::Dinov3 => {
            let built = dinov3::build(&config, preprocessor_json, &mut net)?;
            grid.insert(built).tokens()
        }
        Family::ClipText | Family::SiglipText => clip_text::build(&config, &mut net)?,
        Family::ClipVision => grid.insert(clip_vision::build(&config, &mut net)?).tokens(),
        Family::SiglipVision => grid
            .insert(siglip_vision::build(&config, &mut net)?)
            .tokens(),
        Family::Static => {
            vocabulary = Some(static_embedding::build(&mut net, anchor)?);
            LONGEST_STATIC
        }
    };
    let words = words
        .then(|| masked::add(family, &config, &mut net))
        .transpose()?;
    projection::add(&config, &mut net)?;
    let mut scored = None;
    match (family.scoring_class(), logit_score) {
        (Some(_), Some(score)) => scored = Some(logit_score::add(&config, &mut net, score)?),
        (Some(class), None) => classifier::add_to_decoder(&config, &mut net, class)?,
        (None, Some(_)) => {
            return Err(config.unsupported(format!(
                "modules.json names LogitScore, which scores the answer of a decoder, and {} is none",
                family.name()
            )));
        }
        (None, None) => {}
    }
    let no_logits = net.why_no_logits();
    let weights = net.into_weights();
    // Tables are made when an engine asks for them, so what is refused here was not made.
    for info in weights.weights() {
        let place = format_args!("{place}: table {}", info.name);
        budget.take(Resource::Elements, info.elements() as u64, place)?;
    }
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: key.into(),
        value,
    };
    let mut metadata_props = vec![entry(MAX_SEQUENCE, max_sequence.to_string())];
    metadata_props.push(match (grid, vocabulary) {
        (Some(grid), _) => entry(patches::GRID, grid.to_string()),
        (None, Some(tokens)) => entry(VOCABULARY, tokens.to_string()),
        (None, None) => entry(VOCABULARY, family.vocabulary(&config)?.to_string()),
    });
    if clip::has_both(&config)? {
        metadata_props.push(entry(SPACE, config.text_or("model_type", "")?.into()));
    }
    if family == Family::JinaV3 {
        let names = jina_v3::adapters(&config)?;
        if !names.is_empty() {
            metadata_props.push(entry(adapters::NAMES, Value::from(names).to_string()));
        }
    }
    if family == Family::SiglipText {
        metadata_props.push(entry(FILLED, max_sequence.to_string()));
    }
    if let Some(scored) = scored {
        metadata_props.push(entry(LOGIT_SCORE, scored));
    }
    if let Some(made) = words {
        metadata_props.push(entry(TOKEN_LOGITS_MADE, made));
    }
    if let Some(why) = no_logits {
        metadata_props.push(entry(NO_LOGITS, why));
    }
    Ok(Converted {
        graph: ModelProto {
            ir_version: IR_VERSION,
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: OPSET,
            }],
            producer_name: "isovec".into(),
            producer_version: env!("CARGO_PKG_VERSION").into(),
            metadata_props,
            graph: Some(graph),
            ..ModelProto::default()
        },
        weights: Arc::new(weights),
        max_sequence,
    })
}
