//! Reads ONNX files that are stored elsewhere, without copying their large tensors.
//!
//! The format has all tensors in one message, which is decoded as a whole. So this module copies the file without the
//! raw bytes of its large initializers, and notes the place of each in the file. It writes nothing into the tensors
//! themselves: all their other fields mean the same as in memory.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use isovec_engine::content::Content;
use isovec_engine::onnx::proto::field;
use prost::encoding::encode_varint;

/// Raw bytes of at least this many stay where they are.
const LARGE: usize = 64 << 10;

/// Bytes that are asked for at once.
const WINDOW: usize = 64 << 10;

/// A file without its large tensors.
pub(super) struct Shortened {
    pub(super) bytes: Bytes,
    /// Where raw bytes lie in the file that were left out, by the place of their tensor among the graph's initializers,
    /// in its order.
    pub(super) places: Vec<(usize, Range<usize>)>,
}

/// The file without its large tensors. `None` for a file in memory, which needs no copy, and for
/// one that is not well formed: decoding the whole of it says what is wrong.
pub(super) fn shortened(file: &Content) -> io::Result<Option<Shortened>> {
    if file.in_memory() {
        return Ok(None);
    }
    let mut reader = Reader {
        file,
        window: Bytes::new(),
        from: 0,
        initializers: 0,
        places: Vec::new(),
    };
    let mut out = Vec::new();
    match reader.message(Kind::Model, 0..file.len(), &mut out) {
        Ok(_) => Ok(Some(Shortened {
            bytes: out.into(),
            places: reader.places,
        })),
        Err(Stop::Malformed) => Ok(None),
        Err(Stop::Unread(error)) => Err(error),
    }
}

enum Stop {
    Malformed,
    Unread(io::Error),
}

/// The messages on the way to a tensor's bytes.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Tensor,
}

struct Reader<'f> {
    file: &'f Content,
    /// Some of the file's bytes, from there on.
    window: Bytes,
    from: usize,
    /// Initializers so far.
    initializers: usize,
    places: Vec<(usize, Range<usize>)>,
}

impl Reader<'_> {
    /// Copies the message in `range`, and says which raw bytes were left out of it. The numbers of fields are those of
    /// `onnx.proto`.
    fn message(
        &mut self,
        kind: Kind,
        range: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Range<usize>>, Stop> {
        let mut at = range.start;
        let mut raw = None;
        let mut raw_fields = 0;
        while at < range.end {
            let start = at;
            let key = self.varint(&mut at)?;
            let behind_key = at;
            let length = match key & 7 {
                0 => self.varint(&mut at).map(|_| 0)?,
                1 => 8,
                5 => 4,
                2 => self.varint(&mut at)?,
                _ => return Err(Stop::Malformed),
            };
            let end = usize::try_from(length)
                .ok()
                .and_then(|length| at.checked_add(length))
                .filter(|&end| end <= range.end)
                .ok_or(Stop::Malformed)?;
            let body = at..end;
            at = end;
            if let (Kind::Tensor, RAW_DATA) = (kind, key) {
                // Of a field that occurs twice the last one counts: too odd to be followed.
                raw_fields += 1;
                if raw_fields > 1 {
                    return Err(Stop::Malformed);
                }
                if body.len() >= LARGE {
                    raw = Some(body);
                    continue;
                }
            }
            let inner = match (kind, key) {
                (Kind::Model, GRAPH) => Kind::Graph,
                (Kind::Graph, INITIALIZER) => Kind::Tensor,
                _ => {
                    self.copy(start..end, out)?;
                    continue;
                }
            };
            let mut message = Vec::new();
            let place = self.message(inner, body, &mut message)?;
            if let Kind::Tensor = inner {
                if let Some(place) = place {
                    self.places.push((self.initializers, place));
                }
                self.initializers += 1;
            }
            self.copy(start..behind_key, out)?;
            encode_varint(message.len() as u64, out);
            out.append(&mut message);
        }
        Ok(raw)
    }

    fn varint(&mut self, at: &mut usize) -> Result<u64, Stop> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(*at)?;
            *at += 1;
            // The tenth byte has room for one bit; the decoder refuses more, so it has to see it.
            if shift == 63 && byte > 1 {
                return Err(Stop::Malformed);
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Stop::Malformed)
    }

    fn byte(&mut self, at: usize) -> Result<u8, Stop> {
        if !(self.from..self.from + self.window.len()).contains(&at) {
            let window = at..self.file.len().min(at.saturating_add(WINDOW));
            self.window = self.bytes(window)?;
            self.from = at;
        }
        self.window
            .get(at - self.from)
            .copied()
            .ok_or(Stop::Malformed)
    }

    fn copy(&mut self, range: Range<usize>, out: &mut Vec<u8>) -> Result<(), Stop> {
        let inside = range.start.checked_sub(self.from).and_then(|from| {
            let to = range.end - self.from;
            self.window.get(from..to)
        });
        match inside {
            Some(bytes) => out.extend_from_slice(bytes),
            None => out.extend_from_slice(&self.bytes(range)?),
        }
        Ok(())
    }

    fn bytes(&self, range: Range<usize>) -> Result<Bytes, Stop> {
        let part = self.file.part(range).ok_or(Stop::Malformed)?;
        part.bytes().map_err(Stop::Unread)
    }
}

/// Keys of fields: the number and 2, for something with a length.
const GRAPH: u64 = 7 << 3 | 2;
const INITIALIZER: u64 = 5 << 3 | 2;
const RAW_DATA: u64 = (field::RAW as u64) << 3 | 2;
