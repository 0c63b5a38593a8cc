//! What can be wrong with a picture, or with what is asked of it.

use crate::{Channels, Format};

/// A result whose error is an [`ImageError`].
pub type Result<T> = std::result::Result<T, ImageError>;

/// Why there is no picture, or no `pixel_values`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The bytes begin like no format that is read.
    #[error("these {bytes} bytes are no picture in PNG, JPEG, WebP or GIF{hint}")]
    UnknownFormat {
        /// The length of what was given.
        bytes: usize,
        /// What they look like instead, or nothing.
        hint: &'static str,
    },
    /// The format is read, and this picture uses a part of it that is not.
    #[error("{format}: {what} is not read; save the picture again without it")]
    Unsupported {
        /// The picture's format.
        format: Format,
        /// What it uses.
        what: String,
    },
    /// The file ends too early, or says what cannot be.
    #[error("{format}: the file is damaged: {why}")]
    Damaged {
        /// The picture's format.
        format: Format,
        /// What was found.
        why: String,
    },
    /// The picture has more pixels than are allowed. It was refused before memory was taken.
    #[error("a picture of {width} x {height} pixels has more than the allowed {limit}")]
    TooManyPixels {
        /// Pixels in a row.
        width: u64,
        /// Rows.
        height: u64,
        /// The limit on their product.
        limit: u64,
    },
    /// The file has more bytes than are allowed.
    #[error("a picture's file of {bytes} bytes is longer than the allowed {limit}")]
    TooManyBytes {
        /// The length of the file.
        bytes: u64,
        /// The limit on it.
        limit: u64,
    },
    /// A size that no picture can have, or that its bytes do not have.
    #[error("{0}")]
    Size(String),
    /// The picture has other channels than are needed.
    #[error("the picture has {has}, and {wanted} is needed; {hint}")]
    WrongChannels {
        /// The picture's channels.
        has: Channels,
        /// Those that are needed.
        wanted: Channels,
        /// What to do.
        hint: &'static str,
    },
    /// Pixels that could not be computed with.
    #[error(transparent)]
    Pixels(#[from] isovec_pixels::PixelsError),
    /// A `preprocessor_config.json`, or arguments, that cannot be followed.
    #[error("{0}")]
    Config(String),
}
