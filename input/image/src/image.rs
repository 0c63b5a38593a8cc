//! Pixels of 8 bits, row by row, the channels of a pixel beside each other: owned, or a view of somebody's bytes.

use std::fmt;

use crate::{ImageError, Result};

/// What the bytes of a pixel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channels {
    /// One byte of brightness.
    Gray,
    /// Brightness and alpha.
    GrayAlpha,
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue and alpha, not multiplied by it.
    Rgba,
}

impl Channels {
    /// Bytes of a pixel.
    #[must_use]
    pub const fn count(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }

    /// What pixels of so many bytes are; nothing for none and for more than four.
    #[must_use]
    pub const fn of(count: usize) -> Option<Self> {
        Some(match count {
            1 => Self::Gray,
            2 => Self::GrayAlpha,
            3 => Self::Rgb,
            4 => Self::Rgba,
            _ => return None,
        })
    }
}

impl fmt::Display for Channels {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Gray => "1 channel (gray)",
            Self::GrayAlpha => "2 channels (gray, alpha)",
            Self::Rgb => "3 channels (RGB)",
            Self::Rgba => "4 channels (RGBA)",
        })
    }
}

/// What becomes of alpha where a picture is made RGB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Alpha {
    /// It is dropped: what lies under a transparent pixel shows. So do Pillow's `convert("RGB")` and the function of
    /// transformers that loads pictures.
    #[default]
    Drop,
    /// The picture is laid on white, with Pillow's `alpha_composite`. So do image processors of transformers 5 that are
    /// given a picture with alpha and have `do_convert_rgb`.
    White,
}

/// A picture that owns its pixels.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    width: usize,
    height: usize,
    channels: Channels,
    data: Vec<u8>,
}

impl fmt::Debug for Image {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "Image({} x {}, {})",
            self.width, self.height, self.channels
        )
    }
}

/// Bytes of a picture without gaps.
///
/// # Errors
/// [`ImageError::Size`] where a side is 0 or the bytes cannot be counted.
pub(crate) fn bytes_of(width: usize, height: usize, channels: Channels) -> Result<usize> {
    if width == 0 || height == 0 {
        return Err(ImageError::Size(format!(
            "a picture of {width} x {height} pixels has none"
        )));
    }
    let pixels = width.checked_mul(height);
    let bytes = pixels.and_then(|pixels| pixels.checked_mul(channels.count()));
    bytes.ok_or_else(|| {
        ImageError::Size(format!(
            "a picture of {width} x {height} pixels does not fit this machine's memory"
        ))
    })
}

impl Image {
    /// Takes `width * height * channels.count()` bytes.
    ///
    /// # Errors
    /// [`ImageError::Size`] where a side is 0 or there are more or fewer bytes.
    pub fn new(width: usize, height: usize, channels: Channels, data: Vec<u8>) -> Result<Self> {
        let wanted = bytes_of(width, height, channels)?;
        if data.len() != wanted {
            return Err(ImageError::Size(format!(
                "a picture of {width} x {height} pixels with {channels} has {wanted} bytes, and {} were given",
                data.len()
            )));
        }
        Ok(Self {
            width,
            height,
            channels,
            data,
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

    /// What the bytes of a pixel are.
    #[must_use]
    pub fn channels(&self) -> Channels {
        self.channels
    }

    /// All bytes, row by row.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The bytes alone.
    #[must_use]
    pub fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// The whole picture, to be read.
    #[must_use]
    pub fn view(&self) -> ImageView<'_> {
        ImageView {
            width: self.width,
            height: self.height,
            channels: self.channels,
            stride: self.width * self.channels.count(),
            data: &self.data,
        }
    }

    /// The picture as RGB: gray is said three times, and alpha goes as `alpha` says.
    #[must_use]
    pub fn into_rgb(self, alpha: Alpha) -> Self {
        match self.channels {
            Channels::Rgb => self,
            _ => self.view().to_rgb(alpha),
        }
    }
}

/// Pixels of somebody else: a whole picture, or a rectangle of it. Nothing is copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ImageView<'a> {
    width: usize,
    height: usize,
    channels: Channels,
    /// Bytes from the start of a row to that of the next.
    stride: usize,
    data: &'a [u8],
}

impl fmt::Debug for ImageView<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "ImageView({} x {}, {})",
            self.width, self.height, self.channels
        )
    }
}

impl<'a> ImageView<'a> {
    /// A picture in a buffer. `stride` is the number of bytes from the start of a row to that of the next; the last row may
    /// end where its pixels do.
    ///
    /// # Errors
    /// [`ImageError::Size`] where a side is 0, a row is longer than the stride, or the buffer is too short.
    pub fn new(
        data: &'a [u8],
        width: usize,
        height: usize,
        channels: Channels,
        stride: usize,
    ) -> Result<Self> {
        bytes_of(width, height, channels)?;
        let row = width * channels.count();
        let wanted = stride
            .checked_mul(height - 1)
            .and_then(|before| before.checked_add(row));
        if stride < row || wanted.is_none_or(|wanted| data.len() < wanted) {
            return Err(ImageError::Size(format!(
                "{} bytes do not hold {height} rows of {row} bytes, {stride} apart",
                data.len()
            )));
        }
        Ok(Self {
            width,
            height,
            channels,
            stride,
            data,
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

    /// What the bytes of a pixel are.
    #[must_use]
    pub fn channels(&self) -> Channels {
        self.channels
    }

    /// The bytes of a row.
    ///
    /// # Panics
    /// Where there is no such row.
    #[must_use]
    pub fn row(&self, y: usize) -> &'a [u8] {
        assert!(y < self.height, "row {y} of {}", self.height);
        &self.data[y * self.stride..][..self.width * self.channels.count()]
    }

    /// The same pixels for arithmetic.
    ///
    /// # Errors
    /// None: a view holds its pixels.
    pub(crate) fn pixels(&self) -> Result<isovec_pixels::Rows<'a>> {
        let channels = self.channels.count();
        let rows =
            isovec_pixels::Rows::new(self.data, self.width, self.height, channels, self.stride);
        Ok(rows?)
    }

    /// The rows, from the top.
    pub fn rows(self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.height).map(move |y| self.row(y))
    }

