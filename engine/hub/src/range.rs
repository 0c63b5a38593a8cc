//! The part of a file that an answer says it brings: `Content-Range`, RFC 9110, section 14.4.

/// A satisfied range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRange {
    /// The first byte.
    pub first: u64,
    /// The last one, which is part of it.
    pub last: u64,
    /// The size of the whole, where the server says.
    pub total: Option<u64>,
}

impl ContentRange {
    /// Reads `bytes 10-99/100` and `bytes 10-99/*`. `None` if it is not a range of bytes, or if the range ends before
    /// it begins or past the end.
    pub fn parse(value: &str) -> Option<Self> {
        let (unit, rest) = value.trim_matches([' ', '\t']).split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (range, total) = rest.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last) = (digits(first)?, digits(last)?);
        let total = match total {
            "*" => None,
            total => Some(digits(total)?),
        };
        let sound = first <= last && total.is_none_or(|total| last < total);
        sound.then_some(Self { first, last, total })
    }

    /// Whether it goes on at that byte of a file of that size.
    pub(super) fn continues(&self, held: u64, size: u64) -> bool {
        self.first == held && self.last < size && self.total.is_none_or(|total| total == size)
    }

    /// How many bytes it has.
    pub(super) fn bytes(&self) -> u64 {
        // What was parsed ends past its beginning; the whole of all numbers is no file.
        (self.last - self.first).saturating_add(1)
    }
}

/// A number as HTTP writes it: digits alone, and no sign.
fn digits(text: &str) -> Option<u64> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        let range = |first, last, total| Some(ContentRange { first, last, total });
        for (text, expected) in [
            ("bytes 10-99/100", range(10, 99, Some(100))),
            (" Bytes 10-49/100\t", range(10, 49, Some(100))),
            ("bytes 0-0/*", range(0, 0, None)),
            ("bytes */100", None),
            ("bytes 10-/100", None),
            ("bytes 10-9/100", None),
            ("bytes 10-100/100", None),
            ("bytes +10-99/100", None),
            ("bytes 10-99/18446744073709551616", None),
            ("lines 10-99/100", None),
            ("10-99/100", None),
            ("", None),
        ] {
            assert_eq!(ContentRange::parse(text), expected, "{text}");
        }
        let all = ContentRange::parse("bytes 0-18446744073709551615/*").expect("a range");
        assert_eq!(all.bytes(), u64::MAX);
    }

    #[test]
    fn a_part_goes_on_where_the_last_one_ended() {
        let part = ContentRange::parse("bytes 10-49/100").expect("a range");
        assert!(part.continues(10, 100));
        assert_eq!(part.bytes(), 40);
        for (held, size) in [(9, 100), (11, 100), (10, 99), (10, 101), (10, 49)] {
            assert!(!part.continues(held, size), "{held} of {size}");
        }
    }
}
