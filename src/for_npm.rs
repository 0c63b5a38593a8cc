//! For the npm package, which fetches files itself.

#[cfg(feature = "ocr")]
mod reading;

use std::str::FromStr;
use std::sync::Arc;

use isovec_engine::cancel::Cancel;
use isovec_engine::description::ModelDescription;
use isovec_engine::engine::{Capabilities, ProviderInfo};
use isovec_engine::maybe_send::BoxFuture;
pub use isovec_model::bundle::next_told;
use isovec_tokenize::Encoding;
use serde::Serialize;

use crate::batcher::{DynamicBatcher, QueueCounts};
use crate::cache::{Key, Scope};
use crate::classifier::{Classifications, ClassifyOptions, Labelling};
use crate::config::{EffectiveConfig, EmbeddingConfig};
use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::json;
use crate::loading::Loading;
use crate::model::encoded::Encoded;
pub use crate::model::reader::Preprocessing;
use crate::model::reader::{Input, TextReader, reads_no};
use crate::model::{self, EmbedOptions, Item, LateText, Model, Output, Pair, Prompt, Vectors};
use crate::multi_vector::{MultiVectorEmbeddings, MultiVectorOptions, TokenVectors};
use crate::similarity::Similarity;
use crate::source::ModelSource;
use crate::sparse::{SparseEmbeddings, SparseOptions, Words};
use crate::stats::Stats;
#[cfg(feature = "ocr")]
pub use reading::{Asking, LoadedReader};

/// What a model makes of what it reads.
#[derive(Debug, Clone, Copy)]
pub enum Makes {
    /// A vector of each.
    Vectors,
    /// A score of each for each label.
    Labels,
    /// One score of each pair.
    Relevance,
    /// A weight of each for each word.
    Words,
    /// A vector of each for each token.
    Tokens,
}

impl FromStr for Makes {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "vectors" => Ok(Self::Vectors),
            "labels" => Ok(Self::Labels),
            "relevance" => Ok(Self::Relevance),
            "words" => Ok(Self::Words),
            "tokens" => Ok(Self::Tokens),
            other => Err(Error::Config(vec![format!(
                "there is no output {other:?}; there are \"vectors\", \"labels\", \"relevance\", \"words\" and \"tokens\""
            )])),
        }
    }
}

/// The prompt of a word: `default`, `none`, `query`, `passage`, the name of a prompt behind `name:`, or a text behind `text:`.
///
/// # Errors
/// [`Error::Config`] for another word. Another prompt than the one that was meant gives vectors that nobody can tell apart.
pub fn prompt(word: &str) -> Result<Prompt> {
    Ok(match word {
        "default" => Prompt::Default,
        "none" => Prompt::None,
        "query" => Prompt::Query,
        "passage" => Prompt::Passage,
        other => match other.split_once(':') {
            Some(("name", name)) => Prompt::Named(name.to_owned()),
            Some(("text", text)) => Prompt::Text(text.to_owned()),
            _ => {
                return Err(Error::Config(vec![format!(
                    "there is no prompt {other:?}; there are \"default\", \"none\", \"query\" and \"passage\""
                )]));
            }
        },
    })
}

/// What a model is loaded for.
#[derive(Debug)]
pub struct Purpose {
    /// What the model makes.
    pub output: Makes,
    /// How the values of pictures were made; without it the model reads texts.
    pub pictures: Option<Preprocessing>,
}

/// What is handed in: one type for all tasks, so that the way from items to rows is compiled once.
#[derive(Debug, Clone)]
enum Content {
    Text(String),
    Pair(Pair),
    Late(LateText),
    /// The values of a picture.
    Values(Arc<[f32]>),
}

impl Item for Content {
    type Owned = Self;

    const WINDOW: usize = <String as Item>::WINDOW;

