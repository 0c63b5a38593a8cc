//! WordPiece: the longest piece that fits, again and again, until the word is used up
//! (<https://arxiv.org/abs/2012.15524>, section 2). A word that cannot be used up is one unknown
//! token.
//!
//! The longest match is the deepest node with a value on one walk through the trie, so a word
//! costs its length and no string is made.

use crate::budget::{Budget, FREE_WALK};
use crate::definition::ModelDefinition;
use crate::model::{NoIds, mapped};
use crate::trie::{Node, ROOT, Trie};

/// See the module's words.
#[derive(Debug)]
pub(crate) struct WordPiece {
    trie: Trie,
    unknown: String,
    unknown_id: Option<u32>,
    /// Where pieces that continue a word start: the node of `##`, if any piece has it.
    continuing: Option<Node>,
    max_chars: usize,
    /// Pieces are so long, and words may be, that a walk for each of a word's bytes could take
    /// for ever, so steps are counted.
    counted: bool,
}

impl WordPiece {
    pub(crate) fn build(definition: ModelDefinition) -> Result<Self, String> {
        let trie = mapped(definition.vocabulary, "WordPiece", definition.repeats)?;
        let unknown = definition.unk_token.unwrap_or_else(|| "[UNK]".to_owned());
        let prefix = definition
            .continuing_subword_prefix
            .unwrap_or_else(|| "##".to_owned());
        let max_chars = definition.max_input_chars_per_word.unwrap_or(100);
        Ok(Self {
            unknown_id: trie.get(&unknown),
            unknown,
            continuing: trie.descend(ROOT, prefix.as_bytes()),
            max_chars,
            counted: trie.longest().min(max_chars.saturating_mul(4)) > FREE_WALK,
            trie,
        })
    }

    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    pub(crate) fn tokenize(
        &self,
        word: &str,
        budget: &mut Budget,
        ids: &mut Vec<u32>,
    ) -> Result<(), NoIds> {
        let before = ids.len();
        let too_long = word.len() > self.max_chars && word.chars().nth(self.max_chars).is_some();
        if too_long || !self.split(word.as_bytes(), budget, ids)? {
            ids.truncate(before);
            ids.push(
                self.unknown_id
                    .ok_or_else(|| NoIds::NoUnknown(self.unknown.clone()))?,
            );
        }
        Ok(())
    }

    /// Appends the pieces of a word; `false` when some of it has none.
    fn split(&self, word: &[u8], budget: &mut Budget, ids: &mut Vec<u32>) -> Result<bool, NoIds> {
        let mut rest = word;
        let mut from = Some(ROOT);
        while !rest.is_empty() {
            if self.counted {
                let most = rest.len().min(self.trie.longest());
                let part = || "its WordPiece model".to_owned();
                budget.walk(most).map_err(|stop| stop.by(part))?;
            }
            let Some((id, length)) = from.and_then(|node| self.longest(node, rest)) else {
                return Ok(false);
            };
            ids.push(id);
            rest = &rest[length..];
            from = self.continuing;
        }
        Ok(true)
    }

    /// The longest piece that `text` starts with, at least one byte long, below `node`.
    ///
    /// Pieces are whole UTF-8 strings, so a match never ends inside a character.
    fn longest(&self, mut node: Node, text: &[u8]) -> Option<(u32, usize)> {
        let mut longest = None;
        for (offset, &byte) in text.iter().enumerate() {
            let Some(child) = self.trie.child(node, byte) else {
                break;
            };
            node = child;
            if let Some(id) = self.trie.value(node) {
                longest = Some((id, offset + 1));
            }
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(json: &str, word: &str) -> Result<Vec<u32>, NoIds> {
        let model = WordPiece::build(serde_json::from_str(json).unwrap()).unwrap();
        let mut ids = vec![];
        let mut budget = Budget::of(word.len());
        model.tokenize(word, &mut budget, &mut ids).map(|()| ids)
    }

    const VOCABULARY: &str = r###"{"max_input_chars_per_word":5,"vocab":{"[UNK]":0,"a":1,"ab":2,"##b":3,"##bé":4,"##":5}}"###;

    #[test]
    fn longest_match_first() {
        assert_eq!(ids(VOCABULARY, "abb").unwrap(), [2, 3]);
        assert_eq!(ids(VOCABULARY, "abbé").unwrap(), [2, 4]);
        assert_eq!(ids(VOCABULARY, "a").unwrap(), [1]);
        assert_eq!(ids(VOCABULARY, "").unwrap(), [] as [u32; 0]);
    }

    #[test]
    fn a_word_that_does_not_fit_is_one_unknown() {
        assert_eq!(ids(VOCABULARY, "abx").unwrap(), [0]);
        assert_eq!(ids(VOCABULARY, "abbbb").unwrap(), [2, 3, 3, 3]);
        assert_eq!(ids(VOCABULARY, "abbbbb").unwrap(), [0]);
    }

    #[test]
    fn no_unknown_token_is_an_error_only_when_it_is_needed() {
        let json = r#"{"unk_token":"<none>","vocab":{"a":0}}"#;
        assert_eq!(ids(json, "a").unwrap(), [0]);
        assert_eq!(ids(json, "b"), Err(NoIds::NoUnknown("<none>".to_owned())));
    }
}
