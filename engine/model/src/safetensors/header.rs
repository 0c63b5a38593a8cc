//! The header of a safetensors file, and the places of the tensors in it.
//!
//! The whole header is checked against the file before it is used: tensors must lie inside the file, must not
//! overlap, and must cover every byte. The caller decides what the tensors mean.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};

/// Bytes of the length field in front of the header.
pub(super) const LENGTH_BYTES: usize = 8;

/// The longest header that is read, the limit of the reference implementation.
const MAX_BYTES: usize = 100_000_000;

/// The header's entry that is not a tensor.
const METADATA: &str = "__metadata__";

/// The fault of a file, for a message that names the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

/// The header of a file. `M` is the type of its `__metadata__`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header<M> {
    /// The `__metadata__`, if there is one.
    pub metadata: Option<M>,
    /// In the order of their places.
    pub tensors: Vec<Place>,
}

/// The place of a tensor, and its entry in the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The tensor's name, which no other of the file has.
    pub name: String,
    /// The element type by its name in the header.
    pub dtype: String,
    /// The extents, outermost first.
    pub shape: Vec<u64>,
    /// Its bytes in the file.
    pub range: Range<usize>,
}

impl Place {
    /// The extents, if it takes as many bytes as they and elements of this size ask for.
    ///
    /// # Errors
    /// [`Malformed`] with both numbers.
    pub fn shape_of(&self, element: usize) -> Result<Vec<usize>, Malformed> {
        let extents = self.shape.iter();
        let shape: Option<Vec<usize>> = extents
            .clone()
            .map(|&extent| usize::try_from(extent).ok())
            .collect();
        let bytes = extents.copied().try_fold(element as u64, u64::checked_mul);
        match (shape, bytes) {
            (Some(shape), Some(bytes)) if bytes == self.range.len() as u64 => Ok(shape),
            (_, bytes) => Err(Malformed(format!(
                "tensor {} is {} {:?}, which takes {} bytes, but has {}",
                self.name,
                self.dtype,
                self.shape,
                bytes.map_or_else(|| "more than 2^64".into(), |bytes| bytes.to_string()),
                self.range.len()
            ))),
        }
    }
}

/// Where the header lies in a file of `len` bytes that begins so.
///
/// # Errors
/// [`Malformed`] when there cannot be one of the length that it claims.
pub fn place_of_header(start: &[u8], len: usize) -> Result<Range<usize>, Malformed> {
    let Some(length) = start.first_chunk::<LENGTH_BYTES>() else {
        return Err(Malformed(format!(
            "a safetensors file starts with 8 bytes of header length; this one has {len} in all"
        )));
    };
    let length = u64::from_le_bytes(*length);
    let rest = len.saturating_sub(LENGTH_BYTES);
    let bytes = usize::try_from(length)
        .ok()
        .filter(|&bytes| bytes <= rest && bytes <= MAX_BYTES)
        .ok_or_else(|| {
            Malformed(format!(
                "it claims a header of {length} bytes, but {rest} follow (the limit is \
                 {MAX_BYTES}); it is cut short or not safetensors"
            ))
        })?;
    Ok(LENGTH_BYTES..LENGTH_BYTES + bytes)
}

