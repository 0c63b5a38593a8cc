//! How a text is cut into chunks.

use crate::error::{Error, Result};

/// Where a text is cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkBy {
    /// Between words, as late as there is room.
    Tokens,
    /// Between sentences (those of Unicode, UAX #29); between words inside one that is too long.
    #[default]
    Sentences,
    /// At the headings and blocks of a Markdown document: paragraphs, items, code and tables stay whole if they fit,
    /// and a heading stays with the text after it. A block that is too long is cut between items, rows, lines of code
    /// or sentences.
    Markdown,
}

/// How a text is cut into chunks. The default: between sentences, as long as the model sees,
/// without an overlap.
///
/// ```
/// # use isovec::{ChunkBy, ChunkOptions};
/// let options = ChunkOptions::by(ChunkBy::Markdown).with_max_tokens(256).with_overlap(32);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkOptions {
    /// Where a text is cut.
    pub by: ChunkBy,
    /// Tokens of a chunk at most, special ones and the prompt's included. `None`: as many as the
    /// model sees.
    pub max_tokens: Option<usize>,
    /// Tokens at the end of a chunk, at most, that the next one begins with again. It begins with a
    /// word, or with a sentence where one begins within the overlap and the cut is not by tokens.
    pub overlap: usize,
}

impl ChunkOptions {
    /// Chooses where a text is cut.
    pub fn by(by: ChunkBy) -> Self {
        Self {
            by,
            ..Self::default()
        }
    }

    /// Sets the tokens of a chunk, special ones and the prompt's included.
    #[must_use]
    pub fn with_max_tokens(mut self, tokens: usize) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets how many tokens of a chunk the next one begins with again.
    #[must_use]
    pub fn with_overlap(mut self, tokens: usize) -> Self {
        self.overlap = tokens;
        self
    }

    /// What this means for a model that sees `seen` tokens, `fixed` of which are special or the
    /// prompt's.
    pub(super) fn limits(&self, seen: usize, fixed: usize) -> Result<Limits> {
        let mut faults = Vec::new();
        let max = self.max_tokens.unwrap_or(seen);
        if max > seen {
            faults.push(format!(
                "chunks of {max} tokens are asked for, and the model sees {seen} (text.max_length)"
            ));
        }
        let room = max.saturating_sub(fixed);
        if room == 0 {
            faults.push(format!(
                "chunks of {max} tokens have no room for text: special tokens and the prompt take {fixed}"
            ));
        }
        if self.overlap > 0 && self.overlap >= room {
            faults.push(format!(
                "an overlap of {} tokens is asked for, and a chunk has room for {room} tokens of text; it has to be smaller",
                self.overlap
            ));
        }
        if !faults.is_empty() {
            return Err(Error::Config(faults));
        }
        Ok(Limits {
            by: self.by,
            max,
            fixed,
            overlap: self.overlap,
        })
    }
}

/// Options that do not contradict each other or the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) by: ChunkBy,
    /// Tokens of a chunk, all of them.
    pub(super) max: usize,
    /// How many of them are special or the prompt's.
    pub(super) fixed: usize,
    pub(super) overlap: usize,
}

impl Limits {
    /// Tokens of text in a chunk.
    pub(super) fn room(&self) -> usize {
        self.max - self.fixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_contradictions_come_in_one_error() {
        let faults = |options: ChunkOptions, seen, fixed| match options.limits(seen, fixed) {
            Err(Error::Config(faults)) => faults.len(),
            other => panic!("{other:?}"),
        };
        let options = ChunkOptions::default();
        assert_eq!(faults(options.clone(), 4, 4), 1);
        assert_eq!(faults(options.clone().with_max_tokens(0), 64, 2), 1);
        assert_eq!(faults(options.clone().with_max_tokens(65), 64, 2), 1);
        assert_eq!(faults(options.clone().with_overlap(62), 64, 2), 1);
        let all = options.with_max_tokens(65).with_overlap(65);
        assert_eq!(faults(all.clone(), 64, 65), 3);
        let limits = all.with_max_tokens(64).with_overlap(61).limits(64, 2);
        assert_eq!(limits.unwrap().room(), 62);
    }
}
