//! A text while it is normalised and split: its pieces, end to end in one string.
//!
//! `tokenizers` stores, for every byte of a piece, the bytes of the text that it came from. Only two of these facts
//! can change an id: whether a piece starts where the text does (`Metaspace` uses it, with the scheme `first`), and
//! which characters were inserted (later steps skip those at a piece's start). Here each fact is a length: the length
//! of the front of the piece for which it is true.
//!
//! Every edit asks the text's [`Budget`] before it takes memory. Places are stored in 32 bits, which the budget's
//! bounds allow, because in a text of many short pieces most memory is for places.

use std::ops::Range;

use crate::budget::{Budget, Stop};
use crate::unicode::normal::{Edit, Kind, decomposed_bytes};

/// Where a piece is from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Origin {
    /// The piece starts where the text does.
    first: bool,
    /// So many bytes of its front are from the first character that it was cut from.
    start: usize,
    /// So many bytes of its front are from nothing.
    nothing: usize,
    /// When it was cut, it was all from nothing.
    hollow: bool,
}

/// One piece, apart from the others, to be normalised.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    text: String,
    origin: Origin,
    /// So many bytes the pieces before this one take.
    before: usize,
    /// What is left for the text that the pieces are of.
    budget: Budget,
}

impl Piece {
    /// A piece by itself, of a text with this budget.
    pub(crate) fn new(text: &str, budget: Budget) -> Self {
        let mut piece = Self {
            budget,
            ..Self::default()
        };
        piece.load(text, Origin::of(text, true), 0);
        piece
    }

    fn load(&mut self, text: &str, origin: Origin, before: usize) {
        self.text.clear();
        self.text.push_str(text);
        self.origin = origin;
        self.before = before;
    }

    /// The text as it is now, and what is left.
    pub(crate) fn into_parts(self) -> (String, Budget) {
        (self.text, self.budget)
    }

    /// Counts steps that a pattern took.
    pub(crate) fn took(&mut self, steps: u64) -> Result<(), Stop> {
        self.budget.steps(steps)
    }

    /// Counts one look at the whole piece.
    pub(crate) fn look(&mut self) -> Result<(), Stop> {
        self.budget.look(self.text.len(), 1)
    }

    /// How long the piece may become.
    pub(crate) fn most_bytes(&self) -> usize {
        self.budget.most_bytes().saturating_sub(self.before)
    }

    /// Whether the piece may be decomposed.
    pub(crate) fn may_decompose(&self, kind: Kind) -> Result<(), Stop> {
        self.may_have(Some(decomposed_bytes(&self.text, kind)))
    }

