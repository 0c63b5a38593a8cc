//! Weights in f16 or int8: made at load on request, and cached on disk, so that the next start reads the small form.

use std::fs;
use std::path::PathBuf;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::fingerprint::Precision;
use isovec_engine::onnx::graph_identity;
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::{onnx, precision as weights};

use super::precision;
use crate::backend;
use crate::config::{Dtype, EmbeddingConfig};
use crate::effective::EffectiveConfig;
use crate::error::{Error, Result};

/// Past this a model is two files, of which only one could take its name at a time.
const MAX_KEPT_BYTES: u64 = 2_000_000_000;

/// How a model's weights are stored, and why so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) precision: Precision,
    why: String,
}

impl Stored {
    /// What was asked for and what became of it, with an engine that computes in a class.
    pub(crate) fn note(
        &self,
        effective: &mut EffectiveConfig,
        asked: Option<Dtype>,
        computed: Precision,
    ) {
        let asked = asked.filter(|&dtype| dtype != Dtype::Auto);
        let (used, why) = match self.precision {
            Precision::Int8Fast if computed != Precision::Int8Fast => (
                Precision::Int8,
                "nothing rounds activations here: the portable engine does, on the processor, where a product's weights are int8",
            ),
            stored => (stored, self.why.as_str()),
        };
        effective.note("model.dtype", asked, used, why);
    }
}

/// Where small forms are kept, and how they are read from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keep {
    folder: PathBuf,
    read_into_memory: bool,
}

impl Keep {
    /// In isovec's own cache; `None` where there is none, as in browsers.
    pub(crate) fn in_cache(config: &EmbeddingConfig) -> Option<Self> {
        Some(Self {
            folder: backend::cache_dir()?.join("weights"),
            read_into_memory: config.runtime.memory.mmap == Some(false),
        })
    }
}

/// Stores a bundle's weights as small as was asked for, unless they are already. With `keep`, on disk
/// as well, or from there.
pub(crate) async fn store(
    bundle: ModelBundle,
    dtype: Option<Dtype>,
    keep: Option<Keep>,
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
        Some(asked @ (Precision::Int8 | Precision::Int8Fast))
            if matches!(has, Precision::Int8 | Precision::Int8Fast) =>
        {
            let bundle = bundle.with_rounded_activations(asked == Precision::Int8Fast);
            let precision = precision::of(&bundle);
            let why = "the model's file stores its weights so; activations are rounded as asked";
            let why = why.into();
            return Ok((bundle, Stored { precision, why }));
        }
        Some(asked) if precision::coarseness(asked) < precision::coarseness(has) => {
            let stored = as_it_is(
                "the model's file stores them so, and the lost precision cannot be restored",
            );
            return Ok((bundle, stored));
        }
        Some(asked) => asked,
    };
    let kept = keep.map(|keep| Kept::new(keep, &bundle, asked));
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
    let narrowed = weights::narrowed(&bundle, asked, cancel).await?;
    for weight in &narrowed.weights {
        tracing::debug!(
            target: "isovec",
            "{} is stored in {}, relative error {:.5}",
            weight.name, weight.stored, weight.relative_error
        );
    }
    let small = narrowed.bundle;
    let reached = precision::of(&small);
    let why = if reached == asked && kept.is_some() {
        "made of the model's file at load"
    } else if reached == asked {
        "made from the model's file at load and not cached: the next load makes it again"
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

/// A model's small form on disk: its name holds everything that it depends on.
struct Kept {
    path: PathBuf,
    read_into_memory: bool,
}

impl Kept {
    fn new(keep: Keep, bundle: &ModelBundle, precision: Precision) -> Self {
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

    /// What was kept, if it was and is whole.
    fn read(&self, bundle: &ModelBundle) -> Option<ModelBundle> {
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
    async fn write(&self, small: &ModelBundle) -> Result<Option<ModelBundle>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny() -> ModelBundle {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny-bert");
        bundle::from_folder(folder, &BundleOptions::default()).unwrap()
    }

    fn int8(keep: Option<Keep>) -> (ModelBundle, Stored) {
        backend::wait(store(tiny(), Some(Dtype::Int8), keep, &Cancel::new())).unwrap()
    }

    fn bytes(bundle: &ModelBundle) -> Vec<u8> {
        backend::wait(onnx::write_model(bundle)).unwrap()
    }

    #[test]
    fn what_was_made_small_is_kept_and_made_anew_where_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let keep = Keep {
            folder: folder.path().join("weights"),
            read_into_memory: false,
        };
        let files = || {
            let listed = fs::read_dir(&keep.folder).unwrap();
            listed
                .map(|entry| entry.unwrap().path())
                .collect::<Vec<_>>()
        };
        let (first, made) = int8(Some(keep.clone()));
        assert_eq!(made.precision, Precision::Int8);
        assert!(made.why.contains("at load"), "{made:?}");
        assert_eq!(first.identity, tiny().identity);
        assert!(first.files.contains_key("tokenizer.json"));
        let [path] = files().try_into().unwrap();

        let (second, found) = int8(Some(keep.clone()));
        assert!(found.why.contains("earlier start"), "{found:?}");
        assert!(bytes(&first) == bytes(&second));
        let (third, nowhere) = int8(None);
        assert!(nowhere.why.contains("not cached"), "{nowhere:?}");
        assert!(
            bytes(&first) == bytes(&third),
            "kept or not, it is the same"
        );

        // In place, behind the back of nobody: the bundles that map it are gone.
        drop((first, second));
        let mut damaged = fs::read(&path).unwrap();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        fs::write(&path, damaged).unwrap();
        let (fourth, again) = int8(Some(keep.clone()));
        assert!(again.why.contains("at load"), "{again:?}");
        assert!(bytes(&fourth) == bytes(&third));
        assert_eq!(files(), [path]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let keep = Keep {
            folder: file.join("weights"),
            read_into_memory: true,
        };
        let (small, stored) = int8(Some(keep));
        assert_eq!(stored.precision, Precision::Int8);
        assert!(bytes(&small) == bytes(&int8(None).0));
    }

    #[test]
    fn what_is_small_already_stays_as_it_is() {
        let (small, _) = int8(None);
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Int8, Dtype::Auto] {
            let cancel = Cancel::new();
            let job = store(small.clone(), Some(dtype), None, &cancel);
            let (same, stored) = backend::wait(job).unwrap();
            assert!(bytes(&same) == bytes(&small), "{dtype}");
            assert_eq!(stored.precision, Precision::Int8, "{dtype}");
            let mut effective = EffectiveConfig::default();
            stored.note(&mut effective, Some(dtype), stored.precision);
            let honoured = matches!(dtype, Dtype::Int8 | Dtype::Auto);
            assert_eq!(effective.not_honoured().count() == 0, honoured, "{dtype}");
        }
    }
}
