//! Layers and products of whole numbers in models of pictures: what the model computes of the user's pictures says how they are
//! scaled.

use isovec_engine::bundle::ModelBundle;
use isovec_model::precision::widened;
use isovec_optimize::OptimizeError;
use isovec_optimize::convolutions::{self, Convolutions, Ranges};
use isovec_optimize::int8::{Activations, Observed, Product, Products, check};

use super::OptimizeOptions;
use super::alone::original;
use super::int8::{how, quantised};
use super::pictures::{CALIBRATE, observe, some, value};
use crate::config::EmbeddingConfig;
use crate::error::{Error, Result};
use crate::model::Output;
use crate::pictures::Picture;

/// The model with layers and products of whole numbers, and what became of each.
pub(super) async fn make(
    bundle: &ModelBundle,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
    activations: Activations,
    output: Output,
) -> Result<(ModelBundle, Vec<Product>)> {
    check(bundle)?;
    // Weights in 16 bits are taken as well.
    let bundle = &widened(bundle);
    let layers = Convolutions::of(bundle)?;
    let products = match layers.any() {
        true => Products::of(bundle).ok(),
        false => Some(Products::of(bundle)?),
    };
    check_asked(bundle, options, activations, &layers, products.as_ref())?;
    let given = options.calibrating_pictures();
    let pictures = match activations {
        // Scales of each run need none.
        Activations::Dynamic if given.is_empty() => Vec::new(),
        _ => some(given, CALIBRATE)?,
    };
    // Products first: what becomes of them leaves the layers as they are.
    let (mut made, mut told, mut fault) = (bundle.clone(), Vec::new(), None);
    if let Some(products) = &products {
        let result = of_products(
            bundle,
            products,
            config,
            options,
            activations,
            output,
            &pictures,
        )
        .await;
        match result {
            Ok(result) => (made, told) = result,
            // The layers may be what can be in int8.
            Err(error) if layers.any() && is_unsuitable(&error) => fault = Some(error),
            Err(error) => return Err(error),
        }
    }
    if layers.any() && activations == Activations::Static {
        let result = of_layers(bundle, &made, &layers, config, options, output, &pictures).await;
        match result {
            Ok((with_layers, more)) => {
                made = with_layers;
                told.extend(more);
            }
            Err(error) if !told.is_empty() && is_unsuitable(&error) => {}
            Err(error) => return Err(error),
        }
    }
    match fault.filter(|_| told.is_empty()) {
        None => Ok((made, told)),
        Some(error) => Err(error),
    }
}

fn is_unsuitable(error: &Error) -> bool {
    matches!(error, Error::Optimize(OptimizeError::Unsuitable { .. }))
}

/// Refuses what these layers and products cannot do.
fn check_asked(
    bundle: &ModelBundle,
    options: &OptimizeOptions,
    activations: Activations,
    layers: &Convolutions,
    products: Option<&Products>,
) -> Result<()> {
    let unsuitable = |reason: String, hint: &str| {
        Err(OptimizeError::Unsuitable {
            origin: bundle.origin.clone(),
            reason,
            hint: hint.into(),
        }
        .into())
    };
    if products.is_none() && activations != Activations::Static {
        let reason = "its layers are convolutions, whose scales are not measured at each run";
        return unsuitable(reason.into(), "Use static scales (`--int8 static`)");
    }
    if products.is_none() && options.smooth.is_some() {
        let reason =
            "scales move into matrices of products (MatMul), and all its layers are convolutions";
        return unsuitable(reason.into(), "Leave smoothing out");
    }
    let named = |name: &&String| {
        let mut layers = layers.names();
        let mut products = products.into_iter().flat_map(Products::names);
        !layers.any(|other| other == **name) && !products.any(|other| other == **name)
    };
    match options.in_f32.iter().find(named) {
        Some(name) => unsuitable(
            format!("{name:?}, which is to stay in f32, is none of its layers and products"),
            "The report of products in int8 lists them",
        ),
        None => Ok(()),
    }
}

async fn of_products(
    bundle: &ModelBundle,
    products: &Products,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
    activations: Activations,
    output: Output,
    pictures: &[Picture],
) -> Result<(ModelBundle, Vec<Product>)> {
    let cancel = &options.watch.cancel;
    let mut observed = Observed::new(products);
    let probe = |bundle: &ModelBundle| products.probe(bundle);
    if !pictures.is_empty() {
        observe(bundle, probe, config, pictures, cancel, |run| {
            observed.add(products, |name| value(run, name))
        })
        .await?;
    }
    let mut how = how(options, activations);
    let kept = options.in_f32.iter();
    let kept = kept.filter(|name| products.names().any(|own| own == **name));
    how.kept = kept.cloned().collect();
    let seen = Some(&observed);
    quantised(bundle, products, seen, &how, config, options, output).await
}

/// `made` is what became of the model's products.
async fn of_layers(
    bundle: &ModelBundle,
    made: &ModelBundle,
    layers: &Convolutions,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
    output: Output,
    pictures: &[Picture],
) -> Result<(ModelBundle, Vec<Product>)> {
    let cancel = &options.watch.cancel;
    let mut ranges = Ranges::new(layers);
    let probe = |bundle: &ModelBundle| layers.probe(bundle);
    observe(bundle, probe, config, pictures, cancel, |run| {
        ranges.add(|name| value(run, name))
    })
    .await?;
    let bits = options.weight_bits();
    let result =
        convolutions::quantise(made, layers, &ranges, &options.in_f32, bits, cancel).await?;
    let (made, mut told) = result;
    if let Some(original) = original(bundle, config, options, output).await? {
        for layer in told.iter_mut().filter(|layer| layer.int8) {
            let one =
                convolutions::alone(bundle, layers, &ranges, bits, &layer.node, cancel).await?;
            layer.alone = original.alone(one).await?;
        }
    }
    Ok((made, told))
}
