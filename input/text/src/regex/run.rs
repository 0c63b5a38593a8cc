//! Running a program over a text: the first way that matches, at the first place that has one.
//!
//! Two measures limit the time. Every step is counted, and a text has a fixed number of steps for each of its bytes
//! ([`Runner::new`]), so a pattern that explodes is stopped. And an alternative that failed at a place is not tried
//! there again. For a repeat of one class, [`Notes`] stores where its run ends and after which of its characters the
//! rest of the pattern fails. The usual patterns therefore take linear time, however long the runs of white space
//! are. For other choices, once a text has taken many steps, it stores the places at which the first way fails.

use std::ops::Range;

use crate::regex::compile::{How, Many, Op, Split};
use crate::regex::named::is_word;
use crate::regex::node::Assert;
use crate::regex::{Regex, TooHard};

/// How many steps a text may take for each of its bytes: published patterns take some twenty.
const STEPS_A_BYTE: u64 = 512;
/// How many steps any text may take, beside those for the program's size.
const STEPS: u64 = 1 << 12;
/// How many steps any text may take for each step of the program.
const STEPS_AN_OP: u64 = 8;
/// How many ways may be open at once for each byte of a text.
const WAYS_A_BYTE: usize = 2;
/// How many ways may be open at once over any text: 4 MiB.
const WAYS: usize = 1 << 18;
/// How many failures of splits may be noted, a bit each: 16 MiB.
const MOST_FAILURES: usize = 1 << 27;
/// A count from which it is worth to know where a run ends before it is reached.
const LARGE: u32 = 32;

/// Where a program ends.
const END: u32 = u32::MAX;

/// A way that was left open, to be gone where the present one fails. Places are of 32 bits, so
/// that a way takes 16 bytes.
#[derive(Debug)]
enum Way {
    /// The second way of a split, at a place.
    Open(u32, u32),
    /// A greedy repeat, where the rest fails after the first place: from any place before it down
    /// to the second.
    Shrink(u32, u32, u32),
    /// A lazy repeat, where the rest fails at the place: after one more character; so many may
    /// follow.
    Grow(u32, u32, u32),
    /// No way: a mark as it was before.
    Mark(u32, u32),
}

/// What is known of one repeat in the text.
#[derive(Debug, Clone, Copy, Default)]
struct Notes {
    /// A run of its class, and how many bytes each of its characters has, or 0 where that differs.
    run: (u32, u32),
    width: u32,
    /// Places one after the other from which the rest fails, both ends included; none where the
    /// first lies behind the last.
    fails: Option<(u32, u32)>,
}

impl Notes {
    fn fails_at(&self, place: u32) -> Option<(u32, u32)> {
        let holds = |&(first, last): &(u32, u32)| (first..=last).contains(&place);
        self.fails.filter(holds)
    }
}

/// Runs one program over one text.
pub(crate) struct Runner<'a> {
    regex: &'a Regex,
    text: &'a str,
    ways: Vec<Way>,
    most_ways: usize,
    marks: Vec<u32>,
    notes: Vec<Notes>,
    /// A bit for each split and place, set where the first way fails; empty at first.
    failures: Vec<u64>,
    steps: u64,
    /// As few steps may be left before failures of splits are noted.
    noted_from: u64,
    given: u64,
}

/// A step and a place.
type Next = Option<(u32, u32)>;

impl<'a> Runner<'a> {
    /// # Errors
    /// [`TooHard`] for a text so long that its places are no 32-bit numbers.
    pub(crate) fn new(regex: &'a Regex, text: &'a str) -> Result<Self, TooHard> {
        if u32::try_from(text.len()).is_err() {
            return Err(TooHard);
        }
        let steps = STEPS + STEPS_AN_OP * regex.ops.len() as u64 + STEPS_A_BYTE * text.len() as u64;
        Ok(Self {
            regex,
            text,
            ways: Vec::new(),
            most_ways: WAYS.saturating_add(text.len().saturating_mul(WAYS_A_BYTE)),
            marks: vec![u32::MAX; regex.marks],
            notes: vec![Notes::default(); regex.notes],
            failures: Vec::new(),
            steps,
            noted_from: steps - steps / 8,
            given: steps,
        })
    }

