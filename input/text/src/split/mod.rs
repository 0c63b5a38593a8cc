//! From a text to the pieces that a model sees: added tokens found, text normalised, words split.
//!
//! The general way ([`general`]) knows every component that a file can name: [`added`] tokens,
//! [`normalizer`]s and [`pre_tokenizer`]s, which work on [`pieces`]. For the one combination that
//! most models use, BERT's, [`bert`] does the same work on plain strings.

mod added;
mod bert;
mod byte_level;
mod charsmap;
mod general;
mod normalizer;
mod pattern;
mod pieces;
mod pre_tokenizer;
mod settings;

use crate::definition::AddedTokenDefinition;

pub(crate) use bert::{Bert, BertScratch};
pub(crate) use byte_level::byte_of;
pub(crate) use general::General;
pub(crate) use pieces::Pieces;

/// What a text falls into.
pub(crate) enum Part<'a> {
    /// Text for the model.
    Text(&'a str),
    /// An added token, already known by its id.
    Token(u32),
}

/// Above these a trie is better than one needle after the other.
const MOST_NEEDLES: usize = 1024;
const MOST_NEEDLE_BYTES: usize = 16 << 10;

/// Tells quickly whether a text may hold an added token.
#[derive(Debug)]
pub(crate) struct Needles {
    first: Box<[bool; 256]>,
    needles: Vec<String>,
}

impl Needles {
    /// `None` where an answer by looking at the raw text alone is not possible: a token that is
    /// looked for in normalised text. Nor for so many or long tokens that looking for one after the
    /// other could take for ever.
    pub(crate) fn new(tokens: &[AddedTokenDefinition]) -> Option<Self> {
        let mut first = Box::new([false; 256]);
        let mut needles = Vec::with_capacity(tokens.len());
        for token in tokens {
            if token.normalized {
                return None;
            }
            if let Some(&byte) = token.content.as_bytes().first() {
                first[usize::from(byte)] = true;
                needles.push(token.content.clone());
            }
        }
        let bytes: usize = needles.iter().map(String::len).sum();
        (needles.len() <= MOST_NEEDLES && bytes <= MOST_NEEDLE_BYTES)
            .then_some(Self { first, needles })
    }

    /// Whether any added token occurs in the text.
    pub(crate) fn any_in(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        bytes.iter().enumerate().any(|(at, &byte)| {
            self.first[usize::from(byte)]
                && self
                    .needles
                    .iter()
                    .any(|needle| bytes[at..].starts_with(needle.as_bytes()))
        })
    }
}
