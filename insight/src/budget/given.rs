//! What candidates are measured on: texts or pictures, and what the original makes of them.

use isovec::optimize::budget::{Budget, Figure};
#[cfg(feature = "image")]
use isovec::optimize::comparable_pictures;
use isovec::optimize::{OptimizeError, OptimizeOptions, comparable_texts};
use isovec::{Embedder, EmbeddingConfig, ModelSource, Result};
#[cfg(feature = "image")]
use isovec::{Error, Picture, optimize::PictureRows};

use crate::advisor::{Side, Trial, rows};

/// Neighbours of a text that recall is of.
const NEAREST: usize = 10;

/// A model that candidates are made of.
pub(super) trait Model<T>: Side<T> + Sized {
    /// What it is measured on.
    const OF_PICTURES: bool;

    /// Loads a candidate that was made of this one.
    async fn load_like(
        &self,
        source: &ModelSource,
        config: EmbeddingConfig,
        trial: &Trial,
    ) -> Result<Self>;
}

impl Model<String> for Embedder {
    const OF_PICTURES: bool = false;

    async fn load_like(
        &self,
        source: &ModelSource,
        config: EmbeddingConfig,
        trial: &Trial,
    ) -> Result<Self> {
        embedder(source, config, trial).await
    }
}

#[cfg(feature = "image")]
impl Model<Picture> for PictureRows {
    const OF_PICTURES: bool = true;

    async fn load_like(
        &self,
        source: &ModelSource,
        config: EmbeddingConfig,
        trial: &Trial,
    ) -> Result<Self> {
        let cancel = trial.cancel.clone().unwrap_or_default();
        self.load_like(source.clone(), &config, &cancel).await
    }
}

/// What is measured on, and the original.
pub(super) struct Given<M, T> {
    pub(super) items: Vec<T>,
    pub(super) baseline: M,
    /// What the original makes of the items.
    pub(super) before: Vec<f32>,
}

impl Given<Embedder, String> {
    pub(super) async fn texts(
        source: &ModelSource,
        config: &EmbeddingConfig,
        options: &OptimizeOptions,
        budget: &Budget,
        trial: &Trial,
    ) -> Result<Self> {
        let given = match &options.keep_tokens_of {
            Some(kept) if options.texts.is_empty() => kept,
            _ => &options.texts,
        };
        let texts = comparable_texts(given.clone())?;
        enough(texts.len(), "different texts", budget, trial)?;
        let baseline = embedder(source, config.clone(), trial).await?;
        Self::of(texts, baseline, trial).await
    }
}

#[cfg(feature = "image")]
impl Given<PictureRows, Picture> {
    pub(super) async fn pictures(
        source: &ModelSource,
        config: &EmbeddingConfig,
        options: &OptimizeOptions,
        budget: &Budget,
        trial: &Trial,
    ) -> Result<Self> {
        let texts = [&options.texts, &options.calibrate_with];
        if texts.iter().any(|texts| !texts.is_empty()) || options.trims() {
            return Err(Error::Config(vec![
                "pictures are for models that read pictures, and texts for models that read texts: give one of the two".into(),
            ]));
        }
        let pictures = comparable_pictures(&options.pictures)?;
        enough(pictures.len(), "pictures", budget, trial)?;
        let baseline = PictureRows::load(source.clone(), config, options).await?;
        Self::of(pictures, baseline, trial).await
    }
}

impl<M: Model<T>, T> Given<M, T> {
    async fn of(items: Vec<T>, baseline: M, trial: &Trial) -> Result<Self> {
        let before = rows(&baseline, &items, trial).await?;
        Ok(Self {
            items,
            baseline,
            before,
        })
    }
}

/// Whether pictures are measured on.
#[cfg(feature = "image")]
pub(super) fn has_pictures(options: &OptimizeOptions) -> bool {
    !(options.pictures.is_empty() && options.calibrate_pictures.is_empty())
}

/// Whether so many texts or pictures are enough, before anything is loaded.
fn enough(count: usize, of: &str, budget: &Budget, trial: &Trial) -> Result<()> {
    if budget.of(Figure::Recall).is_some() && count <= NEAREST {
        return Err(OptimizeError::Texts(format!(
            "{count} {of} for a bound of recall@{NEAREST}; give more than {NEAREST}"
        ))
        .into());
    }
    trial.check(count)
}

async fn embedder(
    source: &ModelSource,
    mut config: EmbeddingConfig,
    trial: &Trial,
) -> Result<Embedder> {
    // Kept vectors would answer for both sides of a comparison.
    config.embedding_cache = EmbeddingConfig::default().embedding_cache;
    let mut builder = Embedder::builder(source.clone()).config(config);
    if let Some(cancel) = &trial.cancel {
        builder = builder.cancel(cancel.clone());
    }
    builder.load().await
}
