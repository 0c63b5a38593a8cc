//! The cache of optimised graphs on disk, so that the next start need not optimise again.

use std::io;
use std::path::{Path, PathBuf};

use isovec_engine::bundle::ModelBundle;
use isovec_engine::fresh::Fresh;
use isovec_engine::onnx::graph_identity;
use isovec_model::bundle::{self, BundleOptions};

/// A place for one optimised graph: its name holds everything that it depends on.
#[derive(Debug)]
pub(crate) struct Kept {
    path: PathBuf,
}

impl Kept {
    pub(crate) fn new(
        folder: &Path,
        bundle: &ModelBundle,
        library: &str,
        optimization: &str,
    ) -> Self {
        let weights: String = bundle.identity.0.chars().take(16).collect();
        let graph: String = graph_identity(&bundle.graph).chars().take(16).collect();
        let name = format!(
            "{weights}-{graph}-onnxruntime{library}-{optimization}-{}.onnx",
            machine()
        );
        Self {
            path: folder.join(name),
        }
    }

    /// The graph that was kept, if it was and is whole.
    pub(crate) fn read(&self, bundle: &ModelBundle) -> Option<ModelBundle> {
        if !self.path.is_file() {
            return None;
        }
        let name = self.path.file_name()?.to_str()?.to_owned();
        let options = BundleOptions {
            onnx_file: Some(name.clone()),
            ..BundleOptions::default()
        };
        let files = [(name, self.path.clone())].into();
        match bundle::from_files(files, &options) {
            // Inputs and outputs must still be the model's: whatever else it is, it is not it.
            Ok(kept) if same_values(&kept, bundle) => Some(kept),
            Ok(_) => {
                tracing::warn!(target: "isovec", "{} belongs to another model; optimising again", self.path.display());
                None
            }
            Err(error) => {
                tracing::warn!(target: "isovec", "{error}; optimising again");
                None
            }
        }
    }

    /// Where the graph is written first: an empty file that ONNX Runtime overwrites. None where there can be none.
    pub(crate) fn begin(&self) -> Option<Fresh> {
        match Fresh::file(&self.path) {
            Ok((fresh, _)) => Some(fresh),
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    /// Gives what was written its name. A failure costs the next start its time, nothing else.
    pub(crate) fn complete(&self, written: Fresh) {
        if let Err(error) = written.replace(&self.path) {
            self.failed(&error);
        }
    }

    fn failed(&self, error: &io::Error) {
        tracing::warn!(target: "isovec", "{} was not cached: {error}", self.path.display());
    }
}

fn same_values(kept: &ModelBundle, bundle: &ModelBundle) -> bool {
    let names = |bundle: &ModelBundle| {
        let graph = bundle.graph.graph.as_ref()?;
        let values = graph.input.iter().chain(&graph.output);
        Some(values.map(|value| value.name.clone()).collect::<Vec<_>>())
    };
    names(kept) == names(bundle)
}

/// What the layout of an optimised graph depends on: the architecture and its widest vectors.
fn machine() -> String {
    let vectors = {
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                "avx512"
            } else if std::arch::is_x86_feature_detected!("avx2") {
                "avx2"
            } else {
                "sse"
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            "base"
        }
    };
    format!("{}-{vectors}", std::env::consts::ARCH)
}
