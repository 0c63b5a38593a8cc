//! Pooling: the vectors of a text's tokens become one.
//!
//! Formulas: the sentence-transformers module `Pooling`, for texts without padding. Tokens are
//! added in order, each component by itself.

use crate::reduce::larger;
use crate::simd::multiversion;

/// How the vectors of a text's tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// The average.
    Mean,
    /// The first token's.
    Cls,
    /// The last token's.
    LastToken,
    /// The largest value of each component.
    Max,
    /// The average weighted by 1, 2, 3, ... along the text.
    WeightedMean,
    /// The sum divided by the square root of the number of tokens.
    MeanSqrtLen,
}

multiversion! {
    /// `[tokens, width]` to `[texts, width]`. A text without tokens gives zeros.
    ///
    /// `offsets` says where each text begins in `hidden` and, at the end, where the last one ends;
    /// some of a batch's texts are pooled by some of its offsets.
    ///
    /// # Panics
    /// When `width` is 0, `out` is not one row for every text, or a text ends before it begins or
    /// past `hidden`.
    pub fn pool(pooling: Pooling, hidden: &[f32], width: usize, offsets: &[usize], out: &mut [f32]) {
        let texts = offsets.len().saturating_sub(1);
        assert!(width > 0 && out.len() == texts * width, "{texts} texts to {} values in rows of {width}", out.len());
        for (text, out) in offsets.windows(2).zip(out.chunks_exact_mut(width)) {
            let tokens = &hidden[text[0] * width..text[1] * width];
            if tokens.is_empty() {
                out.fill(0.0);
                continue;
            }
            one(pooling, tokens, out);
        }
    }
}

/// One text of at least one token.
#[inline(always)]
fn one(pooling: Pooling, tokens: &[f32], out: &mut [f32]) {
    let width = out.len();
    let count = tokens.len() / width;
    let add = |out: &mut [f32]| {
        out.fill(0.0);
        for token in tokens.chunks_exact(width) {
            for (out, x) in out.iter_mut().zip(token) {
                *out += x;
            }
        }
    };
    match pooling {
        Pooling::Cls => out.copy_from_slice(&tokens[..width]),
        Pooling::LastToken => out.copy_from_slice(&tokens[(count - 1) * width..]),
        Pooling::Mean => {
            add(out);
            divide(out, count as f32);
        }
        Pooling::MeanSqrtLen => {
            add(out);
            divide(out, (count as f32).sqrt());
        }
        Pooling::Max => {
            out.copy_from_slice(&tokens[..width]);
            for token in tokens[width..].chunks_exact(width) {
                for (out, x) in out.iter_mut().zip(token) {
                    // A NaN that was seen is kept, and one that is new is taken.
                    *out = if out.is_nan() { *out } else { larger(*out, *x) };
                }
            }
        }
        Pooling::WeightedMean => {
            out.fill(0.0);
            let mut weight = 0.0;
            for token in tokens.chunks_exact(width) {
                weight += 1.0;
                for (out, x) in out.iter_mut().zip(token) {
                    *out += weight * x;
                }
            }
            divide(out, (count as f32) * (count as f32 + 1.0) / 2.0);
        }
    }
}

#[inline(always)]
fn divide(x: &mut [f32], by: f32) {
    for x in x {
        *x /= by;
    }
}
