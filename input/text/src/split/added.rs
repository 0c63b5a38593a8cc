//! Added tokens: found in the text before, and after, it is normalised.
//!
//! A twin of `tokenizers`' `AddedVocabulary` (`tokenizer/added_vocabulary.rs`): of tokens that
//! start at one place the longest counts, and which ids new tokens get follows it.

use std::collections::{BTreeMap, HashMap};

use crate::budget::{Budget, FREE_WALK, Stop};
use crate::definition::AddedTokenDefinition;
use crate::error::Fault;
use crate::model::Model;
use crate::split::normalizer::Normalizer;
use crate::split::pieces::{Cuts, Piece, Pieces, narrow};
use crate::trie::{Pieces as Strings, ROOT, Trie};
use crate::unicode::is_word;

/// The added tokens of one tokenizer.
#[derive(Debug)]
pub(crate) struct Added {
    ids: HashMap<String, u32, ahash::RandomState>,
    /// Those that are looked for in the text as it is.
    raw: Finder,
    /// Those that are looked for in normalised text.
    normalized: Finder,
}

impl Added {
    /// Gives every token its id.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for a token that cannot be found, [`Fault::Excess`] where the normaliser
    /// makes too much of them all together.
    pub(crate) fn build(
        tokens: &[AddedTokenDefinition],
        normalizer: Option<&Normalizer>,
        model: &Model,
    ) -> Result<Self, Fault> {
        let length = tokens.iter().map(|token| token.content.len()).sum();
        let mut budget = Budget::of(length);
        let mut normalized_bytes = 0_usize;
        // Fixed seeds: the browser needs no entropy for it.
        let mut ids: HashMap<String, u32, _> =
            HashMap::with_hasher(ahash::RandomState::with_seeds(1, 2, 3, 4));
        let mut by_id: BTreeMap<u32, (&AddedTokenDefinition, String)> = BTreeMap::new();
        let mut next = u32::try_from(model.size()).unwrap_or(u32::MAX);
        for token in tokens.iter().filter(|token| !token.content.is_empty()) {
            let known = ids.get(&token.content).copied();
            let id = match known.or_else(|| model.token_to_id(&token.content)) {
                Some(id) => id,
                None => {
                    next += 1;
                    next - 1
                }
            };
            let mut looked_for = token.content.clone();
            if token.normalized
                && let Some(normalizer) = normalizer
            {
                let mut piece = Piece::new(&token.content, budget);
                normalizer.normalize(&mut piece).map_err(Stop::fault)?;
                (looked_for, budget) = piece.into_parts();
                normalized_bytes = normalized_bytes.saturating_add(looked_for.len());
                let stop = budget.bytes(Some(normalized_bytes));
                stop.map_err(|stop| {
                    stop.by(|| "its normalizer, of added tokens,".to_owned())
                        .fault()
                })?;
            }
            ids.insert(token.content.clone(), id);
            by_id.insert(id, (token, looked_for));
        }
        let finder = |normalized: bool| {
            let wanted = by_id
                .iter()
                .filter(|(_, (token, _))| token.normalized == normalized);
            Finder::build(wanted.map(|(&id, (token, text))| (id, *token, text.as_str())))
        };
        Ok(Self {
            raw: finder(false)?,
            normalized: finder(true)?,
            ids,
        })
    }

    /// Cuts a text at its added tokens, and normalises what lies between them.
    ///
    /// # Errors
    /// The normaliser's words.
    pub(crate) fn split(
        &self,
        pieces: &mut Pieces,
        normalizer: Option<&Normalizer>,
    ) -> Result<(), Stop> {
        // Walks of both finders, where someone has to count them.
        let mut walks = *pieces.budget();
        pieces.cut(&mut |text, cuts| self.raw.cut(text, cuts, &mut walks))?;
        pieces.step(
            &mut |piece| match normalizer {
                Some(normalizer) => normalizer.normalize(piece),
                None => Ok(()),
            },
            &mut |text, cuts| self.normalized.cut(text, cuts, &mut walks),
        )
    }

