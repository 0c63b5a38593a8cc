//! Pictures become a model's values, or pixels, with the interface of `isovec-js-image`. They are read on threads of their own.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use isovec::image::{Alpha, Channels, Image, ReadOptions, Reader, Reference};
use napi::bindgen_prelude::{Float32Array, Object, ToNapiValue, Uint8Array, Uint8ArraySlice};
use napi::{Env, Error, Result};
use napi_derive::napi;

use crate::{error, tasks};

/// How pictures are read; [`ReadOptions`] has the defaults.
#[napi]
#[derive(Debug, Default)]
pub struct RawOptions {
    options: ReadOptions,
}

#[napi]
impl RawOptions {
    /// The defaults.
    #[napi(constructor)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Pixels are resized and scaled as torchvision does it, and not as Pillow does.
    #[napi]
    pub fn torchvision(&mut self) {
        self.options.reference = Reference::Torchvision;
    }

    /// Pictures with alpha are laid on white, and alpha is not dropped.
    #[napi]
    pub fn white(&mut self) {
        self.options.alpha = Alpha::White;
    }

    /// Pictures are not turned as their EXIF or XMP asks for.
    #[napi]
    pub fn as_stored(&mut self) {
        self.options.decoding.turn = false;
    }

    /// The most pixels of a picture.
    #[napi]
    pub fn max_pixels(&mut self, pixels: u32) {
        self.options.decoding.max_pixels = pixels.into();
    }

    /// The most bytes of a file.
    #[napi]
    pub fn max_bytes(&mut self, bytes: u32) {
        self.options.decoding.max_bytes = bytes.into();
    }

    /// Nothing more than the module of wasm asks for: the collector frees it.
    #[napi]
    pub fn free(&self) {}
}

/// Reads pictures for one model.
#[napi]
#[derive(Debug)]
pub struct RawReader {
    reader: Arc<Reader>,
}

#[napi]
impl RawReader {
    /// Reads `preprocessor_config.json` and, where there is one, `config.json`.
    ///
    /// # Errors
    /// An `Error` that says what cannot be followed.
    #[napi(constructor)]
    pub fn new(
        preprocessor: Uint8ArraySlice<'_>,
        config: Option<Uint8ArraySlice<'_>>,
        options: &RawOptions,
    ) -> Result<Self> {
        let reader = Reader::new(&preprocessor, config.as_deref(), &options.options);
        let reader = Arc::new(reader.map_err(|fault| Error::from_reason(fault.to_string()))?);
        Ok(Self { reader })
    }

    /// What two readers share if they make the same values of every picture.
    #[napi]
    pub fn identity(&self) -> String {
        self.reader.identity()
    }

    /// Height and width of the input, in pixels.
    #[napi]
    pub fn size(&self) -> Vec<u32> {
        let (height, width) = self.reader.size();
        [height, width].map(|side| side as u32).into()
    }

    /// The values of a file, `[3, height, width]`. Rejects with an `Error` that says why the file cannot be read.
    ///
    /// # Errors
    /// Where there is no promise to be had.
    #[napi]
    pub fn file<'env>(&self, env: &'env Env, bytes: Uint8ArraySlice<'_>) -> Result<Object<'env>> {
        let (reader, bytes) = (Arc::clone(&self.reader), bytes.to_vec());
        made(
            env,
            move || reader.file(&bytes),
            |values| Float32Array::from(values.data),
        )
    }

    /// The values of pixels of red, green, blue and alpha, row by row; else as [`file`](Self::file).
    ///
    /// # Errors
    /// As there.
    #[napi]
    pub fn rgba<'env>(
        &self,
        env: &'env Env,
        pixels: Uint8ArraySlice<'_>,
        width: u32,
        height: u32,
    ) -> Result<Object<'env>> {
        let (reader, pixels) = (Arc::clone(&self.reader), pixels.to_vec());
        let read = move || {
            let image = Image::new(width as usize, height as usize, Channels::Rgba, pixels)?;
            reader.image(image.view())
        };
        made(env, read, |values| Float32Array::from(values.data))
    }

    /// Nothing more than the module of wasm asks for: the collector frees it.
    #[napi]
    pub fn free(&self) {}
}

/// A decoded picture.
#[napi]
#[derive(Debug)]
pub struct RawImage {
    /// Its width in pixels.
    #[napi(readonly)]
    pub width: u32,
    /// Its height in pixels.
    #[napi(readonly)]
    pub height: u32,
    /// Bytes of a pixel: gray, gray and alpha, RGB, or RGBA.
    #[napi(readonly)]
    pub channels: u32,
    data: Vec<u8>,
}

impl From<Image> for RawImage {
    fn from(image: Image) -> Self {
        Self {
            width: image.width() as u32,
            height: image.height() as u32,
            channels: image.channels().count() as u32,
            data: image.into_data(),
        }
    }
}

#[napi]
impl RawImage {
    /// Decodes a file. Rejects with an `Error` that says why the file cannot be read.
    ///
    /// # Errors
    /// Where there is no promise to be had.
    #[napi]
    pub fn decode<'env>(
        env: &'env Env,
        bytes: Uint8ArraySlice<'_>,
        options: &RawOptions,
    ) -> Result<Object<'env>> {
        let (bytes, options) = (bytes.to_vec(), options.options.decoding);
        made(
            env,
            move || isovec::image::decode(&bytes, &options),
            RawImage::from,
        )
    }

    /// Its bytes, row by row, which it then has no longer.
    #[napi]
    pub fn data(&mut self) -> Uint8Array {
        mem::take(&mut self.data).into()
    }

    /// Nothing more than the module of wasm asks for: the collector frees it.
    #[napi]
    pub fn free(&self) {}
}

/// The promise of what a thread makes. `finish` makes JavaScript's value of it, on the event loop.
fn made<'env, T: Send + 'static, V: ToNapiValue + 'static>(
    env: &'env Env,
    make: impl FnOnce() -> isovec::image::Result<T> + Send + 'static,
    finish: impl FnOnce(T) -> V + Send + 'static,
) -> Result<Object<'env>> {
    let (deferred, promise) = env.create_deferred()?;
    rayon::spawn(move || {
        let made = catch_unwind(AssertUnwindSafe(make));
        deferred.resolve(move |env| match made {
            Ok(Ok(made)) => Ok(finish(made)),
            Ok(Err(fault)) => Err(Error::from_reason(fault.to_string())),
            Err(panic) => Err(error::with_kind(&env, "Panicked", &tasks::said(&*panic))),
        });
    });
    Ok(promise)
}
