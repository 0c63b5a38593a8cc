//! Regular expressions as `tokenizer.json` files use them.
//!
//! The patterns of pre-tokenisers and normalisers are those of `fancy-regex`: Perl's syntax and
//! its leftmost match, alternatives in order, with Unicode classes, looking around and possessive
//! repeats. A general engine is an eighth of what a page would download, for a handful of patterns
//! that are loops over classes of characters; this one runs a small program over the text and goes
//! back where it fails ([`run`]). What it does not know (backreferences, subroutines, conditions)
//! is refused by name when the tokenizer is built.
//!
//! - [`parse`]: a pattern to a tree; [`class`]: sets of characters.
//! - [`compile`]: the tree to a program.

mod class;
mod compile;
mod parse;
mod run;

use std::ops::Range;

use crate::error::Fault;
use class::Class;
use compile::Op;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Regex {
    ops: Vec<Op>,
    classes: Vec<Class>,
    marks: usize,
}

/// A search went back more often than is reasonable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooHard;

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for one that is none, [`Fault::Unsupported`] for one that uses what is
    /// not implemented.
    pub(crate) fn new(pattern: &str) -> Result<Self, Fault> {
        let tree = parse::parse(pattern)?;
        compile::compile(&tree)
    }

    /// The matches of a text, one after the other, none inside another. As in Perl, an empty match
    /// does not follow the match before it at once.
    ///
    /// # Errors
    /// [`TooHard`], for a text on which the pattern explodes.
    pub(crate) fn each_match(
        &self,
        text: &str,
        mut each: impl FnMut(Range<usize>),
    ) -> Result<(), TooHard> {
        let mut runner = run::Runner::new(self, text);
        let mut from = 0;
        let mut last_end = None;
        while from <= text.len() {
            let Some(found) = runner.find(from)? else {
                break;
            };
            from = found.end;
            if found.is_empty() {
                from += text[found.end..].chars().next().map_or(1, char::len_utf8);
                if last_end == Some(found.end) {
                    continue;
                }
            }
            last_end = Some(found.end);
            each(found);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
