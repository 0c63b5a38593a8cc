//! Attention with terms by one token's content and the distance of both, against its formula in f64.

mod common;

use common::{assert_close, bits, offsets, values};
use isovec_kernels::{
    Arithmetic, Attention, AttentionRun, Columns, KernelError, Relative, Scratch,
};

const HEADS: usize = 3;
const COLUMNS: usize = 23;
const POSITIONS: usize = 90;
const SCALE: f32 = 0.3;

/// Texts shorter and longer than what is computed at once.
const LENGTHS: [usize; 7] = [1, 2, 7, 16, 33, 0, 90];

/// What is asked for.
#[derive(Debug, Clone, Copy)]
struct Case {
    size: usize,
    of_queries: bool,
    of_keys: bool,
    /// Whether columns follow the offsets, and not one another as they like.
    ordered: bool,
    /// Tokens at the end of each text that are no keys.
    unseen: usize,
}

impl Case {
    fn by_offset(self) -> Vec<u32> {
        let middle = (COLUMNS / 2) as i64;
        let column = |offset: i64| match self.ordered {
            // Near offsets by themselves, far ones together.
            true => (offset.abs().min(8) + (offset.abs() - 8).clamp(0, 30) / 10) * offset.signum(),
            false => (offset * 7).rem_euclid(COLUMNS as i64) - middle,
        };
        let offsets = 1 - POSITIONS as i64..POSITIONS as i64;
        offsets
            .map(|offset| (middle + column(offset)) as u32)
            .collect()
    }

    fn tables(self) -> [Vec<f32>; 2] {
        [51, 52].map(|seed| values(seed, HEADS * self.size * COLUMNS))
    }

    fn seen(self) -> Vec<usize> {
        let seen = LENGTHS
            .iter()
            .map(|&length| length.saturating_sub(self.unseen).max(1).min(length));
        seen.collect()
    }

    fn run(
        self,
        arithmetic: Arithmetic,
        lengths: &[usize],
        fused: &[f32],
        seen: &[usize],
    ) -> Vec<f32> {
        let (tables, by_offset) = (self.tables(), self.by_offset());
        let hidden = HEADS * self.size;
        let offsets = offsets(lengths);
        let mut out = vec![f32::NAN; offsets[lengths.len()] * hidden];
        let attention = Attention {
            heads: HEADS,
            kv_heads: HEADS,
            head_size: self.size,
            scale: SCALE,
            bias: None,
            relative: Some(Relative {
                queries: self.of_queries.then_some(&tables[0]),
                keys: self.of_keys.then_some(&tables[1]),
                columns: COLUMNS,
                by_offset: &by_offset,
            }),
            reach: None,
            causal: false,
            arithmetic,
        };
        let part = |number: usize| Columns::new(fused, 3 * hidden, number * hidden, hidden);
        AttentionRun::new(attention, part(0), part(1), part(2), &offsets, &mut out)
            .expect("no text is longer than the offsets")
            .seeing(seen)
            .run(&mut Scratch::default());
        out
    }

    fn exact(self, fused: &[f32]) -> Vec<f64> {
        let (tables, by_offset) = (self.tables(), self.by_offset());
        let hidden = HEADS * self.size;
        let mut out = Vec::new();
        let mut begin = 0;
        for (&length, seen) in LENGTHS.iter().zip(self.seen()) {
            for from in 0..length {
                for head in 0..HEADS {
                    let number = |part: usize, token: usize, i: usize| {
                        f64::from(
                            fused[((begin + token) * 3 + part) * hidden + head * self.size + i],
                        )
                    };
                    let scores: Vec<f64> = (0..seen)
                        .map(|to| {
                            let column = by_offset[POSITIONS - 1 + to - from] as usize;
                            let back = by_offset[POSITIONS - 1 + from - to] as usize;
                            let entry = |table: &[f32], i: usize, column: usize| {
                                f64::from(table[(head * self.size + i) * COLUMNS + column])
                            };
                            (0..self.size)
                                .map(|i| {
                                    let query = f64::from(SCALE) * number(0, from, i);
                                    let key = number(1, to, i);
                                    let mut term = query * key;
                                    if self.of_queries {
                                        term += query * entry(&tables[0], i, column);
                                    }
                                    if self.of_keys {
                                        term += key * entry(&tables[1], i, back);
                                    }
                                    term
                                })
                                .sum()
                        })
                        .collect();
                    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let shares: Vec<f64> =
                        scores.iter().map(|score| (score - most).exp()).collect();
                    let total: f64 = shares.iter().sum();
                    out.extend((0..self.size).map(|i| {
                        let values = shares.iter().enumerate();
                        values
                            .map(|(to, share)| share / total * number(2, to, i))
                            .sum::<f64>()
                    }));
                }
            }
            begin += length;
        }
        out
    }
}

#[test]
fn terms_are_those_of_the_formula() {
    for (of_queries, of_keys) in [(true, true), (true, false), (false, true)] {
        for (size, ordered, unseen) in [(8, true, 0), (7, true, 5), (32, false, 0), (1, false, 20)]
        {
            let case = Case {
                size,
                of_queries,
                of_keys,
                ordered,
                unseen,
            };
            let tokens: usize = LENGTHS.iter().sum();
            let fused = values(50, tokens * 3 * HEADS * size);
            let exact = case.exact(&fused);
            for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
                let together = case.run(arithmetic, &LENGTHS, &fused, &case.seen());
                assert_close(&together, &exact, 2e-6);
                // A text has the same bits alone.
                let first = tokens - LENGTHS[LENGTHS.len() - 1];
                let width = HEADS * size;
                let seen = &case.seen()[LENGTHS.len() - 1..];
                let alone = case.run(arithmetic, &LENGTHS[6..], &fused[first * 3 * width..], seen);
                assert_eq!(bits(&alone), bits(&together[first * width..]), "{case:?}");
            }
        }
    }
}

#[test]
fn a_text_that_is_longer_than_the_offsets_is_refused() {
    let by_offset = [0u32; 5];
    let table = [0.0f32; 2];
    let attention = Attention {
        heads: 1,
        kv_heads: 1,
        head_size: 2,
        scale: 1.0,
        bias: None,
        relative: Some(Relative {
            queries: Some(&table),
            keys: None,
            columns: 1,
            by_offset: &by_offset,
        }),
        reach: None,
        causal: false,
        arithmetic: Arithmetic::Fast,
    };
    let values = [0.0f32; 8];
    let mut out = [0.0f32; 8];
    let all = Columns::all(&values, 2);
    let error = AttentionRun::new(attention, all, all, all, &[0, 4], &mut out).unwrap_err();
    assert!(matches!(error, KernelError::TooLong { .. }), "{error}");
}
