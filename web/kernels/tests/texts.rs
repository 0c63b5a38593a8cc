//! What is computed text by text in a ragged batch: embeddings, rotary positions, pooling.
#![cfg(not(target_arch = "wasm32"))] // Its random cases want a source of randomness.

mod common;

use common::{assert_close, bits, offsets, values};
use isovec_kernels::{
    HeadColumns, Index, KernelError, Lookup, Norm, NormKind, Pooling, Rotary, Table, TableValues,
    embed, pool,
};
use proptest::prelude::*;

fn lengths() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..12, 1..5)
}

/// 1.0, 1.5, ... as binary16, `count` of them.
fn halves(count: usize) -> (Vec<u16>, Vec<f32>) {
    let bits: Vec<u16> = (0..count).map(|n| 0x3c00 + (n as u16 % 0x400)).collect();
    let values = bits
        .iter()
        .map(|bits| 1.0 + f32::from(bits - 0x3c00) / 1024.0)
        .collect();
    (bits, values)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn embeddings_are_sums_of_rows(
        lengths in lengths(), width in 1usize..40, with_norm in any::<bool>(),
        start in 0usize..20, seed in 0u64..1000,
    ) {
        let offsets = offsets(&lengths);
        let tokens = *offsets.last().unwrap();
        let start = start.min(tokens);
        let words = values(seed, 7 * width);
        let (position_bits, positions) = halves(14 * width);
        let types: Vec<i8> = (0..2 * width).map(|n| (n * 37 % 255) as u8 as i8).collect();
        let scales = [0.01, 0.02];
        let ids: Vec<i64> = (0..tokens as i64).map(|n| (n * 5 + 3) % 7).collect();
        let lookups = [
            Lookup { table: Table::new(TableValues::F32(&words), width), index: Index::Ids(&ids) },
            Lookup {
                table: Table::new(TableValues::F16(&position_bits), width),
                index: Index::Position { first: 2 },
            },
            Lookup {
                table: Table::new(TableValues::I8 { values: &types, scales: &scales }, width),
                index: Index::Row(1),
            },
        ];
        let gamma = values(seed + 1, width);
        let norm = Norm::new(NormKind::Layer, &gamma, None, 1e-12);
        let norm = with_norm.then_some(&norm);
        let mut out = vec![f32::NAN; tokens * width];
        embed(&lookups, &offsets, 0..tokens, norm, &mut out).unwrap();

        let mut expected = Vec::new();
        for text in offsets.windows(2) {
            for token in text[0]..text[1] {
                for c in 0..width {
                    let word = words[ids[token] as usize * width + c];
                    let position = positions[(token - text[0] + 2) * width + c];
                    let kind = f32::from(types[width + c]) * 0.02;
                    expected.push(word + position + kind);
                }
            }
        }
        if let Some(norm) = norm {
            norm.apply(&mut expected);
        }
        prop_assert_eq!(bits(&out), bits(&expected));

        let mut rest = vec![f32::NAN; (tokens - start) * width];
        embed(&lookups, &offsets, start..tokens, norm, &mut rest).unwrap();
        prop_assert_eq!(bits(&rest), bits(&expected[start * width..]));
    }

    #[test]
    fn rotary_positions_turn_pairs(
        lengths in lengths(), heads in 1usize..4, pairs in 1usize..20, unturned in 0usize..3,
        first in 0usize..5, start in 0usize..20, seed in 0u64..1000,
    ) {
        let offsets = offsets(&lengths);
        let tokens = *offsets.last().unwrap();
        let start = start.min(tokens);
        let head_size = 2 * pairs + unturned;
        let stride = first + heads * head_size + 1;
        let angles = values(seed, 12 * pairs);
        let cosine: Vec<f32> = angles.iter().map(|a| libm::cosf(*a)).collect();
        let sine: Vec<f32> = angles.iter().map(|a| libm::sinf(*a)).collect();
        let rotary = Rotary::new(&cosine, &sine, pairs);
        let columns = HeadColumns { stride, first, heads, head_size };
        let x = values(seed + 1, tokens * stride);
        let mut out = x.clone();
        rotary.turn(&mut out, columns, &offsets, 0..tokens).unwrap();

        let mut expected = x.clone();
        for text in offsets.windows(2) {
            for token in text[0]..text[1] {
                for head in 0..heads {
                    for pair in 0..pairs {
                        let at = token * stride + first + head * head_size + pair;
                        let (a, b) = (x[at], x[at + pairs]);
                        let angle = (token - text[0]) * pairs + pair;
                        expected[at] = a * cosine[angle] - b * sine[angle];
                        expected[at + pairs] = b * cosine[angle] + a * sine[angle];
                    }
                }
            }
        }
        prop_assert_eq!(bits(&out), bits(&expected));

        let mut rest = x[start * stride..].to_vec();
        rotary.turn(&mut rest, columns, &offsets, start..tokens).unwrap();
        prop_assert_eq!(bits(&rest), bits(&expected[start * stride..]));
    }

    #[test]
    fn pooling_is_its_formula(lengths in lengths(), width in 1usize..40, seed in 0u64..1000) {
        let offsets = offsets(&lengths);
        let hidden = values(seed, offsets.last().unwrap() * width);
        for pooling in [
            Pooling::Mean, Pooling::Cls, Pooling::LastToken, Pooling::Max, Pooling::WeightedMean,
            Pooling::MeanSqrtLen,
        ] {
            let mut out = vec![f32::NAN; lengths.len() * width];
            pool(pooling, &hidden, width, &offsets, &mut out);
            let mut exact = Vec::new();
            for text in offsets.windows(2) {
                let count = (text[1] - text[0]) as f64;
                for c in 0..width {
                    let column: Vec<f64> =
                        (text[0]..text[1]).map(|t| f64::from(hidden[t * width + c])).collect();
                    let weighted = |weight: &dyn Fn(usize) -> f64| -> f64 {
                        column.iter().enumerate().map(|(n, x)| weight(n) * x).sum()
                    };
                    let pooled = match pooling {
                        Pooling::Mean => weighted(&|_| 1.0) / count,
                        Pooling::Cls => column.first().copied().unwrap_or(0.0),
                        Pooling::LastToken => column.last().copied().unwrap_or(0.0),
                        Pooling::Max => column.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b)),
                        Pooling::WeightedMean => {
                            let total: f64 = (1..=column.len()).map(|n| n as f64).sum();
                            weighted(&|n| n as f64 + 1.0) / total
                        }
                        Pooling::MeanSqrtLen => weighted(&|_| 1.0) / count.sqrt(),
                    };
                    exact.push(if column.is_empty() { 0.0 } else { pooled });
                }
            }
            assert_close(&out, &exact, 5e-7);

            // The texts from the second on, by themselves.
            let mut rest = vec![f32::NAN; (lengths.len() - 1) * width];
            pool(pooling, &hidden, width, &offsets[1..], &mut rest);
            prop_assert_eq!(bits(&rest), bits(&out[width..]));
        }
    }
}

