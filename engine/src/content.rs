//! The content of a file: bytes in memory, or bytes that are stored elsewhere and are lent or copied range by range.
//!
//! A page holds a model's files in JavaScript's memory. WebAssembly memory never shrinks, so weights are never copied
//! into it as a whole. Natively a large file is mapped, and its pages belong to the process only while a part of it
//! is lent.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::maybe_send::{MaybeSend, MaybeSync};

/// Bytes of a piece: large enough that asking for it costs nothing, small enough for caches. Whole
/// elements of every type.
const PIECE: usize = 256 << 10;

/// Bytes of a piece that is lent: enough for all cores to share the work on it.
const LENT_PIECE: usize = 4 << 20;

/// Bytes that are stored elsewhere.
pub trait ByteSource: MaybeSend + MaybeSync + Debug {
    /// How many there are.
    fn size(&self) -> usize;

    /// Fills `into` with the bytes that begin at `from`.
    ///
    /// # Errors
    /// When they cannot be had, or end before `into` is full.
    fn read(&self, from: usize, into: &mut [u8]) -> io::Result<()>;

    /// A part of them without a copy, where there is such a way. When the last clone of it is dropped, the memory that
    /// it took is given back.
    fn lend(&self, _range: Range<usize>) -> Option<Bytes> {
        None
    }
}

/// The content of a file, or a part of it. Cloning copies nothing.
#[derive(Debug, Clone)]
pub struct Content(Held);

#[derive(Debug, Clone)]
enum Held {
    Here(Bytes),
    Elsewhere {
        source: Arc<dyn ByteSource>,
        range: Range<usize>,
    },
}

impl Content {
    /// All bytes of a source.
    pub fn elsewhere(source: impl ByteSource + 'static) -> Self {
        let range = 0..source.size();
        let source = Arc::new(source);
        Self(Held::Elsewhere { source, range })
    }

    /// Whether it is in memory already, for as long as it lives.
    pub fn in_memory(&self) -> bool {
        matches!(self.0, Held::Here(_))
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Held::Here(bytes) => bytes.len(),
            Held::Elsewhere { range, .. } => range.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part of it; `None` where it does not reach that far.
    pub fn part(&self, part: Range<usize>) -> Option<Self> {
        if part.start > part.end || part.end > self.len() {
            return None;
        }
        Some(Self(match &self.0 {
            Held::Here(bytes) => Held::Here(bytes.slice(part)),
            Held::Elsewhere { source, range } => Held::Elsewhere {
                source: Arc::clone(source),
                range: range.start + part.start..range.start + part.end,
            },
        }))
    }

    /// All of it in memory: lent or copied if it is stored elsewhere.
    ///
    /// # Errors
    /// The error of the source.
    pub fn bytes(&self) -> io::Result<Bytes> {
        match &self.0 {
            Held::Here(bytes) => Ok(bytes.clone()),
            Held::Elsewhere { source, range } => {
                if let Some(bytes) = source.lend(range.clone()) {
                    return Ok(bytes);
                }
                let mut bytes = vec![0; range.len()];
                source.read(range.start, &mut bytes)?;
                Ok(bytes.into())
            }
        }
    }

    /// All of it without a copy, where it is stored elsewhere and can be lent: whoever keeps it keeps no memory of the process's own.
    pub fn lent(&self) -> Option<Bytes> {
        match &self.0 {
            Held::Here(_) => None,
            Held::Elsewhere { source, range } => source.lend(range.clone()),
        }
    }

    /// Passes it on in order: in one piece if it is in memory, else in pieces of at most some megabytes if they are
    /// lent, or a few hundred kilobytes if they are copied. All pieces except the last hold whole elements of every
    /// type.
    ///
    /// # Errors
    /// The error of `take`, or the result of `unread` for the source's error.
    pub fn pieces<E>(
        &self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
        unread: impl FnOnce(io::Error) -> E,
    ) -> Result<(), E> {
        let (source, range) = match &self.0 {
            Held::Here(bytes) => return take(bytes),
            Held::Elsewhere { source, range } => (source, range.clone()),
        };
        if source.lend(range.start..range.start).is_some() {
            for from in range.clone().step_by(LENT_PIECE) {
                let Some(piece) = source.lend(from..range.end.min(from + LENT_PIECE)) else {
                    return Err(unread(io::ErrorKind::UnexpectedEof.into()));
                };
                take(&piece)?;
            }
            return Ok(());
        }
        let mut piece = vec![0; PIECE.min(range.len())];
        for from in range.clone().step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(range.end - from)];
            if let Err(error) = source.read(from, piece) {
                return Err(unread(error));
            }
            take(piece)?;
        }
        Ok(())
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self(Held::Here(bytes))
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Held::Here(bytes.into()))
    }
}

/// Equal bytes in memory, or the same part of the same source.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Held::Here(one), Held::Here(other)) => one == other,
            (
                Held::Elsewhere { source, range },
                Held::Elsewhere {
                    source: other,
                    range: part,
                },
            ) => Arc::ptr_eq(source, other) && range == part,
            _ => false,
        }
    }
}

impl Eq for Content {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Counted(usize);

    fn byte(at: usize) -> u8 {
        (at % 251) as u8
    }

    impl ByteSource for Counted {
        fn size(&self) -> usize {
            self.0
        }

        fn read(&self, from: usize, into: &mut [u8]) -> io::Result<()> {
            assert!(from + into.len() <= self.0);
            for (at, into) in into.iter_mut().enumerate() {
                *into = byte(from + at);
            }
            Ok(())
        }
    }

    #[test]
    fn parts_and_pieces_are_the_same_bytes_wherever_they_are_kept() {
        let len = 2 * PIECE + 12345;
        let here = Content::from((0..len).map(byte).collect::<Vec<u8>>());
        let elsewhere = Content::elsewhere(Counted(len));
        for part in [0..len, 0..0, 7..PIECE + 7, PIECE..2 * PIECE, len - 3..len] {
            let (one, other) = (here.part(part.clone()), elsewhere.part(part.clone()));
            let (one, other) = (one.unwrap(), other.unwrap());
            assert_eq!((one.len(), other.len()), (part.len(), part.len()));
            let expected = one.bytes().unwrap();
            assert_eq!(other.bytes().unwrap(), expected);
            let mut gathered = Vec::new();
            let gather = |piece: &[u8]| {
                assert!(piece.len() <= PIECE);
                gathered.extend_from_slice(piece);
                Ok(())
            };
            other.pieces(gather, |error| error).unwrap();
            assert_eq!(gathered, expected);
            assert_eq!(other, other.clone());
            assert_ne!(one, other);
        }
        for content in [here, elsewhere] {
            assert!(content.part(0..len + 1).is_none());
            let inner = content.part(10..20).unwrap();
            assert!(inner.part(5..11).is_none(), "not past its own end");
        }
    }
}