    /// A rectangle of the view, whose upper left pixel is (`x`, `y`).
    ///
    /// # Errors
    /// [`ImageError::Size`] where it is empty or reaches beyond the view.
    pub fn subview(&self, x: usize, y: usize, width: usize, height: usize) -> Result<Self> {
        let inside = |at: usize, length: usize, whole: usize| {
            length > 0 && at.checked_add(length).is_some_and(|end| end <= whole)
        };
        if !inside(x, width, self.width) || !inside(y, height, self.height) {
            return Err(ImageError::Size(format!(
                "a rectangle of {width} x {height} pixels at ({x}, {y}) is not within {} x {}",
                self.width, self.height
            )));
        }
        Ok(Self {
            width,
            height,
            data: &self.data[y * self.stride + x * self.channels.count()..],
            ..*self
        })
    }

    /// A copy that owns its pixels.
    #[must_use]
    pub fn to_image(&self) -> Image {
        let mut data = Vec::with_capacity(self.width * self.height * self.channels.count());
        for row in self.rows() {
            data.extend_from_slice(row);
        }
        Image {
            width: self.width,
            height: self.height,
            channels: self.channels,
            data,
        }
    }

    /// A copy as RGB: gray is said three times, and alpha goes as `alpha` says.
    #[must_use]
    pub fn to_rgb(&self, alpha: Alpha) -> Image {
        let over = |color: u8, opacity: u8| match alpha {
            Alpha::Drop => color,
            Alpha::White => on_white(color, opacity),
        };
        let mut data = Vec::with_capacity(self.width * self.height * 3);
        for row in self.rows() {
            match self.channels {
                Channels::Rgb => data.extend_from_slice(row),
                Channels::Gray => data.extend(row.iter().flat_map(|&gray| [gray; 3])),
                Channels::GrayAlpha => {
                    let (pixels, _) = row.as_chunks();
                    data.extend(pixels.iter().flat_map(|&[gray, a]| [over(gray, a); 3]));
                }
                Channels::Rgba => {
                    let (pixels, _) = row.as_chunks();
                    let pixel = |&[r, g, b, a]: &[u8; 4]| [over(r, a), over(g, a), over(b, a)];
                    data.extend(pixels.iter().flat_map(pixel));
                }
            }
        }
        Image {
            width: self.width,
            height: self.height,
            channels: Channels::Rgb,
            data,
        }
    }
}

/// A color on white, in the fixed point of Pillow's `alpha_composite`: 7 bits more than a byte, and a division by 255
/// that is two shifts.
fn on_white(color: u8, opacity: u8) -> u8 {
    const BITS: u32 = 7;
    let (color, share) = (u32::from(color), u32::from(opacity) << BITS);
    let sum = color * share + 255 * ((255 << BITS) - share) + (0x80 << BITS);
    // At most 255: the shares add up to 255 << BITS.
    ((((sum >> 8) + sum) >> 8) >> BITS) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_of_a_view_has_the_pixels_of_the_picture() {
        let data: Vec<u8> = (0..5 * 4 * 3).collect();
        let image = Image::new(5, 4, Channels::Rgb, data).unwrap();
        let part = image.view().subview(1, 1, 3, 3).unwrap();
        let part = part.subview(1, 0, 2, 2).unwrap();
        let rows: Vec<&[u8]> = part.rows().collect();
        assert_eq!(rows, [&[21, 22, 23, 24, 25, 26], &[36, 37, 38, 39, 40, 41]]);
        assert_eq!(part.to_image().data(), rows.concat());
        assert!(part.subview(1, 0, 2, 2).is_err());
        assert!(part.subview(0, usize::MAX, 1, 2).is_err());
        assert!(part.subview(0, 0, 0, 1).is_err());
    }

    #[test]
    fn what_holds_no_picture_is_refused() {
        let gray = Channels::Gray;
        assert!(Image::new(0, 1, gray, vec![]).is_err());
        assert!(Image::new(2, 2, gray, vec![0; 5]).is_err());
        assert!(Image::new(usize::MAX, 2, Channels::Rgba, vec![]).is_err());
        assert!(ImageView::new(&[0; 7], 3, 2, gray, 4).is_ok());
        assert!(ImageView::new(&[0; 6], 3, 2, gray, 4).is_err());
        assert!(ImageView::new(&[0; 7], 3, 2, gray, 2).is_err());
        assert!(ImageView::new(&[0; 7], 3, 2, gray, usize::MAX).is_err());
    }

    #[test]
    fn a_picture_on_white_is_white_where_it_is_transparent() {
        assert_eq!((on_white(7, 0), on_white(7, 255)), (255, 7));
        assert_eq!((on_white(0, 128), on_white(255, 13)), (127, 255));
    }
}
