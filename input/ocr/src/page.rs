//! A picture at a size that the detector reads, and the way back from there.

use isovec_image::{Alpha, Channels, Image, PixelValues};

use crate::boxes::{distance, find};
use crate::resize::{planes, resize};
use crate::{OcrError, Quad, Result, warp};

/// The longest side of a page; longer pictures are made smaller.
const LONGEST: usize = 2000;

/// The shortest side of a page; smaller pictures are made larger.
const SHORTEST: usize = 30;

/// Sides are multiples of this wherever a picture is resized for the detector.
const MULTIPLE: usize = 32;

/// A page that is wider than this many times its height gets black above and below.
const WIDEST: usize = 8;

/// The shorter side of the detector's input, at least.
const DETECTED: usize = 736;

/// The most pixels of the detector's input: what a page of 2000 by 2000 takes, four times.
const MOST: u64 = 1 << 24;

/// A crop that is at least this many times as high as wide is turned.
const TALL: f64 = 1.5;

/// A picture on its way to text. Places on it are called places on the page.
#[derive(Debug, Clone)]
pub struct Page {
    picture: Image,
    /// Width and height of the picture as it came.
    size: (usize, usize),
    /// What a place on the page is multiplied by, without the black above, to be one on the picture.
    scale: (f32, f32),
    /// Black rows above the picture.
    above: usize,
    /// Width and height of the detector's input.
    detected: (usize, usize),
}

impl Page {
    /// Brings a picture to a page: no side longer than 2000 pixels nor shorter than 30, and not wider than eight times its height.
    /// Alpha is laid on white, as paper.
    ///
    /// # Errors
    /// [`OcrError::TooNarrow`] for a picture so long and narrow that the detector's input would have more than 16,777,216 pixels.
    pub fn new(picture: Image) -> Result<Self> {
        let size = (picture.width(), picture.height());
        let mut page = size;
        if page.0.max(page.1) > LONGEST {
            page = scaled(page, LONGEST as f64 / page.0.max(page.1) as f64);
        }
        if page.0.min(page.1) < SHORTEST {
            page = scaled(page, SHORTEST as f64 / page.0.min(page.1) as f64);
        }
        let above = match page {
            (width, height) if height <= SHORTEST || width > WIDEST * height => {
                (2 * (width / WIDEST).max(SHORTEST)).abs_diff(height) / 2
            }
            _ => 0,
        };
        let detected = detected((page.0, page.1 + 2 * above));
        let pixels = detected.0 as u64 * detected.1 as u64;
        if pixels > MOST {
            return Err(OcrError::TooNarrow {
                width: size.0,
                height: size.1,
                pixels,
                limit: MOST,
            });
        }
        let picture = resize(picture.into_rgb(Alpha::White).view(), page.0, page.1)?;
        let scale = |from: usize, to: usize| (from as f64 / to as f64) as f32;
        Ok(Self {
            picture: framed(picture, above)?,
            size,
            scale: (scale(size.0, page.0), scale(size.1, page.1)),
            above,
            detected,
        })
    }

    /// A picture that is a page as it is.
    #[cfg(test)]
    pub(crate) fn whole(picture: Image) -> Self {
        let size = (picture.width(), picture.height());
        Self {
            picture,
            size,
            scale: (1.0, 1.0),
            above: 0,
            detected: detected(size),
        }
    }

    /// Width and height of the page.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.picture.width(), self.picture.height())
    }

    /// What the detector reads: `[3, height, width]`, the planes of blue, green and red from -1 to 1, both sides multiples of 32.
    ///
    /// # Errors
    /// None for a page that there is.
    pub fn detector_input(&self) -> Result<PixelValues> {
        let (width, height) = self.detected;
        let resized = resize(self.picture.view(), width, height)?;
        // As numpy computes it: the product in single precision, and the rest in double.
        let values = std::array::from_fn(|byte| {
            let share = f64::from(byte as f32 * (1.0 / 255.0) as f32);
            ((share - 0.5) / 0.5) as f32
        });
        Ok(PixelValues {
            channels: 3,
            height,
            width,
            data: planes(&resized, &values, width, 0.0),
        })
    }

    /// The boxes around lines of text on the page, in the order in which they are read. `map` has the detector's probabilities, a
    /// row for each row of its input.
    ///
    /// # Errors
    /// [`OcrError::Output`] where the map is not as large as the input, or not finite.
    pub fn boxes(&self, map: &[f32]) -> Result<Vec<Quad>> {
        let (width, height) = self.detected;
        let refused = |got: String| OcrError::Output {
            network: "the detector",
            got,
            wanted: format!("a finite probability for each of {width} x {height} pixels"),
        };
        if map.len() != width * height {
            return Err(refused(format!("{} values", map.len())));
        }
        if let Some(value) = map.iter().find(|value| !value.is_finite()) {
            return Err(refused(format!("the value {value}")));
        }
        Ok(find(map, width, height, self.size()))
    }

    /// A box of the page as a level picture: RGB, as wide and high as the box's longer sides. One that is at least 1.5 times as high
    /// as wide is turned by a quarter, counterclockwise. Nothing for corners that enclose nothing.
    ///
    /// # Errors
    /// None for a box of [`boxes`](Self::boxes).
    pub fn crop(&self, corners: &Quad) -> Result<Option<Image>> {
        let [one, two, three, four] = *corners;
        // The casts cut fractions off.
        let width = distance(one, two).max(distance(three, four)) as usize;
        let height = distance(one, four).max(distance(two, three)) as usize;
        if width == 0 || height == 0 {
            return Ok(None);
        }
        let crop = warp::cut(self.picture.view(), corners, width, height)?;
        let crop = crop.map(|crop| match height as f64 / width as f64 >= TALL {
            true => quarter(&crop),
            false => Ok(crop),
        });
        crop.transpose()
    }

    /// A box of the page on the picture as it came, in its pixels.
    #[must_use]
    pub fn on_picture(&self, corners: &Quad) -> Quad {
        let inside = |at: f32, length: usize| at.clamp(0.0, length as f32);
        corners.map(|[x, y]| {
            [
                inside(x * self.scale.0, self.size.0),
                inside((y - self.above as f32) * self.scale.1, self.size.1),
            ]
        })
    }
}

