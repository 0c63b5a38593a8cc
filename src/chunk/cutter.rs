//! Cuts a text into chunks, one after another.

use std::collections::VecDeque;

use super::Chunk;
use super::boundaries::{Boundaries, Boundary, LONG_WORD, Level, parts};
use super::markdown;
use super::options::{ChunkBy, Limits};
use crate::error::{Error, Result};

/// Counts tokens as the model will see them.
pub(super) trait Counter {
    /// Tokens of a part of a chunk by itself, without special ones and the prompt's.
    fn part(&self, text: &str) -> Result<usize>;
    /// Tokens of a chunk, with all that the model sees.
    fn chunk(&self, text: &str) -> Result<usize>;
}

/// Bytes of text that a token is taken to stand for, until some are counted.
const BYTES_PER_TOKEN: usize = 4;
/// And at most, so that no look ahead is long.
const MOST_BYTES_PER_TOKEN: usize = 16;
/// A chunk has no more bytes for each of its tokens. Only what tokenizers ignore, or take for one
/// unknown word, comes near; it has to end somewhere for the work to stay in small steps.
const LONGEST_PER_TOKEN: usize = 256;
/// A chunk may have so many bytes however few its tokens are.
const LONGEST_AT_LEAST: usize = 16 * 1024;
/// How often a chunk is counted as a whole because its parts were more tokens than the whole.
const ROUNDS: usize = 3;

/// Cuts a text.
///
/// A chunk is found by adding up the tokens of its parts, in steps that come close to the limit
/// quickly, and is then counted as a whole: what tokenizers make of a text is nearly, but not
/// always, the sum of what they make of its parts. So every byte is tokenised a few times, however
/// long the text is.
pub(super) struct Cutter<'t, C> {
    text: &'t str,
    counter: C,
    limits: Limits,
    boundaries: Boundaries<'t>,
    /// Boundaries after `start`.
    ahead: VecDeque<Boundary>,
    /// Where the next chunk begins.
    start: usize,
    /// The end of the last chunk. The next one may repeat the text before it.
    covered: usize,
    /// From the last count.
    bytes_per_token: usize,
}

/// A chunk from the start to the boundary before place `boundaries` in `ahead`.
#[derive(Clone, Copy)]
struct Fit {
    boundaries: usize,
    tokens: usize,
}

impl<'t, C: Counter> Cutter<'t, C> {
    pub(super) fn new(text: &'t str, limits: Limits, counter: C) -> Self {
        let boundaries = match limits.by {
            ChunkBy::Tokens => Boundaries::of_words(text),
            ChunkBy::Sentences => Boundaries::of_sentences(text),
            ChunkBy::Markdown => Boundaries::of_blocks(text, markdown::blocks(text)),
        };
        Self {
            text,
            counter,
            limits,
            boundaries,
            ahead: VecDeque::new(),
            start: 0,
            covered: 0,
            bytes_per_token: BYTES_PER_TOKEN,
        }
    }

