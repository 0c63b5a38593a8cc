//! Every family of encoders becomes a program, which agrees with an independent implementation at
//! f64, gives a text the same bits in any company, and computes nothing for padding.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::sync::Arc;

use isovec_encoder::program::{NormKind, Op, Program, Reduction};
use isovec_encoder::{Executable, Pause, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Batch;
use isovec_engine::maybe_send::BoxFuture;
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::convert::{Half, PatchGrid};
use isovec_model::head::Pooling;
use isovec_test_models::bundles::{bundle, half};
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::reference::{last_hidden_state, mean_normalised};
use isovec_test_models::texts::{batch, texts};
use isovec_test_models::{decoders, models, pictures};

/// The largest difference of a component of a unit vector.
const BOUND: f64 = 1e-6;

struct Never;

impl Pause for Never {
    fn pause(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn executable(model: &Checkpoint, pooling: Pooling, arithmetic: Arithmetic) -> Arc<Executable> {
    compiled(&bundle(model, Stored::F32, pooling), arithmetic)
}

fn compiled(bundle: &ModelBundle, arithmetic: Arithmetic) -> Arc<Executable> {
    let (cancel, mut never) = (Cancel::new(), Never);
    let executable = Executable::compile(bundle, arithmetic, &cancel, &mut never);
    Arc::new(pollster::block_on(executable).unwrap())
}

fn run(executable: &Arc<Executable>, batch: &Batch, budget: Option<u64>) -> Vec<f32> {
    let values = all_of(executable, batch, budget);
    assert_eq!(values.len(), batch.rows() * models::HIDDEN);
    values
}

fn all_of(executable: &Arc<Executable>, batch: &Batch, budget: Option<u64>) -> Vec<f32> {
    let mut run = Run::new(Arc::clone(executable), batch).unwrap();
    while run.step(budget, &OneThread).unwrap().is_some() {}
    run.finish().remove(0).2
}

fn padding(model: &Checkpoint) -> i64 {
    model.config["pad_token_id"].as_i64().unwrap_or(0)
}

fn lengths(model: &Checkpoint) -> &'static [usize] {
    match model.config["model_type"].as_str() {
        // Far enough for the last buckets.
        Some("mpnet") => &[150, 1, 2, 9, 40],
        _ => &[64, 1, 2, 9, 33],
    }
}

fn agrees(name: &str, model: &Checkpoint) {
    let texts = texts(lengths(model));
    for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
        let executable = executable(model, Pooling::Mean, arithmetic);
        let together = run(&executable, &batch(&texts, padding(model)), None);
        for (text, found) in texts.iter().zip(together.chunks(models::HIDDEN)) {
            let wanted = mean_normalised(&last_hidden_state(model, &text.0, &text.1));
            for (found, wanted) in found.iter().zip(wanted) {
                let difference = (f64::from(*found) - wanted).abs();
                assert!(
                    difference <= BOUND,
                    "{name}, {arithmetic:?}: {difference:e}"
                );
            }
            let alone = run(&executable, &batch(std::slice::from_ref(text), 0), None);
            assert_eq!(alone, found, "{name}: a text alone and in company");
        }
        // However finely the work is cut.
        for budget in [1, 5_000] {
            let cut = run(&executable, &batch(&texts, padding(model)), Some(budget));
            assert_eq!(cut, together, "{name}: in pieces of {budget}");
        }
    }
}

#[test]
fn every_family_agrees_with_the_reference() {
    for (name, model) in models::all() {
        agrees(name, &model);
    }
}

#[test]
fn models_of_pictures_agree_with_the_reference() {
    let seen: Vec<Vec<f32>> = (0..3).map(pictures::picture).collect();
    for (name, model) in pictures::all() {
        let bundle = half(&model, Stored::F32, Pooling::Cls, Half::Pictures);
        let grid = PatchGrid::of(&bundle.graph).unwrap();
        for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
            let executable = compiled(&bundle, arithmetic);
            let together = all_of(&executable, &pictures::batch(&grid, &seen), None);
            let each = together.len() / seen.len();
            for (picture, found) in seen.iter().zip(together.chunks(each)) {
                let wanted = pictures::vector(&model, picture);
                assert_eq!(found.len(), wanted.len(), "{name}");
                for (found, wanted) in found.iter().zip(wanted) {
                    let difference = (f64::from(*found) - wanted).abs();
                    assert!(
                        difference <= BOUND,
                        "{name}, {arithmetic:?}: {difference:e}"
                    );
                }
                let alone = pictures::batch(&grid, std::slice::from_ref(picture));
                let alone = all_of(&executable, &alone, None);
                assert_eq!(alone, found, "{name}: a picture alone and in company");
            }
            let cut = all_of(&executable, &pictures::batch(&grid, &seen), Some(5_000));
            assert_eq!(cut, together, "{name}: in pieces");
        }
    }
}

