//! The places where a text may be cut, and the quality of each.

use std::iter::Peekable;
use std::vec;

use unicode_segmentation::{GraphemeIndices, UWordBoundIndices, UnicodeSegmentation};

use super::sentences::Sentences;

/// How well a text may be cut at a place; more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(u8);

impl Level {
    /// Inside a word.
    pub(super) const INSIDE: Self = Self(0);
    /// Between a word and a mark that touches it.
    pub(super) const MARK: Self = Self(1);
    /// Between words.
    pub(super) const WORD: Self = Self(2);
    /// Where a line was wrapped in the middle of a sentence.
    pub(super) const LINE: Self = Self(3);
    /// Between sentences.
    pub(super) const SENTENCE: Self = Self(4);
    /// Between lines of code.
    pub(super) const CODE_LINE: Self = Self(5);
    /// The end of the text.
    const END: Self = Self(u8::MAX);

    /// Before a block of a document that lies so deep in others: 0 is the document itself.
    pub(super) fn block(depth: usize) -> Self {
        let depth = u8::try_from(depth).unwrap_or(u8::MAX).min(100);
        Self(120 - depth)
    }

    /// Before a heading of level 1 to 6.
    pub(super) fn heading(level: u8) -> Self {
        Self(140 - level.min(6))
    }
}

/// A place where a text may be cut: something begins there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Boundary {
    /// The byte.
    pub(super) at: usize,
    pub(super) level: Level,
    /// Whether it follows a heading, which should not be left alone.
    pub(super) after_heading: bool,
}

impl Boundary {
    pub(super) fn new(at: usize, level: Level) -> Self {
        Self {
            at,
            level,
            after_heading: false,
        }
    }
}

/// Longer words are cut as if they were several, so that no step of the work is longer than this
/// however the text looks.
pub(super) const LONG_WORD: usize = 256;
/// Into pieces of at least so many bytes.
const PIECE: usize = 64;

/// All boundaries of a text in order, found as they are asked for; the last one is its end. White
/// space belongs to what is before it.
pub(super) struct Boundaries<'t> {
    text: &'t str,
    words: UWordBoundIndices<'t>,
    sentences: Option<Peekable<Sentences<'t>>>,
    blocks: Peekable<vec::IntoIter<Boundary>>,
    inside: Option<(usize, Pieces<'t>)>,
    ended: bool,
}

impl<'t> Boundaries<'t> {
    /// Between words only.
    pub(super) fn of_words(text: &'t str) -> Self {
        Self {
            text,
            words: text.split_word_bound_indices(),
            sentences: None,
            blocks: Vec::new().into_iter().peekable(),
            inside: None,
            ended: false,
        }
    }

    /// Between sentences too.
    pub(super) fn of_sentences(text: &'t str) -> Self {
        Self {
            sentences: Some(Sentences::new(text).peekable()),
            ..Self::of_words(text)
        }
    }

    /// Between sentences and these blocks, which are in order.
    pub(super) fn of_blocks(text: &'t str, blocks: Vec<Boundary>) -> Self {
        Self {
            blocks: blocks.into_iter().peekable(),
            ..Self::of_sentences(text)
        }
    }

    /// The level of a boundary between what may be words. Scripts without spaces have words that
    /// touch.
    fn between(&self, at: usize) -> Level {
        let (before, after) = self.text.split_at(at);
        let before = before.chars().next_back().unwrap_or(' ');
        let are_words = || before.is_alphanumeric() && after.starts_with(char::is_alphanumeric);
        if before.is_whitespace() || are_words() {
            Level::WORD
        } else {
            Level::MARK
        }
    }

    /// The boundary before a word, with the level of whatever else has begun since the last one.
    fn before_word(&mut self, at: usize) -> Boundary {
        let mut boundary = Boundary::new(at, self.between(at));
        if let Some(sentences) = &mut self.sentences {
            while let Some((_, level)) = sentences.next_if(|&(start, _)| start <= at) {
                boundary.level = boundary.level.max(level);
            }
        }
        while let Some(block) = self.blocks.next_if(|block| block.at <= at) {
            if block.level >= boundary.level {
                boundary = Boundary { at, ..block };
            }
        }
        boundary
    }
}

