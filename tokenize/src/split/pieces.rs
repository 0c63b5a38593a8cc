//! A text while it is normalised and split: its pieces, end to end in one string.
//!
//! `tokenizers` keeps for every byte of a piece which bytes of the text it is from. All that can
//! change an id is whether a piece starts where the text does (`Metaspace` asks, with the scheme
//! `first`) and which characters came from nothing (later steps pass over those at a piece's
//! start). Both are a length here, that of the piece's front of which it is true.

use std::ops::Range;

use crate::unicode::normal::Edit;

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
}

impl Piece {
    pub(crate) fn new(text: &str) -> Self {
        let mut piece = Self::default();
        piece.load(text, Origin::of(text, true));
        piece
    }

    fn load(&mut self, text: &str, origin: Origin) {
        self.text.clear();
        self.text.push_str(text);
        self.origin = origin;
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
    pub(crate) fn edit(&mut self, edits: &[Edit], skipped: usize) {
        let length = self.text.len();
        if length == 0 {
            return;
        }
        // The original looks for the piece's place in the text it is from, and finds it after
        // the front that is from nothing.
        let place = match self.origin {
            Origin { nothing, .. } if nothing < length => nothing..length,
            Origin { hollow: true, .. } => 0..0,
            _ => length..length,
        };
        self.edit_range(place, edits, skipped);
    }

    /// Puts `text` before the piece.
    pub(crate) fn prepend(&mut self, text: &str) {
        let Some(next) = self.text.chars().next() else {
            return;
        };
        let mut edits: Vec<Edit> = text
            .chars()
            .enumerate()
            .map(|(index, c)| (c, i32::from(index > 0)))
            .collect();
        edits.push((next, 1));
        self.edit_range(0..next.len_utf8(), &edits, 0);
    }

    /// Keeps the characters that are wanted.
    pub(crate) fn filter(&mut self, keep: impl Fn(char) -> bool) {
        if self.is_plain() && self.text.chars().all(&keep) {
            return;
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
        self.edit(&edits, skipped);
    }

    /// Puts another character in the place of each.
    pub(crate) fn map(&mut self, map: impl Fn(char) -> char) {
        let edits: Vec<Edit> = self.text.chars().map(|c| (map(c), 0)).collect();
        self.edit(&edits, 0);
    }

    /// Puts `content` in the place of every range that is a match.
    pub(crate) fn replace(&mut self, matches: &[Match], content: &str) {
        let Origin { start, nothing, .. } = self.origin;
        let mut text = String::with_capacity(self.text.len());
        let mut front = Front::default();
        for (range, is_match) in matches {
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
    }

    fn edit_range(&mut self, place: Range<usize>, edits: &[Edit], skipped: usize) {
        let Origin { start, nothing, .. } = self.origin;
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
pub(crate) type Match = (Range<usize>, bool);

/// One piece among the others.
#[derive(Debug, Clone)]
struct Entry {
    range: Range<usize>,
    /// An added token that was found.
    token: Option<u32>,
    origin: Origin,
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
    kept: Vec<(Range<usize>, Option<u32>)>,
    /// The matches that the kept ranges are made from.
    pub(crate) matches: Vec<Match>,
}

impl Cuts {
    /// Keeps a range as a piece.
    pub(crate) fn keep(&mut self, range: Range<usize>) {
        self.kept.push((range, None));
    }

    /// Keeps a range as an added token.
    pub(crate) fn token(&mut self, range: Range<usize>, id: u32) {
        self.kept.push((range, Some(id)));
    }
}

impl Pieces {
    /// Starts with a whole text.
    pub(crate) fn load(&mut self, text: &str) {
        self.text.clear();
        self.text.push_str(text);
        self.entries.clear();
        if !text.is_empty() {
            self.entries.push(Entry {
                range: 0..text.len(),
                token: None,
                origin: Origin::of(text, true),
            });
        }
    }

    /// Normalises every piece that is no token, and cuts it.
    ///
    /// # Errors
    /// The first error of `normalize` or `cut`.
    pub(crate) fn step(
        &mut self,
        normalize: &mut dyn FnMut(&mut Piece) -> Result<(), String>,
        cut: &mut dyn FnMut(&str, &mut Cuts) -> Result<(), String>,
    ) -> Result<(), String> {
        self.next_text.clear();
        self.next_entries.clear();
        for entry in &self.entries {
            let text = &self.text[entry.range.clone()];
            let base = self.next_text.len();
            if entry.token.is_some() {
                self.next_text.push_str(text);
                self.next_entries.push(Entry {
                    range: base..self.next_text.len(),
                    ..entry.clone()
                });
                continue;
            }
            self.piece.load(text, entry.origin);
            normalize(&mut self.piece)?;
            self.cuts.kept.clear();
            self.cuts.matches.clear();
            cut(&self.piece.text, &mut self.cuts)?;
            self.next_text.push_str(&self.piece.text);
            let kept = self.cuts.kept.drain(..);
            // A piece without text is none.
            let kept = kept.filter(|(range, _)| !range.is_empty());
            self.next_entries.extend(kept.map(|(range, token)| Entry {
                origin: self.piece.origin.slice(&range),
                range: base + range.start..base + range.end,
                token,
            }));
        }
        std::mem::swap(&mut self.text, &mut self.next_text);
        std::mem::swap(&mut self.entries, &mut self.next_entries);
        Ok(())
    }

    /// Normalises every piece that is no token, and cuts none. One that loses all its text stays.
    ///
    /// # Errors
    /// The first error of `normalize`.
    pub(crate) fn normalize(
        &mut self,
        normalize: &mut dyn FnMut(&mut Piece) -> Result<(), String>,
    ) -> Result<(), String> {
        self.step(normalize, &mut |text, cuts| {
            cuts.keep(0..text.len());
            Ok(())
        })
    }

    /// Cuts every piece that is no token.
    ///
    /// # Errors
    /// The first error of `cut`.
    pub(crate) fn cut(
        &mut self,
        cut: &mut dyn FnMut(&str, &mut Cuts) -> Result<(), String>,
    ) -> Result<(), String> {
        self.step(&mut |_| Ok(()), cut)
    }

    /// Every piece, with its id where it is an added token.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Option<u32>)> {
        let entries = self.entries.iter();
        entries.map(|entry| (&self.text[entry.range.clone()], entry.token))
    }
}
