//! Makes the model that a suggestion speaks of, in a folder of its own, for as long as it is tried.

use std::env;

use isovec::optimize::{Activations, OptimizeError, OptimizeOptions, config_of_result};
use isovec::{Dtype, Embedder, EmbeddingConfig, ModelSource, Result};
use isovec_engine::fresh::FreshFolder;

use super::remade::{Recipe, Scales, Sizes};
use super::trial::Trial;
use super::verify::load;
use crate::budget::io;

/// The engine that computes products of whole numbers as such.
const OF_PRODUCTS: &str = "onnxruntime";

/// A model that was made for a test. Its folder goes after it: systems keep files that a model has mapped.
pub(super) struct Made {
    pub(super) embedder: Embedder,
    pub(super) sizes: Sizes,
    _folder: FreshFolder,
}

/// Makes a model in the folder for temporary files, calibrated with these texts, and loads it under the baseline's configuration. After
/// an error nothing is left.
pub(super) async fn made(
    recipe: Recipe,
    source: &ModelSource,
    baseline: &Embedder,
    texts: Vec<String>,
    trial: &Trial,
) -> Result<Made> {
    suits(source, baseline)?;
    let parent = env::temp_dir();
    let folder = FreshFolder::new(&parent, "isovec-advise").map_err(|why| io(&parent, why))?;
    let place = folder.path().join("model");
    let options = options(recipe, texts, trial);
    let report = isovec::optimize(source.clone(), &place, config(baseline), options).await?;
    let own = config_of_result(baseline.config());
    let embedder = load(&ModelSource::from(&*place), own, trial).await?;
    suits(source, &embedder)?;
    Ok(Made {
        embedder,
        sizes: Sizes::new(report.before.bytes(), report.bytes),
        _folder: folder,
    })
}

fn options(recipe: Recipe, texts: Vec<String>, trial: &Trial) -> OptimizeOptions {
    let mut options = OptimizeOptions::default()
        .with_calibrate_with(texts)
        .without_comparison();
    options = match recipe.int8 {
        None => options,
        Some(Scales::Static) => options.with_int8(Activations::Static),
        Some(Scales::Dynamic) => options.with_int8(Activations::Dynamic),
    };
    match &trial.cancel {
        None => options,
        Some(cancel) => options.with_cancel(cancel.clone()),
    }
}

/// The configuration that the model is made under. Weights in f32 are what products in int8 are made of anyway, and a precision that is
/// asked for beside them is refused.
fn config(baseline: &Embedder) -> EmbeddingConfig {
    let mut config = baseline.config().clone();
    if matches!(config.model.dtype, Some(Dtype::F32 | Dtype::Auto)) {
        config.model.dtype = None;
    }
    config
}

/// Refuses another engine, whose times would say nothing of ONNX Runtime's.
fn suits(source: &ModelSource, embedder: &Embedder) -> Result<()> {
    let engine = &embedder.provider().engine;
    match engine == OF_PRODUCTS {
        true => Ok(()),
        false => Err(OptimizeError::Unsuitable {
            origin: source.to_string(),
            reason: format!("the engine {engine} computes here, and products in int8 are for ONNX Runtime"),
            hint: "Install ONNX Runtime, name its library in ORT_DYLIB_PATH, and load the model with engine = \"onnxruntime\"".into(),
        }
        .into()),
    }
}
