//! Unigram: the segmentation of a text whose pieces' scores add up highest
//! (<https://arxiv.org/abs/1804.10959>), found by Viterbi's algorithm in one pass.
//!
//! Order of additions, tie-breaking and the handling of unknown characters follow
//! `tokenizers` (`models/unigram/model.rs`, `encode_optimized`), which follows SentencePiece.

use crate::budget::{Budget, FREE_WALK};
use crate::definition::{ModelDefinition, Vocabulary};
use crate::model::NoIds;
use crate::trie::{ROOT, Trie};

/// How much worse than the worst piece an unknown character is.
const UNKNOWN_PENALTY: f64 = 10.0;

/// See the module's words.
#[derive(Debug)]
pub(crate) struct Unigram {
    trie: Trie,
    scores: Box<[f64]>,
    unknown_id: Option<u32>,
    unknown_score: f64,
    /// Ids of the pieces `<0x00>` to `<0xFF>`, where unknown text falls back on its bytes.
    bytes: Option<Box<[Option<u32>; 256]>>,
}

/// The best path that ends at one byte of the text.
#[derive(Debug, Clone, Copy)]
struct Best {
    score: f64,
    start: u32,
    id: u32,
}

const UNREACHED: u32 = u32::MAX;

/// Working memory.
#[derive(Debug, Default)]
pub(crate) struct Lattice {
    best: Vec<Best>,
    /// Where the pieces of the best path end, the last one first.
    path: Vec<u32>,
}

impl Unigram {
    pub(crate) fn build(definition: ModelDefinition) -> Result<Self, String> {
        let (pieces, scores) = match definition.vocabulary {
            Some(Vocabulary::Scored { pieces, scores }) => (pieces, scores),
            Some(Vocabulary::Mapped { .. }) => {
                return Err(
                    "the vocabulary of a Unigram model is a map where a list of [piece, score] belongs"
                        .to_owned(),
                );
            }
            None => return Err("its Unigram model has no vocabulary".to_owned()),
        };
        if let Some(unknown) = definition.unk_id
            && unknown as usize >= pieces.len()
        {
            return Err(format!(
                "unk_id is {unknown}, past the end of a vocabulary of {} pieces",
                pieces.len()
            ));
        }
        let trie = Trie::build(&pieces, |index| index as u32);
        let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let bytes = definition.byte_fallback.then(|| {
            let mut ids = Box::new([None; 256]);
            for (byte, id) in ids.iter_mut().enumerate() {
                *id = trie.get(&format!("<0x{byte:02X}>"));
            }
            ids
        });
        Ok(Self {
            trie,
            scores: scores.into_boxed_slice(),
            unknown_id: definition.unk_id,
            unknown_score: lowest - UNKNOWN_PENALTY,
            bytes,
        })
    }

    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    pub(crate) fn size(&self) -> usize {
        self.scores.len()
    }

    pub(crate) fn tokenize(
        &self,
        text: &str,
        lattice: &mut Lattice,
        budget: &mut Budget,
        ids: &mut Vec<u32>,
    ) -> Result<(), NoIds> {
        // Where pieces are long, a walk from every place could take for ever.
        if self.trie.longest() > FREE_WALK {
            self.search::<true>(text, lattice, budget)?;
        } else {
            self.search::<false>(text, lattice, budget)?;
        }
        self.emit(text, lattice, ids);
        Ok(())
    }