    /// Whether the piece may become so long.
    pub(crate) fn may_have(&self, length: Option<usize>) -> Result<(), Stop> {
        let whole = length.and_then(|length| length.checked_add(self.before));
        self.budget.bytes(whole)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the piece starts where the text does.
    pub(crate) fn is_first(&self) -> bool {
        self.origin.first
    }

    /// Whether no character is from nothing: then an edit that changes none can be left out.
    pub(crate) fn is_plain(&self) -> bool {
        self.origin.nothing == 0
    }

    /// Puts `edits` in the place of the text, of which the first `skipped` characters are left
    /// out before the first edit.
    ///
    /// # Errors
    /// [`Stop::Exceeded`], as of all edits, where the text would become too long.
    pub(crate) fn edit(&mut self, edits: &[Edit], skipped: usize) -> Result<(), Stop> {
        let length = self.text.len();
        if length == 0 {
            return Ok(());
        }
        // The original looks for the piece's place in the text it is from, and finds it after
        // the front that is from nothing.
        let place = match self.origin {
            Origin { nothing, .. } if nothing < length => nothing..length,
            Origin { hollow: true, .. } => 0..0,
            _ => length..length,
        };
        self.edit_range(place, edits, skipped)
    }

    /// Puts `text` before the piece.
    pub(crate) fn prepend(&mut self, text: &str) -> Result<(), Stop> {
        let Some(next) = self.text.chars().next() else {
            return Ok(());
        };
        self.may_have(self.text.len().checked_add(text.len()))?;
        let mut edits: Vec<Edit> = text
            .chars()
            .enumerate()
            .map(|(index, c)| (c, i32::from(index > 0)))
            .collect();
        edits.push((next, 1));
        self.edit_range(0..next.len_utf8(), &edits, 0)
    }

    /// Keeps the characters that are wanted.
    pub(crate) fn filter(&mut self, keep: impl Fn(char) -> bool) -> Result<(), Stop> {
        if self.is_plain() && self.text.chars().all(&keep) {
            return Ok(());
        }
        let mut edits: Vec<Edit> = Vec::with_capacity(self.text.len());
        let mut skipped = 0;
        for c in self.text.chars() {
            if keep(c) {
                edits.push((c, 0));
            } else if let Some((_, removed)) = edits.last_mut() {
                *removed -= 1;
            } else {
                skipped += 1;
            }
        }
        // Where nothing is kept, the original counts nothing as skipped; no one can tell.
        self.edit(&edits, skipped)
    }

    /// Puts another character in the place of each.
    pub(crate) fn map(&mut self, map: impl Fn(char) -> char) -> Result<(), Stop> {
        let edits: Vec<Edit> = self.text.chars().map(|c| (map(c), 0)).collect();
        self.edit(&edits, 0)
    }

    /// Puts `content` in the place of every range that is a match.
    pub(crate) fn replace(&mut self, matches: &[Match], content: &str) -> Result<(), Stop> {
        let Origin { start, nothing, .. } = self.origin;
        let mut length = Some(0_usize);
        for (range, is_match) in matches {
            let part = if *is_match {
                content.len()
            } else {
                range.len()
            };
            length = length.and_then(|length| length.checked_add(part));
        }
        self.may_have(length)?;
        let mut text = String::with_capacity(length.unwrap_or_default());
        let mut front = Front::default();
        for (range, is_match) in matches {
            let range = range.start as usize..range.end as usize;
            if *is_match {
                // As what stands before: the last byte of the match, or nothing.
                let from = match range.end.checked_sub(1) {
                    Some(last) => (last < start, last < nothing),
                    None => (true, true),
                };
                text.push_str(content);
                front.added(content.len(), from);
            } else {
                let within = |end: usize| end.clamp(range.start, range.end) - range.start;
                text.push_str(&self.text[range.clone()]);
                front.kept(range.len(), within(start), within(nothing));
            }
        }
        self.text = text;
        (self.origin.start, self.origin.nothing) = (front.start, front.nothing);
        Ok(())
    }

    fn edit_range(
        &mut self,
        place: Range<usize>,
        edits: &[Edit],
        skipped: usize,
    ) -> Result<(), Stop> {
        let Origin { start, nothing, .. } = self.origin;
        // Summed up only where the characters could be too many, were each as long as can be.
        let kept = self.text.len() - place.len();
        let rough = edits
            .len()
            .checked_mul(4)
            .and_then(|new| new.checked_add(kept));
        if self.may_have(rough).is_err() {
            let new: usize = edits.iter().map(|(c, _)| c.len_utf8()).sum();
            self.may_have(new.checked_add(kept))?;
        }
        let mut text = String::with_capacity(self.text.len());
        let mut front = Front::default();
        text.push_str(&self.text[..place.start]);
        front.kept(
            place.start,
            start.min(place.start),
            nothing.min(place.start),
        );
        let mut replaced = self.text[place.clone()].chars();
        let mut take =
            |count: usize| -> usize { replaced.by_ref().take(count).map(char::len_utf8).sum() };
        let mut at = place.start + take(skipped);
        for &(c, change) in edits {
            let from = if change > 0 {
                match at.checked_sub(1) {
                    Some(before) => (before < start, before < nothing),
                    None => (true, true),
                }
            } else {
                (at < start, at < nothing)
            };
            if change <= 0 {
                at += take(1 + change.unsigned_abs() as usize);
            }
            text.push(c);
            front.added(c.len_utf8(), from);
        }
        text.push_str(&self.text[place.end..]);
        front.kept(
            self.text.len() - place.end,
            start.saturating_sub(place.end),
            nothing.saturating_sub(place.end),
        );
        self.text = text;
        (self.origin.start, self.origin.nothing) = (front.start, front.nothing);
        Ok(())
    }
}

/// The lengths of an [`Origin`] while a text is put together.
#[derive(Default)]
struct Front {
    length: usize,
    start: usize,
    nothing: usize,
}

impl Front {
    /// Bytes that stay, with the lengths among them.
    fn kept(&mut self, length: usize, start: usize, nothing: usize) {
        if self.start == self.length {
            self.start += start;
        }
        if self.nothing == self.length {
            self.nothing += nothing;
        }
        self.length += length;
    }