    fn owned(&self) -> Self {
        self.clone()
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Pair(pair) => pair.bytes(),
            Self::Late(late) => late.bytes(),
            Self::Values(values) => size_of_val(&values[..]),
        }
    }

    fn key(&self, scope: &Scope, prefix: &str, lowercase: bool) -> Key {
        match self {
            Self::Text(text) => text.key(scope, prefix, lowercase),
            Self::Pair(pair) => pair.key(scope, prefix, lowercase),
            Self::Late(late) => late.key(scope, prefix, lowercase),
            Self::Values(values) => scope.key_of_picture("values", bytemuck::cast_slice(values)),
        }
    }

    fn encode(model: &Model, items: &[Self], prefix: &str) -> Result<Vec<Encoded>> {
        let mut texts = Vec::new();
        let mut others = Vec::new();
        for item in items {
            match item {
                Self::Text(text) => texts.push(text.as_str()),
                Self::Pair(pair) => others.push(pair.encoded(model, prefix)?),
                Self::Late(late) => others.push(late.encoded(model, prefix)?),
                Self::Values(values) => others.push(model.reader.frame()?.encode(values.to_vec())),
            }
        }
        // A call hands in the one or the other.
        match others.is_empty() {
            true => Item::encode(model, &texts, prefix),
            false if texts.is_empty() => Ok(others),
            false => Err(Error::Config(vec![
                "texts are in one call with pairs or pictures".into(),
            ])),
        }
    }

    fn tokens(reader: &TextReader, items: &[Self], prefix: &str) -> Result<Vec<Encoding>> {
        let texts = items.iter().map(|item| match item {
            Self::Text(text) => Ok(text.as_str()),
            _ => Err(reads_no("queries of this kind")),
        });
        let texts: Vec<&str> = texts.collect::<Result<_>>()?;
        Item::tokens(reader, &texts, prefix)
    }
}

/// A model that was loaded for one task, and the queue that joins its calls. One handle for all tasks, because two would be
/// code that is the same twice, and every visitor of a page downloads it.
#[derive(Debug)]
pub struct Loaded {
    model: Arc<Model>,
    queue: DynamicBatcher<Self>,
}

impl Loaded {
    /// Loads a model.
    ///
    /// # Errors
    /// As [`ClassifierBuilder::load`](crate::ClassifierBuilder::load) and
    /// [`EmbedderBuilder::load`](crate::EmbedderBuilder::load).
    pub async fn load(
        source: ModelSource,
        config: EmbeddingConfig,
        cancel: Cancel,
        purpose: Purpose,
    ) -> Result<Self> {
        let mut loading = Loading::new(source);
        loading.set_config(config);
        loading.watch().cancel = cancel;
        let output = match purpose.output {
            Makes::Vectors => Output::Vectors,
            Makes::Labels => Output::Labels,
            Makes::Relevance => Output::Relevance,
            Makes::Words => Output::Sparse,
            Makes::Tokens => Output::Tokens,
        };
        let input = purpose.pictures.map_or(Input::Texts, Input::Values);
        let model = Arc::new(model::load_for(loading.asked(), output, input).await?);
        Ok(Self {
            queue: DynamicBatcher::over(Arc::clone(&model)),
            model,
        })
    }

    /// Embeds texts together with those of other calls.
    ///
    /// # Errors
    /// As [`DynamicBatcher::embed_with`].
    pub fn embed(
        &self,
        texts: Vec<String>,
        options: EmbedOptions,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        let texts = texts.into_iter().map(Content::Text).collect();
        self.queue.call::<Vectors, Content>(texts, options)
    }