#[test]
fn texts_of_models_of_pictures_agree_with_the_reference() {
    for (model, lengths) in [
        (pictures::clip(), &[pictures::POSITIONS, 1, 2, 9, 33][..]),
        (pictures::siglip(), &[pictures::FILLED; 3]),
    ] {
        let texts = texts(lengths);
        let bundle = half(&model, Stored::F32, Pooling::Cls, Half::Texts);
        for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
            let executable = compiled(&bundle, arithmetic);
            let together = all_of(&executable, &batch(&texts, 0), None);
            let each = together.len() / texts.len();
            for (text, found) in texts.iter().zip(together.chunks(each)) {
                let wanted = pictures::text_vector(&model, &text.0);
                assert_eq!(found.len(), wanted.len());
                for (found, wanted) in found.iter().zip(wanted) {
                    let difference = (f64::from(*found) - wanted).abs();
                    assert!(difference <= BOUND, "{arithmetic:?}: {difference:e}");
                }
                let alone = all_of(&executable, &batch(std::slice::from_ref(text), 0), None);
                assert_eq!(alone, found, "a text alone and in company");
            }
        }
    }
}

#[test]
fn a_picture_of_another_shape_is_refused() {
    let bundle = bundle(&pictures::vit(), Stored::F32, Pooling::Cls);
    let grid = PatchGrid::of(&bundle.graph).unwrap();
    let executable = compiled(&bundle, Arithmetic::Fast);
    let other = PatchGrid { side: 4, ..grid };
    let few = vec![vec![0.0; 3 * other.pixels().0 * other.pixels().1]];
    let error = Run::new(executable, &pictures::batch(&other, &few)).unwrap_err();
    assert!(error.to_string().contains("192"), "{error}");
}

#[test]
fn every_activation_agrees_with_the_reference() {
    for activation in ["gelu", "gelu_new", "quick_gelu", "relu", "silu"] {
        agrees(activation, &models::bert().with("hidden_act", activation));
    }
}

/// What exporters spread over many operators is one of ours again, and masks are gone.
#[test]
fn layers_are_fused() {
    let executable = executable(&models::bert(), Pooling::Mean, Arithmetic::Fast);
    let operators = executable.operators();
    let layer = "linear linear linear attention linear norm linear linear norm";
    let layers = models::bert().config["num_hidden_layers"].as_u64().unwrap() as usize;
    let all = operators.join(" ");
    assert_eq!(all.matches(layer).count(), layers, "{all}");
    let after = all.rsplit(layer).next().unwrap();
    assert!(!after.contains("linear"), "{after}");
}

#[test]
fn a_decoder_computes_no_score_of_what_follows() {
    let model = decoders::qwen3();
    let bundle = bundle(&model, Stored::F32, Pooling::LastToken);
    let (cancel, mut never) = (Cancel::new(), Never);
    let program = pollster::block_on(Program::read(&bundle, &cancel, &mut never)).unwrap();
    let mut attentions = 0;
    let mut norms = 0;
    for node in &program.nodes {
        match &node.op {
            Op::Attention(attention) => {
                attentions += 1;
                assert!(attention.causal && attention.bias.is_none() && attention.reach.is_none());
            }
            Op::Norm(norm) => {
                norms += 1;
                assert_eq!(norm.kind, NormKind::RootMeanSquare);
                assert!(norm.gamma.is_some());
            }
            // Nothing of a normalisation is left over.
            Op::Reduce {
                f: Reduction::Mean, ..
            } => panic!("a normalisation is computed in parts"),
            _ => {}
        }
    }
    // Of each layer two, and of queries and keys one each; the last one.
    assert_eq!((attentions, norms), (3, 4 * 3 + 1));
}

