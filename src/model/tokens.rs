//! Texts as tokens, and tokens as texts.

use isovec_tokenize::Token;

use super::{Model, Prompt, item};
use crate::error::Result;

impl Model {
    /// The tokens of texts behind a prompt, none left out.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for an unknown prompt and a model that reads no texts,
    /// [`Error::Tokenize`](crate::Error::Tokenize).
    pub(crate) fn tokenize(
        &self,
        texts: &[impl AsRef<str>],
        prompt: &Prompt,
        special_tokens: bool,
    ) -> Result<Vec<Vec<Token>>> {
        let reader = self.reader.texts()?;
        let (prefix, _) = self.prompts.resolve(prompt)?;
        let texts = texts.iter().map(AsRef::as_ref);
        let texts: Vec<_> = texts
            .map(|text| item::prepared(&prefix, text, reader.lowercase))
            .collect();
        let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        Ok(reader.tokenizer.tokens(&texts, special_tokens)?)
    }

    /// The texts of token ids.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a model that reads no texts, [`Error::Tokenize`](crate::Error::Tokenize).
    pub(crate) fn decode(
        &self,
        texts: &[impl AsRef<[u32]>],
        special_tokens: bool,
    ) -> Result<Vec<String>> {
        let texts: Vec<&[u32]> = texts.iter().map(AsRef::as_ref).collect();
        let reader = self.reader.texts()?;
        Ok(reader.tokenizer.decode(&texts, special_tokens)?)
    }
}
