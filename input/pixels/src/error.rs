//! What can be wrong with slices that are given.

/// A result whose error is a [`PixelsError`].
pub type Result<T> = std::result::Result<T, PixelsError>;

/// Why nothing was computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PixelsError {
    /// A slice is longer or shorter than what it should hold, or holds no pixel.
    #[error("{0}")]
    Size(String),
    /// Weights whose sums could overflow, or that lie outside the picture.
    #[error("{0}")]
    Taps(String),
}
