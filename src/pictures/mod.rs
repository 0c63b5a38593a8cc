//! Pictures become vectors or labels, on the same way as texts: planning, batches, cache, statistics, profiles.

/// What the builders of all handles of pictures ask for besides.
macro_rules! ask_for_pixels {
    ($builder:ty) => {
        ask_for_model!($builder, pixels);

        impl $builder {
            /// Chooses whose arithmetic pixels are resized and scaled with. It is a part of the fingerprint.
            pub fn pixels(mut self, reference: isovec_image::Reference) -> Self {
                self.pixels.reference = reference;
                self
            }

            /// Chooses what becomes of a picture's alpha. It is a part of the fingerprint.
            pub fn alpha(mut self, alpha: isovec_image::Alpha) -> Self {
                self.pixels.alpha = alpha;
                self
            }

            /// Sets how files are decoded: limits, and whether pictures are turned as their EXIF asks for. Turning is a part of the
            /// fingerprint.
            pub fn decoding(mut self, options: isovec_image::DecodeOptions) -> Self {
                self.pixels.decoding = options;
                self
            }
        }
    };
}

mod classifier;
mod embedder;
mod picture;
mod reader;

pub use classifier::{ImageClassifier, ImageClassifierBuilder};
pub use embedder::{ImageEmbedder, ImageEmbedderBuilder};
pub use picture::Picture;
pub(crate) use reader::PictureReader;