/// Windows are no tables, on either side of a token or behind it.
#[test]
fn windows_of_decoders_are_recognised() {
    for (model, causal, reaches) in [
        (
            decoders::gemma3(),
            false,
            [Some(6), Some(6), None, Some(6)].as_slice(),
        ),
        (decoders::mistral(), true, &[Some(11), Some(11)]),
        (decoders::qwen2(), true, &[None, Some(7), Some(7)]),
    ] {
        let bundle = bundle(&model, Stored::F32, Pooling::LastToken);
        let (cancel, mut never) = (Cancel::new(), Never);
        let program = pollster::block_on(Program::read(&bundle, &cancel, &mut never)).unwrap();
        let attention = program.nodes.iter().filter_map(|node| match &node.op {
            Op::Attention(attention) => Some(attention),
            _ => None,
        });
        let attention: Vec<_> = attention.collect();
        assert!(
            attention
                .iter()
                .all(|own| own.causal == causal && own.bias.is_none())
        );
        let found: Vec<_> = attention.iter().map(|own| own.reach).collect();
        assert_eq!(found, reaches);
    }
}

#[test]
fn every_pooling_has_a_program() {
    let model = models::bert();
    let texts = texts(&[7, 1, 12]);
    for pooling in [
        Pooling::Mean,
        Pooling::Cls,
        Pooling::LastToken,
        Pooling::Max,
        Pooling::WeightedMean,
        Pooling::MeanSqrtLen,
    ] {
        let executable = executable(&model, pooling, Arithmetic::Fast);
        let found = run(&executable, &batch(&texts, 0), None);
        for (text, found) in texts.iter().zip(found.chunks(models::HIDDEN)) {
            let rows = last_hidden_state(&model, &text.0, &text.1);
            let wanted = pooled(pooling, &rows);
            for (found, wanted) in found.iter().zip(wanted) {
                let difference = (f64::from(*found) - wanted).abs();
                assert!(difference <= BOUND, "{pooling:?}: {difference:e}");
            }
        }
    }
}

/// The formulas of sentence-transformers, at length 1. The factors of a mean fall out.
fn pooled(pooling: Pooling, rows: &[Vec<f64>]) -> Vec<f64> {
    let fold = |f: &dyn Fn(usize, f64, f64) -> f64, start: f64| -> Vec<f64> {
        let column = |at: usize| {
            let rows = rows.iter().enumerate();
            rows.fold(start, |sum, (row, values)| f(row, sum, values[at]))
        };
        (0..rows[0].len()).map(column).collect()
    };
    let vector = match pooling {
        Pooling::Cls => rows[0].clone(),
        Pooling::LastToken => rows[rows.len() - 1].clone(),
        Pooling::Max => fold(&|_, most, value| most.max(value), f64::NEG_INFINITY),
        Pooling::WeightedMean => fold(&|row, sum, value| sum + (row + 1) as f64 * value, 0.0),
        _ => fold(&|_, sum, value| sum + value, 0.0),
    };
    let norm = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
    vector.iter().map(|v| v / norm).collect()
}

/// Longer than its tables, and ids beyond them: refused, not a panic.
#[test]
fn what_does_not_fit_is_refused() {
    let model = models::bert();
    let executable = executable(&model, Pooling::Mean, Arithmetic::Fast);
    let most = executable.max_tokens().unwrap();
    let long = batch(&texts(&[most + 1]), 0);
    let refused = Run::new(Arc::clone(&executable), &long).unwrap_err();
    assert!(refused.to_string().contains(&most.to_string()), "{refused}");
    run(&executable, &batch(&texts(&[most]), 0), None);
    for id in [models::VOCABULARY as i64, -1, i64::MAX] {
        let bad = batch(&[(vec![1, id, 2], vec![0; 3])], 0);
        let refused = Run::new(Arc::clone(&executable), &bad).and_then(|mut run| {
            while run.step(None, &OneThread)?.is_some() {}
            Ok(())
        });
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(&id.to_string()), "{refused}");
    }
}
