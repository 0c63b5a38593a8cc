//! The general way: every normaliser and pre-tokeniser that a file can name.

use serde_json::Value;

use crate::budget::Stop;
use crate::definition::AddedTokenDefinition;
use crate::error::Fault;
use crate::model::Model;
use crate::split::Part;
use crate::split::added::Added;
use crate::split::normalizer::Normalizer;
use crate::split::pattern::Patterns;
use crate::split::pieces::Pieces;
use crate::split::pre_tokenizer::PreTokenizer;

/// The components of one tokenizer.
#[derive(Debug)]
pub(crate) struct General {
    added: Added,
    normalizer: Option<Normalizer>,
    pre_tokenizer: Option<PreTokenizer>,
}

impl General {
    /// Builds the components that the file names.
    ///
    /// # Errors
    /// What is wrong with them, or not implemented.
    pub(crate) fn build(
        added_tokens: &[AddedTokenDefinition],
        normalizer: Option<&Value>,
        pre_tokenizer: Option<&Value>,
        model: &Model,
    ) -> Result<Self, Fault> {
        let patterns = Patterns::default();
        let normalizer = normalizer.map(|part| Normalizer::read(part, &patterns));
        let normalizer = normalizer.transpose()?;
        let pre_tokenizer = pre_tokenizer.map(|part| PreTokenizer::read(part, &patterns));
        let pre_tokenizer = pre_tokenizer.transpose()?;
        let added = Added::build(added_tokens, normalizer.as_ref(), model)?;
        Ok(Self {
            added,
            normalizer,
            pre_tokenizer,
        })
    }

    /// Hands the parts of a text to `each`, in order.
    ///
    /// # Errors
    /// Why a component could not, or `each`'s error.
    pub(crate) fn split<E>(
        &self,
        text: &str,
        pieces: &mut Pieces,
        mut each: impl FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<Result<(), E>, Stop> {
        pieces.load(text);
        self.added.split(pieces, self.normalizer.as_ref())?;
        if let Some(pre_tokenizer) = &self.pre_tokenizer {
            pre_tokenizer.split(pieces)?;
        }
        Ok(pieces.iter().try_for_each(|piece| {
            each(match piece {
                Ok(text) => Part::Text(text),
                Err(id) => Part::Token(id),
            })
        }))
    }

    /// The id of an added token.
    pub(crate) fn added_id(&self, token: &str) -> Option<u32> {
        self.added.id(token)
    }

    /// Every added token with its id.
    pub(crate) fn added(&self) -> impl Iterator<Item = (&str, u32)> {
        self.added.iter()
    }
}
