//! Makes a runnable model of a bundle.

use std::sync::Arc;

use isovec_encoder::CompileError;
#[cfg(not(feature = "tract"))]
use isovec_engine::EngineError;
use isovec_engine::Result;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::ModelDescription;
use isovec_engine::onnx::proto::NodeProto;
use isovec_kernels::Arithmetic;
#[cfg(any(feature = "conv", feature = "tract"))]
use isovec_model::precision::widened;

use crate::compiled::Compiled;
use crate::executor::Pacer;
use crate::settings::Settings;
use crate::{program, validate};

/// Compiles a bundle for our own kernels, as an encoder or as a convolutional network, or, where it
/// has what they cannot do and tract is compiled in, for tract.
///
/// # Errors
/// [`EngineError::InvalidModel`] for a graph that is broken, [`EngineError::UnsupportedOperator`]
/// for one with operators that are not known, [`EngineError::UnsupportedModel`] for one that uses
/// them in a way that is not, [`EngineError::Weight`] for a weight that is not what it was
/// announced as, and [`EngineError::Cancelled`].
pub(crate) async fn load(
    bundle: &ModelBundle,
    description: &ModelDescription,
    settings: &Settings,
    cancel: &Cancel,
    pacer: &mut Pacer,
) -> Result<Arc<dyn Compiled>> {
    validate::validate(bundle, &known)?;
    cancel.check()?;
    let arithmetic = match settings.deterministic {
        true => Arithmetic::Deterministic,
        false => Arithmetic::Fast,
    };
    let threads = (settings.threads, settings.cores);
    let encoder = isovec_encoder::Executable::compile(bundle, arithmetic, cancel, pacer);
    let why = match program::load(bundle, encoder, threads).await {
        Ok(program) => return Ok(program),
        Err(CompileError::Engine(error)) => return Err(error),
        Err(other) => other.to_string(),
    };
    // Kernels of convolutions take f32 weights, as tract's do.
    #[cfg(feature = "conv")]
    let whole = widened(bundle);
    #[cfg(feature = "conv")]
    let network = isovec_conv::Executable::compile(&whole, arithmetic, cancel, pacer);
    #[cfg(feature = "conv")]
    let why = match program::load(&whole, network, threads).await {
        Ok(program) => return Ok(program),
        Err(isovec_conv::CompileError::Engine(error)) => return Err(error),
        Err(isovec_conv::CompileError::Refused(isovec_conv::Refused::NoConvolution)) => why,
        Err(other) => format!("as an encoder: {why}; as a convolutional network: {other}"),
    };
    otherwise(bundle, description, settings, cancel, pacer, why).await
}

fn known(node: &NodeProto) -> bool {
    #[cfg(feature = "conv")]
    if isovec_conv::knows(node) {
        return true;
    }
    #[cfg(feature = "tract")]
    if crate::tract::knows(&node.op_type) {
        return true;
    }
    isovec_encoder::knows(node)
}

/// A model that has no program.
#[cfg(feature = "tract")]
async fn otherwise(
    bundle: &ModelBundle,
    description: &ModelDescription,
    settings: &Settings,
    cancel: &Cancel,
    pacer: &mut Pacer,
    why: String,
) -> Result<Arc<dyn Compiled>> {
    tracing::info!(
        origin = %bundle.origin,
        %why,
        "the model is not one of those that isovec's own kernels run; tract runs it, padded and slower"
    );
    // tract's kernels take f32 weights.
    let bundle = &widened(bundle);
    crate::tract::compile(bundle, description, settings.threads, cancel, pacer).await
}

#[cfg(not(feature = "tract"))]
async fn otherwise(
    bundle: &ModelBundle,
    _description: &ModelDescription,
    _settings: &Settings,
    _cancel: &Cancel,
    _pacer: &mut Pacer,
    why: String,
) -> Result<Arc<dyn Compiled>> {
    Err(EngineError::UnsupportedModel {
        origin: bundle.origin.clone(),
        reason: why,
        hint: "This build runs transformer encoders, and convolutional networks where it has the feature `conv`; its feature `tract`, which is the build `tract` in a page, runs other models too, and natively so do other engines"
            .into(),
    })
}
