//! Reading safetensors files: named tensors as parts of the files, of which only the header is read.
//!
//! Format: an 8-byte little-endian header length, a JSON header, then the tensors' bytes
//! (<https://github.com/huggingface/safetensors#format>). The header is foreign data, so
//! everything it says is checked against the file before any of it is used: tensors must lie
//! inside the file, must not overlap, must leave no byte unaccounted for, and must be as long as
//! their type and shape say. Messages name the tensor at fault, which is why this is not the
//! `safetensors` crate's reader: that one also lets a name that occurs twice pass, and adds
//! offsets near 2^64 without a check.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Error as _, MapAccess, Visitor};

use crate::budget::{Budget, Resource};
use crate::content::Content;
use crate::error::{EngineError, Result};
use crate::sniff;
use crate::weights::{IdentityHasher, WeightsIdentity};

/// Bytes of the length field in front of the header.
const LENGTH_BYTES: usize = 8;

/// The longest header that is read, the limit of the reference implementation.
const MAX_HEADER_BYTES: usize = 100_000_000;

/// Memory that each byte of a header can ask for.
const HEADER_COST: u64 = 16;

/// The header's entry that is not a tensor.
const METADATA: &str = "__metadata__";

/// The element types of published checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SourceDType {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
}

impl SourceDType {
    /// Bytes an element takes.
    pub const fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 | Self::I16 => 2,
            Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// The type's name in a safetensors header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "F64",
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
            Self::I64 => "I64",
            Self::I32 => "I32",
            Self::I16 => "I16",
            Self::I8 => "I8",
            Self::U8 => "U8",
            Self::Bool => "BOOL",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [
            Self::F64,
            Self::F32,
            Self::F16,
            Self::BF16,
            Self::I64,
            Self::I32,
            Self::I16,
            Self::I8,
            Self::U8,
            Self::Bool,
        ]
        .into_iter()
        .find(|dtype| dtype.name() == name)
    }
}

impl fmt::Display for SourceDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One tensor of a checkpoint.
#[derive(Debug, Clone)]
pub struct SourceTensor {
    /// The element type as stored.
    pub dtype: SourceDType,
    /// The extents, outermost first.
    pub shape: Vec<usize>,
    /// Little-endian elements, row-major; a part of the file, so its alignment is not promised.
    pub data: Content,
}

/// All tensors of a checkpoint, whether it is one file or several shards.
#[derive(Debug, Clone)]
pub struct TensorSet {
    origin: String,
    tensors: BTreeMap<String, SourceTensor>,
}

impl TensorSet {
    /// Reads one file, or all shards of one checkpoint, given as (file name, contents).
    ///
    /// # Errors
    /// [`EngineError::InvalidModel`], naming the file and the tensor, when a header is not what
    /// the format asks for, when offsets overlap, leave holes or point outside the file, or when
    /// a name occurs twice; [`EngineError::UnsupportedModel`] for an element type not listed in
    /// [`SourceDType`]; [`EngineError::Io`].
    pub fn from_files(origin: &str, files: Vec<(String, Content)>) -> Result<Self> {
        Self::from_files_within(origin, files, &mut Budget::for_files(0))
    }

    /// [`from_files`](Self::from_files) within a budget, to which the sizes of the files are added.
    ///
    /// # Errors
    /// As [`from_files`](Self::from_files); [`EngineError::OverBudget`]; [`EngineError::Cancelled`].
    pub fn from_files_within(
        origin: &str,
        files: Vec<(String, Content)>,
        budget: &mut Budget,
    ) -> Result<Self> {
        let mut tensors = BTreeMap::new();
        let mut homes: BTreeMap<String, String> = BTreeMap::new();
        for (file, data) in files {
            let place = format!("{origin}/{file}");
            for (name, tensor) in read_file(&place, &data, budget)? {
                if let Some(other) = homes.insert(name.clone(), file.clone()) {
                    let detail = if other == file {
                        format!("its header names tensor {name} twice")
                    } else {
                        format!("tensor {name} is also in {other}")
                    };
                    return Err(EngineError::invalid_model(place, detail));
                }
                tensors.insert(name, tensor);
            }
        }
        Ok(Self {
            origin: origin.to_owned(),
            tensors,
        })
    }

