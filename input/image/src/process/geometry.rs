//! Which pixels are made: the size that a picture is resized to, and what is cut from its middle.

use super::Reference;
use crate::{ImageError, Result};

/// The key `size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// `height` and `width`.
    Exact(usize, usize),
    /// `shortest_edge`: the other side keeps the ratio, cut to a whole number.
    Shortest(usize),
    /// `shortest_edge` and `longest_edge`: as before, unless the other side would be longer than that.
    Between(usize, usize),
    /// `max_height` and `max_width`: the largest size of the same ratio that fits.
    Within(usize, usize),
}

impl Size {
    /// Height and width that a picture of a height and a width is resized to.
    ///
    /// # Errors
    /// [`ImageError::Size`] where a side would be 0 or could not be counted.
    pub(super) fn of(self, height: usize, width: usize) -> Result<(usize, usize)> {
        let (high, wide) = (height as f64, width as f64);
        // Products of whole numbers are exact, as Python's are, as long as they are below 2^53.
        let scaled = |edge: f64, long: f64, short: f64| (edge * long / short) as usize;
        let to = match self {
            Self::Exact(height, width) => (height, width),
            Self::Shortest(edge) if width <= height => (scaled(edge as f64, high, wide), edge),
            Self::Shortest(edge) => (edge, scaled(edge as f64, wide, high)),
            Self::Between(edge, longest) => {
                let (short, long) = (high.min(wide), high.max(wide));
                let (mut edge, mut real) = (edge, edge as f64);
                if long / short * real > longest as f64 {
                    real = longest as f64 * short / long;
                    edge = real.round_ties_even() as usize;
                }
                if height.min(width) == edge {
                    (height, width)
                } else if width < height {
                    ((real * high / wide) as usize, edge)
                } else {
                    (edge, (real * wide / high) as usize)
                }
            }
            Self::Within(most_high, most_wide) => {
                let scale = (most_high as f64 / high).min(most_wide as f64 / wide);
                ((high * scale) as usize, (wide * scale) as usize)
            }
        };
        match to {
            (0, _) | (_, 0) => Err(ImageError::Size(format!(
                "a picture of {width} x {height} pixels would be resized to {} x {}",
                to.1, to.0
            ))),
            to => Ok(to),
        }
    }
}

/// One side of the input: which of its places show a pixel of the resized picture. The others are padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    /// Pixels of the resized picture.
    whole: usize,
    /// Places.
    len: usize,
    /// Places before the first that shows a pixel.
    before: usize,
    /// The first pixel that shows, and how many do.
    shown: (usize, usize),
}

impl Axis {
    pub(super) fn new(whole: usize) -> Self {
        Self {
            whole,
            len: whole,
            before: 0,
            shown: (0, whole),
        }
    }

    /// Cuts `to` places from the middle, or pads to as many on both sides.
    pub(super) fn crop(&mut self, to: usize, reference: Reference) {
        if to >= self.len {
            let missing = to - self.len;
            // An odd place goes before with numpy, and behind with torchvision.
            self.before += match reference {
                Reference::Pillow => missing.div_ceil(2),
                Reference::Torchvision => missing / 2,
            };
        } else {
            let cut = (self.len - to) / 2;
            let (first, count) = self.shown;
            let lost = cut.saturating_sub(self.before).min(count);
            self.before = self.before.saturating_sub(cut).min(to);
            self.shown = (first + lost, (count - lost).min(to - self.before));
        }
        self.len = to;
    }

    /// Pixels of the resized picture.
    pub(super) fn whole(&self) -> usize {
        self.whole
    }

    /// Places of the input.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Places before the first that shows a pixel.
    pub(super) fn before(&self) -> usize {
        self.before
    }

    /// The first pixel that shows.
    pub(super) fn first(&self) -> usize {
        self.shown.0
    }

    /// Pixels that show.
    pub(super) fn count(&self) -> usize {
        self.shown.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of an axis after crops, done place by place: `None` is padding.
    fn places(whole: usize, crops: &[usize], reference: Reference) -> Vec<Option<usize>> {
        let mut places: Vec<Option<usize>> = (0..whole).map(Some).collect();
        for &to in crops {
            let missing = to.saturating_sub(places.len());
            let before = match reference {
                Reference::Pillow => missing.div_ceil(2),
                Reference::Torchvision => missing / 2,
            };
            let mut padded = vec![None; before];
            padded.extend(&places);
            padded.resize(places.len() + missing, None);
            let cut = (padded.len() - to) / 2;
            places = padded[cut..][..to].to_vec();
        }
        places
    }

    #[test]
    fn an_axis_shows_what_cutting_and_padding_leave() {
        for reference in [Reference::Pillow, Reference::Torchvision] {
            for whole in 1..8 {
                for crops in [[1, 1], [3, 6], [6, 3], [9, 4], [4, 9], [2, 7]] {
                    let mut axis = Axis::new(whole);
                    for to in crops {
                        axis.crop(to, reference);
                    }
                    let mut shown = vec![None; axis.len()];
                    for at in 0..axis.count() {
                        shown[axis.before() + at] = Some(axis.first() + at);
                    }
                    assert_eq!(shown, places(whole, &crops, reference), "{whole} {crops:?}");
                }
            }
        }
    }

    #[test]
    fn sizes_keep_the_ratio_as_python_does() {
        let shortest = Size::Shortest(224);
        assert_eq!(shortest.of(480, 640).unwrap(), (224, 298));
        assert_eq!(shortest.of(640, 480).unwrap(), (298, 224));
        assert_eq!(shortest.of(224, 224).unwrap(), (224, 224));
        assert_eq!(Size::Between(800, 1333).of(480, 640).unwrap(), (800, 1066));
        assert_eq!(Size::Between(800, 1333).of(300, 900).unwrap(), (444, 1333));
        assert_eq!(Size::Between(300, 1333).of(300, 900).unwrap(), (300, 900));
        assert_eq!(Size::Within(100, 50).of(480, 640).unwrap(), (37, 50));
        assert!(Size::Within(1, 1).of(1, 640).is_err());
    }
}