/// What stands before the tensors' bytes in a file: the header's length, and the header, filled up with spaces so that they begin
/// at a multiple of 8. Each tensor has a name, a type by its name in the header, its extents and its length in bytes; they lie
/// in this order, one behind the other. `metadata` is its `__metadata__`.
///
/// # Errors
/// Those of writing JSON.
pub fn header_of(
    metadata: &BTreeMap<&str, String>,
    tensors: &[(&str, &str, &[usize], usize)],
) -> serde_json::Result<Vec<u8>> {
    let mut header = Vec::new();
    header.extend_from_slice(br#"{"__metadata__":"#);
    serde_json::to_writer(&mut header, metadata)?;
    let mut end = 0;
    for (name, dtype, shape, length) in tensors {
        let begin = end;
        end += length;
        header.extend_from_slice(format!(r#","{name}":{{"dtype":"{dtype}","shape":"#).as_bytes());
        serde_json::to_writer(&mut header, shape)?;
        header.extend_from_slice(format!(r#","data_offsets":[{begin},{end}]}}"#).as_bytes());
    }
    header.push(b'}');
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut head = (header.len() as u64).to_le_bytes().to_vec();
    head.extend(header);
    Ok(head)
}

/// Reads a header that ends at `behind` in a file of `len` bytes.
///
/// # Errors
/// [`Malformed`] when it does not follow the format, and when offsets overlap, leave holes or point outside the file.
pub fn read_header<M: DeserializeOwned>(
    header: &[u8],
    behind: usize,
    len: usize,
) -> Result<Header<M>, Malformed> {
    let wrong = |error: &dyn fmt::Display| {
        Malformed(format!(
            "its header is not a valid safetensors header: {error}"
        ))
    };
    // All of it is text, also what is passed over.
    let header = std::str::from_utf8(header).map_err(|error| wrong(&error))?;
    // Not `from_str`: one reader of JSON keeps the page's module small.
    let Entries {
        metadata,
        mut tensors,
    } = serde_json::from_slice(header.as_bytes()).map_err(|error| wrong(&error))?;
    let size = len.saturating_sub(behind);
    let mut names = HashSet::with_capacity(tensors.len());
    if let Some((twice, _)) = tensors
        .iter()
        .find(|(name, _)| !names.insert(name.as_str()))
    {
        return Err(Malformed(format!("its header names tensor {twice} twice")));
    }
    // In the order of their places, so that an overlap or a hole shows between neighbours. The
    // name makes the order, and with it the message, the same on every run.
    tensors.sort_by(|(a, one), (b, other)| (one.data_offsets, a).cmp(&(other.data_offsets, b)));
    let mut end = 0u64;
    let mut places: Vec<Place> = Vec::with_capacity(tensors.len());
    for (name, entry) in tensors {
        let (from, to) = entry.data_offsets;
        if from > to || to > size as u64 {
            return Err(Malformed(format!(
                "tensor {name} lies at bytes {from} to {to} of {size}"
            )));
        }
        let previous = || places.last().map_or("the header", |place| &*place.name);
        if from < end {
            return Err(Malformed(format!(
                "tensor {name} starts at byte {from} and overlaps {}, which ends at {end}",
                previous()
            )));
        }
        if from > end {
            return Err(Malformed(format!(
                "no tensor holds bytes {end} to {from}, between {} and tensor {name}",
                previous()
            )));
        }
        end = to;
        places.push(Place {
            name,
            dtype: entry.dtype,
            shape: entry.shape,
            // In range: `to` is at most the length of the file, which is a `usize`.
            range: behind + from as usize..behind + to as usize,
        });
    }
    if end != size as u64 {
        return Err(Malformed(format!(
            "{} bytes follow the last tensor",
            size as u64 - end
        )));
    }
    Ok(Header {
        metadata,
        tensors: places,
    })
}

/// The header's entries in file order, doubles included, so that a double can be refused.
struct Entries<M> {
    metadata: Option<M>,
    tensors: Vec<(String, Entry)>,
}

/// What a header says of one tensor.
#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl<'de, M: DeserializeOwned> Deserialize<'de> for Entries<M> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Read(PhantomData))
    }
}

struct Read<M>(PhantomData<M>);

impl<'de, M: DeserializeOwned> Visitor<'de> for Read<M> {
    type Value = Entries<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one entry a tensor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<M>, A::Error> {
        let mut metadata = None;
        let mut tensors = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == METADATA {
                let value = map
                    .next_value()
                    .map_err(|error| A::Error::custom(format!("{METADATA}: {error}")))?;
                if metadata.replace(value).is_some() {
                    return Err(A::Error::custom(format!("it has {METADATA} twice")));
                }
                continue;
            }
            let entry = map
                .next_value::<Entry>()
                .map_err(|error| A::Error::custom(format!("tensor {name}: {error}")))?;
            tensors.push((name, entry));
        }
        Ok(Entries { metadata, tensors })
    }
}
