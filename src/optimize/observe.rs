//! What a model computes of the user's texts or pictures.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, RunOutput};
use isovec_engine::tensor::Tensor;
use isovec_model::convert::adapters;
use isovec_optimize::OptimizeError;
use isovec_optimize::int4::{Moments, Sweep};
use isovec_tokenize::Limits;

#[cfg(feature = "image")]
use super::measure::spread;
#[cfg(feature = "image")]
use super::pictures;
use super::samples::Samples;
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::fallback::Engines;
use crate::model::feed::Feed;
use crate::model::reader::{Input, Reader};
use crate::model::{Prompt, Prompts, prepared};
use crate::sentence_transformers;

/// Texts that are tokenised at a time.
const WINDOW: usize = 256;

/// The longest text that is observed, where the model and the memory allow it.
const LONGEST: usize = 256;

/// Bytes that a run of the probe may give: longer texts are cut.
const RUN_BYTES: usize = 64 << 20;

/// Texts that moments are taken of, evenly from all of them: more change little, and take their time.
pub(super) const OBSERVED: usize = 2000;

/// Pictures that moments are taken of: each gives many rows.
#[cfg(feature = "image")]
const PICTURES: usize = 256;

/// Pixels of a value of a picture that are taken as rows, evenly from all of them: neighbours have much in common.
#[cfg(feature = "image")]
const PIXELS: usize = 64;

/// What the inputs of a sweep have in common over texts or pictures.
pub(super) async fn moments(
    bundle: &ModelBundle,
    sweep: &Sweep,
    config: &EmbeddingConfig,
    samples: &Samples,
    cancel: &Cancel,
) -> Result<Vec<Moments>> {
    let mut moments: Vec<Moments> = sweep
        .inputs()
        .map(|(_, width)| Moments::new(width))
        .collect();
    let seen = |run: &RunOutput| {
        for ((name, _), moments) in sweep.inputs().zip(&mut moments) {
            match run.output(name) {
                Some(values) => moments.add(&rows(values)?)?,
                None => moments.add(&[])?,
            }
        }
        Ok(())
    };
    match samples {
        Samples::Texts(texts) => {
            let (probe, bytes) = (sweep.probe(bundle), sweep.bytes_per_token());
            observe(bundle, &probe, bytes, config, texts, cancel, seen).await?;
        }
        #[cfg(feature = "image")]
        Samples::Pictures(pictures, _) => {
            let some = spread(pictures.clone(), PICTURES);
            let probe = |bundle: &ModelBundle| sweep.probe(bundle);
            pictures::observe(bundle, probe, config, &some, cancel, seen).await?;
        }
    }
    Ok(moments)
}

/// The rows of a value: its last axis, or the channels of `[n, channels, height, width]`, of some of the pixels.
fn rows(values: &Tensor) -> isovec_optimize::Result<Cow<'_, [f32]>> {
    let whole = values.as_slice::<f32>()?;
    #[cfg(feature = "image")]
    if let &[_, channels, height, width] = values.shape() {
        let pixels = height * width;
        let step = pixels.div_ceil(PIXELS).max(1);
        let pictures = whole.chunks_exact((channels * pixels).max(1));
        let rows = pictures.flat_map(|picture| {
            let some = (0..pixels).step_by(step);
            some.flat_map(move |pixel| (0..channels).map(move |at| picture[at * pixels + pixel]))
        });
        return Ok(rows.collect());
    }
    Ok(Cow::Borrowed(whole))
}

/// Runs a probe of a model on texts, one at a time and without padding, and hands on what each run gives. The probe gives so many bytes
/// for a token.
pub(super) async fn observe(
    bundle: &ModelBundle,
    probe: &ModelBundle,
    bytes_per_token: usize,
    config: &EmbeddingConfig,
    texts: &[String],
    cancel: &Cancel,
    mut seen: impl FnMut(&RunOutput) -> isovec_optimize::Result<()>,
) -> Result<()> {
    let said = texts.iter().map(|text| text.trim());
    let said: HashSet<&str> = said.filter(|text| !text.is_empty()).take(2).collect();
    if said.len() < 2 {
        return Err(OptimizeError::Texts(format!(
            "{} different text to calibrate with; give many, like those that will be embedded",
            said.len()
        ))
        .into());
    }
    let files = sentence_transformers::read(&bundle.origin, &bundle.files)?;
    let table = files.table.as_ref();
    let reader = Reader::read(&mut bundle.clone(), &Input::Texts, files.lowercase, table)?;
    let padding = reader.padding();
    let reader = reader.texts()?;
    let (lead, _) = Prompts::new(&files, &config.text).resolve(&Prompt::Default)?;
    // Texts go through without an adapter.
    let adapters = adapters(&bundle.graph).len();
    let longest = config
        .text
        .max_length
        .or(files.max_length.map(|(length, _)| length));
    let longest = longest.unwrap_or(LONGEST);
    let longest = longest.min(LONGEST).min(RUN_BYTES / bytes_per_token.max(1));
    let limits = Limits {
        max_tokens: Some(longest.max(reader.tokenizer.special_tokens_count() + 1)),
        truncation_side: reader.tokenizer.truncation_side(),
    };
    let engines = Engines::load(probe, &config.runtime, cancel).await?;
    let engine = Arc::clone(engines.current());
    let feed = Feed::new(&bundle.origin, engine.description(), padding, adapters)?;
    for window in texts.chunks(WINDOW) {
        let whole = window.iter().filter(|text| !text.trim().is_empty());
        let whole: Vec<_> = whole
            .map(|text| prepared(&lead, text, reader.lowercase))
            .collect();
        let whole: Vec<&str> = whole.iter().map(AsRef::as_ref).collect();
        let encodings = reader.tokenizer.encode(&whole, &limits)?;
        let encodings: Vec<_> = encodings
            .into_iter()
            .map(|text| reader.encoded(text))
            .collect();
        for place in (0..encodings.len()).filter(|&place| encodings[place].len() > 0) {
            cancel.check()?;
            let batch = feed.batch(&*engine, &encodings, &[place], Batch::default())?;
            let run = engine.run(batch, cancel).await?;
            seen(&run)?;
        }
    }
    Ok(())
}
