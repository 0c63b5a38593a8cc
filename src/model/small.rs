//! Weights in f16 or int8: made at load on request, and cached on disk, so that the next start reads the small form.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::fingerprint::Precision;
use isovec_model::precision as weights;

use super::precision;
use crate::backend::small_forms::{Keep, Kept};
use crate::config::Dtype;
use crate::effective::EffectiveConfig;
use crate::error::Result;

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
                "nothing rounds activations here: the portable engine does on the processor, and ONNX Runtime on one that multiplies bytes, where a product's weights are int8",
            ),
            stored => (stored, self.why.as_str()),
        };
        effective.note("model.dtype", asked, used, why);
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
            kept.place()
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

#[cfg(test)]
mod tests {
    use std::fs;

    use isovec_model::bundle::{self, BundleOptions};
    use isovec_model::onnx;

    use super::*;
    use crate::backend;

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
