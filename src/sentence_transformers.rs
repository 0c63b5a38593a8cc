//! Reads a model's own files about turning texts into vectors.
//!
//! The files are those that the sentence-transformers library writes beside a model:
//! `modules.json` (which steps there are), `1_Pooling/config.json`, `2_Dense/config.json`,
//! `sentence_bert_config.json` (maximum length, lower-casing), `config_sentence_transformers.json`
//! (prompts, similarity function); then `tokenizer_config.json` and `config.json` for the length.
//! A model of static embeddings is told by `modules.json` or, if it is Model2Vec's, by `config.json`.
//! Their meaning is defined by that library's source, `sentence_transformers/models/*.py`.

mod late;
mod m3;
mod router;

use std::collections::BTreeMap;

use bytes::Bytes;
use half::{bf16, f16};
use isovec_engine::EngineError;
use isovec_model::bundle::LOGIT_SCORE;
use isovec_model::convert::{Family, family, is_model2vec};
use isovec_model::head::{Activation, Dense, Pooling};
use isovec_model::safetensors::{SourceDType, TensorSet};
use isovec_model::sparse::{Over, Splade};
use isovec_tokenize::Tokens;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use late::{LateFiles, is_late};
pub(crate) use m3::{TokenWeightFiles, m3_late, m3_token_weights};
pub(crate) use router::{QueryWordFiles, TokenWeights};

use crate::similarity::Similarity;

type Result<T> = isovec_engine::Result<T>;

/// What the files say. Nothing in it comes from the configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ModelFiles {
    /// The steps after the transformer, where `modules.json` names them, and they make vectors of components.
    pub(crate) head: Option<FileHead>,
    /// Whether the model scores pairs, by these files: it has no steps that make vectors.
    pub(crate) scores_pairs: bool,
    /// The step after the transformer where it makes weights of words.
    pub(crate) splade: Option<Splade>,
    /// The weights of a query's tokens, where queries are not computed.
    pub(crate) query_words: Option<QueryWordFiles>,
    /// What weighs tokens one by one, where the model is loaded for that.
    pub(crate) token_weights: Option<TokenWeightFiles>,
    /// How texts are read and compared token by token, where the model is one of late interaction.
    pub(crate) late: Option<LateFiles>,
    /// How many tokens a text may have, and which file says so.
    pub(crate) max_length: Option<(usize, &'static str)>,
    /// Tokens that the model has positions for.
    pub(crate) positions: Option<usize>,
    /// Rows of the table of token embeddings, as `config.json` has it.
    pub(crate) vocab_size: Option<usize>,
    /// Texts are lower-cased before the tokenizer sees them.
    pub(crate) lowercase: bool,
    /// Prompts by name.
    pub(crate) prompts: BTreeMap<String, String>,
    /// The name of the prompt of every text that asks for no other.
    pub(crate) default_prompt: Option<String>,
    /// How vectors are meant to be compared.
    pub(crate) similarity: Option<Similarity>,
    /// What is said of a model that is a table of tokens' vectors.
    pub(crate) table: Option<StaticTable>,
}

/// What the files say of a model of static embeddings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StaticTable {
    /// The folder of its tokenizer; empty for the root.
    pub(crate) folder: String,
    /// Which tokens of a text are looked up.
    pub(crate) tokens: Tokens,
}

/// Tokens of a text that Model2Vec looks up, if its caller says nothing else: the default of its `encode`.
const MODEL2VEC_LENGTH: usize = 512;

/// The steps after the transformer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileHead {
    pub(crate) pooling: Pooling,
    /// Whether the prompt's own tokens are pooled.
    pub(crate) include_prompt: bool,
    pub(crate) dense: Vec<Dense>,
    pub(crate) normalize: bool,
}