    /// How many steps were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.given - self.steps
    }

    /// How many bytes the open ways take.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.ways.capacity() * size_of::<Way>() + self.failures.capacity() * 8
    }

    /// The first match at `from` or after it.
    pub(crate) fn find(&mut self, from: usize) -> Result<Option<Range<usize>>, TooHard> {
        let mut start = from as u32;
        loop {
            if let Some(end) = self.run(0, start)? {
                return Ok(Some(start as usize..end as usize));
            }
            match self.after(start) {
                Some((_, next)) => start = next,
                None => return Ok(None),
            }
        }
    }

    /// Takes so many steps off those that are left.
    #[inline]
    fn spend(&mut self, steps: u32) -> Result<(), TooHard> {
        match self.steps.checked_sub(steps.into()) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(TooHard),
        }
    }

    /// Leaves a way open.
    #[inline]
    fn open(&mut self, way: Way) -> Result<(), TooHard> {
        if self.ways.len() == self.ways.capacity() {
            self.make_room()?;
        }
        self.ways.push(way);
        Ok(())
    }

    #[cold]
    fn make_room(&mut self) -> Result<(), TooHard> {
        let more = self.ways.len().max(32);
        match self.most_ways.saturating_sub(self.ways.len()).min(more) {
            0 => Err(TooHard),
            more => {
                self.ways.reserve_exact(more);
                Ok(())
            }
        }
    }

    /// The character at a place, and the place after it.
    #[inline]
    fn after(&self, at: u32) -> Option<(char, u32)> {
        let next = self.text.get(at as usize..)?.chars().next()?;
        Some((next, at + next.len_utf8() as u32))
    }

    /// The character before a place, and its place.
    #[inline]
    fn before(&self, at: u32) -> Option<(char, u32)> {
        let last = self.text.get(..at as usize)?.chars().next_back()?;
        Some((last, at - last.len_utf8() as u32))
    }

    /// The place after a character of the class.
    #[inline]
    fn takes(&self, class: u32, at: u32) -> Option<u32> {
        let (next, after) = self.after(at)?;
        let class = self.regex.classes.get(class as usize)?;
        class.holds(next).then_some(after)
    }

    /// Goes from a step and a place to the next end of the steps; the place there.
    fn run(&mut self, step: u32, at: u32) -> Result<Option<u32>, TooHard> {
        let base = self.ways.len();
        let (mut step, mut at) = (step, at);
        loop {
            self.spend(1)?;
            let mut next = self.step(step, at)?;
            if next.is_none() {
                next = self.back(base)?;
            }
            match next {
                Some((END, place)) => {
                    self.ways.truncate(base);
                    return Ok(Some(place));
                }
                Some(next) => (step, at) = next,
                None => return Ok(None),
            }
        }
    }

    /// Makes one step; `None` where it fails. After the end there is no step.
    #[inline]
    fn step(&mut self, step: u32, at: u32) -> Result<Next, TooHard> {
        let Some(&op) = self.regex.ops.get(step as usize) else {
            return Ok(None);
        };
        Ok(match op {
            Op::One(class) => self.takes(class, at).map(|after| (step + 1, after)),
            Op::Many(many) => self.many(step, at, many)?,
            Op::Split(split) if self.has_failed(split, at) => Some((split.second, at)),
            Op::Split(split) => {
                self.open(Way::Open(step, at))?;
                Some((split.first, at))
            }
            Op::Jump(to) => Some((to, at)),
            Op::Mark(mark) => {
                if let Some(place) = self.marks.get_mut(mark as usize) {
                    let before = std::mem::replace(place, at);
                    self.open(Way::Mark(mark, before))?;
                }
                Some((step + 1, at))
            }
            Op::Leave(mark, to) => {
                let stands = self.marks.get(mark as usize) == Some(&at);
                Some((if stands { to } else { step + 1 }, at))
            }
            Op::Look { end, back, negated } => {
                self.spend(back)?;
                let start =
                    (0..back).try_fold(at, |at, _| self.before(at).map(|(_, before)| before));
                let found = match start {
                    Some(start) => self.run(step + 1, start)?.is_some(),
                    None => false,
                };
                (found != negated).then_some((end, at))
            }
            Op::Atomic { end } => self.run(step + 1, at)?.map(|after| (end, after)),
            Op::Assert(assert) => self.asserts(assert, at).then_some((step + 1, at)),
            Op::Accept => Some((END, at)),
        })
    }

    /// Takes characters of a class, and leaves open to take fewer or more.
    fn many(&mut self, step: u32, at: u32, many: Many) -> Result<Next, TooHard> {
        if many.how == How::Lazy {
            let (place, count) = self.walk(many.class, at, many.least)?;
            if count < many.least {
                return Ok(None);
            }
            return self.grow_from(step, place, many);
        }
        let (end, shortest) = if many.most < LARGE {
            let (shortest, count) = self.walk(many.class, at, many.least)?;
            if count < many.least {
                return Ok(None);
            }
            let (end, _) = self.walk(many.class, shortest, many.most - many.least)?;
            (end, shortest)
        } else {
            let (run, width) = self.run_end(at, many)?;
            let Some(shortest) = self.advance(at, many.least, run, width)? else {
                return Ok(None);
            };
            let end = match many.most {
                u32::MAX => run,
                most => self.advance(at, most, run, width)?.unwrap_or(run),
            };
            (end, shortest)
        };
        if many.how == How::Possessive {
            return Ok(Some((step + 1, end)));
        }
        self.shrink_to(step, end, shortest, many)
    }

    /// Goes on after a greedy repeat at the last place up to `end` from which the rest is not
    /// known to fail.
    #[inline]
    fn shrink_to(&mut self, step: u32, end: u32, least: u32, many: Many) -> Result<Next, TooHard> {
        let mut end = end;
        if many.is_plain
            && let Some((first, _)) = self.notes_of(many).fails_at(end)
        {
            match self.before(first) {
                Some((_, before)) if before >= least => end = before,
                _ => return Ok(None),
            }
        }
        if end > least {
            self.open(Way::Shrink(step, end, least))?;
        }
        Ok(Some((step + 1, end)))
    }

    /// Goes on after a lazy repeat at the first place from `place` on from which the rest is not
    /// known to fail.
    fn grow_from(&mut self, step: u32, place: u32, many: Many) -> Result<Next, TooHard> {
        let more = many.most.saturating_sub(many.least);
        let mut place = place;
        if many.is_plain
            && many.most == u32::MAX
            && let Some((_, last)) = self.notes_of(many).fails_at(place)
        {
            match self.takes(many.class, last) {
                Some(after) => place = after,
                None => return Ok(None),
            }
        }
        if more > 0 {
            self.open(Way::Grow(step, place, more))?;
        }
        Ok(Some((step + 1, place)))
    }

    fn notes_of(&self, many: Many) -> Notes {
        let notes = self.notes.get(many.notes as usize);
        notes.copied().unwrap_or_default()
    }

    /// Notes that the rest of the program fails after the repeat at a place.
    fn note_failure(&mut self, many: Many, place: u32) {
        if !many.is_plain {
            return;
        }
        let next = self.after(place).map(|(_, after)| after);
        let last = self.before(place).map(|(_, before)| before);
        if let Some(notes) = self.notes.get_mut(many.notes as usize) {
            notes.fails = Some(match notes.fails {
                Some((first, end)) if (first..=end).contains(&place) => (first, end),
                Some((first, end)) if next == Some(first) => (place, end),
                Some((first, end)) if last == Some(end) => (first, place),
                _ => (place, place),
            });
        }
    }

    /// Takes up to so many characters of a class; the place after them, and how many there were.
    fn walk(&mut self, class: u32, at: u32, most: u32) -> Result<(u32, u32), TooHard> {
        let (mut at, mut count) = (at, 0);
        while count < most
            && let Some(after) = self.takes(class, at)
        {
            at = after;
            count += 1;
        }
        self.spend(count)?;
        Ok((at, count))
    }

    /// Where the run of the repeat's class that holds a place ends, and the width of its
    /// characters. A run ends at the same place wherever one enters it.
    fn run_end(&mut self, at: u32, many: Many) -> Result<(u32, u32), TooHard> {
        let known = self.notes_of(many);
        if (known.run.0..known.run.1).contains(&at) {
            return Ok((known.run.1, known.width));
        }
        let (mut end, mut count) = (at, 0);
        let mut width = None;
        while let Some(after) = self.takes(many.class, end) {
            let found = after - end;
            width = Some(match width {
                None => found,
                Some(width) if width == found => width,
                Some(_) => 0,
            });
            end = after;
            count += 1;
        }
        self.spend(count)?;
        let width = width.unwrap_or(1);
        if let Some(notes) = self.notes.get_mut(many.notes as usize) {
            (notes.run, notes.width) = ((at, end), width);
        }
        Ok((end, width))
    }

    /// The place so many characters on, where the run reaches so far.
    fn advance(
        &mut self,
        at: u32,
        count: u32,
        end: u32,
        width: u32,
    ) -> Result<Option<u32>, TooHard> {
        if width > 0 {
            let place = u64::from(at) + u64::from(count) * u64::from(width);
            return Ok(u32::try_from(place).ok().filter(|&place| place <= end));
        }
        let mut place = at;
        for _ in 0..count {
            match self.after(place) {
                Some((_, after)) if after <= end => place = after,
                _ => return Ok(None),
            }
            self.spend(1)?;
        }
        Ok(Some(place))
    }

    /// The last way that was left open above `base`.
    fn back(&mut self, base: usize) -> Result<Next, TooHard> {
        while self.ways.len() > base {
            self.spend(1)?;
            let Some(way) = self.ways.pop() else {
                break;
            };
            let next = match way {
                Way::Open(step, at) => match self.regex.ops.get(step as usize) {
                    Some(&Op::Split(split)) => {
                        self.note_failed(split, at);
                        Some((split.second, at))
                    }
                    _ => None,
                },
                Way::Shrink(step, failed, least) => match self.repeat_at(step) {
                    Some(many) => {
                        self.note_failure(many, failed);
                        match self.before(failed) {
                            Some((_, end)) => self.shrink_to(step, end, least, many)?,
                            None => None,
                        }
                    }
                    None => None,
                },
                Way::Grow(step, failed, more) => match self.repeat_at(step) {
                    Some(many) => {
                        self.note_failure(many, failed);
                        self.grow(step, failed, more, many)?
                    }
                    None => None,
                },
                Way::Mark(mark, before) => {
                    if let Some(place) = self.marks.get_mut(mark as usize) {
                        *place = before;
                    }
                    None
                }
            };
            if next.is_some() {
                return Ok(next);
            }
        }
        Ok(None)
    }

    /// The place of a split's bit.
    fn failure(&self, split: Split, at: u32) -> (usize, u64) {
        // Fits, or there are no bits: see `note_failed`.
        let bit = (split.note as usize)
            .wrapping_mul(self.text.len() + 1)
            .wrapping_add(at as usize);
        (bit / 64, 1 << (bit % 64))
    }

    /// Whether a split's first way is known to fail at a place.
    #[inline]
    fn has_failed(&self, split: Split, at: u32) -> bool {
        if self.failures.is_empty() || split.note == u32::MAX {
            return false;
        }
        let (word, bit) = self.failure(split, at);
        self.failures.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Notes that a split's first way fails at a place, once the text has taken many steps.
    #[inline]
    fn note_failed(&mut self, split: Split, at: u32) {
        if self.steps > self.noted_from || split.note == u32::MAX {
            return;
        }
        if self.failures.is_empty() {
            let bits = self.regex.splits.checked_mul(self.text.len() + 1);
            let Some(bits) = bits.filter(|&bits| bits <= MOST_FAILURES) else {
                self.noted_from = 0;
                return;
            };
            self.failures = vec![0; bits / 64 + 1];
        }
        let (word, bit) = self.failure(split, at);
        if let Some(word) = self.failures.get_mut(word) {
            *word |= bit;
        }
    }

    /// Takes one character more into a lazy repeat.
    fn grow(&mut self, step: u32, at: u32, more: u32, many: Many) -> Result<Next, TooHard> {
        let Some(after) = self.takes(many.class, at) else {
            return Ok(None);
        };
        if many.most == u32::MAX {
            return self.grow_from(step, after, many);
        }
        if more > 1 {
            self.open(Way::Grow(step, after, more - 1))?;
        }
        Ok(Some((step + 1, after)))
    }

    fn repeat_at(&self, step: u32) -> Option<Many> {
        match self.regex.ops.get(step as usize)? {
            Op::Many(many) => Some(*many),
            _ => None,
        }
    }

    fn asserts(&self, assert: Assert, at: u32) -> bool {
        let before = self.before(at).map(|(character, _)| character);
        let after = self.after(at).map(|(character, _)| character);
        let is_edge = || before.is_some_and(is_word) != after.is_some_and(is_word);
        match assert {
            Assert::Start => before.is_none(),
            Assert::End => after.is_none(),
            Assert::LastLine => {
                after.is_none() || (after == Some('\n') && at as usize + 1 == self.text.len())
            }
            Assert::LineStart => before.is_none() || (before == Some('\n') && after.is_some()),
            Assert::LineEnd => after.is_none_or(|c| c == '\n'),
            Assert::WordEdge => is_edge(),
            Assert::NoWordEdge => !is_edge(),
        }
    }
}