    /// Gives texts weights of words together with those of other calls.
    ///
    /// # Errors
    /// As [`SparseEmbedder::embed_with`](crate::SparseEmbedder::embed_with).
    pub fn embed_words(
        &self,
        texts: Vec<String>,
        options: SparseOptions,
    ) -> BoxFuture<'static, Result<SparseEmbeddings>> {
        let texts = texts.into_iter().map(Content::Text).collect();
        self.queue.call::<Words, Content>(texts, options)
    }

    /// Gives texts' tokens vectors together with those of other calls.
    ///
    /// # Errors
    /// As [`MultiVectorEmbedder::embed_with`](crate::MultiVectorEmbedder::embed_with).
    pub fn embed_tokens(
        &self,
        texts: Vec<String>,
        options: MultiVectorOptions,
    ) -> BoxFuture<'static, Result<MultiVectorEmbeddings>> {
        let texts = options.items(texts).into_iter().map(Content::Late);
        self.queue
            .call::<TokenVectors, Content>(texts.collect(), options)
    }

    /// The tokens of ids, as the tokenizer's file writes them; empty for an id without one.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a model of pictures.
    pub fn tokens(&self, ids: &[u32]) -> Result<Vec<String>> {
        let tokenizer = &self.model.reader.texts()?.tokenizer;
        let words = tokenizer.words(ids.iter().copied());
        let word = |id| words.get(id).cloned().unwrap_or_default();
        Ok(ids.iter().map(word).collect())
    }

    /// Height and width of the pictures that the model reads, where it was loaded for pictures.
    pub fn pixels(&self) -> Option<(usize, usize)> {
        let frame = self.model.reader.frame().ok()?;
        Some(frame.pixels())
    }

    /// Embeds pictures, together with those of other calls, of which there are the values: `[n, 3, height, width]`.
    ///
    /// # Errors
    /// As [`embed`](Self::embed), and [`Error::Config`](crate::Error::Config) for values of which no number of pictures is
    /// made, and for a model of texts.
    pub fn embed_values(
        &self,
        values: &[f32],
        options: EmbedOptions,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        match self.pictures(values) {
            Ok(pictures) => self.queue.call::<Vectors, Content>(pictures, options),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    /// Classifies pictures in the same way.
    ///
    /// # Errors
    /// As [`embed_values`](Self::embed_values).
    pub fn classify_values(
        &self,
        values: &[f32],
        options: ClassifyOptions,
    ) -> BoxFuture<'static, Result<Classifications>> {
        match self.pictures(values) {
            Ok(pictures) => self.queue.call::<Labelling, Content>(pictures, options),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn pictures(&self, values: &[f32]) -> Result<Vec<Content>> {
        let (height, width) = self.pixels().unwrap_or_default();
        let pictures = values.chunks_exact((3 * height * width).max(1));
        if !pictures.remainder().is_empty() || height == 0 {
            let fault = format!(
                "{} values are no pictures of 3 x {height} x {width}",
                values.len()
            );
            return Err(Error::Config(vec![fault]));
        }
        Ok(pictures
            .map(|values| Content::Values(values.into()))
            .collect())
    }

    /// Classifies texts together with those of other calls, or, where there are `seconds`, pairs of a text and a second one. A
    /// model that was loaded for relevance has one label, whose scores are those of
    /// [`Reranker::score`](crate::Reranker::score).
    ///
    /// # Errors
    /// As [`DynamicBatcher::classify_with`]; [`Error::Config`](crate::Error::Config) for a model that was loaded for vectors, and
    /// for other numbers of first and second texts.
    pub fn classify(
        &self,
        texts: Vec<String>,
        seconds: Option<Vec<String>>,
        options: ClassifyOptions,
    ) -> BoxFuture<'static, Result<Classifications>> {
        let items = match seconds {
            None => texts.into_iter().map(Content::Text).collect(),
            Some(seconds) if seconds.len() == texts.len() => {
                let pairs = texts.into_iter().zip(seconds);
                pairs
                    .map(|(first, second)| Content::Pair(Pair::new(first, second)))
                    .collect()
            }
            Some(seconds) => {
                let fault = format!(
                    "{} first texts have {} second ones",
                    texts.len(),
                    seconds.len()
                );
                return Box::pin(async { Err(Error::Config(vec![fault])) });
            }
        };
        self.queue.call::<Labelling, Content>(items, options)
    }

    /// What waits, and what was done so far.
    pub fn counts(&self) -> QueueCounts {
        self.queue.counts()
    }

    /// The names of the labels; none where vectors are made.
    pub fn labels(&self) -> &[String] {
        self.model.label_names()
    }

    /// All facts about the model, as JSON: provider, fingerprint, effective configuration, metric, labels, name, the engine's
    /// capabilities, the description of its graph, height and width of the pictures that it reads.
    pub fn about(&self) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct About<'a> {
            provider: &'a ProviderInfo,
            fingerprint: &'a Fingerprint,
            effective_config: &'a EffectiveConfig,
            metric: Similarity,
            labels: &'a [String],
            model: &'a str,
            capabilities: &'a Capabilities,
            description: &'a ModelDescription,
            pixels: Option<(usize, usize)>,
        }
        json::text(&About {
            provider: self.provider(),
            fingerprint: self.fingerprint(),
            effective_config: self.effective_config(),
            metric: self.metric(),
            labels: self.labels(),
            model: self.model_name(),
            capabilities: self.capabilities(),
            description: self.description(),
            pixels: self.pixels(),
        })
    }

    /// The statistics since the model was loaded, the waiting calls, and the bytes of the module's memory, as JSON.
    pub fn stats_with(&self, wasm_bytes: u32) -> String {
        #[derive(Serialize)]
        struct All {
            #[serde(flatten)]
            stats: Stats,
            queue: QueueCounts,
            memory: Memory,
        }
        #[derive(Serialize)]
        struct Memory {
            wasm_bytes: u32,
        }
        json::text(&All {
            stats: self.stats(),
            queue: self.counts(),
            memory: Memory { wasm_bytes },
        })
    }
}

describe_model!(Loaded);
describe_vectors!(Loaded);
