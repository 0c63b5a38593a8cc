//! Makes a model smaller or faster, and measures what that changed.
//!
//! [`optimize`](crate::optimize()) writes a folder that loads as a model, and returns a [`Report`]. The parts that it is made of are here
//! as well, for programs that work on tensors themselves.

mod measure;
mod options;
mod report;
mod tokens;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use isovec_engine::bundle::ModelBundle;
use isovec_engine::fresh::FreshFolder;
use isovec_engine::maybe_send::BoxFuture;
use isovec_model::convert::Half;
use isovec_optimize::vocabulary::{TrimmedVocabulary, trim_vocabulary};

use crate::backend;
use crate::config::EmbeddingConfig;
use crate::error::{Error, Result};
use crate::export::{self, Exported};
use crate::model::{Output, Purpose, complete, open, resolve};
use crate::source::ModelSource;

pub use isovec_optimize::OptimizeError;
pub use options::OptimizeOptions;
pub use report::{Quality, Report, Side, Speed, Step};

/// Writes a smaller or faster model into a new folder, which [`Embedder::load`](crate::Embedder::load) takes: as
/// [`export`](crate::export()) writes one. The files have the same bytes on every run. On an error nothing is left: the folder gets
/// its name when it is complete.
///
/// The result has a fingerprint of its own wherever its vectors can differ, and its metadata names the original.
///
/// # Errors
/// [`Error::Config`] where nothing is to be done; [`Error::Io`] for a folder with something in it, and a full disk;
/// [`Error::Optimize`] for a model or texts that this cannot be done with; those of [`Embedder::load`](crate::Embedder::load).
pub fn optimize(
    source: impl Into<ModelSource>,
    folder: impl AsRef<Path>,
    config: EmbeddingConfig,
    options: OptimizeOptions,
) -> BoxFuture<'static, Result<Report>> {
    let (source, folder) = (source.into(), folder.as_ref().to_path_buf());
    Box::pin(async move {
        let config = config.build()?;
        check(&folder, &config, &options)?;
        let (source, _) = resolve(source, &config, &options.watch).await?.split();
        let cancel = options.watch.cancel.clone();
        let place = folder.clone();
        let (opened, settings) = (source.clone(), config.clone());
        let kept = options.keep_tokens_of.clone();
        let made = backend::offload("optimising the model", async move {
            cancel.check()?;
            let original = open(opened, &settings, Half::Texts, &cancel)?;
            let before = Side::of(&original);
            let (bundle, trimmed) = match kept {
                None => (original, None),
                Some(texts) => {
                    let (bundle, trimmed) = trim(&original, &texts, &settings)?;
                    (bundle, Some(trimmed))
                }
            };
            cancel.check()?;
            let purpose = Purpose {
                output: Output::Vectors,
                keep: None,
                half: Half::Texts,
            };
            let prepared = complete(bundle, &settings, purpose, &cancel).await?;
            cancel.check()?;
            let fresh = beside(&place)?;
            let exported = export::write(&prepared, fresh.path()).await?;
            Ok(Made {
                fresh,
                before,
                after: Side::of(&prepared.bundle),
                trimmed,
                exported,
            })
        })
        .await?;
        let steps = made.steps(&config);
        let texts = match (&options.texts, options.keep_tokens_of) {
            (texts, Some(kept)) if texts.is_empty() => kept,
            _ => options.texts,
        };
        let measured = match texts.is_empty() {
            true => None,
            false => {
                let result = ModelSource::from(made.fresh.path());
                Some(measure::compare(source, result, &config, texts, &options.watch.cancel).await?)
            }
        };
        options.watch.cancel.check()?;
        let inside = made.fresh.path().to_path_buf();
        let named = made.fresh.place(&folder);
        named.map_err(|source| Error::io(&folder, source))?;
        let files = made.exported.files.iter();
        let files = files.map(|file| match file.strip_prefix(&inside) {
            Ok(name) => folder.join(name),
            Err(_) => file.clone(),
        });
        let (quality, speed) = measured.unzip();
        Ok(Report {
            before: made.before,
            after: made.after,
            steps,
            quality,
            speed,
            files: files.collect(),
            bytes: made.exported.bytes,
        })
    })
}

/// What was made, not yet under its name.
struct Made {
    fresh: FreshFolder,
    before: Side,
    after: Side,
    trimmed: Option<TrimmedVocabulary>,
    exported: Exported,
}

impl Made {
    /// What was done, and what was not, with the reason.
    fn steps(&self, config: &EmbeddingConfig) -> Vec<Step> {
        let vocabulary = match &self.trimmed {
            None => Step::left_out(
                "vocabulary",
                "no texts were given whose tokens are to be kept",
            ),
            Some(trimmed) if trimmed.tokens == trimmed.tokens_before => {
                Step::left_out("vocabulary", "the texts have all tokens of the model")
            }
            Some(trimmed) => Step::done(
                "vocabulary",
                format!(
                    "{} of {} tokens are kept, and their rows: {} of {} bytes",
                    trimmed.tokens,
                    trimmed.tokens_before,
                    trimmed.table_bytes,
                    trimmed.table_bytes_before
                ),
            ),
        };
        let stored = self.exported.precision;
        let precision = match config.model.dtype {
            None => Step::left_out(
                "precision",
                "no dtype was asked for: weights are as the model's file stores them",
            ),
            Some(asked) => Step::done(
                "precision",
                format!("{asked} was asked for, and {stored} is stored"),
            ),
        };
        vec![vocabulary, precision]
    }
}

/// What can be known before a model is opened.
fn check(folder: &Path, config: &EmbeddingConfig, options: &OptimizeOptions) -> Result<()> {
    if options.keep_tokens_of.is_none() && config.model.dtype.is_none() {
        return Err(Error::Config(vec![
            "nothing is to be optimised: give texts whose tokens are kept, or model.dtype".into(),
        ]));
    }
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(Error::io(
            folder,
            io::Error::new(
                ErrorKind::AlreadyExists,
                "something is in this folder; name another one, or empty it",
            ),
        )),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(folder, error)),
        _ => Ok(()),
    }
}

/// A folder beside the one that is wanted, on the same disk.
fn beside(folder: &Path) -> Result<FreshFolder> {
    let parent = match folder.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let made = fs::create_dir_all(&parent).and_then(|()| FreshFolder::new(&parent, &name));
    made.map_err(|source| Error::io(folder, source))
}

/// Takes out what no text has.
fn trim(
    bundle: &ModelBundle,
    texts: &[String],
    config: &EmbeddingConfig,
) -> Result<(ModelBundle, TrimmedVocabulary)> {
    let tokens = tokens::used(bundle, texts, config)?;
    Ok(trim_vocabulary(bundle, &tokens.folder, &tokens.ids)?)
}
