//! What each new pixel is made of along one side: which old ones, and how much of each.

use std::ops::RangeInclusive;

use crate::simd::{Point, SPLIT};
use crate::{PixelsError, Result};

/// For each new pixel of a row, or each new row, a run of old ones with their weights in fixed point.
#[derive(Debug, Clone)]
pub struct Taps {
    point: Point,
    spans: Vec<Span>,
    /// Those of all spans, one after the other.
    weights: Vec<i32>,
    /// Whether a weight is not narrow.
    wide: bool,
}

/// The old pixels of a new one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// The first of them.
    pub(crate) start: usize,
    /// How many there are.
    pub(crate) count: usize,
    /// Where its weights begin.
    weights: usize,
}

impl Span {
    /// The old pixel behind the last.
    pub(crate) fn end(&self) -> usize {
        self.start + self.count
    }
}

impl Taps {
    /// The largest weight: that of three signed bytes. The smallest, -2^23 and somewhat less, is beyond what sums allow.
    const LARGEST: i32 = 0x7f_7f7f;

    /// What fits both 16 bits and two signed bytes.
    const NARROW: RangeInclusive<i32> = -(1 << 15)..=0x7f7f;

    /// No new pixels yet. `bits` of a weight are behind the point.
    ///
    /// # Errors
    /// [`PixelsError::Taps`] unless `bits` is 1 to 22.
    pub fn new(bits: u32) -> Result<Self> {
        if !(1..=22).contains(&bits) {
            return Err(PixelsError::Taps(format!(
                "weights have 1 to 22 bits behind the point, and {bits} were asked for"
            )));
        }
        Ok(Self {
            point: Point { bits },
            spans: Vec::new(),
            weights: Vec::new(),
            wide: false,
        })
    }

    /// Adds a new pixel: the old one that it begins with, and the weights of that one and those behind it.
    ///
    /// # Errors
    /// [`PixelsError::Taps`] where it begins before the new pixel before it does, where its last old pixel could not be
    /// counted, or where the sum of bytes times weights could exceed 32 bits: where weights without their signs add up to
    /// about 2^23. None may be larger than 0x7f7f7f.
    pub fn push(&mut self, start: usize, weights: &[i32]) -> Result<()> {
        let begins_before = self.spans.last().is_some_and(|last| start < last.start);
        // A group of old pixels may reach further.
        let last = start
            .checked_add(weights.len())
            .and_then(|end| end.checked_add(4));
        if begins_before || last.is_none() {
            return Err(PixelsError::Taps(format!(
                "new pixel {} begins with old pixel {start}, which is before or beyond what it can",
                self.spans.len()
            )));
        }
        let sum: u64 = weights.iter().map(|w| u64::from(w.unsigned_abs())).sum();
        // Every sum of bytes times weights, with the half, is within 32 bits with a sign. Then each weight is within 2^24,
        // and its upper part fits 16 bits; of the upper of three signed bytes that is not said yet.
        let largest = weights.iter().copied().max().unwrap_or(0);
        if 255 * sum + (1 << 22) > i32::MAX as u64 || largest > Self::LARGEST {
            return Err(PixelsError::Taps(format!(
                "the weights of new pixel {} add up to {sum} without their signs, and the largest is {largest}: 32 bits could overflow",
                self.spans.len()
            )));
        }
        self.wide |= weights.iter().any(|weight| !Self::NARROW.contains(weight));
        self.spans.push(Span {
            start,
            count: weights.len(),
            weights: self.weights.len(),
        });
        self.weights.extend_from_slice(weights);
        Ok(())
    }

    /// New pixels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The old pixels that any new one is made of: the first, and the one behind the last.
    #[must_use]
    pub fn reach(&self) -> (usize, usize) {
        let start = self.spans.first().map_or(0, |span| span.start);
        let end = self.spans.iter().map(Span::end).max();
        (start, end.unwrap_or(start))
    }

    /// How a sum becomes a byte.
    pub(crate) fn point(&self) -> Point {
        self.point
    }

