//! The four kinds of model that turn a piece of text into ids.
//!
//! Each is an exact twin of the one in Hugging Face `tokenizers`, whose own keep a `String` (or two) a piece, a tree
//! of hash maps for Unigram, and make a `String` for every token they find. These keep a [`Trie`] and return ids
//! alone. `tests/twins.rs` compares them with the original.

mod bpe;
mod unigram;
mod wordlevel;
mod wordpiece;

use std::collections::{HashMap, HashSet};

use ahash::RandomState;

use crate::budget::{Budget, Stop};
use crate::definition::{ModelDefinition, Vocabulary};
use crate::error::Fault;
use crate::trie::{Pieces, Trie};

pub(crate) use bpe::Bpe;
pub(crate) use unigram::Unigram;
pub(crate) use wordlevel::WordLevel;
pub(crate) use wordpiece::WordPiece;

/// Why a piece of text has no ids.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoIds {
    /// It needs an unknown token, and there is none. Holds what the file calls it.
    NoUnknown(String),
    /// They would cost too much.
    Stop(Stop),
}

impl From<Stop> for NoIds {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// Working memory that one thread keeps from text to text.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    unigram: unigram::Lattice,
    bpe: bpe::Word,
    /// What is left for the text whose pieces these are.
    budget: Budget,
}

impl Scratch {
    /// Starts with the pieces of a text of so many bytes, whose ids follow so many others.
    pub(crate) fn start(&mut self, length: usize, before: usize) {
        self.budget = Budget::of(length).after(before);
    }
}

/// A model of any kind.
#[derive(Debug)]
pub(crate) enum Model {
    Unigram(Unigram),
    WordPiece(WordPiece),
    WordLevel(WordLevel),
    Bpe(Bpe),
}

impl Model {
    /// Builds the model that the file describes.
    ///
    /// # Errors
    /// Words saying what is missing or contradictory.
    pub(crate) fn build(definition: ModelDefinition) -> Result<Self, Fault> {
        match definition.kind()? {
            "Unigram" => Unigram::build(definition)
                .map(Self::Unigram)
                .map_err(Fault::Invalid),
            "WordPiece" => WordPiece::build(definition)
                .map(Self::WordPiece)
                .map_err(Fault::Invalid),
            "WordLevel" => WordLevel::build(definition)
                .map(Self::WordLevel)
                .map_err(Fault::Invalid),
            _ => Bpe::build(definition).map(Self::Bpe),
        }
    }

    /// Appends the ids of one piece of text.
    #[inline]
    pub(crate) fn tokenize(
        &self,
        piece: &str,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> Result<(), NoIds> {
        let Scratch {
            unigram,
            bpe,
            budget,
        } = scratch;
        match self {
            Self::Unigram(model) => model.tokenize(piece, unigram, budget, ids),
            Self::WordPiece(model) => model.tokenize(piece, budget, ids),
            Self::WordLevel(model) => model.tokenize(piece, ids),
            Self::Bpe(model) => model.tokenize(piece, bpe, budget, ids),
        }
    }

    /// The id of exactly this piece.
    pub(crate) fn token_to_id(&self, token: &str) -> Option<u32> {
        self.trie().get(token)
    }

    /// The pieces of these ids.
    pub(crate) fn pieces(&self, ids: &HashSet<u32>) -> HashMap<u32, String> {
        self.trie().keys(ids)
    }

    /// Number of pieces.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Unigram(model) => model.size(),
            _ => self.trie().len(),
        }
    }

    /// The largest id, if there is any.
    pub(crate) fn max_id(&self) -> Option<u32> {
        match self {
            Self::Unigram(model) => (model.size() as u32).checked_sub(1),
            _ => self.trie().max_value(),
        }
    }

    fn trie(&self) -> &Trie {
        match self {
            Self::Unigram(model) => model.trie(),
            Self::WordPiece(model) => model.trie(),
            Self::WordLevel(model) => model.trie(),
            Self::Bpe(model) => model.trie(),
        }
    }
}

impl ModelDefinition {
    /// The kind that is named, or the one that it must be.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for one that is not known.
    pub(crate) fn kind(&self) -> Result<&'static str, Fault> {
        const KNOWN: [&str; 4] = ["Unigram", "WordPiece", "WordLevel", "BPE"];
        let Some(named) = self.kind.as_deref() else {
            return Ok(guess(self));
        };
        let known = KNOWN.into_iter().find(|kind| *kind == named);
        known.ok_or_else(|| {
            Fault::Invalid(format!(
                "its model is of the kind {named:?}; Unigram, WordPiece, WordLevel and BPE are known"
            ))
        })
    }
}

/// Files from before the kind was written down, told apart by what else they hold.
fn guess(definition: &ModelDefinition) -> &'static str {
    if matches!(definition.vocabulary, Some(Vocabulary::Scored { .. })) {
        "Unigram"
    } else if definition.merges.is_some() {
        "BPE"
    } else if definition.continuing_subword_prefix.is_some()
        && definition.max_input_chars_per_word.is_some()
    {
        "WordPiece"
    } else {
        "WordLevel"
    }
}

/// The vocabulary of a model whose pieces carry their ids.
///
/// # Errors
/// Words saying what is wrong with it: among others a piece that is there twice, unless that is
/// what `repeats` allows.
fn mapped(vocabulary: Option<Vocabulary>, kind: &str, repeats: bool) -> Result<Trie, String> {
    match vocabulary {
        Some(Vocabulary::Mapped { pieces, ids }) => {
            let trie = build_mapped(&pieces, &ids)?;
            // The trie counts different pieces, so nothing has to be looked up in a good file.
            if trie.len() != pieces.len() && !repeats {
                let mut seen = HashSet::with_hasher(RandomState::with_seeds(1, 2, 3, 4));
                let doubled = pieces.iter().find(|piece| !seen.insert(*piece));
                return Err(format!(
                    "the vocabulary of its {kind} model holds {:?} twice",
                    doubled.unwrap_or_default()
                ));
            }
            Ok(trie)
        }
        Some(Vocabulary::Scored { .. }) => Err(format!(
            "the vocabulary of a {kind} model is a list where a map from piece to id belongs"
        )),
        None => Err(format!("its {kind} model has no vocabulary")),
    }
}

fn build_mapped(pieces: &Pieces, ids: &[u32]) -> Result<Trie, String> {
    if ids.contains(&u32::MAX) {
        return Err(format!("the id {} is out of range", u32::MAX));
    }
    Ok(Trie::build(pieces, |index| {
        ids.get(index).copied().unwrap_or(u32::MAX)
    }))
}
