//! Pixels that are read: a picture, or a rectangle of one.

use crate::{PixelsError, Result};

/// Rows of pixels of 1 to 4 bytes, in somebody's slice.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    data: &'a [u8],
    stride: usize,
    width: usize,
    height: usize,
    channels: usize,
}

impl<'a> Rows<'a> {
    /// `height` rows of `width` pixels with `channels` bytes each. `stride` is the number of bytes from the start of a row
    /// to that of the next; the last row may end where its pixels do.
    ///
    /// # Errors
    /// [`PixelsError::Size`] where a side is 0, there are not 1 to 4 channels, a row is longer than the stride, or the slice
    /// is too short.
    pub fn new(
        data: &'a [u8],
        width: usize,
        height: usize,
        channels: usize,
        stride: usize,
    ) -> Result<Self> {
        let row = width.checked_mul(channels);
        let wanted = row.and_then(|row| {
            let before = stride.checked_mul(height.checked_sub(1)?)?;
            before.checked_add(row)
        });
        let fits = row.is_some_and(|row| row > 0 && row <= stride)
            && wanted.is_some_and(|wanted| wanted <= data.len());
        if !fits || !(1..=4).contains(&channels) {
            return Err(PixelsError::Size(format!(
                "{} bytes do not hold {height} rows of {width} pixels with {channels} bytes, {stride} bytes apart",
                data.len()
            )));
        }
        Ok(Self {
            data,
            stride,
            width,
            height,
            channels,
        })
    }

    /// Pixels in a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Bytes of a pixel.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// All pixels, where no gap is between rows.
    pub(crate) fn whole(&self) -> Option<&'a [u8]> {
        let row = self.width * self.channels;
        (self.stride == row).then(|| &self.data[..row * self.height])
    }

    /// The bytes of a row.
    ///
    /// # Panics
    /// Where there is no such row.
    #[must_use]
    pub fn row(&self, y: usize) -> &'a [u8] {
        assert!(y < self.height, "row {y} of {}", self.height);
        &self.data[y * self.stride..][..self.width * self.channels]
    }
}
