//! The reader behind the TypeScript class `TextReader`.

use isovec::for_npm::LoadedReader;
use isovec::image::{Channels, Image};
use isovec::{EmbeddingConfig, ModelSource};
use isovec_js_error::{to_js, with_kind};
use js_sys::{Map, Promise};
use serde_json::from_slice;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::model::RawCancel;
use crate::{files, panic};

/// The loaded networks that read the text of pictures.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawTextReader(LoadedReader);

#[wasm_bindgen]
impl RawTextReader {
    /// Loads the networks from their files, which are taken as [`RawModel::load`](crate::RawModel::load) takes them. `asking` is the
    /// Rust `for_npm::Asking` as JSON.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    pub async fn load(
        origin: String,
        files: Map,
        config: String,
        asking: String,
        cancel: &RawCancel,
    ) -> Result<Self, JsValue> {
        panic::remember();
        let config: EmbeddingConfig = from_slice(config.as_bytes()).map_err(|error| {
            with_kind(
                "Config",
                &format!("the configuration is not usable: {error}"),
            )
        })?;
        let asking = from_slice(asking.as_bytes()).map_err(|error| {
            with_kind("Config", &format!("what is asked is not usable: {error}"))
        })?;
        let source = ModelSource::contents(origin, files::take(&files)?);
        let loaded = LoadedReader::load(source, config, cancel.0.clone(), asking).await;
        Ok(Self(loaded.map_err(|error| to_js(&error))?))
    }

    /// The text of pixels of one to four channels, row by row: the Rust `PictureText` as JSON. `place` is the picture's among the
    /// caller's. Rejects with an `Error` that has the `kind` of the Rust error.
    ///
    /// # Errors
    /// An `Error` of the kind `Picture` for pixels that are no picture.
    #[wasm_bindgen(unchecked_return_type = "Promise<string>")]
    pub fn read(
        &self,
        pixels: Vec<u8>,
        width: usize,
        height: usize,
        channels: usize,
        place: usize,
        cancel: &RawCancel,
    ) -> Result<Promise, JsValue> {
        let picture = |why: String| with_kind("Picture", &format!("picture {place}: {why}"));
        let channels = Channels::of(channels)
            .ok_or_else(|| picture(format!("pixels of {channels} channels are no picture")))?;
        let image = Image::new(width, height, channels, pixels)
            .map_err(|error| picture(error.to_string()))?;
        let read = self.0.read(image, place, cancel.0.clone());
        Ok(future_to_promise(async {
            let text = read.await.map_err(|error| to_js(&error))?;
            Ok(text.into())
        }))
    }

    /// All facts about the reader, as JSON: provider, effective configuration, name.
    pub fn about(&self) -> String {
        self.0.about()
    }
}