/// Reads all of it.
///
/// # Errors
/// [`EngineError::InvalidModel`] for a file that is not what it should be,
/// [`EngineError::UnsupportedModel`] for a step that isovec does not have, and
/// [`EngineError::MissingFile`] for one that is named and not there.
pub(crate) fn read(origin: &str, files: &BTreeMap<String, Bytes>) -> Result<ModelFiles> {
    let folder = Folder { origin, files };
    let (modules, query_words) = match folder.json("modules.json")? {
        None => (None, None),
        Some(modules) => {
            let (modules, query_words) = folder.documents(modules)?;
            (Some(modules), query_words)
        }
    };
    let transformer = match &modules {
        Some(modules) => folder.transformer(modules)?,
        None => "",
    };
    let splade = match &modules {
        Some(modules) => folder.splade(modules)?,
        None => None,
    };
    if query_words.is_some() && splade.is_none() {
        let reason = "its queries are weights of words, and its documents are something else";
        let hint = "isovec has SpladePooling for the documents beside such queries";
        return Err(folder.unsupported(reason.into(), hint));
    }
    let bert = folder.sentence_bert(transformer)?;
    let st: SentenceTransformersConfig = folder
        .json("config_sentence_transformers.json")?
        .unwrap_or_default();
    let late = folder.late(modules.as_deref(), transformer, &bert)?;
    let scores_pairs = match &modules {
        Some(modules) => folder.scores_pairs(modules, &st)?,
        None => false,
    };
    let mut head = modules
        .as_deref()
        .filter(|_| splade.is_none() && late.is_none() && !scores_pairs)
        .map(|modules| folder.head(modules))
        .transpose()?;
    let table = folder.table(modules.as_deref(), &mut head)?;

    let config: Option<HfConfig> = folder.json_in(transformer, "config.json")?;
    let config = config.unwrap_or_default().of_texts();
    let tokenizer: Option<TokenizerConfig> =
        folder.json_in(transformer, "tokenizer_config.json")?;
    let positions = config.positions();
    let tokenizer_length = tokenizer.and_then(|tokenizer| tokenizer.length());
    let model2vec = table.as_ref().map(|table| table.tokens == Tokens::Known);
    let max_length = match model2vec {
        _ if let Some(late) = &late => late.passage_length(positions),
        Some(true) => Some((MODEL2VEC_LENGTH, "Model2Vec's default")),
        // Only its tokenizer limits it.
        Some(false) => None,
        None => max_length(&bert, tokenizer_length, positions),
    };

    if let Some(name) = &st.default_prompt_name
        && !st.prompts.contains_key(name)
    {
        return Err(folder.invalid(
            "config_sentence_transformers.json",
            format!("default_prompt_name is {name:?}, which is not among the prompts"),
        ));
    }
    // Tokens are compared in one way, whatever old files say.
    let similarity = st
        .similarity_fn_name
        .as_deref()
        .filter(|_| late.is_none())
        .map(|name| folder.similarity(name))
        .transpose()?;
    Ok(ModelFiles {
        head,
        scores_pairs,
        splade,
        query_words,
        token_weights: None,
        late,
        max_length,
        positions,
        vocab_size: config.vocab_size,
        lowercase: bert.do_lower_case,
        prompts: st.prompts,
        default_prompt: st.default_prompt_name,
        similarity,
        table,
    })
}

/// How many tokens a text may have, and which file says so.
fn max_length(
    bert: &SentenceBertConfig,
    tokenizer_length: Option<usize>,
    positions: Option<usize>,
) -> Option<(usize, &'static str)> {
    let (length, file) = [
        (bert.max_seq_length, "sentence_bert_config.json"),
        (tokenizer_length, "tokenizer_config.json"),
        (positions, "config.json"),
    ]
    .into_iter()
    .find_map(|(length, file)| Some((length?, file)))?;
    // A tokenizer that allows more than the model has positions for does not make them.
    Some(match positions {
        Some(positions) if positions < length => (positions, "config.json"),
        _ => (length, file),
    })
}

/// The class of a step that looks a vector up for each token, and takes their mean.
const STATIC: &str = "StaticEmbedding";

/// The class that jina-embeddings-v3 brings with it: a Transformer that chooses an adapter by the name of a task.
const OWN_TRANSFORMER: &str = "custom_st.Transformer";

/// The class of a step that pools the numbers of words.
const SPLADE: &str = "SpladePooling";

/// One step in `modules.json`.
#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    path: String,
    r#type: String,
}