/// Both sides times a factor, as multiples of 32.
fn scaled((width, height): (usize, usize), factor: f64) -> (usize, usize) {
    let side = |side: usize| multiple((side as f64 * factor) as usize);
    (side(width), side(height))
}

/// The nearest multiple of 32, and at least 32; half way the even one.
fn multiple(side: usize) -> usize {
    let count = (side as f64 / MULTIPLE as f64).round_ties_even() as usize;
    count.max(1) * MULTIPLE
}

/// The size of the detector's input for a page.
fn detected(page: (usize, usize)) -> (usize, usize) {
    let shorter = page.0.min(page.1);
    let factor = match shorter < DETECTED {
        true => DETECTED as f64 / shorter as f64,
        false => 1.0,
    };
    scaled(page, factor)
}

/// The picture with black rows above and as many below.
fn framed(picture: Image, above: usize) -> Result<Image> {
    if above == 0 {
        return Ok(picture);
    }
    let (width, height) = (picture.width(), picture.height() + 2 * above);
    let black = above * width * 3;
    let mut data = vec![0; width * height * 3];
    data[black..][..picture.data().len()].copy_from_slice(picture.data());
    Ok(Image::new(width, height, Channels::Rgb, data)?)
}

/// Turned by a quarter, counterclockwise.
fn quarter(picture: &Image) -> Result<Image> {
    let (width, height) = (picture.width(), picture.height());
    let (pixels, _) = picture.data().as_chunks::<3>();
    let columns = (0..width).rev();
    let turned = columns.flat_map(|x| (0..height).map(move |y| pixels[y * width + x]));
    let data = turned.flatten().collect();
    Ok(Image::new(height, width, Channels::Rgb, data)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn black(width: usize, height: usize) -> Image {
        Image::new(width, height, Channels::Gray, vec![0; width * height]).unwrap()
    }

    #[test]
    fn what_is_too_narrow_is_refused_before_it_is_made() {
        let error = Page::new(black(1, 2000)).unwrap_err();
        assert!(matches!(error, OcrError::TooNarrow { .. }), "{error}");
        assert!(Page::new(black(2000, 1)).is_err());
        assert!(Page::new(black(90, 2000)).is_ok());
        // rapidocr cannot read it: it rounds the shorter side to 0.
        let page = Page::new(black(3000, 12)).unwrap();
        assert_eq!(page.size(), (1984, 496));
        let line = [[0.0, 232.0], [1984.0, 232.0], [1984.0, 264.0], [0.0, 264.0]];
        assert_eq!(
            page.on_picture(&line),
            [[0.0, 0.0], [3000.0, 0.0], [3000.0, 12.0], [0.0, 12.0]]
        );
    }

    #[test]
    fn a_map_of_another_size_or_without_numbers_is_refused() {
        let page = Page::new(black(1, 1)).unwrap();
        let input = page.detector_input().unwrap();
        assert_eq!((input.width, input.height), (736, 736));
        assert!(page.boxes(&vec![0.0; 736 * 736]).unwrap().is_empty());
        assert!(page.boxes(&[0.0; 7]).is_err());
        assert!(page.boxes(&vec![f32::NAN; 736 * 736]).is_err());
    }

    #[test]
    fn corners_that_enclose_nothing_have_no_crop() {
        let page = Page::new(black(100, 100)).unwrap();
        let line = [[0.0, 0.0], [10.0, 10.0], [20.0, 20.0], [30.0, 30.0]];
        assert_eq!(page.crop(&line).unwrap(), None);
        assert_eq!(page.crop(&[[5.0, 5.0]; 4]).unwrap(), None);
    }
}
