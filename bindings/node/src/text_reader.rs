//! The reader of text in pictures, with the interface of the build `tract`.

use std::sync::Arc;

use isovec::for_npm::LoadedReader;
use isovec::image::{Channels, Image};
use isovec::source::Content;
use isovec::{EmbeddingConfig, ModelSource};
use napi::bindgen_prelude::{Object, Uint8ArraySlice};
use napi::{Env, Result};
use napi_derive::napi;

use crate::model::{RawCancel, live, read};
use crate::{error, tasks};

/// The loaded networks that read the text of pictures.
#[napi]
#[derive(Debug)]
pub struct RawTextReader {
    /// Until it is freed.
    reader: Option<Arc<LoadedReader>>,
}

#[napi]
impl RawTextReader {
    /// Loads the networks from their files: their paths, and for each its bytes. `config` is the Rust configuration as JSON, `asking` the
    /// Rust `for_npm::Asking`.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    #[napi]
    pub fn load<'env>(
        env: &'env Env,
        origin: String,
        names: Vec<String>,
        files: Vec<Uint8ArraySlice<'_>>,
        config: String,
        asking: String,
        cancel: &RawCancel,
    ) -> Result<Object<'env>> {
        let config: EmbeddingConfig = read(env, "the configuration", &config)?;
        let asking = read(env, "what is asked", &asking)?;
        let contents = files.iter().map(|bytes| Content::from(bytes.to_vec()));
        let source = ModelSource::contents(origin, names.into_iter().zip(contents));
        let loading = LoadedReader::load(source, config, cancel.cancel.clone(), asking);
        tasks::promise(env, loading, |reader| Self {
            reader: Some(Arc::new(reader)),
        })
    }

    /// The text of pixels of one to four channels, row by row: the Rust `PictureText` as JSON. `place` is the picture's among the
    /// caller's. Rejects with an `Error` that has the `kind` of the Rust error.
    ///
    /// # Errors
    /// An `Error` of the kind `Picture` for pixels that are no picture.
    #[napi]
    #[allow(clippy::too_many_arguments)]
    pub fn read<'env>(
        &self,
        env: &'env Env,
        pixels: Uint8ArraySlice<'_>,
        width: u32,
        height: u32,
        channels: u32,
        place: u32,
        cancel: &RawCancel,
    ) -> Result<Object<'env>> {
        let picture =
            |why: String| error::with_kind(env, "Picture", &format!("picture {place}: {why}"));
        let reader = live(env, &self.reader)?;
        let channels = Channels::of(channels as usize)
            .ok_or_else(|| picture(format!("pixels of {channels} channels are no picture")))?;
        let image = Image::new(width as usize, height as usize, channels, pixels.to_vec());
        let image = image.map_err(|fault| picture(fault.to_string()))?;
        let read = reader.read(image, place as usize, cancel.cancel.clone());
        tasks::promise(env, read, |text| text)
    }

    /// All facts about the reader, as JSON: provider, effective configuration, name.
    ///
    /// # Errors
    /// An `Error` of the kind `Disposed` after [`free`](Self::free).
    #[napi]
    pub fn about(&self, env: &Env) -> Result<String> {
        Ok(live(env, &self.reader)?.about())
    }

    /// Gives the networks up: they go when their last call has ended.
    #[napi]
    pub fn free(&mut self) {
        self.reader = None;
    }
}
