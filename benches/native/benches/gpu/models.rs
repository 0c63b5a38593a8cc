//! Models of the sizes that people load, with seeded weights: an encoder, a decoder and one of pictures.

use std::hint::black_box;
use std::sync::Arc;

use isovec_bench::{AnyError, Contestant, take_turns};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Batch, Engine, EngineFactory};
use isovec_model::convert::{Half, PatchGrid};
use isovec_model::head::Pooling;
use isovec_test_models::bundles;
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::full_size::{bert_base, qwen3_of};
use isovec_test_models::pictures::{self, clip_base_32};

use crate::{apart, cuda, load, outputs, text};

/// Layers of the decoder: all 28 are alike.
const LAYERS: usize = 7;

/// Texts and their tokens, and rounds.
const TEXTS: [(usize, usize, usize); 4] = [(1, 16, 40), (1, 128, 40), (1, 1024, 20), (32, 256, 10)];
/// An encoder takes 512 tokens.
const SHORTER: [(usize, usize, usize); 4] =
    [(1, 16, 40), (1, 128, 40), (1, 512, 20), (32, 256, 10)];
/// Pictures, and rounds.
const PICTURES: [(usize, usize); 3] = [(1, 40), (8, 40), (64, 10)];

pub(crate) fn all() -> Result<(), AnyError> {
    let bert = bundles::bundle(&bert_base(), Stored::F32, Pooling::Mean);
    let texts = |engine: &dyn Engine, sizes: [(usize, usize, usize); 4]| {
        let batches = sizes.map(|(rows, tokens, rounds)| {
            let name = format!("{rows} texts of {tokens} tokens");
            text(engine, rows, tokens).map(|batch| (name, batch, rounds))
        });
        batches.into_iter().collect()
    };
    one("BERT-base", &bert, |engine| texts(engine, SHORTER))?;
    drop(bert);
    let qwen = bundles::bundle(&qwen3_of(LAYERS), Stored::F32, Pooling::LastToken);
    let name = format!("{LAYERS} of the 28 layers of Qwen3-Embedding-0.6B");
    one(&name, &qwen, |engine| texts(engine, TEXTS))?;
    drop(qwen);
    let clip = bundles::half(&clip_base_32(), Stored::F32, Pooling::Cls, Half::Pictures);
    let grid = PatchGrid::of(&clip.graph).ok_or("the model has no grid of patches")?;
    one("CLIP's ViT-B/32", &clip, |_| {
        Ok(PICTURES
            .map(|(rows, rounds)| {
                let seen = seen(&grid, rows);
                let name = format!("{rows} pictures of 224 x 224");
                (name, pictures::batch(&grid, &seen), rounds)
            })
            .into())
    })
}

/// Rounds that do not count, and more.
const WARM_UP: usize = 5;

/// What engines are given, under its name, and how often.
type Runs = Vec<(String, Batch, usize)>;

/// A model on every engine that the machine has, those of one interface by turns.
fn one(
    name: &str,
    bundle: &ModelBundle,
    runs: impl Fn(&dyn Engine) -> Result<Runs, AnyError>,
) -> Result<(), AnyError> {
    let mut gpus: Vec<(&str, Arc<dyn Engine>)> = Vec::new();
    let mut software = false;
    for (way, f16) in [("webgpu, f32", false), ("webgpu, f16", true)] {
        let engine = load(bundle, f16, true)?;
        let gpu = engine.stats().gpu.unwrap_or_default();
        software = gpu.software;
        if gpu.f16 == f16 {
            gpus.push((way, Arc::new(engine)));
        }
    }
    let mut by_cuda: Vec<(&str, Arc<dyn Engine>)> = Vec::new();
    let (config, cancel) = (EngineConfig::default(), Cancel::new());
    if cuda(false).check(&config).is_ok() {
        for (way, tf32) in [("CUDA, f32", false), ("CUDA, TF32", true)] {
            let engine = pollster::block_on(cuda(tf32).load(bundle, &config, &cancel))?;
            by_cuda.push((way, engine));
        }
    }
    println!("{name}");
    let mut runs = runs(&*gpus[0].1)?;
    // Larger ones would take minutes.
    runs.truncate(if software { 1 } else { runs.len() });
    for (what, batch, rounds) in &runs {
        let rounds = if software { 2 } else { *rounds };
        println!("  {what}, {rounds} rounds:");
        for engines in [&gpus, &by_cuda] {
            let turns = engines.iter().map(|(name, engine)| -> Contestant<'_> {
                // A run takes its batch for good, and copying one is not measured.
                let mut copies: Vec<Batch> = (0..rounds + WARM_UP).map(|_| copy(batch)).collect();
                let run = move || {
                    let batch = copies.pop().unwrap_or_else(|| copy(batch));
                    drop(black_box(outputs(&**engine, batch)));
                };
                (name, Box::new(run))
            });
            print!("{}", take_turns(rounds, turns.collect()));
        }
        let reference = outputs(&*gpus[0].1, copy(batch))?;
        let rows = batch.row_lengths.len();
        for (name, engine) in gpus.iter().chain(&by_cuda).skip(1) {
            let l2 = apart(&reference, &outputs(&**engine, copy(batch))?, rows);
            println!("    {name}: L2 to {} at most {l2:.1e}", gpus[0].0);
        }
    }
    Ok(())
}

fn copy(batch: &Batch) -> Batch {
    Batch {
        inputs: batch.inputs.clone(),
        row_lengths: batch.row_lengths.clone(),
        ..Batch::default()
    }
}

/// Values of pictures whose colours differ from place to place.
fn seen(grid: &PatchGrid, rows: usize) -> Vec<Vec<f32>> {
    let (height, width) = grid.pixels();
    let many = 3 * height * width;
    let value = |row: usize, at: usize| ((at * 7919 + row * 104_729) % 1009) as f32 / 504.0 - 1.0;
    let picture = |row| (0..many).map(|at| value(row, at)).collect();
    (0..rows).map(picture).collect()
}
