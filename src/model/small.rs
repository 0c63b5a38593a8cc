//! Weights stored in f16 or int8: made at load where that was asked for, and kept on disk, so that
//! the next start reads the small form.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use isovec_engine::bundle::{BundleOptions, ModelBundle};
use isovec_engine::cancel::Cancel;
use isovec_engine::fingerprint::Precision;
use isovec_engine::{onnx, precision as weights};

use super::precision;
use crate::backend;
use crate::config::Dtype;
use crate::effective::EffectiveConfig;
use crate::error::{Error, Result};

/// The folder of kept models in isovec's own cache.
const FOLDER: &str = "weights";

/// Past this a model is two files, of which only one could take its name at a time.
const MAX_KEPT_BYTES: u64 = 2_000_000_000;

/// How a model's weights are stored, and why so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) precision: Precision,
    why: String,
}

impl Stored {
    pub(crate) fn note(&self, effective: &mut EffectiveConfig, asked: Option<Dtype>) {
        let asked = asked.filter(|&dtype| dtype != Dtype::Auto);
        effective.note("model.dtype", asked, self.precision, self.why.as_str());
    }
}

/// Whether a small form is kept in isovec's cache folder, and how it is read from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    No,
    Mapped,
    ReadIntoMemory,
}

/// Stores a bundle's weights as small as was asked for, unless they are already.
pub(crate) async fn store(
    bundle: ModelBundle,
    dtype: Option<Dtype>,
    keep: Keep,
    cancel: &Cancel,
) -> Result<(ModelBundle, Stored)> {
    let has = precision::of(&bundle);
    let as_it_is = |why: &str| Stored {
        precision: has,
        why: why.into(),
    };
    let asked = match dtype.and_then(Dtype::precision) {
        None => {
            let stored = as_it_is("as the model's file stores them");
            return Ok((bundle, stored));
        }
        Some(asked) if asked == has => {
            let stored = as_it_is("the model's file stores them so");
            return Ok((bundle, stored));
        }
        Some(asked) if coarseness(asked) < coarseness(has) => {
            let stored = as_it_is(
                "the model's file stores them so, and nothing brings back what that cut off",
            );
            return Ok((bundle, stored));
        }
        Some(asked) => asked,
    };
    let kept = match (keep, backend::cache_dir()) {
        (Keep::No, _) | (_, None) => None,
        (_, Some(cache)) => Some(Kept::within(&cache, &bundle, asked, keep)),
    };
    if let Some(kept) = &kept
        && let Some(small) = kept.read(&bundle)
    {
        let why = format!(
            "made of the model's file at an earlier start: {}",
            kept.path.display()
        );
        let precision = precision::of(&small);
        return Ok((small, Stored { precision, why }));
    }
    let narrowed = bundle.narrowed(asked, cancel).await?;
    for weight in &narrowed.weights {
        tracing::debug!(
            target: "isovec",
            "{} is stored in {}, relative error {:.5}",
            weight.name, weight.stored, weight.relative_error
        );
    }
    let small = narrowed.bundle;
    let reached = precision::of(&small);
    let why = if reached == asked {
        "made of the model's file at load"
    } else {
        "none of its weights can be stored smaller without losing too much"
    };
    let stored = Stored {
        precision: reached,
        why: why.into(),
    };
    let small = match &kept {
        Some(kept) if reached == asked => kept.write(&small).await?.unwrap_or(small),
        _ => small,
    };
    Ok((small, stored))
}

fn coarseness(precision: Precision) -> u8 {
    match precision {
        Precision::F32 => 0,
        Precision::F16 => 1,
        _ => 2,
    }
}

/// A model's small form on disk: its name holds everything that it depends on.
struct Kept {
    path: PathBuf,
    read_into_memory: bool,
}

impl Kept {
    fn within(cache: &Path, bundle: &ModelBundle, precision: Precision, keep: Keep) -> Self {
        let part = |hash: &str| hash.chars().take(32).collect::<String>();
        let name = format!(
            "{}-{}-{precision}-{}.onnx",
            part(&bundle.identity.0),
            part(&onnx::graph_identity(&bundle.graph)),
            weights::RULES
        );
        Self {
            path: cache.join(FOLDER).join(name),
            read_into_memory: keep == Keep::ReadIntoMemory,
        }
    }

    /// What was kept, if it was and is whole.
    fn read(&self, bundle: &ModelBundle) -> Option<ModelBundle> {
        if !self.path.is_file() {
            return None;
        }
        match self.open(bundle) {
            Ok(small) if small.identity == bundle.identity => Some(small),
            Ok(_) => {
                tracing::warn!(target: "isovec", "{} is of another model; making it anew", self.path.display());
                None
            }
            Err(error) => {
                tracing::warn!(target: "isovec", "{error}; making it anew");
                None
            }
        }
    }

    /// The graph and weights that were kept, with all else that belongs to the model.
    fn open(&self, bundle: &ModelBundle) -> Result<ModelBundle> {
        const NAME: &str = "model.onnx";
        let options = BundleOptions {
            onnx_file: Some(NAME.into()),
            read_into_memory: self.read_into_memory,
        };
        let file = [(NAME.to_owned(), self.path.clone())].into();
        let small = ModelBundle::from_files(file, &options)?;
        Ok(ModelBundle {
            graph: small.graph,
            weights: small.weights,
            identity: small.identity,
            ..bundle.clone()
        })
    }

    /// Keeps a small form and opens it, so that its weights are mapped and not made anew at every
    /// reading. `None` where it cannot be kept: that costs the next start its time, nothing else.
    async fn write(&self, small: &ModelBundle) -> Result<Option<ModelBundle>> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let weights = small.weights.weights().iter();
        let bytes: u64 = weights.map(|weight| weight.byte_len() as u64).sum();
        if bytes > MAX_KEPT_BYTES {
            return Ok(None);
        }
        // Another process, or another thread of this one, may be at the same.
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let partial = self
            .path
            .with_extension(format!("{}.{number}.partial", std::process::id()));
        let folder = self.path.parent().unwrap_or(&self.path);
        let written = match fs::create_dir_all(folder) {
            Ok(()) => onnx::export(small, &partial)
                .await
                .map(drop)
                .map_err(Error::from),
            Err(source) => Err(Error::io(folder, source)),
        };
        let named = written.and_then(|()| {
            fs::rename(&partial, &self.path).map_err(|source| Error::io(&self.path, source))
        });
        match named {
            Ok(()) => Ok(self.read(small)),
            Err(error) => {
                tracing::warn!(target: "isovec", "the small form of {} was not kept: {error}", small.origin);
                let _ = fs::remove_file(&partial);
                Ok(None)
            }
        }
    }
}
