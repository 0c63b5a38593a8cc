//! Tests that the comparison with the processor fails for kernels that are almost right. Each mutant is the real WGSL
//! with one mistake.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::sync::Arc;

use isovec_encoder::{NoTurns, Program};
use isovec_engine::cancel::Cancel;
use isovec_engine::description::describe;
use isovec_model::head::Pooling;
use isovec_test_models::bundles::bundle;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::deberta::deberta;
use isovec_test_models::models::{VOCABULARY, bert_of};

use crate::check::compare;
use crate::device::{Wanted, testing};
use crate::host::Alone;
use crate::limits::Limits;
use crate::model::Model;

/// What is wrong, where it stands, and what stands there instead.
type Mutant = (&'static str, &'static str, &'static str);

/// Of kernels that every device runs.
const PLAIN: [Mutant; 6] = [
    (
        "the last step of a product",
        "k < K; k++",
        "k + 1u < K; k++",
    ),
    ("no bias", "let y = sum + bias(column);", "let y = sum;"),
    (
        "sums of attention that do not shrink",
        "let shrink = exp(most - score);",
        "let shrink = 1.0f;",
    ),
    (
        "keys of other texts",
        "Seen(first_token(text), seen_until(text))",
        "Seen(0u, seen_until(text))",
    ),
    (
        "values of the next token",
        "let value = other * V_STRIDE",
        "let value = min(other + 1u, seen.end - 1u) * V_STRIDE",
    ),
    (
        "half of a row's sum",
        "for (var apart = THREADS / 2u;",
        "for (var apart = THREADS / 4u;",
    ),
];

/// Of those that are cut up for other numbers of rows. The comparison's texts have enough of them for small tiles, and
/// for nothing else by rule.
const TILED: [Mutant; 4] = [
    (
        "the last step of products without tiles",
        "sum0 += a0.w * w3;",
        "",
    ),
    (
        "the last step of a tile",
        "k < DEPTH; k++",
        "k + 1u < DEPTH; k++",
    ),
    (
        "the second columns of large tiles",
        "sum0_1 += a0.w * s1;",
        "",
    ),
    (
        "large tiles that end before they begin",
        "var sum0_1 = vec4<f32>();",
        "var sum0_1 = vec4<f32>(); if (rows > 0u) { return; }",
    ),
];

/// Of those that share by subgroups.
const BY_SUBGROUPS: [Mutant; 6] = [
    (
        "what one thread of a subgroup read",
        "subgroupShuffle(b0, place)",
        "subgroupShuffle(b0, 0u)",
    ),
    (
        "the first share for all values",
        "subgroupShuffle(share, place)",
        "subgroupShuffle(share, 0u)",
    ),
    (
        "keys behind the last",
        "let inside = start + rank < seen.end;",
        "let inside = true;",
    ),
    (
        "a largest score for each thread",
        "subgroupMax(select(-3.0e38f, score, inside))",
        "score",
    ),
    (
        "the first subgroup's sum for all",
        "all += branches[at];",
        "",
    ),
    (
        "the first columns of values",
        "values[value + first + 1u * lanes]",
        "values[value + first]",
    ),
];

/// Of terms of scores by one token's content and the distance of both.
const BY_DISTANCE: [Mutant; 3] = [
    (
        "distances the other way",
        "u + other - token]",
        "u + token - other]",
    ),
    (
        "no terms of queries",
        "sum += (*query)[i] * query_column(at + query_at);",
        "",
    ),
    (
        "no terms of keys",
        "sum += D(keys[key + i]) * key_column(at + key_at);",
        "",
    ),
];

#[test]
fn of_kernels_are_refused() {
    let model = bert_of(5, VOCABULARY, 160, 2);
    all_are_refused(&model, [&PLAIN, &TILED, &BY_SUBGROUPS]);
}

#[test]
fn of_terms_by_distance_are_refused() {
    all_are_refused(&deberta(), [&BY_DISTANCE, &[], &BY_DISTANCE]);
}

/// Mutants of kernels that every device runs, of those that are cut up, and of those that share by subgroups.
fn all_are_refused(model: &Checkpoint, [plain, tiled, by_subgroups]: [&[Mutant]; 3]) {
    let cancel = Cancel::new();
    let bundle = bundle(model, Stored::F32, Pooling::Mean);
    let description = describe(&bundle);
    let wanted = Wanted {
        software: true,
        subgroups: Some(true),
        ..Wanted::default()
    };
    pollster::block_on(async {
        let program = Program::read(&bundle, &cancel, &mut NoTurns).await.unwrap();
        let Some(device) = testing::device(&wanted).await else {
            return;
        };
        let has_f16 = device.limits.half;
        // With tiles, products are by subgroups only where that was measured to be faster.
        let mut kinds = vec![(None, false, plain), (None, true, tiled)];
        if device.limits.subgroups.is_some() {
            kinds.push((device.limits.subgroups, false, by_subgroups));
        }
        for (subgroups, tiles, mutants) in kinds {
            for half in [false, true].into_iter().filter(|half| !half || has_f16) {
                let limits = Limits {
                    half,
                    tiles,
                    subgroups,
                    ..device.limits
                };
                let load = async || {
                    let device = Arc::clone(&device);
                    Model::load(&bundle, &program, device, limits, &cancel, &mut Alone)
                        .await
                        .unwrap()
                };
                let compare = async |model: &Model| {
                    compare(model, &program, &bundle, &description, &Alone, &cancel).await
                };
                compare(&load().await).await.unwrap();
                for (name, written, instead) in mutants {
                    let mut model = load().await;
                    assert!(model.mutate(written, instead) > 0, "{name}: is not written");
                    let refused = compare(&model).await;
                    let error = refused.expect_err(name).to_string();
                    println!("f16 {half}, tiles {tiles}, {name}: {error}");
                    assert!(error.contains("wrong vectors"), "{name}: {error}");
                }
            }
        }
    });
}