    /// The next chunk; `None` after the last.
    pub(super) fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        if self.text[self.covered..].trim_start().is_empty() {
            return Ok(None);
        }
        if self.start == self.covered {
            self.begin_at(self.covered);
        }
        let reached = loop {
            match self.reach()? {
                Some(fit) if self.end(fit.boundaries) > self.covered => break fit,
                // The overlap left no room for what follows.
                _ if self.start < self.covered => self.begin_at(self.covered),
                _ => self.cut_the_first()?,
            }
        };
        let Fit { boundaries, tokens } = self.choose(reached)?;
        let (start, end) = (self.start, self.end(boundaries));
        self.covered = end;
        match self.overlap(boundaries)? {
            Some(start) => self.begin_at(start),
            None => self.begin_at(end),
        }
        let length = self.text[start..end].trim_end().len();
        Ok(Some(Chunk {
            range: start..start + length,
            tokens,
        }))
    }

    /// Begins at this place, or after the white space there.
    fn begin_at(&mut self, place: usize) {
        let start = self.text.len() - self.text[place..].trim_start().len();
        self.start = start;
        while self.ahead.front().is_some_and(|next| next.at <= start) {
            self.ahead.pop_front();
        }
    }

    /// Where so many boundaries are passed.
    fn end(&self, boundaries: usize) -> usize {
        match boundaries.checked_sub(1) {
            Some(last) => self.ahead.get(last).map_or(self.text.len(), |b| b.at),
            None => self.start,
        }
    }

    /// Looks for boundaries until there are more than `boundaries` of them and the last is not
    /// before `at`, or the text ends.
    fn look_ahead(&mut self, boundaries: usize, at: usize) {
        while self.ahead.len() <= boundaries || self.ahead.back().is_some_and(|last| last.at < at) {
            match self.boundaries.next() {
                Some(next) if next.at > self.start => self.ahead.push_back(next),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// The longest chunk from here; `None` where not even the first boundary can be reached.
    fn reach(&mut self) -> Result<Option<Fit>> {
        if self.covered == 0
            && let Some(whole) = self.whole()?
        {
            return Ok(Some(whole));
        }
        let Some(fit) = self.reach_by_parts()? else {
            return Ok(None);
        };
        Ok(Some(self.with_marks(fit)?.unwrap_or(fit)))
    }

    /// The whole text, if that is a chunk.
    fn whole(&mut self) -> Result<Option<Fit>> {
        let text = &self.text[self.start..];
        if text.len() > self.longest() {
            return Ok(None);
        }
        let tokens = self.counter.chunk(text)?;
        if tokens > self.limits.max {
            return Ok(None);
        }
        self.look_ahead(0, self.text.len());
        Ok(Some(Fit {
            boundaries: self.ahead.len(),
            tokens,
        }))
    }

    /// The same with the marks that touch its last word. Counted by themselves they may be more
    /// tokens than where they stand.
    fn with_marks(&mut self, fit: Fit) -> Result<Option<Fit>> {
        let end = self.end(fit.boundaries);
        self.look_ahead(fit.boundaries, end + LONG_WORD);
        let mut further = self.ahead.iter().skip(fit.boundaries - 1);
        let is_word = |next: &Boundary| next.level >= Level::WORD;
        let Some(more) = further.position(is_word).filter(|&more| more > 0) else {
            return Ok(None);
        };
        let boundaries = fit.boundaries + more;
        if self.end(boundaries) > end + LONG_WORD {
            return Ok(None);
        }
        let tokens = self.count(boundaries)?;
        let fits = tokens <= self.limits.max;
        Ok(fits.then_some(Fit { boundaries, tokens }))
    }

    /// The longest chunk whose parts have room one by one.
    fn reach_by_parts(&mut self) -> Result<Option<Fit>> {
        let mut best = None;
        let (mut passed, mut sum) = self.add_up(0, 0)?;
        for _ in 0..ROUNDS {
            if passed == 0 {
                return Ok(None);
            }
            let tokens = self.count(passed)?;
            if tokens > self.limits.max {
                // More tokens than its parts have.
                return match best {
                    Some(best) => Ok(Some(best)),
                    None => self.shrink(passed),
                };
            }
            best = Some(Fit {
                boundaries: passed,
                tokens,
            });
            let whole = tokens.saturating_sub(self.limits.fixed);
            if whole >= sum {
                break;
            }
            let (further, more) = self.add_up(passed, whole)?;
            if further == passed {
                break;
            }
            (passed, sum) = (further, more);
        }
        Ok(best)
    }

    /// Goes on from the boundary that is `passed` boundaries away, after `sum` tokens, as far as
    /// the parts together have room.
    fn add_up(&mut self, mut passed: usize, mut sum: usize) -> Result<(usize, usize)> {
        let room = self.limits.room();
        let longest = self.start + self.longest();
        let mut too_many = usize::MAX;
        loop {
            let at = self.end(passed);
            // A little less than is expected to fit: what is too much is counted in vain.
            let wish = (room - sum).saturating_mul(self.bytes_per_token) / 8 * 7;
            let wish = at.saturating_add(wish).min(longest);
            self.look_ahead(passed, wish);
            let known = self.ahead.partition_point(|next| next.at <= wish);
            let mut next = known.max(passed + 1).min(self.ahead.len());
            if next >= too_many {
                next = passed + (too_many - passed) / 2;
            }
            let end = self.end(next);
            if next <= passed || (end > longest && passed > 0) {
                return Ok((passed, sum));
            }
            let tokens = self.counter.part(&self.text[at..end])?;
            if tokens > room - sum {
                too_many = next;
                continue;
            }
            passed = next;
            sum += tokens;
            let bytes = (end - self.start) / sum.max(1);
            self.bytes_per_token = bytes.clamp(1, MOST_BYTES_PER_TOKEN);
        }
    }

    fn longest(&self) -> usize {
        let longest = self.limits.room().saturating_mul(LONGEST_PER_TOKEN);
        longest.max(LONGEST_AT_LEAST).min(self.text.len())
    }

    /// A shorter chunk than one that has too many tokens.
    fn shrink(&self, mut passed: usize) -> Result<Option<Fit>> {
        while passed > 1 {
            passed -= passed.div_ceil(4);
            let tokens = self.count(passed)?;
            if tokens <= self.limits.max {
                return Ok(Some(Fit {
                    boundaries: passed,
                    tokens,
                }));
            }
        }
        Ok(None)
    }

    /// Tokens of the chunk that ends there, with all that the model sees.
    fn count(&self, boundaries: usize) -> Result<usize> {
        self.counter
            .chunk(&self.text[self.start..self.end(boundaries)])
    }

    /// Cuts what is before the first boundary, which does not fit as a whole.
    fn cut_the_first(&mut self) -> Result<()> {
        self.look_ahead(0, 0);
        let first = self.text[self.start..self.end(1)].trim_end();
        let parts = parts(first);
        if parts.is_empty() {
            let tokens = self.counter.chunk(first)?;
            return Err(Error::Config(vec![format!(
                "chunks of {} tokens are asked for, and the character {first:?} at byte {} alone takes {tokens}, special tokens and the prompt included",
                self.limits.max, self.start
            )]));
        }
        for part in parts.into_iter().rev() {
            let boundary = Boundary::new(self.start + part, Level::INSIDE);
            self.ahead.push_front(boundary);
        }
        Ok(())
    }

    /// The best of the ends up to the last that is reached: of the highest level, the last one.
    fn choose(&mut self, reached: Fit) -> Result<Fit> {
        let mut best: Option<(Level, usize)> = None;
        let mut after_heading: Option<(Level, usize)> = None;
        for (place, next) in self.ahead.iter().enumerate().take(reached.boundaries) {
            let best = if next.after_heading {
                &mut after_heading
            } else {
                &mut best
            };
            if next.at > self.covered && best.is_none_or(|(level, _)| next.level >= level) {
                *best = Some((next.level, place + 1));
            }
        }
        // A heading is left alone only for what would be cut otherwise.
        let mut chosen = best.map_or(reached.boundaries, |(_, boundaries)| boundaries);
        if let Some((level, boundaries)) = after_heading
            && best.is_none_or(|(best, _)| level > best)
            && self.fits_alone(boundaries, level)?
        {
            chosen = boundaries;
        }
        if chosen == reached.boundaries {
            return Ok(reached);
        }
        // Part of a text may be more tokens than all of it.
        let tokens = self.count(chosen)?;
        Ok(if tokens <= self.limits.max {
            Fit {
                boundaries: chosen,
                tokens,
            }
        } else {
            reached
        })
    }

    /// Whether what begins at a boundary fits into a chunk, up to the next one of its level.
    fn fits_alone(&mut self, boundaries: usize, level: Level) -> Result<bool> {
        let start = self.end(boundaries);
        let far = self.limits.room().saturating_mul(MOST_BYTES_PER_TOKEN);
        self.look_ahead(boundaries, start.saturating_add(far));
        let mut later = self.ahead.iter().skip(boundaries);
        let Some(end) = later.find(|next| next.level >= level) else {
            return Ok(false);
        };
        Ok(self.counter.chunk(&self.text[start..end.at])? <= self.limits.max)
    }

    /// Where the next chunk begins, to repeat the end of one with so many boundaries.
    fn overlap(&mut self, boundaries: usize) -> Result<Option<usize>> {
        let end = self.end(boundaries);
        if self.limits.overlap == 0 || end == self.text.len() {
            return Ok(None);
        }
        let wanted = match self.limits.by {
            ChunkBy::Tokens => Level::WORD,
            ChunkBy::Sentences | ChunkBy::Markdown => Level::SENTENCE,
        };
        let follows = self.follows(boundaries, wanted)?;
        let tokens = self.limits.room().saturating_sub(follows);
        let tokens = tokens.min(self.limits.overlap);
        let bytes = tokens.saturating_mul(MOST_BYTES_PER_TOKEN);
        let near = end.saturating_sub(bytes);
        // The first place from which it is not too much.
        let mut low = self.ahead.partition_point(|place| place.at < near);
        let mut high = boundaries - 1;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.counter.part(&self.text[self.ahead[middle].at..end])? <= tokens {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let places = || self.ahead.iter().take(boundaries - 1).skip(high);
        let better = [wanted, Level::WORD]
            .into_iter()
            .find_map(|level| places().find(|place| place.level >= level));
        // The end of a text may be more tokens than a longer end.
        if let Some(better) = better
            && self.counter.part(&self.text[better.at..end])? <= tokens
        {
            return Ok(Some(better.at));
        }
        Ok(places().next().map(|place| place.at))
    }

    /// Tokens of what follows a chunk and should fit beside its repeated end: all that begins
    /// there, if that can be a chunk, else a sentence, else the next word.
    fn follows(&mut self, boundaries: usize, wanted: Level) -> Result<usize> {
        let end = self.end(boundaries);
        let room = self.limits.room();
        let far = room.saturating_mul(self.bytes_per_token * 2);
        self.look_ahead(boundaries, end.saturating_add(far));
        for level in [self.ahead[boundaries - 1].level, wanted] {
            let mut later = self.ahead.iter().skip(boundaries);
            if let Some(next) = later.find(|next| next.level >= level)
                && next.at <= end.saturating_add(far)
            {
                let tokens = self.counter.part(&self.text[end..next.at])?;
                if tokens <= room {
                    return Ok(tokens);
                }
            }
        }
        self.counter.part(&self.text[end..self.end(boundaries + 1)])
    }
}
