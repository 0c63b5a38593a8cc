//! Attention.

use std::cell::RefCell;

use arbitrary::{Result, Unstructured};
use isovec_kernels::{Arithmetic, Attention, AttentionRun, Columns, OffsetBias, Relative, Scratch};

use super::{Matrix, TINY, U, Values, close, extent, place, some, sum_off};
use crate::guarded::Guarded;

thread_local! {
    // Used again and again, as engines do: it holds what others left.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// A part of the columns of a matrix: others are before it and behind it.
struct Part {
    matrix: Matrix,
    first: usize,
    width: usize,
}

impl Part {
    fn new(
        u: &mut Unstructured<'_>,
        values: &mut Values,
        tokens: usize,
        width: usize,
    ) -> Result<Self> {
        let (first, behind) = (extent(u, 5)?, extent(u, 5)?);
        Ok(Self {
            matrix: Matrix::input(u, values, (tokens, first + width + behind), true)?,
            first,
            width,
        })
    }

    fn columns(&self) -> Columns<'_> {
        let Matrix { stride, values, .. } = &self.matrix;
        Columns::new(values.as_slice(), *stride, self.first, self.width)
    }

    fn at(&self, token: usize, column: usize) -> f64 {
        f64::from(self.matrix.at(token, self.first + column))
    }
}

/// Terms by the content of one token of a pair and the distance of both.
struct Terms {
    queries: Option<Guarded<f32>>,
    keys: Option<Guarded<f32>>,
    columns: usize,
    by_offset: Vec<u32>,
}

impl Terms {
    fn new(
        u: &mut Unstructured<'_>,
        values: &mut Values,
        (heads, size): (usize, usize),
        positions: usize,
    ) -> Result<Self> {
        let columns = some(u, 20)?;
        let mut side = |u: &mut Unstructured<'_>| -> Result<_> {
            Ok(match u.arbitrary()? {
                true => Some(Guarded::new(
                    place(u)?,
                    &values.many(heads * size * columns),
                )),
                false => None,
            })
        };
        let (queries, keys) = (side(u)?, side(u)?);
        let mut by_offset = vec![0; 2 * positions - 1];
        for column in &mut by_offset {
            *column = u.int_in_range(0..=columns as u32 - 1)?;
        }
        Ok(Self {
            queries,
            keys,
            columns,
            by_offset,
        })
    }

    fn asked(&self) -> Relative<'_> {
        Relative {
            queries: self.queries.as_ref().map(Guarded::as_slice),
            keys: self.keys.as_ref().map(Guarded::as_slice),
            columns: self.columns,
            by_offset: &self.by_offset,
        }
    }

    /// The term of one side and the sum of its products' magnitudes: `vector` is the token's, `ahead` how far the other is.
    fn term(
        &self,
        side: Option<&Guarded<f32>>,
        (head, size): (usize, usize),
        ahead: isize,
        vector: impl Fn(usize) -> f64,
    ) -> (f64, f64) {
        let Some(side) = side else {
            return (0.0, 0.0);
        };
        let middle = self.by_offset.len() / 2;
        let column = self.by_offset[middle.wrapping_add_signed(ahead)] as usize;
        let products = (0..size).map(|at| {
            let own = side.as_slice()[(head * size + at) * self.columns + column];
            vector(at) * f64::from(own)
        });
        products.fold((0.0, 0.0), |(sum, all), x| (sum + x, all + x.abs()))
    }
}