    /// Bytes that are new, all from the start or not, from nothing or not.
    fn added(&mut self, length: usize, (start, nothing): (bool, bool)) {
        let of = |is: bool| if is { length } else { 0 };
        self.kept(length, of(start), of(nothing));
    }
}

impl Origin {
    fn of(text: &str, first: bool) -> Self {
        Self {
            first,
            start: text.chars().next().map_or(0, char::len_utf8),
            nothing: 0,
            hollow: false,
        }
    }

    fn slice(self, range: &Range<usize>) -> Self {
        let first = self.first && range.start < self.start;
        let within = |length: usize| length.saturating_sub(range.start).min(range.len());
        Self {
            first,
            // Past the first piece nobody asks.
            start: if first { within(self.start) } else { 0 },
            nothing: within(self.nothing),
            hollow: within(self.nothing) == range.len(),
        }
    }
}

/// A range of a piece, and whether it is a match of a pattern or lies between two.
pub(crate) type Match = (Range<u32>, bool);

/// A range of a text whose places are kept in 32 bits, as the budget's are.
pub(crate) fn narrow(range: Range<usize>) -> Range<u32> {
    range.start as u32..range.end as u32
}

/// One piece among the others.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    end: u32,
    /// An added token that was found, or [`NO_TOKEN`]. Of such nothing but the id counts, so it
    /// has no text: tokens may overlap, and each could hold all that follows.
    token: u32,
    front: [u32; 2],
    first: bool,
    hollow: bool,
}

/// No added token has this id.
const NO_TOKEN: u32 = u32::MAX;

impl Entry {
    fn text(range: Range<usize>, origin: Origin) -> Self {
        Self {
            start: range.start as u32,
            end: range.end as u32,
            token: NO_TOKEN,
            front: [origin.start as u32, origin.nothing as u32],
            first: origin.first,
            hollow: origin.hollow,
        }
    }

    fn token(id: u32) -> Self {
        Self {
            token: id,
            ..Self::text(0..0, Origin::default())
        }
    }

    fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn origin(&self) -> Origin {
        Origin {
            first: self.first,
            start: self.front[0] as usize,
            nothing: self.front[1] as usize,
            hollow: self.hollow,
        }
    }
}

/// The pieces of a text, and working memory.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    text: String,
    entries: Vec<Entry>,
    next_text: String,
    next_entries: Vec<Entry>,
    piece: Piece,
    cuts: Cuts,
}

/// Where a piece is cut.
#[derive(Debug, Default)]
pub(crate) struct Cuts {
    /// The starts and ends of ranges, with the token that each is, or [`NO_TOKEN`].
    kept: Vec<(u32, u32, u32)>,
    /// The matches that the kept ranges are made from.
    pub(crate) matches: Vec<Match>,
    /// Steps that patterns took, to be counted when the piece is cut.
    steps: u64,
}

