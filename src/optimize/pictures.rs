//! Models of pictures: what they compute of the user's pictures, and what changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::{Dim, describe_value};
use isovec_engine::engine::{Batch, RunOutput};
use isovec_image::ReadOptions;
use isovec_model::convert::Half;
use isovec_model::pictures::PictureInput;
use isovec_optimize::OptimizeError;
use serde::Deserialize;

use super::OptimizeOptions;
use super::measure::{both, config_of_result, spread};
use super::picture_rows::PictureRows;
use super::report::{Quality, Speed};
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::fallback::Engines;
use crate::model::feed::Feed;
use crate::model::{Output, Purpose, complete, frame};
use crate::pictures::{Picture, PictureReader};
use crate::source::ModelSource;

/// Pictures that are observed and compared, evenly from all of them.
const COMPARED: usize = 1000;

/// What pictures that are observed are for.
pub(super) const CALIBRATE: &str = "calibrate";

/// The output of a classifier, where its exporter named it.
const LOGITS: &str = "logits";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    id2label: BTreeMap<String, serde_json::Value>,
}

/// What a model of pictures is prepared for.
pub(super) fn purpose(output: Output) -> Purpose {
    Purpose {
        half: Half::Pictures,
        ..super::purpose(output)
    }
}

/// What a model of pictures is to give; `None`: it reads texts.
///
/// # Errors
/// [`OptimizeError::Unsuitable`] for texts that such a model is to read; those of [`frame::input`] for pictures that another is to
/// read; for a classifier, those of a pooling, a normalisation and a dimension.
pub(super) async fn asked_output(
    bundle: &ModelBundle,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
    cancel: &Cancel,
) -> Result<Option<Output>> {
    if options.has_pictures() {
        frame::input(bundle)?;
    }
    if PictureInput::of(&bundle.graph).is_none() {
        return Ok(None);
    }
    if !options.calibrating().is_empty() {
        return Err(OptimizeError::Unsuitable {
            origin: bundle.origin.clone(),
            reason: "it reads pictures, and texts were given".into(),
            hint: "Give pictures (`--images`)".into(),
        }
        .into());
    }
    let output = output(bundle);
    if output == Output::AsFile {
        // No head is added, so what asks for one is refused as a load of the result would.
        let mut plain = config.clone();
        plain.model.dtype = None;
        complete(bundle.clone(), &plain, purpose(Output::Labels), cancel).await?;
    }
    Ok(Some(output))
}

/// A classifier keeps its own outputs, so that it gives labels and features afterwards as before. All others give vectors.
fn output(bundle: &ModelBundle) -> Output {
    let config = bundle.files.get("config.json");
    let config: Config = config
        .and_then(|config| serde_json::from_slice(config).ok())
        .unwrap_or_default();
    let labels = config.id2label.len();
    let mut outputs = bundle.graph.graph.iter().flat_map(|graph| &graph.output);
    let labelled = outputs.any(|output| {
        let output = describe_value(output);
        let counted = match output.dims.as_deref() {
            Some([_, Dim::Fixed(count)]) => *count == labels,
            _ => false,
        };
        output.name == LOGITS || counted
    });
    match labelled {
        true => Output::AsFile,
        false => Output::Vectors,
    }
}

/// The pictures that a model is observed or compared on: at most 1,000, taken evenly from all of them. `what_for` says which, for the
/// error.
///
/// # Errors
/// [`OptimizeError::Texts`] for fewer than 2.
pub(super) fn some(pictures: &[Picture], what_for: &str) -> Result<Vec<Picture>> {
    match pictures.len() {
        0 | 1 => Err(OptimizeError::Texts(format!(
            "{} picture to {what_for} with; give many, like those that the model will see",
            pictures.len()
        ))
        .into()),
        _ => Ok(spread(pictures.to_vec(), COMPARED)),
    }
}

/// The pictures that models are compared on: at most 1,000, taken evenly from all of them.
///
/// # Errors
/// [`OptimizeError::Texts`] for fewer than 2.
pub fn comparable_pictures(pictures: &[Picture]) -> Result<Vec<Picture>> {
    some(pictures, "compare")
}

/// Runs a probe of a model on pictures, one at a time, and hands on what each run gives; [`value`] has what it read as well.
pub(super) async fn observe(
    bundle: &ModelBundle,
    probe: impl FnOnce(&ModelBundle) -> ModelBundle,
    config: &EmbeddingConfig,
    pictures: &[Picture],
    cancel: &Cancel,
    mut seen: impl FnMut(&RunOutput) -> isovec_optimize::Result<()>,
) -> Result<()> {
    let mut fixed = bundle.clone();
    let reader = PictureReader::read(&mut fixed, &ReadOptions::default())?;
    let engines = Engines::load(&probe(&fixed), &config.runtime, cancel).await?;
    let engine = Arc::clone(engines.current());
    let feed = Feed::new(&bundle.origin, engine.description(), (0, 0), 0)?;
    for (place, picture) in pictures.iter().enumerate() {
        cancel.check()?;
        let encoded = reader.encode(picture);
        encoded.check(place)?;
        let batch = feed.batch(&*engine, &[encoded], &[0], Batch::default())?;
        let run = engine.run(batch, cancel).await?;
        seen(&run)?;
    }
    Ok(())
}

/// A value of a run: one that it gave, or one that it read.
pub(super) fn value<'r>(run: &'r RunOutput, name: &str) -> Option<&'r [f32]> {
    let mut inputs = run.inputs.iter();
    let input = inputs.find(|input| *input.name == *name);
    let tensor = run.output(name).or(input.map(|input| &input.tensor))?;
    tensor.as_slice::<f32>().ok()
}

/// Loads both and compares them on pictures: vectors, or the logits of a classifier.
pub(super) async fn compare(
    original: ModelSource,
    result: ModelSource,
    config: &EmbeddingConfig,
    output: Output,
    pictures: &[Picture],
    cancel: &Cancel,
) -> Result<(Quality, Speed)> {
    let pictures = comparable_pictures(pictures)?;
    let own = config_of_result(config);
    let mut plain = config.clone();
    plain.model.dtype = None;
    let before = PictureRows::of(original, &plain, output, cancel).await?;
    let after = PictureRows::of(result, &own, output, cancel).await?;
    let rows = |model: PictureRows| {
        let cancel = cancel.clone();
        move |pictures| model.rows(pictures, &cancel)
    };
    both(&pictures, rows(before), rows(after)).await
}
