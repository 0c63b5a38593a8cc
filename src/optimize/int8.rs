//! Products of whole numbers: what the model computes of the user's texts says how they are scaled.

use isovec_engine::bundle::ModelBundle;
#[cfg(feature = "image")]
use isovec_model::pictures::PictureInput;
use isovec_model::precision::widened;
use isovec_optimize::int8::{
    Activations, Int8Options, Observed, Product, Products, alone, check, quantise,
};

use super::alone::original;
#[cfg(feature = "image")]
use super::int8_pictures;
use super::observe::observe;
use super::{OptimizeOptions, Step};
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::model::Output;

/// The model with products of whole numbers, and what became of each.
pub(super) async fn make(
    bundle: &ModelBundle,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
    activations: Activations,
    output: Output,
) -> Result<(ModelBundle, Vec<Product>)> {
    #[cfg(feature = "image")]
    if PictureInput::of(&bundle.graph).is_some() {
        return int8_pictures::make(bundle, config, options, activations, output).await;
    }
    let cancel = &options.watch.cancel;
    check(bundle)?;
    // Matrices in 16 bits are taken as well.
    let bundle = &widened(bundle);
    let products = Products::of(bundle)?;
    let texts = options.calibrating();
    let observed = match texts.is_empty() {
        true => None,
        false => {
            let mut observed = Observed::new(&products);
            let probe = products.probe(bundle);
            let bytes = products.bytes_per_token();
            observe(bundle, &probe, bytes, config, texts, cancel, |run| {
                observed.add(&products, |name| run.output(name)?.as_slice::<f32>().ok())
            })
            .await?;
            Some(observed)
        }
    };
    let mut how = how(options, activations);
    how.kept.clone_from(&options.in_f32);
    let seen = observed.as_ref();
    quantised(bundle, &products, seen, &how, config, options, output).await
}

/// How products become ones of whole numbers, but for those that stay in f32.
pub(super) fn how(options: &OptimizeOptions, activations: Activations) -> Int8Options {
    let mut how = Int8Options::new(activations);
    how.smooth = options.smooth;
    how.weights = options.weight_bits();
    how
}

/// The model with products of whole numbers, each of them looked at alone where that is asked for.
pub(super) async fn quantised(
    bundle: &ModelBundle,
    products: &Products,
    seen: Option<&Observed>,
    how: &Int8Options,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
    output: Output,
) -> Result<(ModelBundle, Vec<Product>)> {
    let cancel = &options.watch.cancel;
    let (made, mut told) = quantise(bundle, products, seen, how, cancel).await?;
    if let Some(original) = original(bundle, config, options, output).await? {
        for product in told.iter_mut().filter(|product| product.int8) {
            let one = alone(bundle, products, seen, how, &product.node, cancel).await?;
            product.alone = original.alone(one).await?;
        }
    }
    Ok((made, told))
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
