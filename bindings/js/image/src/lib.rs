//! The inside of `ImageEmbedder` in the npm package: pictures become a model's values. For `TextReader` they become pixels. A module
//! of its own, so that pages without pictures do not download what decodes them. It does not use engines.

use isovec_image::{Alpha, Channels, Image, PixelValues, ReadOptions, Reader, Reference, Result};
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

/// How pictures are read; [`ReadOptions`] has the defaults.
#[wasm_bindgen]
#[derive(Debug, Default, Clone, Copy)]
pub struct RawOptions(ReadOptions);

#[wasm_bindgen]
impl RawOptions {
    /// The defaults.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Pixels are resized and scaled as torchvision does it, and not as Pillow does.
    pub fn torchvision(&mut self) {
        self.0.reference = Reference::Torchvision;
    }

    /// Pictures with alpha are laid on white, and alpha is not dropped.
    pub fn white(&mut self) {
        self.0.alpha = Alpha::White;
    }

    /// Pictures are not turned as their EXIF or XMP asks for.
    #[wasm_bindgen(js_name = asStored)]
    pub fn as_stored(&mut self) {
        self.0.decoding.turn = false;
    }

    /// The most pixels of a picture.
    #[wasm_bindgen(js_name = maxPixels)]
    pub fn max_pixels(&mut self, pixels: u32) {
        self.0.decoding.max_pixels = pixels.into();
    }

    /// The most bytes of a file.
    #[wasm_bindgen(js_name = maxBytes)]
    pub fn max_bytes(&mut self, bytes: u32) {
        self.0.decoding.max_bytes = bytes.into();
    }
}

/// Reads pictures for one model.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawReader(Reader);

#[wasm_bindgen]
impl RawReader {
    /// Reads `preprocessor_config.json` and, where there is one, `config.json`.
    ///
    /// # Errors
    /// An `Error` that says what cannot be followed.
    #[wasm_bindgen(constructor)]
    pub fn new(
        preprocessor: &[u8],
        config: Option<Vec<u8>>,
        options: &RawOptions,
    ) -> std::result::Result<Self, JsError> {
        Ok(Self(Reader::new(
            preprocessor,
            config.as_deref(),
            &options.0,
        )?))
    }

    /// What two readers share if they make the same values of every picture.
    pub fn identity(&self) -> String {
        self.0.identity()
    }

    /// Height and width of the input, in pixels.
    pub fn size(&self) -> Vec<u32> {
        let (height, width) = self.0.size();
        [height, width].map(|side| side as u32).into()
    }

    /// The values of a file, `[3, height, width]`.
    ///
    /// # Errors
    /// An `Error` that says why the file cannot be read.
    pub fn file(&self, bytes: &[u8]) -> std::result::Result<Vec<f32>, JsError> {
        values(self.0.file(bytes))
    }

    /// The values of pixels of red, green, blue and alpha, row by row.
    ///
    /// # Errors
    /// An `Error` that says why there is no such picture.
    pub fn rgba(
        &self,
        pixels: Vec<u8>,
        width: usize,
        height: usize,
    ) -> std::result::Result<Vec<f32>, JsError> {
        let image = Image::new(width, height, Channels::Rgba, pixels);
        values(image.and_then(|image| self.0.image(image.view())))
    }
}

/// A decoded picture.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawImage(Image);

#[wasm_bindgen]
impl RawImage {
    /// Decodes a file.
    ///
    /// # Errors
    /// An `Error` that says why the file cannot be read.
    pub fn decode(bytes: &[u8], options: &RawOptions) -> std::result::Result<Self, JsError> {
        Ok(Self(isovec_image::decode(bytes, &options.0.decoding)?))
    }

    /// Its width in pixels.
    #[wasm_bindgen(getter)]
    pub fn width(&self) -> usize {
        self.0.width()
    }

    /// Its height in pixels.
    #[wasm_bindgen(getter)]
    pub fn height(&self) -> usize {
        self.0.height()
    }

    /// Bytes of a pixel: gray, gray and alpha, RGB, or RGBA.
    #[wasm_bindgen(getter)]
    pub fn channels(&self) -> usize {
        self.0.channels().count()
    }

    /// Its bytes, row by row.
    pub fn data(&self) -> Vec<u8> {
        self.0.data().to_vec()
    }
}

fn values(values: Result<PixelValues>) -> std::result::Result<Vec<f32>, JsError> {
    Ok(values?.data)
}
