//! Runs models that cannot be lowered to a program on [tract](https://github.com/sonos/tract).
//!
//! It parses the small graph, lets tract optimise it while the large weights are only placeholders, and then reads
//! the weights one at a time into their final form. Batches are computed padded, every row as long as the longest.

mod fold;
mod groups;
mod panics;
mod parse;
mod pool;
mod run;
mod tensors;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::{EngineError, Result};
use std::sync::Arc;

use isovec_engine::description::{ModelDescription, ValueDescription};
use tract_onnx::prelude::{InferenceModelExt, TractError, TypedModel};

use crate::compiled::Compiled;
use crate::executor::Pacer;
use crate::guard;
use run::Plan;

/// Weights of at least this many bytes are read after optimisation, straight into the form that
/// the kernels want. Smaller ones (biases, norms) are constants from the start, so that the
/// optimiser can fuse them.
const DEFERRED_MIN_BYTES: usize = 64 << 10;

/// The version that the workspace pins.
const VERSION: &str = "tract 0.23.9";

/// Whether tract's table has an operator of that name.
pub(crate) fn knows(operator: &str) -> bool {
    thread_local! {
        static TABLE: tract_onnx::Onnx = tract_onnx::onnx();
    }
    TABLE.with(|table| table.op_register.0.contains_key(operator))
}

/// Loads a model.
///
/// # Errors
/// [`EngineError::InvalidModel`] for a graph that is broken or has what tract cannot do,
/// [`EngineError::Weight`] for a weight that is not what it was announced as, and
/// [`EngineError::Cancelled`].
pub(crate) async fn compile(
    bundle: &ModelBundle,
    description: &ModelDescription,
    threads: usize,
    cancel: &Cancel,
    pacer: &mut Pacer,
) -> Result<Arc<dyn Compiled>> {
    let model = load(bundle, cancel, pacer).await?;
    let names = |values: &[ValueDescription]| values.iter().map(|v| v.name.clone()).collect();
    let (inputs, outputs) = (names(&description.inputs), names(&description.outputs));
    let pool = pool::pool(threads)?;
    let splits = groups::independent(description);
    Ok(Arc::new(Plan::new(model, inputs, outputs, pool, splits)?))
}

/// Turns a bundle into an optimised model.
async fn load(bundle: &ModelBundle, cancel: &Cancel, pacer: &mut Pacer) -> Result<TypedModel> {
    let origin = bundle.origin.as_str();
    let parse::Parsed { model, deferred } = parse::parse(bundle).await?;
    pacer.pause().await;
    cancel.check()?;

    let mut model = phase(origin, "its types and shapes", || model.into_typed())?;
    pacer.pause().await;
    cancel.check()?;
    phase(origin, "its simplified form", || model.declutter())?;
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

#[cfg(test)]
mod tests {
    /// The version that is reported is the one that the workspace builds with.
    #[test]
    fn the_version_is_the_locked_one() {
        let lock = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
        let lock = std::fs::read_to_string(lock).unwrap();
        let (_, after) = lock
            .split_once("name = \"tract-core\"\nversion = \"")
            .unwrap();
        let locked = after.split('"').next().unwrap();
        assert_eq!(super::VERSION, format!("tract {locked}"));
    }
}
