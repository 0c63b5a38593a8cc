//! Byte pair encoding: characters, merged pair by pair in the order in which the merges were
//! learnt (<https://arxiv.org/abs/1508.07909>).
//!
//! Queue order and the handling of unknown characters follow `tokenizers` (`models/bpe/model.rs`
//! and `word.rs`). Dropout, which `tokenizers` applies at random where a file asks for it, is a
//! means of training: here a text always has the same ids.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::budget::Budget;
use crate::definition::ModelDefinition;
use crate::error::Fault;
use crate::model::{NoIds, mapped};
use crate::trie::Trie;

/// The longest affix: it is spelt for every character of a text.
const LONGEST_AFFIX: usize = 64;

/// See the module's words.
#[derive(Debug)]
pub(crate) struct Bpe {
    trie: Trie,
    /// From a pair of ids to (rank, id of the whole).
    merges: HashMap<(u32, u32), (u32, u32), ahash::RandomState>,
    unknown: Option<String>,
    unknown_id: Option<u32>,
    prefix: String,
    suffix: String,
    fuse_unknown: bool,
    ignore_merges: bool,
    /// Ids of the pieces `<0x00>` to `<0xFF>`, where unknown text falls back on its bytes.
    bytes: Option<Box<[Option<u32>; 256]>>,
}

/// One symbol of a word, linked to its neighbours by index.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    /// [`DEAD`] once it is part of its neighbour.
    id: u32,
    previous: u32,
    next: u32,
}

const END: u32 = u32::MAX;
/// No piece has this id.
const DEAD: u32 = u32::MAX;

/// Working memory.
#[derive(Debug, Default)]
pub(crate) struct Word {
    symbols: Vec<Symbol>,
    /// Lowest rank first, then leftmost: (rank, place, id of the whole).
    queue: BinaryHeap<Reverse<(u32, u32, u32)>>,
    text: String,
}

impl Word {
    fn push(&mut self, id: u32) {
        let place = self.symbols.len() as u32;
        if let Some(last) = self.symbols.last_mut() {
            last.next = place;
        }
        self.symbols.push(Symbol {
            id,
            previous: place.checked_sub(1).unwrap_or(END),
            next: END,
        });
    }
}

impl Bpe {
    pub(crate) fn build(definition: ModelDefinition) -> Result<Self, Fault> {
        for (name, affix) in [
            (
                "continuing_subword_prefix",
                &definition.continuing_subword_prefix,
            ),
            ("end_of_word_suffix", &definition.end_of_word_suffix),
        ] {
            let length = affix.as_ref().map_or(0, String::len);
            if length > LONGEST_AFFIX {
                return Err(Fault::Excess(format!(
                    "the {name} of its BPE model has {length} bytes and may have {LONGEST_AFFIX}"
                )));
            }
        }
        Self::read(definition).map_err(Fault::Invalid)
    }

    fn read(definition: ModelDefinition) -> Result<Self, String> {
        let trie = mapped(definition.vocabulary, "BPE", definition.repeats)?;
        let listed = definition.merges.ok_or("its BPE model has no merges")?.0;
        let prefix = definition.continuing_subword_prefix.unwrap_or_default();
        let id_of = |piece: &str| {
            trie.get(piece).ok_or_else(|| {
                format!("a merge uses {piece:?}, which the vocabulary does not hold")
            })
        };
        let count = listed.len() / 2;
        let mut merges = HashMap::with_capacity_and_hasher(
            count,
            // Fixed seeds: the map's order is never looked at, and the browser needs no entropy.
            ahash::RandomState::with_seeds(1, 2, 3, 4),
        );
        let mut whole = String::new();
        for rank in 0..count {
            let (left, right) = (listed.get(rank * 2), listed.get(rank * 2 + 1));
            let tail = if prefix.is_empty() {
                right
            } else {
                right.get(prefix.len()..).ok_or_else(|| {
                    format!("the right side of a merge, {right:?}, lacks the prefix {prefix:?}")
                })?
            };
            whole.clear();
            whole.push_str(left);
            whole.push_str(tail);
            merges.insert((id_of(left)?, id_of(right)?), (rank as u32, id_of(&whole)?));
        }
        let bytes = definition.byte_fallback.then(|| {
            let mut ids = Box::new([None; 256]);
            for (byte, id) in ids.iter_mut().enumerate() {
                *id = trie.get(&format!("<0x{byte:02X}>"));
            }
            ids
        });
        Ok(Self {
            unknown_id: definition.unk_token.as_deref().and_then(|t| trie.get(t)),
            unknown: definition.unk_token,
            prefix,
            suffix: definition.end_of_word_suffix.unwrap_or_default(),
            fuse_unknown: definition.fuse_unk,
            ignore_merges: definition.ignore_merges,
            bytes,
            merges,
            trie,
        })
    }

    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    pub(crate) fn tokenize(
        &self,
        text: &str,
        word: &mut Word,
        budget: &Budget,
        ids: &mut Vec<u32>,
    ) -> Result<(), NoIds> {
        if self.ignore_merges
            && let Some(id) = self.trie.get(text)
        {
            ids.push(id);
            return Ok(());
        }
        self.spell(text, word, budget, ids.len())?;
        self.merge(word);
        ids.extend(word.symbols.iter().map(|s| s.id).filter(|&id| id != DEAD));
        Ok(())
    }

