//! Models' weights in f16 or int8, as files of isovec's own cache.

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::fingerprint::Precision;
use isovec_engine::onnx::graph_identity;
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::{onnx, precision as weights};

use super::cache_dir;
use crate::config::EmbeddingConfig;
use crate::error::{Error, Result};

/// Past this a model is two files, of which only one could take its name at a time.
const MAX_KEPT_BYTES: u64 = 2_000_000_000;

/// Where small forms are kept, and how they are read from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keep {
    pub(crate) folder: PathBuf,
    pub(crate) read_into_memory: bool,
}

impl Keep {
    /// In isovec's own cache; `None` where there is none.
    pub(crate) fn in_cache(config: &EmbeddingConfig) -> Option<Self> {
        Some(Self {
            folder: cache_dir()?.join("weights"),
            read_into_memory: config.runtime.memory.mmap == Some(false),
        })
    }
}

/// A model's small form on disk: its name holds everything that it depends on.
pub(crate) struct Kept {
    path: PathBuf,
    read_into_memory: bool,
}

impl Kept {
    pub(crate) fn new(keep: Keep, bundle: &ModelBundle, precision: Precision) -> Self {
        let part = |hash: &str| hash.chars().take(32).collect::<String>();
        let name = format!(
            "{}-{}-{precision}-{}.onnx",
            part(&bundle.identity.0),
            part(&graph_identity(&bundle.graph)),
            weights::RULES
        );
        Self {
            path: keep.folder.join(name),
            read_into_memory: keep.read_into_memory,
        }
    }

    /// The file.
    pub(crate) fn place(&self) -> impl Display {
        self.path.display()
    }

    /// What was kept, if it was and is whole.
    pub(crate) fn read(&self, bundle: &ModelBundle) -> Option<ModelBundle> {
        if !self.path.is_file() {
            return None;
        }
        match self.open(bundle) {
            Ok(small) if small.identity == bundle.identity => Some(small),
            Ok(_) => {
                tracing::warn!(target: "isovec", "{} belongs to another model; making it again", self.path.display());
                None
            }
            Err(error) => {
                tracing::warn!(target: "isovec", "{error}; making it again");
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
            ..BundleOptions::default()
        };
        let file = [(NAME.to_owned(), self.path.clone())].into();
        let mut small = bundle::from_files(file, &options)?;
        // What this file says of the original is what was known of it when the file was made here.
        onnx::carry_identity(&bundle.graph, &mut small.graph);
        Ok(ModelBundle {
            graph: small.graph,
            weights: small.weights,
            identity: small.identity,
            ..bundle.clone()
        })
    }

    /// Keeps a small form and opens it, so that its weights are mapped and not made anew at every
    /// reading. `None` where it cannot be kept: that costs the next start its time, nothing else.
    pub(crate) async fn write(&self, small: &ModelBundle) -> Result<Option<ModelBundle>> {
        let weights = small.weights.weights().iter();
        let bytes: u64 = weights.map(|weight| weight.byte_len() as u64).sum();
        if bytes > MAX_KEPT_BYTES {
            return Ok(None);
        }
        let folder = self.path.parent().unwrap_or(&self.path);
        let written = match fs::create_dir_all(folder) {
            Ok(()) => onnx::export(small, &self.path)
                .await
                .map(drop)
                .map_err(Error::from),
            Err(source) => Err(Error::io(folder, source)),
        };
        match written {
            Ok(()) => Ok(self.read(small)),
            Err(error) => {
                tracing::warn!(target: "isovec", "the small form of {} was not cached: {error}", small.origin);
                Ok(None)
            }
        }
    }
}
