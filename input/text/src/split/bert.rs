//! BERT's basic tokenising: cleaning, CJK spacing, accents, case, then words and punctuation.
//!
//! Does what `tokenizers`' `BertNormalizer` and `BertPreTokenizer` do, with the same Unicode
//! tables, on two reused strings instead of pieces whose places are kept. Characters of ASCII, which is most text, never reach a table.

use serde_json::Value;

use crate::split::settings::Settings;
use crate::unicode::normal::{Classed, Kind, decompose_into};
use crate::unicode::{is_mark_nonspacing, is_other, is_punctuation};

/// The normaliser's settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bert {
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: bool,
    lowercase: bool,
}

/// Working memory.
#[derive(Debug, Default)]
pub(crate) struct BertScratch {
    clean: String,
    word: String,
    decomposed: Vec<Classed>,
}

impl Bert {
    /// The settings, where the file's normaliser and pre-tokeniser are BERT's and nothing else.
    pub(crate) fn recognise(
        normalizer: Option<&Value>,
        pre_tokenizer: Option<&Value>,
    ) -> Option<Self> {
        let settings = Settings::new("normalizer", normalizer?);
        let pre_tokenizer = Settings::new("pre_tokenizer", pre_tokenizer?);
        if settings.kind() != "BertNormalizer" || pre_tokenizer.kind() != "BertPreTokenizer" {
            return None;
        }
        let switch = |name: &str| settings.switch(name).ok();
        let lowercase = switch("lowercase")??;
        Some(Self {
            clean_text: switch("clean_text")??,
            handle_chinese_chars: switch("handle_chinese_chars")??,
            strip_accents: switch("strip_accents")?.unwrap_or(lowercase),
            lowercase,
        })
    }

    /// Hands the words and punctuation marks of a text to `each`, in order.
    pub(crate) fn split<E>(
        &self,
        text: &str,
        scratch: &mut BertScratch,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let BertScratch {
            clean,
            word,
            decomposed,
        } = scratch;
        self.clean(text, clean);
        word.clear();
        let mut rest = clean.as_str();
        while !rest.is_empty() {
            let ascii = rest
                .bytes()
                .position(|b| !b.is_ascii())
                .unwrap_or(rest.len());
            let (head, tail) = rest.split_at(ascii);
            for byte in head.bytes() {
                let byte = if self.lowercase {
                    byte.to_ascii_lowercase()
                } else {
                    byte
                };
                push(char::from(byte), word, &mut each)?;
            }
            let other = tail
                .bytes()
                .position(|b| b.is_ascii())
                .unwrap_or(tail.len());
            let (run, tail) = tail.split_at(other);
            // Canonical decomposition reorders marks, but never across an ASCII character, so a
            // run between two of them can be decomposed alone.
            if self.strip_accents {
                decompose_into(run, Kind::Canonical, decomposed);
                for &(_, character, _) in &*decomposed {
                    if !is_mark_nonspacing(character) {
                        self.lower(character, word, &mut each)?;
                    }
                }
            } else {
                for character in run.chars() {
                    self.lower(character, word, &mut each)?;
                }
            }
            rest = tail;
        }
        flush(word, &mut each)
    }

    /// Drops control characters, makes every white space a space, sets CJK characters apart.
    fn clean(&self, text: &str, clean: &mut String) {
        clean.clear();
        clean.reserve(text.len());
        for character in text.chars() {
            let mut character = character;
            if self.clean_text {
                if is_dropped(character) {
                    continue;
                }
                if character.is_whitespace() {
                    character = ' ';
                }
            }
            if self.handle_chinese_chars && is_cjk(character) {
                clean.push(' ');
                clean.push(character);
                clean.push(' ');
            } else {
                clean.push(character);
            }
        }
    }

    fn lower<E>(
        &self,
        character: char,
        word: &mut String,
        each: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.lowercase {
            return push(character, word, each);
        }
        character
            .to_lowercase()
            .try_for_each(|lower| push(lower, word, each))
    }
}

/// Adds a character to the word, or ends the word before it.
#[inline]
fn push<E>(
    character: char,
    word: &mut String,
    each: &mut impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    if character.is_whitespace() {
        return flush(word, each);
    }
    if is_punctuation(character) {
        flush(word, each)?;
        word.push(character);
        return flush(word, each);
    }
    word.push(character);
    Ok(())
}

