//! From a bundle to something that runs: parse the small graph, let tract optimise it while the
//! large weights are only promised, then read the weights one at a time into their final form.

mod fold;
mod parse;
mod validate;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::{EngineError, Result};
use tract_onnx::prelude::{InferenceModelExt, TractError, TypedModel};

use crate::executor::Pacer;
use crate::{guard, ops};

/// Weights of at least this many bytes are read after optimisation, straight into the form that
/// the kernels want. Smaller ones (biases, norms) are constants from the start, so that the
/// optimiser can fuse them.
const DEFERRED_MIN_BYTES: usize = 64 << 10;

/// Turns a bundle into an optimised model.
///
/// # Errors
/// [`EngineError::InvalidModel`] for a graph that is broken, [`EngineError::UnsupportedOperator`]
/// for one that tract does not know, [`EngineError::Weight`] for a weight that is not what it
/// was announced as, and [`EngineError::Cancelled`].
pub(crate) async fn load(
    bundle: &ModelBundle,
    cancel: &Cancel,
    pacer: &mut Pacer,
) -> Result<TypedModel> {
    let origin = bundle.origin.as_str();
    validate::validate(bundle)?;
    cancel.check()?;
    let parse::Parsed { model, deferred } = parse::parse(bundle).await?;
    pacer.pause().await;
    cancel.check()?;

    let mut model = phase(origin, "its types and shapes", || model.into_typed())?;
    pacer.pause().await;
    cancel.check()?;
    phase(origin, "its simplified form", || {
        model.declutter()?;
        ops::substitute(&mut model)
    })?;
    pacer.pause().await;
    cancel.check()?;
    phase(origin, "its kernels", || model.optimize())?;

    let mut model = fold::fold(model, bundle, &deferred, cancel, pacer).await?;
    pacer.pause().await;
    cancel.check()?;
    // Again, now that the weights are constants: matmuls take theirs in.
    phase(origin, "its final form", || model.optimize())?;
    Ok(model)
}

/// Runs one of tract's phases; its failures and panics are the model's fault, in tract's words.
fn phase<T>(
    origin: &str,
    finding: &'static str,
    work: impl FnOnce() -> Result<T, TractError>,
) -> Result<T> {
    let detail = match guard::catch(work) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => format!("{error:#}"),
        Err(panic) => panic,
    };
    Err(EngineError::invalid_model(
        origin,
        format!("tract cannot find {finding}: {detail}"),
    ))
}