pub(super) fn attention(u: &mut Unstructured<'_>) -> Result<()> {
    let (kv_heads, group, size) = (some(u, 3)?, some(u, 3)?, some(u, 70)?);
    let heads = kv_heads * group;
    let mut lengths = vec![0_usize; extent(u, 5)?];
    for length in &mut lengths {
        *length = extent(u, 40)?;
    }
    if let Some(length) = lengths.first_mut()
        && u.int_in_range(0..=15)? == 0
    {
        // More keys than are added at a time.
        *length = u.int_in_range(200..=300)?;
    }
    let mut offsets = vec![0];
    for length in &lengths {
        offsets.push(offsets[offsets.len() - 1] + length);
    }
    let tokens = offsets[offsets.len() - 1];
    let size = if tokens > 100 { size.min(20) } else { size };
    let mut values = Values::even(u)?;
    let queries = Part::new(u, &mut values, tokens, heads * size)?;
    let keys = Part::new(u, &mut values, tokens, kv_heads * size)?;
    let held = Part::new(u, &mut values, tokens, kv_heads * size)?;
    let reach = match u.arbitrary()? {
        true => Some(extent(u, 20)?),
        false => None,
    };
    let causal = u.arbitrary()?;
    let positions = lengths.iter().max().map_or(1, |most| (*most).max(1)) + extent(u, 3)?;
    let biases = match u.arbitrary()? {
        true => Some(Guarded::new(
            place(u)?,
            &values.many(heads * (2 * positions - 1)),
        )),
        false => None,
    };
    // The kernel takes them only where every head has keys of its own.
    let terms = match group == 1 && u.arbitrary()? {
        true => Some(Terms::new(u, &mut values, (heads, size), positions)?),
        false => None,
    };
    let scale = 1.0 / (size as f32).sqrt();
    let out_place = place(u)?;
    for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
        let mut out = Guarded::new(out_place, &vec![f32::NAN; tokens * heads * size]);
        let asked = Attention {
            heads,
            kv_heads,
            head_size: size,
            scale,
            bias: biases.as_ref().map(|biases| OffsetBias {
                values: biases.as_slice(),
                positions,
            }),
            relative: terms.as_ref().map(Terms::asked),
            reach,
            causal,
            arithmetic,
        };
        let run = AttentionRun::new(
            asked,
            queries.columns(),
            keys.columns(),
            held.columns(),
            &offsets,
            out.as_mut_slice(),
        )
        .unwrap_or_else(|error| panic!("{error}"));
        SCRATCH.with_borrow_mut(|scratch| run.run(scratch));
        let what = format!("{arithmetic:?} {heads} heads of {size} on {kv_heads}, {lengths:?}");
        out.check(&what);
        for text in offsets.windows(2) {
            for token in text[0]..text[1] {
                for head in 0..heads {
                    let seen = (text[0]..text[1])
                        .filter(|key| reach.is_none_or(|reach| key.abs_diff(token) <= reach))
                        .filter(|&key| !causal || key <= token);
                    let bias = |key: usize| {
                        biases.as_ref().map_or(0.0, |biases| {
                            let row = head * (2 * positions - 1) + positions - 1;
                            f64::from(biases.as_slice()[row + key - token])
                        })
                    };
                    let kv = head / group * size;
                    let (mut scores, mut off) = (Vec::new(), 0.0_f64);
                    for key in seen {
                        let products = (0..size)
                            .map(|at| queries.at(token, head * size + at) * keys.at(key, kv + at));
                        let (sum, magnitudes) =
                            products.fold((0.0, 0.0), |(sum, all), x| (sum + x, all + x.abs()));
                        let (scale, bias) = (f64::from(scale), bias(key));
                        let mut score = sum * scale + bias;
                        let mut magnitudes = magnitudes * scale;
                        if let Some(terms) = &terms {
                            let ahead = key as isize - token as isize;
                            let query = |at| queries.at(token, head * size + at) * scale;
                            let of = (head, size);
                            let by_query = terms.term(terms.queries.as_ref(), of, ahead, query);
                            let by_key = terms
                                .term(terms.keys.as_ref(), of, -ahead, |at| keys.at(key, kv + at));
                            score += by_query.0 + by_key.0;
                            magnitudes += by_query.1 + by_key.1;
                        }
                        // One step more than the sum has: the query is scaled first. Two more are the terms by distance.
                        let own = sum_off(size + 4, magnitudes) + U * score.abs();
                        off = off.max(own);
                        scores.push((key, score));
                    }
                    let most = scores.iter().map(|(_, score)| *score);
                    let most = most.fold(f64::NEG_INFINITY, f64::max);
                    let farthest = scores.iter().map(|(_, score)| most - score);
                    let farthest = farthest.fold(0.0, f64::max);
                    // A weight: both scores may be off, their difference is rounded, e^x is within 1.5 ULP.
                    let weight_off = (2.0 * off + U * farthest + 3.0 * U).exp_m1();
                    let weights: Vec<(usize, f64)> = scores
                        .iter()
                        .map(|&(key, score)| (key, (score - most).exp()))
                        .collect();
                    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
                    for at in 0..size {
                        let products = weights
                            .iter()
                            .map(|&(key, weight)| weight * held.at(key, kv + at));
                        let (sum, magnitudes) =
                            products.fold((0.0, 0.0), |(sum, all), x| (sum + x, all + x.abs()));
                        let count = weights.len();
                        // Weights that would be subnormal are zeros: 2^-126 of values up to 8.
                        let lost = count as f64 * 1e-36 + count as f64 * TINY;
                        let relative = 2.0 * weight_off + 2.0 * sum_off(count + 2, 1.0);
                        let got = out.as_slice()[(token * heads + head) * size + at];
                        let where_ = || format!("{what}, token {token}, head {head}, value {at}");
                        close(
                            &where_,
                            got,
                            sum / total,
                            relative * magnitudes / total + lost,
                        );
                    }
                }
            }
        }
    }
    Ok(())
}