fn flush<E>(word: &mut String, each: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    if word.is_empty() {
        return Ok(());
    }
    let result = each(word);
    word.clear();
    result
}

pub(crate) fn is_dropped(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' | ' '..='~' => false,
        '\u{fffd}' => true,
        _ => is_other(character),
    }
}

/// The blocks that BERT sets apart: CJK ideographs, and not Japanese or Korean syllables.
pub(crate) fn is_cjk(character: char) -> bool {
    matches!(
        u32::from(character),
        0x4E00..=0x9FFF
            | 0x3400..=0x4DBF
            | 0x20000..=0x2A6DF
            | 0x2A700..=0x2B73F
            | 0x2B740..=0x2B81F
            | 0x2B920..=0x2CEAF
            | 0xF900..=0xFAFF
            | 0x2F800..=0x2FA1F
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(bert: &Bert, text: &str) -> Vec<String> {
        let mut words = vec![];
        bert.split::<()>(text, &mut BertScratch::default(), |word| {
            words.push(word.to_owned());
            Ok(())
        })
        .unwrap();
        words
    }

    const UNCASED: Bert = Bert {
        clean_text: true,
        handle_chinese_chars: true,
        strip_accents: true,
        lowercase: true,
    };

    #[test]
    fn words_accents_case_and_punctuation() {
        assert_eq!(
            words(&UNCASED, "Hé, Ünïcode\u{200d}d 野口!"),
            ["he", ",", "unicoded", "野", "口", "!"]
        );
        let cased = Bert {
            strip_accents: false,
            lowercase: false,
            ..UNCASED
        };
        assert_eq!(words(&cased, "Hé\tYou"), ["Hé", "You"]);
    }

    #[test]
    fn control_characters_alone_leave_nothing() {
        assert!(words(&UNCASED, "\u{0}\u{1}\u{7f}\u{200b}\u{fffd}").is_empty());
        assert!(words(&UNCASED, "").is_empty());
    }

    /// The words that the original finds.
    fn original(bert: &Bert, text: &str) -> Vec<String> {
        use tokenizers::normalizers::BertNormalizer;
        use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
        use tokenizers::{
            NormalizedString, Normalizer as _, OffsetReferential, OffsetType, PreTokenizedString,
            PreTokenizer as _,
        };
        let mut normalized = NormalizedString::from(text);
        BertNormalizer::new(
            bert.clean_text,
            bert.handle_chinese_chars,
            Some(bert.strip_accents),
            bert.lowercase,
        )
        .normalize(&mut normalized)
        .unwrap();
        let mut pieces = PreTokenizedString::from(normalized);
        BertPreTokenizer.pre_tokenize(&mut pieces).unwrap();
        pieces
            .get_splits(OffsetReferential::Normalized, OffsetType::None)
            .into_iter()
            .map(|(word, ..)| word.to_owned())
            .collect()
    }

    fn settings() -> impl Iterator<Item = Bert> {
        (0..16).map(|bits| Bert {
            clean_text: bits & 1 == 0,
            handle_chinese_chars: bits & 2 == 0,
            strip_accents: bits & 4 == 0,
            lowercase: bits & 8 == 0,
        })
    }

    #[test]
    fn every_character_is_treated_as_the_original_treats_it() {
        let characters: Vec<char> = ('\0'..=char::MAX).collect();
        for chunk in characters.chunks(4096) {
            let text: String = chunk
                .iter()
                .flat_map(|&c| ['a', c, 'B', '\u{323}', ' '])
                .collect();
            for bert in [
                UNCASED,
                Bert {
                    strip_accents: false,
                    lowercase: false,
                    ..UNCASED
                },
            ] {
                assert_eq!(
                    words(&bert, &text),
                    original(&bert, &text),
                    "from {:?}",
                    chunk.first()
                );
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_split_as_the_original_splits_it(
            text in any::<String>(),
            marks in "[a\u{e9}\u{301}\u{323}\u{5b0}\u{200d}\u{0}\u{4e00}\u{f900}\u{212b}\u{130}\u{ac01} .]{0,30}",
        ) {
            for bert in settings() {
                prop_assert_eq!(words(&bert, &text), original(&bert, &text));
                prop_assert_eq!(words(&bert, &marks), original(&bert, &marks));
            }
        }
    }
}
