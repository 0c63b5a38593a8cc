//! What can be wrong with a picture, or with what a network says of it.

use isovec_image::ImageError;

/// A result whose error is an [`OcrError`].
pub type Result<T> = std::result::Result<T, OcrError>;

/// Why there is no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OcrError {
    /// The picture is so long and narrow that the detector's input would take too much memory.
    #[error(
        "a picture of {width} x {height} pixels is too long and narrow: the detector would read it as {pixels} pixels, and {limit} are allowed; cut it into shorter parts"
    )]
    TooNarrow {
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
        /// Pixels of the detector's input.
        pixels: u64,
        /// The limit on them.
        limit: u64,
    },
    /// A network's output is not what such a network gives.
    #[error("{network} gave {got}, and {wanted} was expected; load a model that is made for this")]
    Output {
        /// The network.
        network: &'static str,
        /// What it gave.
        got: String,
        /// What it should give.
        wanted: String,
    },
    /// Pixels that could not be computed with.
    #[error(transparent)]
    Image(#[from] ImageError),
}
