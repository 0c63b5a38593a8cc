//! Reading safetensors files: named tensors as parts of the files, of which only the header is read.
//!
//! Format: an 8-byte little-endian header length, a JSON header, then the tensors' bytes
//! (<https://github.com/huggingface/safetensors#format>). The header is untrusted, and `header.rs` checks it against
//! the file; tensors must also be as long as their type and shape say. Messages name the tensor at fault, which is
//! why this is not the `safetensors` crate's reader: that one also lets a name that occurs twice pass, and adds
//! offsets near 2^64 without a check.

mod header;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;

use isovec_engine::budget::{Budget, Resource};
use isovec_engine::content::Content;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::weights::WeightsIdentity;

use crate::identity::IdentityHasher;
use crate::sniff;

pub use header::{Header, Malformed, Place, header_of, place_of_header, read_header};

/// What a header may say besides: nothing here asks for it, but another reader of the same file refuses anything else.
type Metadata = Option<BTreeMap<String, String>>;

/// Memory that each byte of a header can ask for.
const HEADER_COST: u64 = 16;

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
    tensors: HashMap<String, SourceTensor>,
}

impl TensorSet {
    /// Reads one file, or all shards of one checkpoint, given as (file name, contents).
    ///
    /// # Errors
    /// [`EngineError::InvalidModel`], naming the file and the tensor, when a header does not follow the format, when
    /// offsets overlap, leave holes or point outside the file, or when a name occurs twice;
    /// [`EngineError::UnsupportedModel`] for an element type not listed in [`SourceDType`]; [`EngineError::Io`].
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
        let mut tensors = HashMap::new();
        let mut homes: BTreeMap<String, String> = BTreeMap::new();
        for (file, data) in files {
            let place = format!("{origin}/{file}");
            for (name, tensor) in read_file(&place, &data, budget)? {
                if let Some(other) = homes.insert(name.clone(), file.clone()) {
                    let detail = format!("tensor {name} is also in {other}");
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
        let mut names: Vec<&str> = self.tensors.keys().map(String::as_str).collect();
        names.sort_unstable();
        names.into_iter()
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
        for name in self.names() {
            let tensor = &self.tensors[name];
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
    let invalid = |error: Malformed| {
        let kind = sniff::foreign(&start).map(str::to_owned);
        EngineError::invalid_model(place, kind.unwrap_or_else(|| error.to_string()))
    };
    let at = place_of_header(&start, file.len()).map_err(invalid)?;
    let behind = at.end;
    // Two bytes of a shape are two numbers of eight bytes in lists that double.
    let header_place = format_args!("the header of {place}");
    budget.take(Resource::Bytes, at.len() as u64 * HEADER_COST, header_place)?;
    let header: Header<Metadata> = read_header(&bytes(at)?, behind, file.len()).map_err(invalid)?;
    let tensors = header.tensors.into_iter();
    tensors
        .map(|tensor| {
            // In range, which the header's reader saw to.
            let data = file.part(tensor.range.clone());
            let data = data.unwrap_or_else(|| Content::from(Vec::new()));
            let read = checked(place, &tensor, data)?;
            Ok((tensor.name, read))
        })
        .collect()
}

/// The tensor that a header describes; `data` is what lies at its place.
fn checked(origin: &str, place: &Place, data: Content) -> Result<SourceTensor> {
    let dtype =
        SourceDType::from_name(&place.dtype).ok_or_else(|| EngineError::UnsupportedModel {
            origin: origin.to_owned(),
            reason: format!("tensor {} has the element type {}", place.name, place.dtype),
            hint: "Use a checkpoint in F32, F16 or BF16".into(),
        })?;
    match place.shape_of(dtype.size()) {
        Ok(shape) => Ok(SourceTensor { dtype, shape, data }),
        Err(error) => Err(EngineError::invalid_model(origin, error.to_string())),
    }
}