    /// Fills `lattice.best` for every end, then `lattice.path` from the last piece to the first.
    fn search<const COUNTED: bool>(
        &self,
        text: &str,
        lattice: &mut Lattice,
        budget: &mut Budget,
    ) -> Result<(), NoIds> {
        let bytes = text.as_bytes();
        let best = &mut lattice.best;
        best.clear();
        best.resize(
            bytes.len() + 1,
            Best {
                score: 0.0,
                start: UNREACHED,
                id: 0,
            },
        );
        for (start, character) in text.char_indices() {
            let here = best[start].score;
            let width = character.len_utf8();
            let mut whole_character = false;
            let mut node = ROOT;
            let mut walked = 0;
            for (offset, &byte) in bytes[start..].iter().enumerate() {
                let Some(child) = self.trie.child(node, byte) else {
                    break;
                };
                node = child;
                if COUNTED {
                    walked = offset;
                }
                let Some(id) = self.trie.value(node) else {
                    continue;
                };
                let length = offset + 1;
                whole_character |= length == width;
                improve(
                    &mut best[start + length],
                    self.scores[id as usize] + here,
                    start,
                    id,
                );
            }
            if COUNTED {
                let part = || "its Unigram model".to_owned();
                budget.walk(walked).map_err(|stop| stop.by(part))?;
            }
            if !whole_character {
                let end = &mut best[start + width];
                let score = self.unknown_score + here;
                if end.start == UNREACHED || score > end.score {
                    let id = self
                        .unknown_id
                        .ok_or_else(|| NoIds::NoUnknown("unk_id is not set".to_owned()))?;
                    improve(end, score, start, id);
                }
            }
        }

        lattice.path.clear();
        let mut end = bytes.len();
        while end > 0 {
            lattice.path.push(end as u32);
            end = best[end].start as usize;
        }
        Ok(())
    }

    /// Appends the path's ids; neighbouring unknowns become one.
    fn emit(&self, text: &str, lattice: &Lattice, ids: &mut Vec<u32>) {
        let mut path = lattice
            .path
            .iter()
            .rev()
            .map(|&end| end as usize)
            .peekable();
        while let Some(mut end) = path.next() {
            let Best { start, id, .. } = lattice.best[end];
            if Some(id) != self.unknown_id {
                ids.push(id);
                continue;
            }
            while let Some(next_end) =
                path.next_if(|&next| Some(lattice.best[next].id) == self.unknown_id)
            {
                end = next_end;
            }
            let unknown = &text[start as usize..end];
            match (self.trie.get(unknown), self.fallback(unknown)) {
                (Some(id), _) => ids.push(id),
                (None, Some(bytes)) => ids.extend(bytes),
                (None, None) => ids.push(id),
            }
        }
    }

    /// The ids of a text's bytes, where every one of them has a piece.
    fn fallback(&self, text: &str) -> Option<Vec<u32>> {
        let table = self.bytes.as_ref()?;
        text.bytes().map(|byte| table[usize::from(byte)]).collect()
    }
}

/// Takes the candidate where it is the first or the better one; of equals the first stays.
#[inline]
fn improve(end: &mut Best, score: f64, start: usize, id: u32) {
    if end.start == UNREACHED || score > end.score {
        *end = Best {
            score,
            start: start as u32,
            id,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(json: &str) -> Unigram {
        Unigram::build(serde_json::from_str(json).unwrap()).unwrap()
    }

    fn ids(model: &Unigram, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        model
            .tokenize(
                text,
                &mut Lattice::default(),
                &mut Budget::of(text.len()),
                &mut ids,
            )
            .unwrap();
        ids
    }

    #[test]
    fn the_best_sum_wins() {
        let model = model(
            r#"{"unk_id":0,"vocab":[["<unk>",0],["a",0],["b",0],["c",0],["d",0],["cd",1],["ab",2],["abc",5],["abcd",10]]}"#,
        );
        assert_eq!(ids(&model, "abcdacdxx"), [8, 1, 5, 0]);
        assert_eq!(ids(&model, ""), [] as [u32; 0]);
    }

    #[test]
    fn unknown_text_falls_back_on_bytes_only_when_all_are_there() {
        let model = model(
            r#"{"unk_id":0,"byte_fallback":true,"vocab":[["<unk>",0],["a",0],["<0xC3>",0],["<0xA9>",0]]}"#,
        );
        assert_eq!(ids(&model, "aé"), [1, 2, 3]);
        assert_eq!(ids(&model, "aéx"), [1, 0]);
    }

    #[test]
    fn a_vocabulary_without_an_unknown_token_says_so() {
        let model = model(r#"{"vocab":[["a",0]]}"#);
        let mut out = Vec::new();
        assert!(
            model
                .tokenize("ab", &mut Lattice::default(), &mut Budget::of(2), &mut out)
                .is_err()
        );
        assert_eq!(ids(&model, "aa"), [0, 0]);
    }

    #[test]
    fn an_unknown_id_past_the_end_is_refused() {
        let definition = serde_json::from_str(r#"{"unk_id":1,"vocab":[["a",0]]}"#).unwrap();
        assert!(Unigram::build(definition).unwrap_err().contains("unk_id"));
    }
}
