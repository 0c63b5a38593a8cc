//! The general way: `tokenizers`' added vocabulary, normalisers and pre-tokenisers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use tokenizers::models::wordlevel::WordLevelTrainer;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::{AddedToken, AddedVocabulary, OffsetReferential, OffsetType, PreTokenizer, Token};

use crate::definition::AddedTokenDefinition;
use crate::model::Model;
use crate::split::{Part, charsmap};

/// The components of one tokenizer.
pub(crate) struct Library {
    added: AddedVocabulary,
    normalizer: Option<NormalizerWrapper>,
    pre_tokenizer: Option<PreTokenizerWrapper>,
}

impl Library {
    /// Builds the components that the file names.
    ///
    /// # Errors
    /// Words saying what is wrong with them.
    pub(crate) fn build(
        added_tokens: &[AddedTokenDefinition],
        normalizer: Option<Value>,
        pre_tokenizer: Option<Value>,
        model: &Model,
    ) -> Result<Self, String> {
        if let Some(normalizer) = &normalizer {
            charsmap::check(normalizer)?;
        }
        if let Some(pre_tokenizer) = &pre_tokenizer {
            check_pre_tokenizer(pre_tokenizer)?;
        }
        guarded(|| {
            let normalizer = normalizer
                .map(NormalizerWrapper::deserialize)
                .transpose()
                .map_err(|error| format!("its normalizer: {error}"))?;
            let pre_tokenizer = pre_tokenizer
                .map(PreTokenizerWrapper::deserialize)
                .transpose()
                .map_err(|error| format!("its pre_tokenizer: {error}"))?;
            let mut added = AddedVocabulary::new();
            let tokens = added_tokens.iter().map(|token| AddedToken {
                content: token.content.clone(),
                single_word: token.single_word,
                lstrip: token.lstrip,
                rstrip: token.rstrip,
                normalized: token.normalized,
                special: token.special,
            });
            added
                .add_tokens(tokens, &Ids(model), normalizer.as_ref())
                .map_err(|error| format!("its added tokens: {error}"))?;
            Ok(Self {
                added,
                normalizer,
                pre_tokenizer,
            })
        })
    }

    /// Hands the parts of a text to `each`, in order.
    ///
    /// # Errors
    /// The component's own words, or `each`'s error.
    pub(crate) fn split<E>(
        &self,
        text: &str,
        mut each: impl FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<Result<(), E>, String> {
        let pieces = guarded(|| {
            let mut pieces = self
                .added
                .extract_and_normalize(self.normalizer.as_ref(), text);
            if let Some(pre_tokenizer) = &self.pre_tokenizer {
                pre_tokenizer
                    .pre_tokenize(&mut pieces)
                    .map_err(|error| error.to_string())?;
            }
            Ok(pieces)
        })?;
        for (piece, _, tokens) in pieces.get_splits(OffsetReferential::Normalized, OffsetType::None)
        {
            let result = match tokens {
                Some(tokens) => tokens
                    .iter()
                    .try_for_each(|token| each(Part::Token(token.id))),
                None => each(Part::Text(piece)),
            };
            if result.is_err() {
                return Ok(result);
            }
        }
        Ok(Ok(()))
    }

    /// The id of an added token.
    pub(crate) fn added_id(&self, token: &str) -> Option<u32> {
        self.added.get_vocab().get(token).copied()
    }

    /// Every added token with its id.
    pub(crate) fn added(&self) -> impl Iterator<Item = (&str, u32)> {
        self.added
            .get_vocab()
            .iter()
            .map(|(token, &id)| (token.as_str(), id))
    }
}

/// Settings that the component takes and then panics on.
fn check_pre_tokenizer(pre_tokenizer: &Value) -> Result<(), String> {
    match pre_tokenizer {
        Value::Object(members) => {
            if members.get("type").and_then(Value::as_str) == Some("FixedLength")
                && members.get("length").and_then(Value::as_u64) == Some(0)
            {
                return Err("its FixedLength pre_tokenizer has the length 0".to_owned());
            }
            members.values().try_for_each(check_pre_tokenizer)
        }
        Value::Array(parts) => parts.iter().try_for_each(check_pre_tokenizer),
        _ => Ok(()),
    }
}

/// Runs a component; where it panics, which broken settings can make it do, that is an error.
///
/// What it was working on is dropped, so nothing half done is seen afterwards.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let words = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(format!("a component panicked: {words}"))
    })
}

/// Our model as the added vocabulary asks for it: from token to id, and how many.
struct Ids<'a>(&'a Model);

impl tokenizers::Model for Ids<'_> {
    type Trainer = WordLevelTrainer;

    fn tokenize(&self, _: &str) -> tokenizers::Result<Vec<Token>> {
        Err("only ids are looked up here".into())
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.token_to_id(token)
    }

    fn id_to_token(&self, _: u32) -> Option<String> {
        None
    }

    fn get_vocab(&self) -> std::collections::HashMap<String, u32> {
        std::collections::HashMap::new()
    }

    fn get_vocab_size(&self) -> usize {
        self.0.size()
    }

    fn save(&self, _: &Path, _: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    fn get_trainer(&self) -> Self::Trainer {
        WordLevelTrainer::default()
    }
}
