//! Products of whole numbers: what the model computes of the user's texts says how they are scaled.

use std::collections::HashSet;
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Batch;
use isovec_model::precision::widened;
use isovec_optimize::OptimizeError;
use isovec_optimize::int8::{
    Activations, Int8Options, Observed, Product, Products, check, quantise,
};
use isovec_tokenize::Limits;

use super::{OptimizeOptions, Step};
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

/// The model with products of whole numbers, and what became of each.
pub(super) async fn make(
    bundle: &ModelBundle,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
    activations: Activations,
) -> Result<(ModelBundle, Vec<Product>)> {
    let cancel = &options.watch.cancel;
    check(bundle)?;
    // Matrices in 16 bits are taken as well.
    let bundle = &widened(bundle);
    let products = Products::of(bundle)?;
    let texts = match (&options.texts, &options.keep_tokens_of) {
        (texts, Some(kept)) if texts.is_empty() => kept,
        (texts, _) => texts,
    };
    let observed = match texts.is_empty() {
        true => None,
        false => Some(observe(bundle, &products, config, texts, cancel).await?),
    };
    let mut how = Int8Options::new(activations);
    how.smooth = options.smooth;
    how.kept.clone_from(&options.in_f32);
    Ok(quantise(bundle, &products, observed.as_ref(), &how, cancel).await?)
}

/// Runs the model on texts, one at a time and without padding, and looks at what its products read and give.
async fn observe(
    bundle: &ModelBundle,
    products: &Products,
    config: &EmbeddingConfig,
    texts: &[String],
    cancel: &Cancel,
) -> Result<Observed> {
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
    let (pad_id, pad_type_id) = reader.padding();
    let reader = reader.texts()?;
    let (prefix, _) = Prompts::new(&files, &config.text).resolve(&Prompt::Default)?;
    let longest = config
        .text
        .max_length
        .or(files.max_length.map(|(length, _)| length));
    let longest = longest.unwrap_or(LONGEST);
    let longest = longest
        .min(LONGEST)
        .min(RUN_BYTES / products.bytes_per_token().max(1));
    let limits = Limits {
        max_tokens: Some(longest.max(reader.tokenizer.special_tokens_count() + 1)),
        truncation_side: reader.tokenizer.truncation_side(),
    };
    let engines = Engines::load(&products.probe(bundle), &config.runtime, cancel).await?;
    let engine = Arc::clone(engines.current());
    let feed = Feed::new(&bundle.origin, engine.description(), pad_id, pad_type_id)?;
    let mut observed = Observed::new(products);
    for window in texts.chunks(WINDOW) {
        let whole = window.iter().filter(|text| !text.trim().is_empty());
        let whole: Vec<_> = whole
            .map(|text| prepared(&prefix, text, reader.lowercase))
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
            observed.add(products, |name| run.output(name)?.as_slice::<f32>().ok())?;
        }
    }
    Ok(observed)
}

/// What the report says of it.
pub(super) fn step(products: &[Product]) -> Step {
    if products.is_empty() {
        return Step::left_out("int8", "no products of whole numbers were asked for");
    }
    let count = products.iter().filter(|product| product.int8).count();
    let mut detail = format!("{count} of {} products and tables", products.len());
    let worst = products
        .iter()
        .filter(|product| product.int8 && product.sqnr.is_some());
    if let Some(worst) =
        worst.min_by(|a, b| f64::total_cmp(&a.sqnr.unwrap_or(0.0), &b.sqnr.unwrap_or(0.0)))
        && let Some(sqnr) = worst.sqnr
    {
        detail += &format!(
            "; {} has the least signal to noise, {sqnr:.1} dB",
            worst.node
        );
    }
    Step::done("int8", detail)
}