#[test]
fn the_largest_component_may_be_nan() {
    for at in 0..3 {
        let mut hidden = [1.0, 2.0, 3.0];
        hidden[at] = f32::NAN;
        let mut out = [0.0];
        pool(Pooling::Max, &hidden, 1, &[0, 3], &mut out);
        assert!(out[0].is_nan(), "NaN at {at}");
    }
}

#[test]
fn an_id_outside_its_table_is_named() {
    let values = [0.0; 6];
    for id in [-1, 3, i64::MAX, i64::MIN] {
        let lookup = Lookup {
            table: Table::new(TableValues::F32(&values), 2),
            index: Index::Ids(&[0, id]),
        };
        let mut out = [0.0; 4];
        let error = embed(&[lookup], &[0, 2], 0..2, None, &mut out).unwrap_err();
        let expected = KernelError::Id {
            lookup: 0,
            token: 1,
            id,
            rows: 3,
        };
        assert_eq!(error, expected);
        assert!(error.to_string().contains(&format!("id {id} of token 1")));
    }
}

#[test]
fn texts_past_the_last_position_are_refused() {
    let too_long = KernelError::TooLong {
        tokens: 3,
        positions: 2,
    };
    let values = [0.0; 8];
    let lookup = Lookup {
        table: Table::new(TableValues::F32(&values), 2),
        index: Index::Position { first: 2 },
    };
    let mut out = [0.0; 8];
    let result = embed(&[lookup], &[0, 1, 4], 0..4, None, &mut out);
    assert_eq!(result.unwrap_err(), too_long);

    let rotary = Rotary::new(&values[..2], &values[..2], 1);
    let columns = HeadColumns {
        stride: 2,
        first: 0,
        heads: 1,
        head_size: 2,
    };
    let result = rotary.turn(&mut out, columns, &[0, 1, 4], 0..4);
    assert_eq!(result.unwrap_err(), too_long);
    assert_eq!(out, [0.0; 8]);
}
