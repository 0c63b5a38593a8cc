//! Compressed bodies: zstd and gzip, at once in memory and never past a bound.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::failure::{Failure, Kind};

/// Asks the server for a compressed answer at this level, in the first coding of `accept-encoding` that it knows. Without it
/// answers are not compressed: most clients accept codings, and few are far enough away for them to pay.
pub const LEVEL: HeaderName = HeaderName::from_static("x-isovec-compress");

/// A body of fewer bytes is not compressed: it fits into a packet.
pub const LEAST: usize = 1024;

/// The memory that a body of zstd may ask its reader for, as a power of two (RFC 8878, 3.1.1.1.2, asks for 8 MiB).
const LARGEST_WINDOW: u32 = 23;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// RFC 8878.
    Zstd,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    /// The name in `content-encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The levels that there are, from the fastest to the smallest.
    pub fn levels(self) -> std::ops::RangeInclusive<u32> {
        match self {
            // From 20 on zstd asks the reader for more memory than `LARGEST_WINDOW`.
            Self::Zstd => 1..=19,
            Self::Gzip => 1..=9,
        }
    }

    /// The bytes of a body, compressed. A level beyond the coding's is its last.
    ///
    /// # Errors
    /// The library's, which has none for bytes in memory.
    pub fn encode(self, body: &[u8], level: u32) -> io::Result<Vec<u8>> {
        let level = level.clamp(*self.levels().start(), *self.levels().end());
        match self {
            Self::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), level as i32)?;
                encoder.window_log(LARGEST_WINDOW.min(window(body.len())))?;
                encoder.write_all(body)?;
                encoder.finish()
            }
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(level));
                encoder.write_all(body)?;
                encoder.finish()
            }
        }
    }

    /// The bytes that a compressed body stands for.
    ///
    /// # Errors
    /// More than `most` bytes, and what is not of this coding.
    pub fn decode(self, body: &[u8], most: usize) -> Result<Bytes, Failure> {
        let mut whole = Vec::new();
        let read = match self {
            Self::Zstd => zstd::Decoder::new(body).and_then(|mut decoder| {
                decoder.window_log_max(LARGEST_WINDOW)?;
                read_up_to(decoder, most, &mut whole)
            }),
            Self::Gzip => read_up_to(MultiGzDecoder::new(body), most, &mut whole),
        };
        if whole.len() > most {
            let message =
                format!("the body is larger than {most} bytes when it is no longer compressed");
            return Err(Failure::new(Kind::TooLarge, message));
        }
        match read {
            Ok(()) => Ok(whole.into()),
            Err(error) => Err(Failure::new(
                Kind::Invalid,
                format!("the body cannot be read as {self}: {error}"),
            )),
        }
    }
}

/// One byte more than the bound tells that there is more.
fn read_up_to(reader: impl Read, most: usize, whole: &mut Vec<u8>) -> io::Result<()> {
    let limit = (most as u64).saturating_add(1);
    reader.take(limit).read_to_end(whole).map(drop)
}

/// The power of two that a body of this length fits into; zstd has none below 10.
fn window(length: usize) -> u32 {
    (usize::BITS - length.leading_zeros()).max(10)
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Coding> for HeaderValue {
    fn from(coding: Coding) -> Self {
        Self::from_static(coding.name())
    }
}

impl FromStr for Coding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "zstd" => Ok(Self::Zstd),
            "gzip" => Ok(Self::Gzip),
            _ => Err(format!("there is no coding {name:?}; write zstd or gzip")),
        }
    }
}

/// How the body behind this head is compressed; `None` if it is not.
///
/// # Errors
/// A coding that is not known, and more than one.
pub fn of(headers: &HeaderMap) -> Result<Option<Coding>, Failure> {
    let mut values = headers.get_all(CONTENT_ENCODING).iter();
    let (value, more) = (values.next(), values.next());
    let name = value.map(|value| value.as_bytes().trim_ascii().to_ascii_lowercase());
    match (name.as_deref(), more) {
        (None | Some(b"" | b"identity"), None) => Ok(None),
        (Some(b"zstd"), None) => Ok(Some(Coding::Zstd)),
        (Some(b"gzip" | b"x-gzip"), None) => Ok(Some(Coding::Gzip)),
        _ => Err(Failure::new(
            Kind::MediaType,
            "the content-encoding is not known; send zstd, gzip or none",
        )),
    }
}

