//! Tokens with their words: what a tokenizer makes of texts, and texts of token ids.

use std::collections::{HashMap, HashSet};

use crate::decode::Decoder;
use crate::error::{Result, TokenizeError};
use crate::template::Item;
use crate::tokenizer::{Tokenizer, Workspace};

/// A token of a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Token {
    /// Its id.
    pub id: u32,
    /// How the vocabulary spells it, marks of words and of their parts included.
    pub text: String,
    /// Whether it was put around the text, and is no part of it.
    pub special: bool,
}

impl Tokenizer {
    /// The tokens of texts, none left out, with or without the special tokens around each text.
    ///
    /// # Errors
    /// Those of [`Tokenizer::encode`] for a text.
    pub fn tokens(&self, texts: &[&str], special_tokens: bool) -> Result<Vec<Vec<Token>>> {
        let alone = [Item::First { type_id: 0 }];
        let row = match special_tokens {
            true => &self.template.single[..],
            false => &alone,
        };
        let mut workspace = Workspace::default();
        let mut all: Vec<Vec<(u32, bool)>> = Vec::with_capacity(texts.len());
        for text in texts {
            workspace.ids.clear();
            self.tokenize(text, &mut workspace)?;
            let mut tokens = Vec::with_capacity(workspace.ids.len() + row.len());
            for item in row {
                match *item {
                    Item::Special { id, .. } => tokens.push((id, true)),
                    Item::First { .. } => {
                        tokens.extend(workspace.ids.iter().map(|&id| (id, false)));
                    }
                    Item::Second { .. } => {}
                }
            }
            all.push(tokens);
        }
        let words = self.words(all.iter().flatten().map(|&(id, _)| id));
        let token = |(id, special)| Token {
            id,
            text: words.get(&id).cloned().unwrap_or_default(),
            special,
        };
        let texts = all.into_iter();
        Ok(texts
            .map(|tokens| tokens.into_iter().map(token).collect())
            .collect())
    }

    /// The texts of token ids, as the file's `decoder` puts tokens together. Ids that the vocabulary skips are left out, and
    /// so are the tokens that the file calls special, unless they are wanted.
    ///
    /// # Errors
    /// [`TokenizeError::UnknownId`] for an id beyond the vocabulary, and [`TokenizeError::Undecodable`] for a decoder that
    /// is not supported, or makes too much of the tokens.
    pub fn decode(&self, texts: &[&[u32]], special_tokens: bool) -> Result<Vec<String>> {
        let all = || texts.iter().copied().flatten().copied();
        all().try_for_each(|id| self.check_id(id))?;
        let words = self.words(all());
        let decoder = Decoder::read(self.decoder.as_ref());
        let is_wanted = |id: &u32| special_tokens || !self.special.contains(id);
        let decode = |ids: &&[u32]| {
            let pieces = ids.iter().filter(|id| is_wanted(id));
            let pieces = pieces.filter_map(|id| words.get(id).cloned());
            decoder
                .decode(pieces.collect())
                .map_err(|detail| TokenizeError::Undecodable {
                    origin: self.origin.clone(),
                    detail,
                })
        };
        texts.iter().map(decode).collect()
    }

    /// How the vocabulary spells these ids, as the tokenizer's file writes it (`##ing`, `▁the`); nothing for an id without a token.
    pub fn words(&self, ids: impl IntoIterator<Item = u32>) -> HashMap<u32, String> {
        let wanted: HashSet<u32> = ids.into_iter().collect();
        self.reader.words(&wanted)
    }
}
