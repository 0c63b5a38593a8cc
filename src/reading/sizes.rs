//! The engines of a network whose pictures have any size.
//!
//! ONNX Runtime runs one graph at all sizes. The portable engine wants to know every extent, so it loads the network once for each size,
//! and keeps the sizes that were used last.

use std::sync::{Arc, Mutex, PoisonError};

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::tensor::DType;
use isovec_model::onnx::builder::value_info;

use crate::config::RuntimeConfig;
use crate::error::Result;
use crate::fallback::Engines;

/// Height and width of a picture.
pub(super) type Size = (usize, usize);

/// Sizes that are kept: a page has lines of a few widths.
const KEPT: usize = 8;

/// The engines of a network.
#[derive(Debug)]
pub(super) enum Sizes {
    /// For pictures of every size, as many together as there are.
    Any(Arc<Engines>),
    /// For one picture of one size each.
    Each(Box<Each>),
}

#[derive(Debug)]
pub(super) struct Each {
    bundle: ModelBundle,
    config: RuntimeConfig,
    /// Those of the usual size.
    usual: Arc<Engines>,
    /// The latest last.
    kept: Mutex<Vec<(Size, Arc<Engines>)>>,
}

impl Sizes {
    /// Loads a network for all sizes, else for the usual one, and for others when they come.
    ///
    /// # Errors
    /// As [`Engines::load`].
    pub(super) async fn load(
        bundle: &ModelBundle,
        config: RuntimeConfig,
        usual: Size,
        cancel: &Cancel,
    ) -> Result<Self> {
        match Engines::load(bundle, &config, cancel).await {
            Ok(engines) => Ok(Self::Any(Arc::new(engines))),
            Err(
                error @ (EngineError::InvalidModel { .. }
                | EngineError::UnsupportedModel { .. }
                | EngineError::UnsupportedOperator { .. }),
            ) => {
                tracing::info!(
                    target: "isovec",
                    "{} is loaded again for each size of pictures: {error}", bundle.model_file
                );
                let engines = fixed(bundle, &config, usual, cancel).await?;
                Ok(Self::Each(Box::new(Each {
                    bundle: bundle.clone(),
                    config,
                    usual: Arc::clone(&engines),
                    kept: Mutex::new(vec![(usual, engines)]),
                })))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Those that stand for all.
    pub(super) fn usual(&self) -> &Engines {
        match self {
            Self::Any(engines) => engines,
            Self::Each(each) => &each.usual,
        }
    }

    /// Pictures that one run takes.
    pub(super) fn together(&self) -> usize {
        match self {
            Self::Any(_) => usize::MAX,
            Self::Each(_) => 1,
        }
    }

    /// Those for pictures of a size.
    ///
    /// # Errors
    /// As [`Engines::load`].
    pub(super) async fn of(&self, size: Size, cancel: &Cancel) -> Result<Arc<Engines>> {
        let each = match self {
            Self::Any(engines) => return Ok(Arc::clone(engines)),
            Self::Each(each) => each,
        };
        if let Some(engines) = each.take(size) {
            each.keep(size, &engines);
            return Ok(engines);
        }
        let engines = fixed(&each.bundle, &each.config, size, cancel).await?;
        each.keep(size, &engines);
        Ok(engines)
    }
}

impl Each {
    fn take(&self, size: Size) -> Option<Arc<Engines>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(has, _)| *has == size)?;
        Some(kept.remove(at).1)
    }

    fn keep(&self, size: Size, engines: &Arc<Engines>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Two calls may have loaded the same size.
        kept.retain(|(has, _)| *has != size);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((size, Arc::clone(engines)));
    }
}

/// The engines of a graph that reads one picture of one size.
async fn fixed(
    bundle: &ModelBundle,
    config: &RuntimeConfig,
    (high, wide): Size,
    cancel: &Cancel,
) -> Result<Arc<Engines>> {
    let mut bundle = bundle.clone();
    if let Some(graph) = &mut bundle.graph.graph {
        let dims = [1, 3, high, wide].map(Dim::Fixed);
        for input in &mut graph.input {
            *input = value_info(&input.name, DType::F32, &dims);
        }
        // What was said of values between was said of open extents.
        graph.value_info.clear();
    }
    Ok(Arc::new(Engines::load(&bundle, config, cancel).await?))
}
