//! Attention against its formula in f64, and in the order of its sums.
#![cfg(not(target_arch = "wasm32"))] // Its random cases want a source of randomness.

mod common;

use common::{assert_close, bits, offsets, values};
use isovec_kernels::{
    Activation, Arithmetic, Attention, AttentionRun, Columns, KernelError, OffsetBias, Scratch,
};
use proptest::prelude::*;

/// A batch and what is asked of it.
#[derive(Debug, Clone)]
struct Case {
    lengths: Vec<usize>,
    kv_heads: usize,
    group: usize,
    head_size: usize,
    reach: Option<usize>,
    causal: bool,
    bias: bool,
    seed: u64,
}

impl Case {
    fn heads(&self) -> usize {
        self.kv_heads * self.group
    }

    fn tokens(&self) -> usize {
        self.lengths.iter().sum()
    }

    fn positions(&self) -> usize {
        self.lengths.iter().max().map_or(1, |longest| longest + 3)
    }

    /// `[tokens, queries + keys + values]`.
    fn fused(&self) -> (Vec<f32>, usize) {
        let stride = (self.heads() + 2 * self.kv_heads) * self.head_size;
        let mut fused = values(self.seed, self.tokens() * stride);
        fused.iter_mut().for_each(|x| *x *= 3.0);
        (fused, stride)
    }

    fn biases(&self) -> Vec<f32> {
        values(self.seed + 1, self.heads() * (2 * self.positions() - 1))
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_size as f32).sqrt()
    }

    fn attention<'a>(&self, arithmetic: Arithmetic, biases: &'a [f32]) -> Attention<'a> {
        Attention {
            heads: self.heads(),
            kv_heads: self.kv_heads,
            head_size: self.head_size,
            scale: self.scale(),
            bias: self.bias.then_some(OffsetBias {
                values: biases,
                positions: self.positions(),
            }),
            relative: None,
            reach: self.reach,
            causal: self.causal,
            arithmetic,
        }
    }

    fn run(&self, arithmetic: Arithmetic) -> Vec<f32> {
        let (fused, stride) = self.fused();
        self.run_on(arithmetic, &fused, stride, &offsets(&self.lengths), 1)
    }

    fn run_on(
        &self,
        arithmetic: Arithmetic,
        fused: &[f32],
        stride: usize,
        offsets: &[usize],
        threads: usize,
    ) -> Vec<f32> {
        let (queries, keys) = (
            self.heads() * self.head_size,
            self.kv_heads * self.head_size,
        );
        let biases = self.biases();
        let mut out = vec![f32::NAN; offsets[offsets.len() - 1] * queries];
        let run = AttentionRun::new(
            self.attention(arithmetic, &biases),
            Columns::new(fused, stride, 0, queries),
            Columns::new(fused, stride, queries, keys),
            Columns::new(fused, stride, queries + keys, keys),
            offsets,
            &mut out,
        )
        .expect("no text is longer than the bias");
        assert_eq!(run.jobs(), (offsets.len() - 1) * self.heads());
        if threads == 1 {
            run.run(&mut Scratch::default());
        } else {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| run.run(&mut Scratch::default()));
                }
            });
        }
        assert!(!run.run_next(&mut Scratch::default()));
        out
    }

    /// Calls `query` with a token, a head, the keys it sees (as tokens), and the bias of each.
    fn for_each_query(&self, mut query: impl FnMut(usize, usize, &[usize], &[f32])) {
        let biases = self.biases();
        let offsets = offsets(&self.lengths);
        for text in offsets.windows(2) {
            for token in text[0]..text[1] {
                let seen: Vec<usize> = (text[0]..text[1])
                    .filter(|key| self.reach.is_none_or(|reach| key.abs_diff(token) <= reach))
                    .filter(|&key| !self.causal || key <= token)
                    .collect();
                for head in 0..self.heads() {
                    let row = head * (2 * self.positions() - 1) + self.positions() - 1;
                    let bias = |key: &usize| {
                        if self.bias {
                            biases[row + key - token]
                        } else {
                            0.0
                        }
                    };
                    let bias: Vec<f32> = seen.iter().map(bias).collect();
                    query(token, head, &seen, &bias);
                }
            }
        }
    }

    /// The formula in f64.
    fn exact(&self) -> Vec<f64> {
        let (fused, stride) = self.fused();
        let (heads, size) = (self.heads(), self.head_size);
        let mut out = vec![0.0; self.tokens() * heads * size];
        self.for_each_query(|token, head, seen, bias| {
            let kv = head / self.group;
            let at = |token: usize, column: usize| f64::from(fused[token * stride + column]);
            let scores: Vec<f64> = seen
                .iter()
                .zip(bias)
                .map(|(&key, &bias)| {
                    let dot: f64 = (0..size)
                        .map(|c| at(token, head * size + c) * at(key, (heads + kv) * size + c))
                        .sum();
                    dot / (size as f64).sqrt() + f64::from(bias)
                })
                .collect();
            let max = scores.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let weights: Vec<f64> = scores.iter().map(|score| libm::exp(score - max)).collect();
            let total: f64 = weights.iter().sum();
            for c in 0..size {
                let column = (heads + self.kv_heads + kv) * size + c;
                let sum: f64 = seen
                    .iter()
                    .zip(&weights)
                    .map(|(&key, weight)| weight * at(key, column))
                    .sum();
                out[(token * heads + head) * size + c] = sum / total;
            }
        });
        out
    }

    /// One multiplication and one addition after another, in the documented order.
    fn twin(&self) -> Vec<f32> {
        let (fused, stride) = self.fused();
        let (heads, size) = (self.heads(), self.head_size);
        let mut out = vec![0.0; self.tokens() * heads * size];
        let starts = offsets(&self.lengths);
        self.for_each_query(|token, head, seen, bias| {
            let kv = head / self.group;
            let at = |token: usize, column: usize| fused[token * stride + column];
            let begin = starts[starts.partition_point(|&begin| begin <= token) - 1];
            let mut weights: Vec<f32> = seen
                .iter()
                .zip(bias)
                .map(|(&key, &bias)| {
                    let mut sum = 0.0f32;
                    for c in 0..size {
                        let query = at(token, head * size + c) * self.scale();
                        sum += at(key, (heads + kv) * size + c) * query;
                    }
                    if self.bias { sum + bias } else { sum }
                })
                .collect();
            let max = weights.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
            weights.iter_mut().for_each(|weight| *weight -= max);
            Activation::Exp.apply(&mut weights);
            for weight in &mut weights {
                // What is subnormal is 0.
                *weight = if *weight < f32::MIN_POSITIVE {
                    0.0
                } else {
                    *weight
                };
            }
            let in_chunks = |length: usize, term: &dyn Fn(usize) -> f32| {
                let mut total = 0.0f32;
                let mut number = 0;
                while number < seen.len() {
                    let chunk = (seen[number] - begin) / length;
                    let mut sum = 0.0f32;
                    while number < seen.len() && (seen[number] - begin) / length == chunk {
                        sum += term(number);
                        number += 1;
                    }
                    total += sum;
                }
                total
            };
            let total = in_chunks(16, &|number| weights[number]);
            for c in 0..size {
                let column = (heads + self.kv_heads + kv) * size + c;
                let sum = in_chunks(256, &|number| at(seen[number], column) * weights[number]);
                out[(token * heads + head) * size + c] = sum / total;
            }
        });
        out
    }
}