impl Cuts {
    /// Notes steps that a pattern took.
    pub(crate) fn took(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// Keeps a range as a piece.
    pub(crate) fn keep(&mut self, range: Range<u32>) {
        self.kept.push((range.start, range.end, NO_TOKEN));
    }

    /// Keeps a range as an added token.
    pub(crate) fn token(&mut self, range: Range<u32>, id: u32) {
        self.kept.push((range.start, range.end, id));
    }
}

impl Pieces {
    /// Starts with a whole text.
    pub(crate) fn load(&mut self, text: &str) {
        self.piece.budget = Budget::of(text.len());
        self.cuts.steps = 0;
        self.text.clear();
        self.text.push_str(text);
        self.entries.clear();
        if !text.is_empty() {
            let origin = Origin::of(text, true);
            self.entries.push(Entry::text(0..text.len(), origin));
        }
    }

    /// Normalises every piece that is no token, and cuts it.
    ///
    /// # Errors
    /// The first error of `normalize` or `cut`, or [`Stop::Exceeded`].
    pub(crate) fn step(
        &mut self,
        normalize: &mut dyn FnMut(&mut Piece) -> Result<(), Stop>,
        cut: &mut dyn FnMut(&str, &mut Cuts) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.next_text.clear();
        self.next_entries.clear();
        let budget = &mut self.piece.budget;
        budget.look(self.text.len(), self.entries.len())?;
        for entry in &self.entries {
            if entry.token != NO_TOKEN {
                self.next_entries.push(*entry);
                continue;
            }
            let base = self.next_text.len();
            self.piece
                .load(&self.text[entry.range()], entry.origin(), base);
            normalize(&mut self.piece)?;
            // Also where no edit was made: pieces before may have taken the room.
            self.piece.may_have(Some(self.piece.text.len()))?;
            self.cuts.kept.clear();
            self.cuts.matches.clear();
            cut(&self.piece.text, &mut self.cuts)?;
            let pieces = self.next_entries.len() + self.cuts.kept.len();
            self.piece.budget.pieces(pieces)?;
            self.piece
                .budget
                .steps(std::mem::take(&mut self.cuts.steps))?;
            self.next_text.push_str(&self.piece.text);
            let kept = self.cuts.kept.drain(..);
            // A piece without text is none.
            let kept = kept.filter(|(start, end, _)| start < end);
            self.next_entries.extend(kept.map(|(start, end, token)| {
                if token != NO_TOKEN {
                    return Entry::token(token);
                }
                let range = start as usize..end as usize;
                let origin = self.piece.origin.slice(&range);
                Entry::text(base + range.start..base + range.end, origin)
            }));
        }
        std::mem::swap(&mut self.text, &mut self.next_text);
        std::mem::swap(&mut self.entries, &mut self.next_entries);
        Ok(())
    }

    /// Normalises every piece that is no token, and cuts none. One that loses all its text stays.
    ///
    /// # Errors
    /// The first error of `normalize`, or [`Stop::Exceeded`].
    pub(crate) fn normalize(
        &mut self,
        normalize: &mut dyn FnMut(&mut Piece) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.step(normalize, &mut |text, cuts| {
            cuts.keep(narrow(0..text.len()));
            Ok(())
        })
    }

    /// Cuts every piece that is no token.
    ///
    /// # Errors
    /// The first error of `cut`, or [`Stop::Exceeded`].
    pub(crate) fn cut(
        &mut self,
        cut: &mut dyn FnMut(&str, &mut Cuts) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.step(&mut |_| Ok(()), cut)
    }

    /// What is left for the text.
    pub(crate) fn budget(&mut self) -> &mut Budget {
        &mut self.piece.budget
    }

    /// Every piece, or the id of the added token that it is.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<&str, u32>> {
        self.entries.iter().map(|entry| match entry.token {
            NO_TOKEN => Ok(&self.text[entry.range()]),
            id => Err(id),
        })
    }
}
