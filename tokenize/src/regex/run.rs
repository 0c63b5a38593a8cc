//! Running a program over a text: the first way that matches, at the first place that has one.

use std::ops::Range;

use crate::regex::compile::{How, Op};
use crate::regex::parse::Assert;
use crate::regex::{Regex, TooHard};
use crate::unicode::is_word;

/// How often one search may go back, as in `fancy-regex`.
const MOST_RETURNS: usize = 1_000_000;

/// A way that was left open, to be gone where the present one fails.
#[derive(Debug)]
enum Way {
    /// From a step and a place.
    Open(usize, usize),
    /// From a step and the place, or any before it down to the last, a character at a time.
    Shrink(usize, usize, usize),
    /// From a step and the place, after one more character of the class; so many may follow.
    Grow(usize, usize, u32, u32),
    /// No way: a mark as it was before.
    Mark(usize, usize),
}

/// Runs one program over one text.
pub(crate) struct Runner<'a> {
    regex: &'a Regex,
    text: &'a str,
    ways: Vec<Way>,
    marks: Vec<usize>,
    returns: usize,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(regex: &'a Regex, text: &'a str) -> Self {
        Self {
            regex,
            text,
            ways: Vec::new(),
            marks: vec![usize::MAX; regex.marks],
            returns: 0,
        }
    }

    /// The first match at `from` or after it.
    pub(crate) fn find(&mut self, from: usize) -> Result<Option<Range<usize>>, TooHard> {
        self.returns = 0;
        let mut start = from;
        loop {
            if let Some(end) = self.run(0, start)? {
                return Ok(Some(start..end));
            }
            match self.after(start) {
                Some((_, next)) => start = next,
                None => return Ok(None),
            }
        }
    }

    /// The character at a place, and the place after it.
    #[inline]
    fn after(&self, at: usize) -> Option<(char, usize)> {
        let next = self.text.get(at..)?.chars().next()?;
        Some((next, at + next.len_utf8()))
    }

    /// The character before a place, and its place.
    fn before(&self, at: usize) -> Option<(char, usize)> {
        let last = self.text.get(..at)?.chars().next_back()?;
        Some((last, at - last.len_utf8()))
    }

    /// Goes from a step and a place to the next end of the steps; the place there.
    fn run(&mut self, step: usize, at: usize) -> Result<Option<usize>, TooHard> {
        let base = self.ways.len();
        let (mut step, mut at) = (step, at);
        loop {
            let next = self.step(step, at)?;
            match next.or_else(|| self.back(base)) {
                Some((next_step, place)) if next_step == usize::MAX => {
                    self.ways.truncate(base);
                    return Ok(Some(place));
                }
                Some(next) => (step, at) = next,
                None => return Ok(None),
            }
            if self.returns > MOST_RETURNS {
                self.ways.truncate(base);
                return Err(TooHard);
            }
        }
    }

    /// Makes one step; `None` where it fails. After the end there is no step.
    #[inline]
    fn step(&mut self, step: usize, at: usize) -> Result<Option<(usize, usize)>, TooHard> {
        let Some(&op) = self.regex.ops.get(step) else {
            return Ok(None);
        };
        Ok(match op {
            Op::One(class) => self
                .after(at)
                .filter(|&(next, _)| self.holds(class, next))
                .map(|(_, after)| (step + 1, after)),
            Op::Many {
                class,
                least,
                most,
                how,
            } => self.many(step, at, (class, least, most, how)),
            Op::Split(first, second) => {
                self.ways.push(Way::Open(second, at));
                Some((first, at))
            }
            Op::Jump(to) => Some((to, at)),
            Op::Mark(mark) => {
                if let Some(place) = self.marks.get_mut(mark) {
                    self.ways.push(Way::Mark(mark, *place));
                    *place = at;
                }
                Some((step + 1, at))
            }
            Op::Leave(mark, to) => {
                let stands = self.marks.get(mark) == Some(&at);
                Some((if stands { to } else { step + 1 }, at))
            }
            Op::Look { end, back, negated } => {
                let start = (0..back.unwrap_or(0))
                    .try_fold(at, |at, _| self.before(at).map(|(_, before)| before));
                let found = match start {
                    Some(start) => self.run(step + 1, start)?.is_some(),
                    None => false,
                };
                (found != negated).then_some((end, at))
            }
            Op::Atomic { end } => self.run(step + 1, at)?.map(|after| (end, after)),
            Op::Assert(assert) => self.asserts(assert, at).then_some((step + 1, at)),
            Op::Accept => Some((usize::MAX, at)),
        })
    }

    #[inline]
    fn holds(&self, class: u32, character: char) -> bool {
        let class = self.regex.classes.get(class as usize);
        class.is_some_and(|class| class.holds(character))
    }

    /// Takes characters of a class, and leaves open to take fewer or more.
    fn many(
        &mut self,
        step: usize,
        at: usize,
        (class, least, most, how): (u32, u32, u32, How),
    ) -> Option<(usize, usize)> {
        let mut at = at;
        let mut count = 0;
        let mut shortest = at;
        let first_goal = if how == How::Lazy { least } else { most };
        while count < first_goal
            && let Some((next, after)) = self.after(at)
            && self.holds(class, next)
        {
            at = after;
            count += 1;
            if count == least {
                shortest = at;
            }
        }
        if count < least {
            return None;
        }
        match how {
            How::Greedy if at > shortest => {
                if let Some((_, before)) = self.before(at) {
                    self.ways.push(Way::Shrink(step + 1, before, shortest));
                }
            }
            How::Lazy if most > least => {
                self.ways.push(Way::Grow(step + 1, at, class, most - least));
            }
            _ => {}
        }
        Some((step + 1, at))
    }

    /// The last way that was left open above `base`.
    fn back(&mut self, base: usize) -> Option<(usize, usize)> {
        while self.ways.len() > base {
            self.returns += 1;
            match self.ways.pop()? {
                Way::Open(step, at) => return Some((step, at)),
                Way::Shrink(step, at, shortest) => {
                    if at > shortest
                        && let Some((_, before)) = self.before(at)
                    {
                        self.ways.push(Way::Shrink(step, before, shortest));
                    }
                    return Some((step, at));
                }
                Way::Grow(step, at, class, more) => {
                    if let Some((next, after)) = self.after(at)
                        && self.holds(class, next)
                    {
                        if more > 1 {
                            let more = if more == u32::MAX { more } else { more - 1 };
                            self.ways.push(Way::Grow(step, after, class, more));
                        }
                        return Some((step, after));
                    }
                }
                Way::Mark(mark, before) => {
                    if let Some(place) = self.marks.get_mut(mark) {
                        *place = before;
                    }
                }
            }
        }
        None
    }

    fn asserts(&self, assert: Assert, at: usize) -> bool {
        let before = self.before(at).map(|(character, _)| character);
        let after = self.after(at).map(|(character, _)| character);
        match assert {
            Assert::Start => before.is_none(),
            Assert::End => after.is_none(),
            Assert::LineStart => before.is_none_or(|c| c == '\n'),
            Assert::LineEnd => after.is_none_or(|c| c == '\n'),
            Assert::WordEdge => before.is_some_and(is_word) != after.is_some_and(is_word),
            Assert::NoWordEdge => before.is_some_and(is_word) == after.is_some_and(is_word),
        }
    }
}
