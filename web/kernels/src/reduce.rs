//! Sums in one fixed order, whatever the width of the machine's registers.
//!
//! There are always 16 lanes: lane `i` adds the elements `i`, `i + 16`, ... in order, and the
//! lanes are added by a fixed tree.

/// The number of lanes.
pub const LANES: usize = 16;

/// The sum of `term` of every element.
#[inline(always)]
pub fn sum(x: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += term(x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane += term(x);
    }
    tree(lanes)
}

/// The largest element. The result is unspecified if some are NaN.
#[inline(always)]
pub fn max(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = larger(*lane, x);
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, larger)
}

/// The larger of two numbers, as one instruction of every target.
#[inline(always)]
pub fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// Lane `i` plus lane `i + 8`, then `i + 4`, `i + 2`, `i + 1`.
#[inline(always)]
fn tree(mut lanes: [f32; LANES]) -> f32 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0]
}
