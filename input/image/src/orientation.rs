//! How a picture has to be turned before it is seen as its camera saw it: the tag `Orientation` of EXIF 2.3 and of XMP.

use crate::{Image, ImageView};

/// Tag 274 of EXIF: which way the rows of the file run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Orientation {
    /// 1: as it is to be seen.
    #[default]
    Upright,
    /// 2: left and right are swapped.
    FlippedSideways,
    /// 3: it stands on its head.
    HalfTurn,
    /// 4: top and bottom are swapped.
    FlippedUpsideDown,
    /// 5: rows are columns.
    Transposed,
    /// 6: it has to be turned clockwise.
    QuarterTurn,
    /// 7: rows are columns, from the other corner.
    Transverse,
    /// 8: it has to be turned counterclockwise.
    ThreeQuarterTurn,
}

impl Orientation {
    /// The orientation of a tag's value; that of any other value is upright, as Pillow has it.
    #[must_use]
    pub fn of_tag(value: u16) -> Self {
        match value {
            2 => Self::FlippedSideways,
            3 => Self::HalfTurn,
            4 => Self::FlippedUpsideDown,
            5 => Self::Transposed,
            6 => Self::QuarterTurn,
            7 => Self::Transverse,
            8 => Self::ThreeQuarterTurn,
            _ => Self::Upright,
        }
    }

    /// Reads EXIF (TIFF's directory, with or without `Exif\0\0` before it), then XMP where EXIF says nothing. Damaged
    /// metadata says nothing: a picture is not refused for them.
    pub(crate) fn find(exif: Option<&[u8]>, xmp: Option<&[u8]>) -> Self {
        let tag = exif.and_then(of_exif).or_else(|| xmp.and_then(of_xmp));
        tag.map_or(Self::Upright, Self::of_tag)
    }

    /// The picture as it is to be seen.
    #[must_use]
    pub fn upright(self, image: Image) -> Image {
        if self == Self::Upright {
            return image;
        }
        let (width, height) = (image.width(), image.height());
        let swaps = matches!(
            self,
            Self::Transposed | Self::QuarterTurn | Self::Transverse | Self::ThreeQuarterTurn
        );
        let (to_width, to_height) = if swaps {
            (height, width)
        } else {
            (width, height)
        };
        let from = |x: usize, y: usize| match self {
            Self::Upright => (x, y),
            Self::FlippedSideways => (width - 1 - x, y),
            Self::HalfTurn => (width - 1 - x, height - 1 - y),
            Self::FlippedUpsideDown => (x, height - 1 - y),
            Self::Transposed => (y, x),
            Self::QuarterTurn => (y, height - 1 - x),
            Self::Transverse => (width - 1 - y, height - 1 - x),
            Self::ThreeQuarterTurn => (width - 1 - y, x),
        };
        let pixels = image.channels().count();
        let view: ImageView<'_> = image.view();
        let mut data = Vec::with_capacity(image.data().len());
        for y in 0..to_height {
            for x in 0..to_width {
                let (x, y) = from(x, y);
                data.extend_from_slice(&view.row(y)[x * pixels..][..pixels]);
            }
        }
        let turned = Image::new(to_width, to_height, image.channels(), data);
        turned.unwrap_or(image)
    }
}

/// The tag's value in the first directory of a TIFF, which EXIF is.
fn of_exif(bytes: &[u8]) -> Option<u16> {
    const TAG: u16 = 274;
    const SHORT: u16 = 3;
    let tiff = bytes.strip_prefix(b"Exif\0\0").unwrap_or(bytes);
    let little = match tiff.get(..2)? {
        b"II" => true,
        b"MM" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = tiff.get(at..)?.first_chunk()?;
        Some(if little {
            u16::from_le_bytes(*bytes)
        } else {
            u16::from_be_bytes(*bytes)
        })
    };
    let long = |at: usize| {
        let bytes = tiff.get(at..)?.first_chunk()?;
        Some(if little {
            u32::from_le_bytes(*bytes)
        } else {
            u32::from_be_bytes(*bytes)
        })
    };
    if short(2)? != 42 {
        return None;
    }
    let directory = usize::try_from(long(4)?).ok()?;
    let entries = usize::from(short(directory)?);
    let entry = (0..entries)
        .filter_map(|at| directory.checked_add(2 + at * 12))
        .find(|&at| short(at) == Some(TAG))?;
    (short(entry + 2)? == SHORT && long(entry + 4)? >= 1)
        .then(|| short(entry + 8))
        .flatten()
}

/// The value of `tiff:Orientation`, as an attribute or as an element.
fn of_xmp(bytes: &[u8]) -> Option<u16> {
    const NAME: &[u8] = b"tiff:Orientation";
    let after = |at: usize| {
        let rest = bytes[at..].strip_prefix(NAME)?;
        let value = rest
            .strip_prefix(b"=\"")
            .or_else(|| rest.strip_prefix(b">"))?;
        let digit = value.first().filter(|digit| digit.is_ascii_digit())?;
        Some(u16::from(digit - b'0'))
    };
    (0..bytes.len()).find_map(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of TIFF with the tag among others.
    fn exif(little: bool, kind: u16, value: u16) -> Vec<u8> {
        let short = |n: u16| {
            if little {
                n.to_le_bytes()
            } else {
                n.to_be_bytes()
            }
        };
        let long = |n: u32| {
            if little {
                n.to_le_bytes()
            } else {
                n.to_be_bytes()
            }
        };
        let mut bytes = if little {
            b"II".to_vec()
        } else {
            b"MM".to_vec()
        };
        bytes.extend(short(42));
        bytes.extend(long(8));
        bytes.extend(short(2));
        for (tag, value) in [(271, 9), (274, value)] {
            bytes.extend([short(tag), short(kind)].concat());
            bytes.extend(long(1));
            bytes.extend([short(value), short(0)].concat());
        }
        bytes
    }

    #[test]
    fn the_tag_is_read_in_both_byte_orders_and_at_every_length() {
        for little in [true, false] {
            let whole = exif(little, 3, 6);
            assert_eq!(of_exif(&whole), Some(6));
            assert_eq!(of_exif(&[b"Exif\0\0", &whole[..]].concat()), Some(6));
            assert_eq!(of_exif(&exif(little, 4, 6)), None);
            for end in 0..whole.len() - 2 {
                assert_eq!(of_exif(&whole[..end]), None, "{end}");
            }
        }
        let mut far = exif(true, 3, 6);
        far[4..8].fill(0xff);
        assert_eq!(of_exif(&far), None);
    }

    #[test]
    fn xmp_is_asked_where_exif_says_nothing() {
        let attribute = b"<x tiff:Orientation=\"8\"/>";
        assert_eq!(of_xmp(attribute), Some(8));
        assert_eq!(of_xmp(b"<tiff:Orientation>3</tiff:Orientation>"), Some(3));
        assert_eq!(of_xmp(b"tiff:Orientation=\"x\" tiff:Orientation"), None);
        let found = Orientation::find(Some(&exif(true, 3, 3)), Some(attribute));
        assert_eq!(found, Orientation::HalfTurn);
        let found = Orientation::find(Some(b"II*"), Some(attribute));
        assert_eq!(found, Orientation::ThreeQuarterTurn);
        assert_eq!(Orientation::find(None, None), Orientation::Upright);
    }
}