fn cases() -> impl Strategy<Value = Case> {
    (
        prop::collection::vec(0usize..40, 1..4),
        1usize..3,
        1usize..3,
        1usize..40,
        prop::option::of(0usize..20),
        any::<[bool; 2]>(),
        0u64..1000,
    )
        .prop_map(
            |(lengths, kv_heads, group, head_size, reach, [causal, bias], seed)| Case {
                lengths,
                kv_heads,
                group,
                head_size,
                reach,
                causal,
                bias,
                seed,
            },
        )
}

fn long() -> Case {
    Case {
        lengths: vec![600, 1, 17],
        kv_heads: 1,
        group: 2,
        head_size: 32,
        reach: None,
        causal: false,
        bias: true,
        seed: 7,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_is_the_formula(case in cases()) {
        let exact = case.exact();
        assert_close(&case.run(Arithmetic::Fast), &exact, 2e-6);
        assert_close(&case.run(Arithmetic::Deterministic), &exact, 2e-6);
    }

    #[test]
    fn deterministic_sums_run_in_the_documented_order(case in cases()) {
        prop_assert_eq!(bits(&case.run(Arithmetic::Deterministic)), bits(&case.twin()));
    }

    #[test]
    fn a_text_alone_gives_the_same_bits(case in cases()) {
        for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
            let (fused, stride) = case.fused();
            let width = case.heads() * case.head_size;
            let together = case.run(arithmetic);
            let offsets = offsets(&case.lengths);
            // The biases are those of the batch, so that only the neighbours differ.
            for text in offsets.windows(2) {
                let own = &fused[text[0] * stride..text[1] * stride];
                let alone = case.run_on(arithmetic, own, stride, &[0, text[1] - text[0]], 1);
                prop_assert_eq!(bits(&alone), bits(&together[text[0] * width..text[1] * width]));
            }
        }
    }

    #[test]
    fn threads_do_not_change_a_bit(case in cases()) {
        let (fused, stride) = case.fused();
        let shared = case.run_on(Arithmetic::Fast, &fused, stride, &offsets(&case.lengths), 3);
        prop_assert_eq!(bits(&shared), bits(&case.run(Arithmetic::Fast)));
    }
}