impl Iterator for Boundaries<'_> {
    type Item = Boundary;

    fn next(&mut self) -> Option<Boundary> {
        loop {
            if let Some((offset, pieces)) = &mut self.inside {
                if let Some(start) = pieces.next() {
                    return Some(Boundary::new(*offset + start, Level::INSIDE));
                }
                self.inside = None;
            }
            let Some((at, word)) = self.words.next() else {
                let first = !std::mem::replace(&mut self.ended, true);
                return first.then(|| Boundary::new(self.text.len(), Level::END));
            };
            if word.trim().is_empty() {
                continue;
            }
            if word.len() > LONG_WORD {
                self.inside = Some((at, Pieces::of(word)));
            }
            let boundary = self.before_word(at);
            if at > 0 {
                return Some(boundary);
            }
        }
    }
}

/// Where the pieces of a long word begin, but for the first: between graphemes, and between the
/// characters of one that is long itself.
struct Pieces<'t> {
    word: &'t str,
    graphemes: Peekable<GraphemeIndices<'t>>,
    last: usize,
}

impl<'t> Pieces<'t> {
    fn of(word: &'t str) -> Self {
        Self {
            word,
            graphemes: word.grapheme_indices(true).peekable(),
            last: 0,
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while let Some(&(start, grapheme)) = self.graphemes.peek() {
            if start - self.last.min(start) >= PIECE {
                self.last = start;
                return Some(start);
            }
            let end = start + grapheme.len();
            let next = self.word.ceil_char_boundary(self.last + PIECE);
            if grapheme.len() > PIECE && next > start && next < end {
                self.last = next;
                return Some(next);
            }
            self.graphemes.next();
        }
        None
    }
}

/// Where the parts of what is between two boundaries begin, but for the first: graphemes, or the
/// characters of a single one. Empty for a single character.
pub(super) fn parts(text: &str) -> Vec<usize> {
    let graphemes: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
    let parts = if graphemes.len() > 1 {
        graphemes
    } else {
        text.char_indices().map(|(at, _)| at).collect()
    };
    parts.into_iter().skip(1).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn starts(text: &str) -> Vec<(usize, Level)> {
        Boundaries::of_sentences(text)
            .map(|boundary| (boundary.at, boundary.level))
            .collect()
    }

    #[test]
    fn words_and_sentences_begin_where_they_are_seen() {
        assert_eq!(
            starts("It rains.  Go in"),
            [
                (3, Level::WORD),
                (8, Level::MARK),
                (11, Level::SENTENCE),
                (14, Level::WORD),
                (16, Level::END)
            ]
        );
        assert_eq!(starts(""), [(0, Level::END)]);
        assert_eq!(starts(" \r\n "), [(4, Level::END)]);
    }

    #[test]
    fn a_long_word_is_cut_between_graphemes() {
        let word = "e\u{301}".repeat(1000);
        let inside: Vec<usize> = Boundaries::of_words(&word)
            .filter(|boundary| boundary.level == Level::INSIDE)
            .map(|boundary| boundary.at)
            .collect();
        assert_eq!(inside.len(), 3000 / 66);
        assert!(inside.iter().all(|at| at % 3 == 0));
    }

    #[test]
    fn a_long_grapheme_is_cut_between_characters() {
        let pile = format!("a{}", "\u{301}".repeat(1000));
        let inside: Vec<usize> = Boundaries::of_words(&pile).map(|b| b.at).collect();
        assert!(inside.len() > 2000 / 66 && inside.iter().all(|&at| pile.is_char_boundary(at)));
    }

    proptest! {
        #[test]
        fn they_are_in_order_and_never_far_apart(
            text in "([a-z .\r\n,\u{e9}\u{301}\u{4e00}\u{1f469}\u{200d}\0]|\\PC){0,900}"
        ) {
            let mut last = 0;
            for (at, _) in starts(&text) {
                prop_assert!(text.is_char_boundary(at));
                prop_assert!(at > last || text.is_empty());
                prop_assert!(text[last..at].trim_end().len() <= LONG_WORD);
                last = at;
            }
            prop_assert_eq!(last, text.len());
        }
    }
}
