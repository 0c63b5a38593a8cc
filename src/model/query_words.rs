//! Queries that are not computed: each token of a query has the weight that stands for it in a table.
//!
//! Formula: `SparseStaticEmbedding` of sentence-transformers. A token counts once, however often it is in the text, and special
//! tokens are not put around the text.

use std::collections::BTreeSet;
use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_tokenize::{Encoding, Limits, Tokenizer, Tokens};
use web_time::Instant;

use super::encoded::Encoded;
use super::item::OwnedItem;
use super::reader::TextReader;
use super::rows::{Packed, Rows};
use super::{FlowOptions, Model, OwnCancel, Prompt, load};
use crate::backend;
use crate::config::TextConfig;
use crate::error::Result;
use crate::sentence_transformers::{QueryWordFiles, TokenWeights};

/// The name of the prompt of queries, for callers who have nothing but names.
const QUERY: &str = "query";

/// The weights of a query's words.
#[derive(Debug)]
pub(crate) struct QueryWords {
    reader: TextReader,
    /// By token id.
    weights: Vec<f32>,
    /// Whether a text of which nobody says what it is counts as a query.
    by_default: bool,
}

impl QueryWords {
    /// The weights that a model's files have, for a vocabulary of so many words.
    ///
    /// # Errors
    /// Those of the tokenizer; [`EngineError::InvalidModel`] for a table that does not belong to it or to the vocabulary, and for a
    /// weight that is not a number of 0 or more.
    pub(super) fn new(
        bundle: &ModelBundle,
        files: &QueryWordFiles,
        config: &TextConfig,
        words: usize,
    ) -> Result<Self> {
        let (all, origin) = (&bundle.files, &bundle.origin);
        let tokenizer = Tokenizer::from_folder(all, &files.folder, origin)?;
        let tokenizer = tokenizer.with_tokens(Tokens::OfText);
        let invalid = |detail: String| {
            EngineError::invalid_model(format!("{origin}: the weights of a query's words"), detail)
        };
        let weights = match &files.weights {
            TokenWeights::ById(weights) => weights.clone(),
            TokenWeights::ByToken(named) => {
                let mut weights = vec![0.0; tokenizer.max_id() as usize + 1];
                for (token, weight) in named {
                    let id = tokenizer.token_to_id(token);
                    let own = id.and_then(|id| weights.get_mut(id as usize));
                    *own.ok_or_else(|| invalid(format!("the tokenizer has no token {token:?}")))? =
                        *weight;
                }
                weights
            }
        };
        let (largest, count) = (tokenizer.max_id() as usize, weights.len());
        if largest >= count || count > words {
            let detail = format!(
                "there are {count}, the tokenizer's largest id is {largest}, and the vocabulary has {words} words"
            );
            return Err(invalid(detail).into());
        }
        let usable = |weight: f32| weight.is_finite() && weight >= 0.0;
        if let Some(id) = weights.iter().position(|&weight| !usable(weight)) {
            let detail = format!("that of token {id} is {}", weights[id]);
            return Err(invalid(detail).into());
        }
        let limits = Limits {
            max_tokens: config.max_length.or(tokenizer.model_max_tokens()),
            truncation_side: match config.truncation {
                Some(truncation) => truncation.side(),
                None => tokenizer.truncation_side(),
            },
        };
        Ok(Self {
            reader: TextReader {
                tokenizer,
                limits,
                lowercase: false,
                filled: None,
                frame: None,
                unweighed: None,
            },
            weights,
            by_default: files.by_default,
        })
    }

    /// What has to be equal for queries to be comparable.
    pub(super) fn identity(&self) -> String {
        let mut hash = blake3::Hasher::new();
        for weight in &self.weights {
            hash.update(&weight.to_le_bytes());
        }
        let (weights, tokenizer) = (hash.finalize(), self.reader.tokenizer.identity());
        let limits = &self.reader.limits;
        let cut = limits.max_tokens.map(|most| load::cut(limits, most));
        let (cut, default) = (cut.unwrap_or_default(), self.by_default);
        format!("{weights}, {tokenizer}, {cut}, by default {default}")
    }

    /// Whether a text with this prompt is a query.
    fn is_for(&self, prompt: &Prompt) -> bool {
        match prompt {
            Prompt::Query => true,
            Prompt::Named(name) => name == QUERY,
            Prompt::Default => self.by_default,
            Prompt::None | Prompt::Passage | Prompt::Text(_) => false,
        }
    }

    /// The weights of a text's words.
    fn row(&self, text: &Encoding) -> Packed {
        let ids: BTreeSet<u32> = text.ids.iter().copied().collect();
        let weighed = ids.into_iter().filter_map(|id| {
            let weight = self.weights.get(id as usize).copied();
            weight.filter(|&weight| weight > 0.0).map(|own| (id, own))
        });
        let (mut row, weights): (Vec<f32>, Vec<f32>) =
            weighed.map(|(id, own)| (f32::from_bits(id), own)).unzip();
        row.extend(weights);
        row.into()
    }
}

impl Model {
    /// The table that these items' rows are looked up in, where the model has one and they are queries.
    pub(super) fn query_words_for(&self, prompt: &Prompt) -> Option<Arc<QueryWords>> {
        let own = self.query_words.as_ref();
        own.filter(|own| own.is_for(prompt)).map(Arc::clone)
    }

    /// The rows of queries by the table. They wait for no engine, and no cache is faster.
    pub(super) async fn look_up<I: OwnedItem>(
        &self,
        table: Arc<QueryWords>,
        items: Vec<I>,
        options: &FlowOptions,
    ) -> Result<Rows> {
        // Whoever says "query" by its name means the role, whether or not there is a prompt of that name.
        let asked = match &options.prompt {
            Prompt::Named(_) => &Prompt::Query,
            asked => asked,
        };
        let (prefix, prompt) = self.prompts.resolve(asked)?;
        let cancel = OwnCancel::linked(options.cancel.as_ref());
        let mut rows = self.new_rows(items.len(), prompt)?;
        let mut items = items.into_iter();
        let mut place = 0;
        loop {
            let window: Vec<I> = items.by_ref().take(I::WINDOW).collect();
            if window.is_empty() {
                return Ok(rows);
            }
            let (reading, prefix) = (Arc::clone(&table), prefix.clone());
            let encode = move |items: &[I]| {
                let texts = I::tokens(&reading.reader, items, &prefix)?;
                Ok(texts.into_iter().map(Encoded::Text).collect())
            };
            let since = Instant::now();
            let encodings: Vec<Encoded> =
                backend::in_slices("tokenising", window, cancel.0.clone(), encode).await?;
            self.recorder.tokenized(since.elapsed(), &encodings);
            for text in encodings.iter().filter_map(Encoded::text) {
                let tokens = u32::try_from(text.ids.len()).unwrap_or(u32::MAX);
                rows.set(place, &table.row(text), tokens, text.truncated);
                place += 1;
            }
        }
    }
}