#[test]
fn tokens_that_are_not_seen_see_the_others() {
    let case = Case {
        reach: None,
        causal: false,
        bias: false,
        lengths: vec![21, 4],
        ..long()
    };
    let seen = [5, 4];
    let (fused, stride) = case.fused();
    let (width, keys) = (
        case.heads() * case.head_size,
        case.kv_heads * case.head_size,
    );
    for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
        let offsets = offsets(&case.lengths);
        let mut out = vec![f32::NAN; case.tokens() * width];
        let run = AttentionRun::new(
            case.attention(arithmetic, &[]),
            Columns::new(&fused, stride, 0, width),
            Columns::new(&fused, stride, width, keys),
            Columns::new(&fused, stride, width + keys, keys),
            &offsets,
            &mut out,
        );
        let run = run.unwrap().seeing(&seen);
        run.run(&mut Scratch::default());
        // Each token in turn as the first of a text that has the keys that are seen, and no others.
        for (text, ends) in offsets.windows(2).enumerate() {
            for token in ends[0]..ends[1] {
                let mut own = fused[ends[0] * stride..][..seen[text] * stride].to_vec();
                own[..width].copy_from_slice(&fused[token * stride..][..width]);
                let alone = case.run_on(arithmetic, &own, stride, &[0, seen[text]], 1);
                assert_eq!(
                    bits(&out[token * width..][..width]),
                    bits(&alone[..width]),
                    "{token}"
                );
            }
        }
    }
}

#[test]
fn long_texts_are_summed_in_chunks() {
    for (reach, causal) in [
        (None, false),
        (Some(300), false),
        (Some(usize::MAX), false),
        (None, true),
        (Some(300), true),
    ] {
        let case = Case {
            reach,
            causal,
            ..long()
        };
        assert_close(&case.run(Arithmetic::Fast), &case.exact(), 2e-6);
        assert_eq!(
            bits(&case.run(Arithmetic::Deterministic)),
            bits(&case.twin())
        );
    }
}

#[test]
fn large_scores_do_not_overflow() {
    let q = [1e18f32, 1e18];
    let v = [1.0f32, 2.0];
    let mut out = [0.0; 2];
    let attention = Attention {
        heads: 1,
        kv_heads: 1,
        head_size: 1,
        scale: 1.0,
        bias: None,
        relative: None,
        reach: None,
        causal: false,
        arithmetic: Arithmetic::Fast,
    };
    let keys = [1e18f32, -1e18];
    let run = AttentionRun::new(
        attention,
        Columns::all(&q, 1),
        Columns::all(&keys, 1),
        Columns::all(&v, 1),
        &[0, 2],
        &mut out,
    )
    .unwrap();
    run.run(&mut Scratch::default());
    assert_eq!(out, [1.0, 1.0]);
}

#[test]
fn nan_stays_in_its_text() {
    let case = Case {
        lengths: vec![5, 6],
        reach: None,
        causal: false,
        ..long()
    };
    let (mut fused, stride) = case.fused();
    fused[2 * stride] = f32::NAN;
    let out = case.run_on(Arithmetic::Fast, &fused, stride, &[0, 5, 11], 1);
    let width = case.heads() * case.head_size;
    assert!(out[2 * width].is_nan());
    assert!(out[5 * width..].iter().all(|x| x.is_finite()));
}

#[test]
fn a_text_longer_than_the_bias_is_refused() {
    let case = long();
    let biases = case.biases();
    let (fused, stride) = case.fused();
    let mut attention = case.attention(Arithmetic::Fast, &biases);
    let short = &biases[..2 * (2 * 300 - 1)];
    attention.bias = Some(OffsetBias {
        values: short,
        positions: 300,
    });
    let offsets = offsets(&case.lengths);
    let mut out = vec![0.0; case.tokens() * 64];
    let error = AttentionRun::new(
        attention,
        Columns::new(&fused, stride, 0, 64),
        Columns::new(&fused, stride, 64, 32),
        Columns::new(&fused, stride, 96, 32),
        &offsets,
        &mut out,
    )
    .unwrap_err();
    assert_eq!(
        error,
        KernelError::TooLong {
            tokens: 600,
            positions: 300
        }
    );
}