    /// The spans of all new pixels.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The weights of a span.
    pub(crate) fn weights(&self, span: &Span) -> &[i32] {
        &self.weights[span.weights..][..span.count]
    }

    /// Whether a weight is multiplied in one part more than narrow ones.
    pub(crate) fn wide(&self) -> bool {
        self.wide
    }
}

/// Weights as registers read them: in groups, as pairs of words of 16 bits.
///
/// Where a weight is not narrow, each is `(high << SPLIT) + low` with `low` in `0..1 << SPLIT`, and the lower parts of a
/// group are followed by the upper ones. Bytes times each part are added modulo 2^32, and so is the whole that is made of
/// both. [`Taps::push`] has seen to it that the whole fits 32 bits: so it is exact, however long the span is and whatever
/// overflowed on the way.
pub(crate) struct Groups {
    pub(crate) runs: Vec<Run>,
    pub(crate) words: Vec<i16>,
    /// Every run begins with a multiple of it, and the groups of a run follow each other.
    pub(crate) step: usize,
}

/// The groups of a new pixel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// The first old pixel of the first group.
    pub(crate) start: usize,
    /// Groups.
    pub(crate) groups: usize,
    /// Where its words begin.
    pub(crate) words: usize,
}

impl Groups {
    /// Groups of `size` old pixels, 2 or 4: the first is paired with the one half a group behind it, and so on. What is
    /// added at either end of a span has a weight of 0.
    ///
    /// Or, with `bytes`, each weight of a quad is two or three signed bytes, the lowest first: those of the four, then the
    /// next ones of the four.
    pub(crate) fn new(taps: &Taps, size: usize, step: usize, bytes: bool) -> Self {
        let mut words = Vec::with_capacity(3 * taps.weights.len());
        let mut runs = Vec::with_capacity(taps.len());
        for span in &taps.spans {
            let before = span.start % step;
            let weights = taps.weights(span);
            let groups = (before + span.count).div_ceil(size);
            let weight = |at: usize| {
                let weight = at.checked_sub(before).and_then(|at| weights.get(at));
                weight.copied().unwrap_or(0)
            };
            runs.push(Run {
                start: span.start - before,
                groups,
                words: words.len(),
            });
            for first in (0..groups).map(|group| group * size) {
                if bytes {
                    let four = [0, 1, 2, 3].map(|at| signed_bytes(weight(first + at)));
                    for part in 0..if taps.wide { 3 } else { 2 } {
                        let [a, b, c, d] = four.map(|bytes| bytes[part] as u8);
                        words.extend([[a, b], [c, d]].map(i16::from_le_bytes));
                    }
                    continue;
                }
                let half = size / 2;
                let pairs = (first..first + half).flat_map(|at| [weight(at), weight(at + half)]);
                if taps.wide {
                    let low = (1 << SPLIT) - 1;
                    words.extend(pairs.clone().map(|weight| (weight & low) as i16));
                    words.extend(pairs.map(|weight| (weight >> SPLIT) as i16));
                } else {
                    words.extend(pairs.map(|weight| weight as i16));
                }
            }
        }
        Self { runs, words, step }
    }
}

/// `low + (middle << 8) + (high << 16)`.
fn signed_bytes(weight: i32) -> [i8; 3] {
    let low = weight as i8;
    let rest = (weight - i32::from(low)) >> 8;
    let middle = rest as i8;
    [low, middle, ((rest - i32::from(middle)) >> 8) as i8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_signed_bytes_are_the_weight() {
        let limit = (i32::MAX - (1 << 22)) / 255;
        let around = |middle: i32| middle - 300..=middle + 300;
        let all = around(0).chain(around(1 << 15)).chain(around(-(1 << 15)));
        let all = all.chain(around(1 << 22)).chain(around(300 - limit));
        for weight in all.chain(Taps::LARGEST - 600..=Taps::LARGEST) {
            let [low, middle, high] = signed_bytes(weight).map(i32::from);
            assert_eq!(low + (middle << 8) + (high << 16), weight);
            assert!(high == 0 || !Taps::NARROW.contains(&weight), "{weight}");
        }
    }
}
