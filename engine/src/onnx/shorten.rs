//! ONNX files that are kept elsewhere, without copying their large tensors.
//!
//! The format has all tensors in one message, which is decoded as a whole. So the file is copied
//! without the raw bytes of its large initializers, and each of these becomes what the format
//! calls external data, with the file itself as the place where it is.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use prost::Message;
use prost::encoding::encode_varint;

use super::proto::{DATA_LOCATION_EXTERNAL, StringStringEntryProto, TensorProto};
use crate::content::Content;

/// The location of external data that lies in the model's file. No path is written so.
pub(super) const ITSELF: &str = "<the model's file>";

/// Raw bytes of at least this many stay where they are.
const LARGE: usize = 64 << 10;

/// Bytes that are asked for at once.
const WINDOW: usize = 64 << 10;

/// The file without its large tensors. `None` for a file in memory, which needs no copy, and for
/// one that is not well formed: decoding the whole of it says what is wrong.
pub(super) fn shortened(file: &Content) -> io::Result<Option<Bytes>> {
    if file.in_memory() {
        return Ok(None);
    }
    let mut reader = Reader {
        file,
        window: Bytes::new(),
        from: 0,
    };
    let mut out = Vec::new();
    match reader.message(Kind::Model, 0..file.len(), &mut out) {
        Ok(()) => Ok(Some(out.into())),
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
}

impl Reader<'_> {
    /// Copies the message in `range`. The numbers of fields are those of `onnx.proto`.
    fn message(&mut self, kind: Kind, range: Range<usize>, out: &mut Vec<u8>) -> Result<(), Stop> {
        let mut at = range.start;
        let mut raw = None;
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
            let inner = match (kind, key) {
                (Kind::Model, GRAPH) => Kind::Graph,
                (Kind::Graph, INITIALIZER) => Kind::Tensor,
                (Kind::Tensor, RAW_DATA) if body.len() >= LARGE => {
                    // Of a field that occurs twice the last one counts: too odd to be followed.
                    if raw.replace(body).is_some() {
                        return Err(Stop::Malformed);
                    }
                    continue;
                }
                _ => {
                    self.copy(start..end, out)?;
                    continue;
                }
            };
            let mut message = Vec::new();
            self.message(inner, body, &mut message)?;
            self.copy(start..behind_key, out)?;
            encode_varint(message.len() as u64, out);
            out.append(&mut message);
        }
        if let Some(place) = raw {
            // Messages that stand one behind the other are one message.
            out.extend(external(&place).encode_to_vec());
        }
        Ok(())
    }

    fn varint(&mut self, at: &mut usize) -> Result<u64, Stop> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(*at)?;
            *at += 1;
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
const RAW_DATA: u64 = 9 << 3 | 2;

/// What a tensor says whose bytes are in that place of the file.
fn external(place: &Range<usize>) -> TensorProto {
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: key.into(),
        value,
    };
    TensorProto {
        data_location: DATA_LOCATION_EXTERNAL,
        external_data: vec![
            entry("location", ITSELF.into()),
            entry("offset", place.start.to_string()),
            entry("length", place.len().to_string()),
        ],
        ..TensorProto::default()
    }
}
