//! Regular expressions as `tokenizer.json` files use them.
//!
//! The patterns of pre-tokenisers and normalisers are those of Oniguruma 6.9, in the syntax that it calls its own,
//! over UTF-8: Python's `tokenizers` is built with it, so the authors of models write for it. It is Perl's leftmost
//! match with alternatives in order, but `^` and `$` stand at every line, `.` takes line feeds with the flag `m`,
//! flags hold for alternatives as well, `{1,3}+` is a repeat of a repeat, and `\w` differs inside a class. Oniguruma
//! itself cannot be compiled for a page, and a general engine is an eighth of what a page would download, for a
//! handful of patterns that are loops over classes of characters; this one runs a small program over the text and
//! backtracks ([`run`]). Unsupported syntax (references, subroutines, conditions, grapheme clusters, letters beyond
//! ASCII if case is ignored, lookbehind of variable length) is refused by name when the tokenizer is built.
//!
//! - [`parse`], [`escape`] and [`bracket`]: a pattern to a tree ([`node`]).
//! - [`class`]: sets of characters; [`named`]: those with a name; [`fold`]: both cases of letters.
//! - [`compile`]: the tree to a program.

mod bracket;
mod class;
mod compile;
mod escape;
mod fold;
#[cfg(any(test, feature = "fuzzing"))]
#[allow(
    unreachable_pub,
    dead_code,
    reason = "for the fuzzer, and for tests where Oniguruma is"
)]
pub mod generated;
mod named;
mod node;
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
    notes: usize,
    splits: usize,
    /// How many nodes were looked at to compile it.
    #[cfg(test)]
    visits: usize,
}

/// A search took more steps, or more memory, than a text of that length may.
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

    /// How much memory the program takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let classes = self.classes.iter().map(Class::bytes);
        self.ops.len() * size_of::<Op>() + classes.sum::<usize>()
    }

    /// The matches of a text, one after the other, none inside another. An empty match does not
    /// follow the match before it at once. Returns how many steps were taken, for who
    /// bounds what all pieces of a text take.
    ///
    /// # Errors
    /// [`TooHard`], for a text on which the pattern explodes.
    pub(crate) fn each_match(
        &self,
        text: &str,
        each: impl FnMut(Range<usize>),
    ) -> Result<u64, TooHard> {
        let mut runner = run::Runner::new(self, text)?;
        Self::each_match_of(&mut runner, text, each)?;
        Ok(runner.taken())
    }

    fn each_match_of(
        runner: &mut run::Runner<'_>,
        text: &str,
        mut each: impl FnMut(Range<usize>),
    ) -> Result<(), TooHard> {
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