    /// The tensor of that name.
    pub fn get(&self, name: &str) -> Option<&SourceTensor> {
        self.tensors.get(name)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Where the tensors came from, for messages.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The hash that identifies these weights; the same however they are cut into shards. Reads
    /// every byte.
    ///
    /// # Errors
    /// [`EngineError::Io`] when a file cannot be read.
    pub fn identity(&self) -> Result<WeightsIdentity> {
        self.identity_within(&mut Budget::for_files(self.byte_len()))
    }

    /// Bytes of all tensors.
    pub fn byte_len(&self) -> u64 {
        let tensors = self.tensors.values();
        tensors.map(|tensor| tensor.data.len() as u64).sum()
    }

    /// [`identity`](Self::identity) within a budget.
    ///
    /// # Errors
    /// As [`identity`](Self::identity); [`EngineError::OverBudget`]; [`EngineError::Cancelled`].
    pub fn identity_within(&self, budget: &mut Budget) -> Result<WeightsIdentity> {
        let mut hasher = IdentityHasher::new();
        for (name, tensor) in &self.tensors {
            let place = format_args!("{}: hashing tensor {name}", self.origin);
            budget.take(Resource::Steps, tensor.data.len() as u64, place)?;
            let shape = tensor.shape.iter().map(|&extent| extent as u64);
            let content = &tensor.data;
            hasher
                .content(name, tensor.dtype.name(), shape, content)
                .map_err(|error| EngineError::io(&self.origin, error))?;
        }
        Ok(hasher.finish())
    }
}

/// The header's entries in file order, doubles included, so that a double can be refused.
struct Header(Vec<(String, Entry)>);

/// What a header says of one tensor.
#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one entry a tensor")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut entries = Vec::new();
                let mut has_metadata = false;
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA {
                        if std::mem::replace(&mut has_metadata, true) {
                            return Err(A::Error::custom(format!("{METADATA} is there twice")));
                        }
                        map.next_value::<Option<BTreeMap<String, String>>>()
                            .map_err(|error| A::Error::custom(format!("{METADATA}: {error}")))?;
                        continue;
                    }
                    let entry = map
                        .next_value::<Entry>()
                        .map_err(|error| A::Error::custom(format!("tensor {name}: {error}")))?;
                    entries.push((name, entry));
                }
                Ok(Header(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Reads one file's tensors; `place` names it in messages.
fn read_file(
    place: &str,
    file: &Content,
    budget: &mut Budget,
) -> Result<Vec<(String, SourceTensor)>> {
    budget.add_file(file.len() as u64);
    let bytes = |range: Range<usize>| {
        let part = file
            .part(range)
            .unwrap_or_else(|| Content::from(Vec::new()));
        part.bytes().map_err(|error| EngineError::io(place, error))
    };
    let start = bytes(0..file.len().min(sniff::BYTES))?;
    let invalid = |detail: String| {
        let kind = sniff::foreign(&start).map(str::to_owned);
        EngineError::invalid_model(place, kind.unwrap_or(detail))
    };
    let Some(length) = start.first_chunk::<LENGTH_BYTES>() else {
        return Err(invalid(format!(
            "a safetensors file starts with 8 bytes of header length; this one has {} in all",
            file.len()
        )));
    };
    let length = u64::from_le_bytes(*length);
    let rest = file.len() - LENGTH_BYTES;
    let header_bytes = usize::try_from(length)
        .ok()
        .filter(|&bytes| bytes <= rest && bytes <= MAX_HEADER_BYTES)
        .ok_or_else(|| {
            invalid(format!(
                "it claims a header of {length} bytes, but {rest} follow (the limit is \
                 {MAX_HEADER_BYTES}); it is cut short or not safetensors"
            ))
        })?;
    let behind = LENGTH_BYTES + header_bytes;
    let size = file.len() - behind;
    // Two bytes of a shape are two numbers of eight bytes in lists that double.
    let header_place = format_args!("the header of {place}");
    budget.take(Resource::Bytes, length * HEADER_COST, header_place)?;
    let header = bytes(LENGTH_BYTES..behind)?;
    let text = std::str::from_utf8(&header)
        .map_err(|error| invalid(format!("its header is not what safetensors asks: {error}")))?;
    let Header(mut entries) = serde_json::from_str(text)
        .map_err(|error| invalid(format!("its header is not what safetensors asks: {error}")))?;

    // In the order of their places, so that an overlap or a hole shows between neighbours. The
    // name makes the order, and with it the message, the same on every run.
    entries.sort_by(|(a, one), (b, other)| (one.data_offsets, a).cmp(&(other.data_offsets, b)));
    let mut end = 0u64;
    let mut previous = "the header".to_owned();
    let mut tensors = Vec::with_capacity(entries.len());
    for (name, entry) in entries {
        let (from, to) = entry.data_offsets;
        // In range: `to` is at most the length of the file, which is a `usize`.
        let place_of = || file.part(behind + from as usize..behind + to as usize);
        let Some(data) = (from <= to && to <= size as u64).then(place_of).flatten() else {
            return Err(invalid(format!(
                "tensor {name} lies at bytes {from} to {to} of {size}"
            )));
        };
        if from < end {
            return Err(invalid(format!(
                "tensor {name} starts at byte {from} and overlaps {previous}, which ends at {end}"
            )));
        }
        if from > end {
            return Err(invalid(format!(
                "no tensor holds bytes {end} to {from}, between {previous} and tensor {name}"
            )));
        }
        let tensor = checked(place, &name, &entry, data)?;
        end = to;
        previous.clone_from(&name);
        tensors.push((name, tensor));
    }
    if end != size as u64 {
        return Err(invalid(format!(
            "{} bytes follow the last tensor",
            size as u64 - end
        )));
    }
    Ok(tensors)
}

/// The tensor that an entry describes; `data` is what lies at its place.
fn checked(place: &str, name: &str, entry: &Entry, data: Content) -> Result<SourceTensor> {
    let dtype =
        SourceDType::from_name(&entry.dtype).ok_or_else(|| EngineError::UnsupportedModel {
            origin: place.to_owned(),
            reason: format!("tensor {name} has the element type {}", entry.dtype),
            hint: "Use a checkpoint in F32, F16 or BF16".into(),
        })?;
    let (from, to) = entry.data_offsets;
    let shape: Option<Vec<usize>> = entry
        .shape
        .iter()
        .map(|&extent| usize::try_from(extent).ok())
        .collect();
    let size = entry
        .shape
        .iter()
        .try_fold(dtype.size() as u64, |bytes, &extent| {
            bytes.checked_mul(extent)
        });
    match (shape, size) {
        (Some(shape), Some(size)) if size == to - from => Ok(SourceTensor { dtype, shape, data }),
        (_, size) => Err(EngineError::invalid_model(
            place,
            format!(
                "tensor {name} is {dtype} {:?}, which takes {} bytes, but has {}",
                entry.shape,
                size.map_or_else(|| "more than 2^64".into(), |size| size.to_string()),
                to - from
            ),
        )),
    }
}