    /// The id of an added token.
    pub(crate) fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    /// Every added token with its id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.ids.iter().map(|(token, &id)| (token.as_str(), id))
    }
}

/// Finds tokens in a text.
#[derive(Debug)]
struct Finder {
    /// From what is looked for to a place in `tokens`.
    trie: Option<Trie>,
    tokens: Vec<Token>,
}

#[derive(Debug)]
struct Token {
    id: u32,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
}

impl Finder {
    fn build<'a>(
        wanted: impl Iterator<Item = (u32, &'a AddedTokenDefinition, &'a str)>,
    ) -> Result<Self, Fault> {
        // A later text takes the place of an earlier one. Of tokens that are the same when they are
        // normalised the one with the lowest id shall be found, so it comes last. (The original
        // finds any of them, by the chance of its hashing.)
        let mut wanted: Vec<_> = wanted.collect();
        wanted.reverse();
        let mut texts = Strings::default();
        let mut tokens = Vec::new();
        for (id, token, text) in wanted {
            if text.is_empty() {
                return Err(Fault::Invalid(format!(
                    "its added tokens: nothing is left of {:?} when it is normalised",
                    token.content
                )));
            }
            if !texts.push(text) {
                let words = "its added tokens hold more than 4 GiB of text";
                return Err(Fault::Excess(words.to_owned()));
            }
            tokens.push(Token {
                id,
                single_word: token.single_word,
                lstrip: token.lstrip,
                rstrip: token.rstrip,
            });
        }
        let trie = (!tokens.is_empty()).then(|| Trie::build(&texts, |index| index as u32));
        Ok(Self { trie, tokens })
    }

    /// Cuts a piece at its tokens.
    fn cut(&self, text: &str, cuts: &mut Cuts, walks: &mut Budget) -> Result<(), Stop> {
        let mut end = 0;
        let mut from = 0;
        while let Some((token, found_start, found_end)) = self.find(text, from, walks)? {
            from = found_end;
            let (mut start, mut stop) = (found_start, found_end);
            let after = &text[stop..];
            if token.single_word
                && (text[..start].chars().next_back().is_some_and(is_word)
                    || after.chars().next().is_some_and(is_word))
            {
                continue;
            }
            if token.lstrip {
                // Spaces that the token before has taken are gone. It may have taken this token,
                // which then starts where that one ends.
                let between = text.get(end..start).unwrap_or_default();
                start = end + between.trim_end().len();
            }
            if token.rstrip {
                // What the token before has taken beyond this one is white space to its end.
                stop = match end > stop {
                    true => end,
                    false => stop + after.len() - after.trim_start().len(),
                };
            }
            if end < start {
                cuts.keep(narrow(end..start));
            }
            cuts.token(narrow(start..stop), token.id);
            end = stop;
        }
        if end != text.len() {
            cuts.keep(narrow(end..text.len()));
        }
        Ok(())
    }

    /// The first token from a place on, the longest of those that start there.
    fn find(
        &self,
        text: &str,
        from: usize,
        walks: &mut Budget,
    ) -> Result<Option<(&Token, usize, usize)>, Stop> {
        let Some(trie) = &self.trie else {
            return Ok(None);
        };
        let counted = trie.longest() > FREE_WALK;
        let bytes = text.as_bytes();
        for start in from..bytes.len() {
            let mut node = ROOT;
            let mut longest = None;
            let mut walked = 0;
            for (offset, &byte) in bytes[start..].iter().enumerate() {
                let Some(child) = trie.child(node, byte) else {
                    break;
                };
                node = child;
                walked = offset;
                if let Some(index) = trie.value(node) {
                    longest = Some((index, start + offset + 1));
                }
            }
            if counted {
                let part = || "its list of added tokens".to_owned();
                walks.walk(walked).map_err(|stop| stop.by(part))?;
            }
            if let Some((index, end)) = longest {
                let token = self.tokens.get(index as usize);
                return Ok(token.map(|token| (token, start, end)));
            }
        }
        Ok(None)
    }
}