    /// Fills the word with one symbol a character. The text has `before` tokens already.
    fn spell(
        &self,
        text: &str,
        word: &mut Word,
        budget: &Budget,
        before: usize,
    ) -> Result<(), NoIds> {
        word.symbols.clear();
        let mut unknown = None;
        for (start, character) in text.char_indices() {
            let end = start + character.len_utf8();
            let id = self.character(text, start, end, &mut word.text);
            if let Some(id) = id {
                if let Some(unknown) = unknown.take() {
                    word.push(unknown);
                }
                word.push(id);
                continue;
            }
            if let Some(bytes) = self.fallback(&word.text) {
                for id in bytes {
                    word.push(id);
                }
                // Affixes fall back on their bytes too, again for every character.
                let part = || "its BPE model".to_owned();
                let tokens = budget.tokens(before + word.symbols.len());
                tokens.map_err(|stop| stop.by(part))?;
                continue;
            }
            // Without an unknown token what cannot be spelt is left out, as the original does.
            let Some(name) = &self.unknown else { continue };
            let id = match (unknown, self.fuse_unknown) {
                (Some(before), true) => before,
                (before, _) => {
                    if let Some(before) = before {
                        word.push(before);
                    }
                    self.unknown_id
                        .ok_or_else(|| NoIds::NoUnknown(name.clone()))?
                }
            };
            unknown = Some(id);
        }
        if let Some(unknown) = unknown {
            word.push(unknown);
        }
        Ok(())
    }

    /// The id of one character with the affixes of its place; leaves the string looked for in
    /// `spelt`.
    fn character(&self, text: &str, start: usize, end: usize, spelt: &mut String) -> Option<u32> {
        spelt.clear();
        if start > 0 {
            spelt.push_str(&self.prefix);
        }
        spelt.push_str(&text[start..end]);
        if end == text.len() {
            spelt.push_str(&self.suffix);
        }
        self.trie.get(spelt)
    }

    /// The ids of a text's bytes, where every one of them has a piece.
    fn fallback(&self, text: &str) -> Option<Vec<u32>> {
        let table = self.bytes.as_ref()?;
        text.bytes().map(|byte| table[usize::from(byte)]).collect()
    }

    /// Merges neighbours until no pair is left that was learnt.
    fn merge(&self, word: &mut Word) {
        let Word { symbols, queue, .. } = word;
        queue.clear();
        for (place, pair) in symbols.windows(2).enumerate() {
            if let Some(&(rank, whole)) = self.merges.get(&(pair[0].id, pair[1].id)) {
                queue.push(Reverse((rank, place as u32, whole)));
            }
        }
        while let Some(Reverse((_, place, whole))) = queue.pop() {
            let left = symbols[place as usize];
            if left.id == DEAD || left.next == END {
                continue;
            }
            let right = symbols[left.next as usize];
            // An entry whose pair has changed since it was queued is stale.
            match self.merges.get(&(left.id, right.id)) {
                Some(&(_, id)) if id == whole => {}
                _ => continue,
            }
            symbols[left.next as usize].id = DEAD;
            symbols[place as usize].id = whole;
            symbols[place as usize].next = right.next;
            if right.next != END {
                symbols[right.next as usize].previous = place;
                let pair = (whole, symbols[right.next as usize].id);
                if let Some(&(rank, whole)) = self.merges.get(&pair) {
                    queue.push(Reverse((rank, place, whole)));
                }
            }
            if left.previous != END {
                let pair = (symbols[left.previous as usize].id, whole);
                if let Some(&(rank, whole)) = self.merges.get(&pair) {
                    queue.push(Reverse((rank, left.previous, whole)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(json: &str, text: &str) -> Vec<u32> {
        let model = Bpe::build(serde_json::from_str(json).unwrap()).unwrap();
        let mut ids = vec![];
        model
            .tokenize(
                text,
                &mut Word::default(),
                &Budget::of(text.len()),
                &mut ids,
            )
            .unwrap();
        ids
    }

    #[test]
    fn merges_in_the_order_learnt() {
        let json =
            r#"{"vocab":{"a":0,"b":1,"c":2,"bc":3,"ab":4,"abc":5},"merges":["b c","a b","a bc"]}"#;
        assert_eq!(ids(json, "abc"), [5]);
        assert_eq!(ids(json, "abab"), [4, 4]);
        assert_eq!(ids(json, ""), [] as [u32; 0]);
    }

    #[test]
    fn a_merge_of_something_else_is_refused() {
        for merges in [r#"["a x"]"#, r#"["a a"]"#] {
            let json = format!(r#"{{"vocab":{{"a":0,"b":1}},"merges":{merges}}}"#);
            let error = Bpe::build(serde_json::from_str(&json).unwrap()).unwrap_err();
            let Fault::Invalid(error) = error else {
                panic!("{error:?}");
            };
            assert!(error.contains("vocabulary does not hold"), "{error}");
        }
        let json = r###"{"continuing_subword_prefix":"##","vocab":{"a":0,"é":1},"merges":["a é","é a"]}"###;
        assert!(Bpe::build(serde_json::from_str(json).unwrap()).is_err());
    }
}