/// The coding and the level that a request asks for its answer.
pub fn asked(headers: &HeaderMap) -> Option<(Coding, u32)> {
    let level = headers.get(LEVEL)?.to_str().ok()?.trim().parse().ok()?;
    let accepted = headers.get(ACCEPT_ENCODING)?.to_str().ok()?;
    let coding = accepted
        .split(',')
        .find_map(|name| name.trim().parse().ok())?;
    Some((coding, level))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const BOTH: [Coding; 2] = [Coding::Zstd, Coding::Gzip];

    fn text() -> Vec<u8> {
        (0..20_000)
            .flat_map(|at| format!("{at},").into_bytes())
            .collect()
    }

    #[test]
    fn what_was_compressed_comes_back_and_is_smaller() {
        for coding in BOTH {
            for level in [0, 1, 5, 99] {
                let small = coding.encode(&text(), level).unwrap();
                assert!(
                    small.len() * 2 < text().len(),
                    "{coding} {level}: {}",
                    small.len()
                );
                assert_eq!(coding.decode(&small, text().len()).unwrap(), text());
            }
            assert_eq!(
                coding.decode(&coding.encode(b"", 1).unwrap(), 0).unwrap(),
                ""
            );
        }
    }

    #[test]
    fn a_body_that_becomes_too_large_is_read_no_further() {
        let zeros = vec![0; 8 << 20];
        for coding in BOTH {
            let bomb = coding.encode(&zeros, 9).unwrap();
            assert!(bomb.len() < 64 << 10);
            let failure = coding.decode(&bomb, zeros.len() - 1).unwrap_err();
            assert_eq!(failure.kind, Kind::TooLarge);
            assert!(coding.decode(&bomb, zeros.len()).is_ok());
        }
    }

    #[test]
    fn a_body_that_is_cut_or_of_another_coding_is_an_error() {
        for (coding, other) in [(Coding::Zstd, Coding::Gzip), (Coding::Gzip, Coding::Zstd)] {
            let whole = coding.encode(&text(), 1).unwrap();
            for body in [
                &whole[..whole.len() / 2],
                &b"{}"[..],
                &other.encode(b"{}", 1).unwrap(),
            ] {
                let failure = coding.decode(body, 1 << 20).unwrap_err();
                assert_eq!(failure.kind, Kind::Invalid, "{}", failure.message);
            }
        }
    }

    #[test]
    fn a_head_names_one_coding() {
        let read = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
            }
            of(&headers)
        };
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&["identity"]).unwrap(), None);
        assert_eq!(read(&[" ZSTD"]).unwrap(), Some(Coding::Zstd));
        assert_eq!(read(&["gzip"]).unwrap(), Some(Coding::Gzip));
        for values in [&["br"][..], &["gzip, zstd"], &["gzip", "gzip"]] {
            assert_eq!(
                read(values).unwrap_err().kind,
                Kind::MediaType,
                "{values:?}"
            );
        }
    }

    #[test]
    fn an_answer_is_compressed_where_both_headers_ask_for_it() {
        let read = |pairs: &[(HeaderName, &'static str)]| {
            let pairs = pairs.iter().cloned();
            asked(
                &pairs
                    .map(|(name, value)| (name, HeaderValue::from_static(value)))
                    .collect(),
            )
        };
        assert_eq!(read(&[(ACCEPT_ENCODING, "gzip, zstd")]), None);
        assert_eq!(read(&[(LEVEL, "3")]), None);
        let both = [(ACCEPT_ENCODING, "br, zstd, gzip"), (LEVEL, "3")];
        assert_eq!(read(&both), Some((Coding::Zstd, 3)));
        assert_eq!(read(&[(ACCEPT_ENCODING, "br"), (LEVEL, "3")]), None);
        assert_eq!(read(&[(ACCEPT_ENCODING, "gzip"), (LEVEL, "high")]), None);
    }
}