impl Module {
    /// The class name, where the library itself defines it; its classes have moved between its
    /// modules, but their names stand.
    fn class(&self) -> Option<&str> {
        self.r#type
            .strip_prefix("sentence_transformers.")?
            .rsplit('.')
            .next()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SentenceBertConfig {
    max_seq_length: Option<usize>,
    do_lower_case: bool,
    query_length: Option<usize>,
    document_length: Option<usize>,
    query_expansion: Option<late::QueryExpansion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenizerConfig {
    /// Often `int(1e30)`, which says that there is no limit.
    model_max_length: Option<f64>,
}

impl TokenizerConfig {
    fn length(&self) -> Option<usize> {
        self.model_max_length
            .filter(|length| (1.0..=1e6).contains(length))
            .map(|length| length as usize)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HfConfig {
    model_type: Option<String>,
    max_position_embeddings: Option<usize>,
    pad_token_id: Option<usize>,
    vocab_size: Option<usize>,
    auto_map: Value,
    /// What a model of texts and pictures says of its half for texts.
    text_config: Option<Box<HfConfig>>,
}

impl HfConfig {
    /// The part that is about texts.
    fn of_texts(self) -> Self {
        match self.text_config {
            Some(own) => own.of_texts(),
            None => self,
        }
    }

    fn positions(&self) -> Option<usize> {
        // RoBERTa and those after it number positions from the padding id + 1.
        let shifted = [
            "roberta",
            "xlm-roberta",
            "xlm-roberta-xl",
            "camembert",
            "mpnet",
            "longformer",
        ];
        let skipped = match self.model_type.as_deref() {
            // Configs of Jina's XLM-R may name no type.
            None if self.auto_map.to_string().contains("XLMRobertaFlashConfig") => 2,
            Some(family) if shifted.contains(&family) => {
                self.pad_token_id.unwrap_or(1).saturating_add(1)
            }
            _ => 0,
        };
        self.max_position_embeddings?
            .checked_sub(skipped)
            .filter(|&positions| positions > 0)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SentenceTransformersConfig {
    prompts: BTreeMap<String, String>,
    default_prompt_name: Option<String>,
    similarity_fn_name: Option<String>,
    model_type: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Model2VecConfig {
    normalize: Option<bool>,
}

#[derive(Deserialize)]
struct SpladeConfig {
    #[serde(default = "max")]
    pooling_strategy: String,
    #[serde(default = "relu")]
    activation_function: String,
}

fn max() -> String {
    "max".into()
}

fn relu() -> String {
    "relu".into()
}

#[derive(Deserialize)]
struct DenseConfig {
    in_features: usize,
    out_features: usize,
    #[serde(default = "yes")]
    bias: bool,
    activation_function: Option<String>,
    #[serde(default)]
    use_residual: bool,
}

fn yes() -> bool {
    true
}

/// The files and where they are from.
struct Folder<'a> {
    origin: &'a str,
    files: &'a BTreeMap<String, Bytes>,
}

impl Folder<'_> {
    fn invalid(&self, file: &str, detail: impl std::fmt::Display) -> EngineError {
        EngineError::invalid_model(format!("{}: {file}", self.origin), detail.to_string())
    }

    fn unsupported(&self, reason: String, hint: &str) -> EngineError {
        EngineError::UnsupportedModel {
            origin: self.origin.to_owned(),
            reason,
            hint: hint.to_owned(),
        }
    }

    fn json<T: DeserializeOwned>(&self, file: &str) -> Result<Option<T>> {
        let Some(bytes) = self.files.get(file) else {
            return Ok(None);
        };
        serde_json::from_slice(bytes)
            .map(Some)
            .map_err(|error| self.invalid(file, error))
    }

    fn json_in<T: DeserializeOwned>(&self, path: &str, file: &str) -> Result<Option<T>> {
        self.json(&join(path, file))
    }

    fn required<T: DeserializeOwned>(&self, path: &str, file: &str) -> Result<T> {
        let path = join(path, file);
        self.json(&path)?.ok_or_else(|| EngineError::MissingFile {
            origin: self.origin.to_owned(),
            file: path,
            hint: "modules.json names it; take all of the model's files".into(),
        })
    }

    /// The content of a file that has to be there.
    fn present(&self, path: &str, hint: &str) -> Result<&Bytes> {
        self.files
            .get(path)
            .ok_or_else(|| EngineError::MissingFile {
                origin: self.origin.to_owned(),
                file: path.to_owned(),
                hint: hint.to_owned(),
            })
    }

    /// The tensors of a step, and their name in messages.
    fn tensors(&self, path: &str, hint: &str) -> Result<(String, TensorSet)> {
        let file = join(path, "model.safetensors");
        let content = self.present(&file, hint)?.clone();
        let origin = format!("{}: {file}", self.origin);
        let tensors = TensorSet::from_files(&origin, vec![(file, content.into())])?;
        Ok((origin, tensors))
    }

    /// The transformer's folder: the first step has to be one.
    fn transformer<'m>(&self, modules: &'m [Module]) -> Result<&'m str> {
        match modules.first() {
            Some(module) if matches!(module.class(), Some("Transformer" | "MLMTransformer" | STATIC)) => {
                Ok(&module.path)
            }
            Some(module) if module.r#type == OWN_TRANSFORMER && self.has_adapters(&module.path) => {
                Ok(&module.path)
            }
            Some(module) => Err(self.unsupported(
                format!("its first step is {}, which is not a transformer that isovec knows", module.r#type),
                "Choose a model whose modules.json begins with the Transformer or the StaticEmbedding of sentence_transformers",
            )),
            None => Err(self.invalid("modules.json", "it names no step")),
        }
    }

    /// Whether the transformer is one whose own code does nothing but choose an adapter.
    fn has_adapters(&self, transformer: &str) -> bool {
        let config = self.files.get(&join(transformer, "config.json"));
        config.is_some_and(|config| matches!(family(self.origin, config), Ok(Family::JinaV3)))
    }

    /// Whether the steps score pairs: what sentence-transformers calls a `CrossEncoder`.
    fn scores_pairs(&self, modules: &[Module], st: &SentenceTransformersConfig) -> Result<bool> {
        let is_scorer = |module: &Module| module.class() == Some(LOGIT_SCORE);
        if st.model_type.as_deref() != Some("CrossEncoder") && !modules.iter().any(is_scorer) {
            return Ok(false);
        }
        match modules.iter().skip(1).find(|module| !is_scorer(module)) {
            None => Ok(true),
            Some(other) => Err(self.unsupported(
                format!("it scores pairs with the step {}", other.r#type),
                "isovec has a Transformer of a class with labels, or a Transformer and LogitScore",
            )),
        }
    }

    /// How words are weighed, where a step does that.
    fn splade(&self, modules: &[Module]) -> Result<Option<Splade>> {
        let at = modules
            .iter()
            .position(|module| module.class() == Some(SPLADE));
        let Some(at) = at else { return Ok(None) };
        if let Some(other) = modules
            .iter()
            .enumerate()
            .find(|(step, _)| *step > 0 && *step != at)
        {
            return Err(self.unsupported(
                format!("it has the step {} beside {SPLADE}", other.1.r#type),
                "isovec has the MLMTransformer and SpladePooling, and nothing else, for sparse vectors",
            ));
        }
        let path = &modules[at].path;
        let file = join(path, "config.json");
        let config: SpladeConfig = self.required(path, "config.json")?;
        let over = match config.pooling_strategy.as_str() {
            "max" => Over::Max,
            "sum" => Over::Sum,
            other => {
                return Err(self.unsupported(
                    format!("{file} names the pooling_strategy {other:?}"),
                    "isovec pools words by max and sum",
                ));
            }
        };
        let twice = match config.activation_function.as_str() {
            "relu" => false,
            "log1p_relu" => true,
            other => {
                return Err(self.unsupported(
                    format!("{file} names the activation_function {other:?}"),
                    "isovec weighs words by relu and log1p_relu",
                ));
            }
        };
        Ok(Some(Splade { over, twice }))
    }

    /// What is said of a model of static embeddings. Model2Vec's own files bring its head, where `modules.json` does not.
    fn table(
        &self,
        modules: Option<&[Module]>,
        head: &mut Option<FileHead>,
    ) -> Result<Option<StaticTable>> {
        let config = self.files.get("config.json");
        let is_model2vec = config.is_some_and(|config| is_model2vec(config));
        let first = modules.and_then(<[Module]>::first);
        let folder = match first {
            Some(first) if first.class() == Some(STATIC) => match first.path.trim_matches('/') {
                "." => "",
                path => path,
            },
            _ if is_model2vec => "",
            _ => return Ok(None),
        };
        if is_model2vec && head.is_none() {
            let config: Model2VecConfig = self.json("config.json")?.unwrap_or_default();
            *head = Some(FileHead {
                pooling: Pooling::Mean,
                include_prompt: true,
                dense: Vec::new(),
                normalize: config.normalize.unwrap_or_default(),
            });
        }
        let tokens = match is_model2vec {
            true => Tokens::Known,
            false => Tokens::OfText,
        };
        Ok(Some(StaticTable {
            folder: folder.to_owned(),
            tokens,
        }))
    }

    fn head(&self, modules: &[Module]) -> Result<FileHead> {
        // The mean is what a bag of embeddings is.
        let is_static = modules.first().and_then(Module::class) == Some(STATIC);
        let mut pooling = is_static.then_some((Pooling::Mean, true));
        let mut dense = Vec::new();
        let mut normalize = false;
        for module in modules.iter().skip(1) {
            let class = module.class().unwrap_or_default();
            let late = normalize && class != "Normalize" && class != "Dropout";
            match class {
                _ if late => {
                    let reason = format!("its step {} comes after normalisation", module.r#type);
                    return Err(self.unsupported(reason, "isovec normalises last"));
                }
                "Pooling" if pooling.is_none() && dense.is_empty() => {
                    pooling = Some(self.pooling(&module.path)?)
                }
                "Dense" if pooling.is_some() => dense.push(self.dense(&module.path)?),
                "Normalize" if pooling.is_some() => normalize = true,
                // Does nothing outside training.
                "Dropout" => {}
                _ => {
                    return Err(self.unsupported(
                        format!("its step {} is unknown here or out of order", module.r#type),
                        "isovec has Transformer and Pooling, or StaticEmbedding, then Dense and Normalize, in this order",
                    ));
                }
            }
        }
        let (pooling, include_prompt) = pooling.ok_or_else(|| {
            self.unsupported(
                "its modules.json has no pooling step".into(),
                "Set text.pooling and leave modules.json out",
            )
        })?;
        Ok(FileHead {
            pooling,
            include_prompt,
            dense,
            normalize,
        })
    }

    /// The pooling step: newer files name the mode, older ones have a boolean for each.
    fn pooling(&self, path: &str) -> Result<(Pooling, bool)> {
        let file = join(path, "config.json");
        let config: BTreeMap<String, Value> = self.required(path, "config.json")?;
        let modes: Vec<String> = match config.get("pooling_mode") {
            Some(Value::String(mode)) => {
                mode.split('+').map(|mode| mode.trim().to_owned()).collect()
            }
            Some(Value::Array(modes)) => modes
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            Some(other) => return Err(self.invalid(&file, format!("pooling_mode is {other}"))),
            None => config
                .iter()
                .filter(|(_, value)| value.as_bool() == Some(true))
                .filter_map(|(key, _)| key.strip_prefix("pooling_mode_"))
                .map(str::to_owned)
                .collect(),
        };
        let pooling = match modes.as_slice() {
            [mode] => match mode.as_str() {
                "mean" | "mean_tokens" => Pooling::Mean,
                "cls" | "cls_token" => Pooling::Cls,
                "max" | "max_tokens" => Pooling::Max,
                "lasttoken" => Pooling::LastToken,
                "weightedmean" | "weightedmean_tokens" => Pooling::WeightedMean,
                "mean_sqrt_len" | "mean_sqrt_len_tokens" => Pooling::MeanSqrtLen,
                other => {
                    let reason = format!("its pooling mode {other} is unknown");
                    return Err(
                        self.unsupported(reason, "Choose another model, or set text.pooling")
                    );
                }
            },
            [] => return Err(self.invalid(&file, "it turns no pooling mode on")),
            several => {
                let reason = format!("it joins several pooling modes ({})", several.join(", "));
                return Err(self.unsupported(reason, "isovec pools in one way"));
            }
        };
        let include_prompt = config
            .get("include_prompt")
            .and_then(Value::as_bool)
            .unwrap_or(true);
        Ok((pooling, include_prompt))
    }

    fn dense(&self, path: &str) -> Result<Dense> {
        let file = join(path, "config.json");
        let config: DenseConfig = self.required(path, "config.json")?;
        if config.use_residual {
            let reason = format!("{file} adds the layer's input to its output (use_residual)");
            return Err(self.unsupported(reason, "isovec has dense steps without it"));
        }
        let name = config.activation_function.as_deref().unwrap_or("Tanh");
        let activation = match name.rsplit('.').next().unwrap_or_default() {
            "Identity" => Activation::Identity,
            "Tanh" => Activation::Tanh,
            "ReLU" => Activation::Relu,
            "Sigmoid" => Activation::Sigmoid,
            _ => {
                let reason = format!("its dense step is followed by {name}");
                return Err(self.unsupported(reason, "isovec has Identity, Tanh, ReLU and Sigmoid"));
            }
        };
        let hint = "isovec reads no pickled weights; save the model again with safetensors";
        let (origin, tensors) = self.tensors(path, hint)?;
        let shape = [config.out_features, config.in_features];
        let weight = floats(&origin, &tensors, "linear.weight", &shape)?;
        let bias = config
            .bias
            .then(|| floats(&origin, &tensors, "linear.bias", &shape[..1]))
            .transpose()?;
        let [out_features, in_features] = shape;
        if out_features == 0 || in_features == 0 {
            return Err(self.invalid(&file, "a dense step of 0 features"));
        }
        Ok(Dense {
            in_features,
            out_features,
            weight,
            bias,
            activation,
        })
    }

    /// The file's name tells the architecture that the library once told apart.
    fn sentence_bert(&self, transformer: &str) -> Result<SentenceBertConfig> {
        for family in [
            "bert",
            "roberta",
            "distilbert",
            "camembert",
            "albert",
            "xlm-roberta",
            "xlnet",
        ] {
            if let Some(config) =
                self.json_in(transformer, &format!("sentence_{family}_config.json"))?
            {
                return Ok(config);
            }
        }
        Ok(SentenceBertConfig::default())
    }

    fn similarity(&self, name: &str) -> Result<Similarity> {
        match name {
            "cosine" => Ok(Similarity::Cosine),
            "dot" | "dot_product" => Ok(Similarity::Dot),
            "euclidean" => Ok(Similarity::Euclidean),
            "manhattan" => Ok(Similarity::Manhattan),
            _ => {
                let reason = format!("its similarity function {name} is unknown");
                Err(self.unsupported(reason, "isovec has cosine, dot, euclidean and manhattan"))
            }
        }
    }
}

fn join(path: &str, file: &str) -> String {
    match path.trim_matches('/') {
        "" | "." => file.to_owned(),
        path => format!("{path}/{file}"),
    }
}

fn floats(origin: &str, tensors: &TensorSet, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
    let tensor = tensors
        .get(name)
        .ok_or_else(|| EngineError::invalid_model(origin, format!("it has no {name}")))?;
    if tensor.shape != shape {
        let detail = format!(
            "{name} is {:?}, but its config.json states {shape:?}",
            tensor.shape
        );
        return Err(EngineError::invalid_model(origin, detail));
    }
    let data = tensor
        .data
        .bytes()
        .map_err(|error| EngineError::io(origin, error))?;
    let pairs = || data.as_chunks().0.iter().copied();
    Ok(match tensor.dtype {
        SourceDType::F32 => data
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(f32::from_le_bytes)
            .collect(),
        SourceDType::F16 => pairs()
            .map(|pair| f16::from_le_bytes(pair).to_f32())
            .collect(),
        SourceDType::BF16 => pairs()
            .map(|pair| bf16::from_le_bytes(pair).to_f32())
            .collect(),
        other => {
            return Err(EngineError::invalid_model(
                origin,
                format!("{name} holds {}", other.name()),
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> BTreeMap<String, Bytes> {
        list.iter()
            .map(|&(name, text)| (name.to_owned(), Bytes::copy_from_slice(text.as_bytes())))
            .collect()
    }

    fn read(list: &[(&str, &str)]) -> Result<ModelFiles> {
        super::read("test", &files(list))
    }

    const MODULES: &str = r#"[
        {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]"#;

    #[test]
    fn a_model_like_all_minilm() {
        let model = read(&[
            ("modules.json", MODULES),
            (
                "1_Pooling/config.json",
                r#"{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}"#,
            ),
            (
                "sentence_bert_config.json",
                r#"{"max_seq_length": 256, "do_lower_case": false}"#,
            ),
            (
                "config.json",
                r#"{"model_type": "bert", "max_position_embeddings": 512, "vocab_size": 30522}"#,
            ),
            ("tokenizer_config.json", r#"{"model_max_length": 512}"#),
        ])
        .unwrap();
        let head = FileHead {
            pooling: Pooling::Mean,
            include_prompt: true,
            dense: Vec::new(),
            normalize: true,
        };
        assert_eq!(model.head, Some(head));
        assert_eq!(model.max_length, Some((256, "sentence_bert_config.json")));
        assert_eq!(
            (model.positions, model.vocab_size),
            (Some(512), Some(30522))
        );
    }

    #[test]
    fn the_newer_pooling_form_and_prompts() {
        let model = read(&[
            ("modules.json", MODULES),
            ("1_Pooling/config.json", r#"{"embedding_dimension": 8, "pooling_mode": "lasttoken", "include_prompt": false}"#),
            (
                "config_sentence_transformers.json",
                r#"{"prompts": {"query": "q: ", "document": ""}, "default_prompt_name": "query", "similarity_fn_name": "dot"}"#,
            ),
        ])
        .unwrap();
        let head = model.head.unwrap();
        assert_eq!(
            (head.pooling, head.include_prompt),
            (Pooling::LastToken, false)
        );
        assert_eq!(model.prompts["query"], "q: ");
        assert_eq!(model.default_prompt.as_deref(), Some("query"));
        assert_eq!(model.similarity, Some(Similarity::Dot));
    }

    #[test]
    fn the_length_falls_through_and_never_passes_the_positions() {
        let roberta =
            r#"{"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}"#;
        let endless = r#"{"model_max_length": 1000000000000000019884624838656}"#;
        let model = read(&[("config.json", roberta), ("tokenizer_config.json", endless)]).unwrap();
        assert_eq!(model.max_length, Some((512, "config.json")));
        let model = read(&[
            ("config.json", roberta),
            ("tokenizer_config.json", r#"{"model_max_length": 8192}"#),
        ])
        .unwrap();
        assert_eq!(model.max_length, Some((512, "config.json")));
        let model = read(&[("sentence_bert_config.json", r#"{"max_seq_length": null}"#)]).unwrap();
        assert_eq!(model.max_length, None);
    }

    #[test]
    fn the_transformers_folder_is_followed() {
        let modules = r#"[{"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]"#;
        let model = read(&[
            ("modules.json", modules),
            (
                "0_Transformer/sentence_distilbert_config.json",
                r#"{"max_seq_length": 128, "do_lower_case": true}"#,
            ),
            (
                "1_Pooling/config.json",
                r#"{"pooling_mode_cls_token": true}"#,
            ),
        ])
        .unwrap();
        assert_eq!(model.max_length, Some((128, "sentence_bert_config.json")));
        assert!(model.lowercase);
        assert!(!model.head.unwrap().normalize);
    }

    #[test]
    fn steps_that_are_not_here_are_refused() {
        let cases = [
            (
                "custom_st.Transformer",
                "sentence_transformers.models.Pooling",
            ),
            (
                "sentence_transformers.models.WordEmbeddings",
                "sentence_transformers.models.Pooling",
            ),
            (
                "sentence_transformers.models.Transformer",
                "sentence_transformers.models.LSTM",
            ),
            (
                "sentence_transformers.models.Transformer",
                "sentence_transformers.models.Normalize",
            ),
            (
                "sentence_transformers.models.Transformer",
                "sentence_transformers.models.Dropout",
            ),
        ];
        for (first, second) in cases {
            let modules = format!(
                r#"[{{"path": "", "type": "{first}"}}, {{"path": "1", "type": "{second}"}}]"#
            );
            let error = read(&[("modules.json", &modules), ("1/config.json", "{}")]).unwrap_err();
            assert_eq!(
                error.kind(),
                "UnsupportedModel",
                "{first}, {second}: {error}"
            );
        }
    }

    #[test]
    fn a_table_of_tokens_vectors_is_told_by_either_library() {
        let modules = |path: &str, class: &str| {
            format!(
                r#"[{{"path": "{path}", "type": "{class}"}},
                {{"path": "1_Normalize", "type": "sentence_transformers.models.Normalize"}}]"#
            )
        };
        let static_class = "sentence_transformers.models.StaticEmbedding";
        let newer = "sentence_transformers.sentence_transformer.modules.StaticEmbedding";
        let model2vec = r#"{"model_type": "model2vec", "normalize": true, "seq_length": 1000000}"#;
        let long = ("tokenizer_config.json", r#"{"model_max_length": 1000000}"#);
        for class in [static_class, newer] {
            for (path, folder) in [
                ("0_StaticEmbedding", "0_StaticEmbedding"),
                ("", ""),
                (".", ""),
            ] {
                let model = read(&[("modules.json", &modules(path, class)), long]).unwrap();
                let table = model.table.unwrap();
                assert_eq!(
                    (table.folder.as_str(), table.tokens),
                    (folder, Tokens::OfText)
                );
                assert_eq!(model.max_length, None);
                let head = model.head.unwrap();
                assert_eq!((head.pooling, head.normalize), (Pooling::Mean, true));
            }
        }
        for (config, normalize) in [(model2vec, true), (r#"{"model_type": "model2vec"}"#, false)] {
            let model = read(&[("config.json", config), long]).unwrap();
            let table = model.table.unwrap();
            assert_eq!((table.folder.as_str(), table.tokens), ("", Tokens::Known));
            assert_eq!(model.max_length, Some((512, "Model2Vec's default")));
            let head = model.head.unwrap();
            assert_eq!((head.pooling, head.normalize), (Pooling::Mean, normalize));
        }
        let model = read(&[
            ("config.json", model2vec),
            ("modules.json", MODULES),
            ("1_Pooling/config.json", r#"{"pooling_mode": "mean"}"#),
        ]);
        // The tokens are Model2Vec's all the same; what is done to them is what the steps say.
        assert_eq!(model.unwrap().table.unwrap().tokens, Tokens::Known);
        assert_eq!(
            read(&[("config.json", r#"{"model_type": "bert"}"#)])
                .unwrap()
                .table,
            None
        );
    }

    #[test]
    fn broken_files_are_named() {
        let pooling = |text: &'static str| {
            read(&[("modules.json", MODULES), ("1_Pooling/config.json", text)])
        };
        assert_eq!(
            pooling(r#"{"pooling_mode_cls_token": false}"#)
                .unwrap_err()
                .kind(),
            "InvalidModel"
        );
        assert_eq!(
            pooling(r#"{"pooling_mode_cls_token": true, "pooling_mode_max_tokens": true}"#)
                .unwrap_err()
                .kind(),
            "UnsupportedModel"
        );
        let error = pooling("{").unwrap_err();
        assert!(
            error.to_string().contains("1_Pooling/config.json"),
            "{error}"
        );
        assert_eq!(
            read(&[("modules.json", MODULES)]).unwrap_err().kind(),
            "MissingFile"
        );
        assert_eq!(
            read(&[("modules.json", "[]")]).unwrap_err().kind(),
            "InvalidModel"
        );
        let prompts = r#"{"prompts": {}, "default_prompt_name": "query"}"#;
        assert_eq!(
            read(&[("config_sentence_transformers.json", prompts)])
                .unwrap_err()
                .kind(),
            "InvalidModel"
        );
    }

    #[test]
    fn a_dense_step_is_read_with_its_weights() {
        let modules = r#"[{"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]"#;
        let mut files = files(&[
            ("modules.json", modules),
            ("1_Pooling/config.json", r#"{"pooling_mode": "mean"}"#),
            (
                "2_Dense/config.json",
                r#"{"in_features": 2, "out_features": 1, "bias": true, "activation_function": "torch.nn.modules.linear.Identity"}"#,
            ),
        ]);
        assert_eq!(
            super::read("test", &files).unwrap_err().kind(),
            "MissingFile"
        );

        let weight: Vec<u8> = [1.5f32, -2.0]
            .into_iter()
            .flat_map(f32::to_le_bytes)
            .collect();
        let bias: Vec<u8> = f16::from_f32(0.5).to_le_bytes().to_vec();
        let view =
            |dtype, shape, data| safetensors::tensor::TensorView::new(dtype, shape, data).unwrap();
        let tensors = [
            (
                "linear.weight",
                view(safetensors::Dtype::F32, vec![1, 2], &weight),
            ),
            ("linear.bias", view(safetensors::Dtype::F16, vec![1], &bias)),
        ];
        let bytes = safetensors::serialize(tensors, None).unwrap();
        files.insert("2_Dense/model.safetensors".into(), bytes.into());
        let head = super::read("test", &files).unwrap().head.unwrap();
        let [dense] = head.dense.as_slice() else {
            panic!("{head:?}")
        };
        assert_eq!(
            (dense.weight.as_slice(), dense.bias.as_deref()),
            (&[1.5, -2.0][..], Some(&[0.5][..]))
        );
        assert_eq!(dense.activation, Activation::Identity);
    }
}
