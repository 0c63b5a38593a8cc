//! What takes turns in a trial: a model that makes rows of texts or of pictures.

use isovec::fingerprint::Fingerprint;
use isovec::{EmbedOptions, Embedder, Result};
#[cfg(all(feature = "image", not(target_arch = "wasm32")))]
use isovec::{Picture, optimize::PictureRows};
use isovec_engine::cancel::Cancel;

/// A model that takes turns on such items.
pub(crate) trait Side<T> {
    /// The rows of items, one after the other: as many values for each.
    async fn rows(&self, items: &[T], cancel: Option<&Cancel>) -> Result<Vec<f32>>;

    /// Lets go of what it keeps in memory: else every turn but the first would find all of it.
    fn forget(&self);

    /// Says what its rows can be compared with.
    fn fingerprint(&self) -> &Fingerprint;
}

impl<T: AsRef<str>> Side<T> for Embedder {
    async fn rows(&self, items: &[T], cancel: Option<&Cancel>) -> Result<Vec<f32>> {
        let mut options = EmbedOptions::default();
        options.cancel = cancel.cloned();
        Ok(self.embed_with(items, options).await?.into_vec())
    }

    fn forget(&self) {
        self.forget_vectors();
    }

    fn fingerprint(&self) -> &Fingerprint {
        self.fingerprint()
    }
}

#[cfg(all(feature = "image", not(target_arch = "wasm32")))]
impl Side<Picture> for PictureRows {
    async fn rows(&self, items: &[Picture], cancel: Option<&Cancel>) -> Result<Vec<f32>> {
        let cancel = cancel.cloned().unwrap_or_default();
        self.rows(items.to_vec(), &cancel).await
    }

    // It keeps none.
    fn forget(&self) {}

    fn fingerprint(&self) -> &Fingerprint {
        self.fingerprint()
    }
}
