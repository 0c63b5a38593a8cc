//! One form for tensors: ONNX stores a tensor's elements as raw bytes, as one of several typed
//! lists, or in another file. After [`normalise`] they are little-endian bytes in `raw_data`
//! (text stays a list), of exactly the length that type and shape ask for.

use std::collections::HashSet;

use bytes::Bytes;
use isovec_engine::budget::{Budget, Resource};
use isovec_engine::bundle::WEIGHT_MIN_BYTES;
use isovec_engine::content::Content;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::onnx::proto::{DATA_LOCATION_EXTERNAL, DataType, TensorProto};

use super::read::{External, Resolve, inside};

/// What a file's tensors are read with.
pub(super) struct Reading<'a> {
    /// What messages call the file.
    pub(super) origin: &'a str,
    pub(super) resolve: Resolve<'a>,
    pub(super) budget: &'a mut Budget,
    /// Files with external data that belong to the model: each counts once for what it may cost.
    pub(super) opened: HashSet<String>,
}

/// Brings a tensor to its one form. `place` names one that has no name.
///
/// `apart` is there for a tensor that may stay elsewhere, and holds its raw bytes where they were left out of it. What
/// stays elsewhere is returned instead of being copied.
///
/// A tensor is where `data_location` says. Entries of `external_data` that are left over beside data in the file itself
/// mean nothing; data in both places is refused.
///
/// # Errors
/// [`EngineError::InvalidModel`], [`EngineError::OutsideBundle`] or [`EngineError::MissingFile`],
/// naming the tensor; [`EngineError::OverBudget`].
pub(super) fn normalise(
    tensor: &mut TensorProto,
    place: &str,
    reading: &mut Reading<'_>,
    apart: Option<Option<Content>>,
) -> Result<Option<Content>> {
    let origin = reading.origin;
    let own_name = std::mem::take(&mut tensor.name);
    let name = if own_name.is_empty() {
        place
    } else {
        own_name.as_str()
    };
    let found = one_form(tensor, name, origin, reading, apart);
    tensor.name = own_name;
    found
}

fn one_form(
    tensor: &mut TensorProto,
    name: &str,
    origin: &str,
    reading: &mut Reading<'_>,
    apart: Option<Option<Content>>,
) -> Result<Option<Content>> {
    let invalid =
        |detail: String| EngineError::invalid_model(origin, format!("tensor {name}: {detail}"));
    let unread = |error| EngineError::io(format!("{origin}: tensor {name}"), error);
    let data_type = data_type(tensor).ok_or_else(|| {
        invalid(format!(
            "{} is not an element type of ONNX",
            tensor.data_type
        ))
    })?;
    let elements = elements(&tensor.dims)
        .ok_or_else(|| invalid(format!("no memory holds the shape {:?}", tensor.dims)))?;
    let expected = byte_len(data_type, elements)
        .ok_or_else(|| invalid(format!("no memory holds the shape {:?}", tensor.dims)))?;

    let may_stay = apart.is_some();
    let mut stays = apart.flatten();
    if tensor.data_location == DATA_LOCATION_EXTERNAL {
        if data_type == DataType::String {
            return Err(invalid("text cannot be external data".into()));
        }
        if stays.is_some() || !tensor.raw_data.is_empty() {
            return Err(invalid(MORE_THAN_ONCE.into()));
        }
        let content = external(tensor, name, reading)?;
        if content.len() != expected {
            return Err(invalid(takes(tensor, data_type, expected, content.len())));
        }
        if may_stay && !content.in_memory() && content.len() >= WEIGHT_MIN_BYTES {
            stays = Some(content);
        } else {
            // Any number of tensors may lie in one place, each a copy where the file is kept elsewhere, and small ones
            // always.
            let is_copied = !content.in_memory() || content.len() < WEIGHT_MIN_BYTES;
            let bytes = if is_copied { content.len() as u64 } else { 0 };
            let place = format_args!("{origin}: external data of tensor {name}");
            reading.budget.take(Resource::Bytes, bytes, place)?;
            tensor.raw_data = content.bytes().map_err(unread)?;
        }
        tensor.data_location = 0;
    } else if tensor.data_location != 0 {
        return Err(invalid(format!(
            "unknown data location {}",
            tensor.data_location
        )));
    }
    // No engine may take a leftover for a place to read from.
    tensor.external_data = Vec::new();

    let lists = [
        tensor.float_data.len(),
        tensor.int32_data.len(),
        tensor.int64_data.len(),
        tensor.double_data.len(),
        tensor.uint64_data.len(),
        tensor.string_data.len(),
    ];
    let raw_bytes = stays.as_ref().map_or(tensor.raw_data.len(), Content::len);
    let used = lists.iter().filter(|&&len| len > 0).count();
    if used + usize::from(raw_bytes > 0) > 1 {
        return Err(invalid(MORE_THAN_ONCE.into()));
    }
    if data_type == DataType::String {
        if raw_bytes > 0 {
            return Err(invalid("text cannot be raw bytes".into()));
        }
        if tensor.string_data.len() != elements {
            return Err(invalid(format!(
                "shape {:?} holds {elements} texts, not {}",
                tensor.dims,
                tensor.string_data.len()
            )));
        }
        return Ok(None);
    }
    let mut raw_bytes = raw_bytes;
    if used == 1 {
        tensor.raw_data = raw_from_lists(tensor, data_type).map_err(invalid)?;
        raw_bytes = tensor.raw_data.len();
    }
    if raw_bytes != expected {
        return Err(invalid(takes(tensor, data_type, expected, raw_bytes)));
    }
    Ok(stays)
}

const MORE_THAN_ONCE: &str = "its elements are stored more than once";

/// What is wrong with a tensor of another length.
fn takes(tensor: &TensorProto, data_type: DataType, expected: usize, found: usize) -> String {
    format!(
        "{data_type:?} {:?} takes {expected} bytes, not {found}",
        tensor.dims
    )
}

/// The element type, if it is one that the format defines.
pub(super) fn data_type(tensor: &TensorProto) -> Option<DataType> {
    DataType::try_from(tensor.data_type)
        .ok()
        .filter(|&data_type| data_type != DataType::Undefined)
}

/// The number of elements, `None` for a negative extent or more than memory holds.
pub(super) fn elements(dims: &[i64]) -> Option<usize> {
    dims.iter().try_fold(1usize, |count, &extent| {
        count.checked_mul(usize::try_from(extent).ok()?)
    })
}

/// Bytes of that many elements; types of 4 bits are packed two a byte.
fn byte_len(data_type: DataType, elements: usize) -> Option<usize> {
    let bits: usize = match data_type {
        DataType::Undefined | DataType::String => 0,
        DataType::Uint4 | DataType::Int4 | DataType::Float4e2m1 => 4,
        DataType::Uint8
        | DataType::Int8
        | DataType::Bool
        | DataType::Float8e4m3fn
        | DataType::Float8e4m3fnuz
        | DataType::Float8e5m2
        | DataType::Float8e5m2fnuz => 8,
        DataType::Uint16 | DataType::Int16 | DataType::Float16 | DataType::Bfloat16 => 16,
        DataType::Float | DataType::Int32 | DataType::Uint32 => 32,
        DataType::Double | DataType::Int64 | DataType::Uint64 | DataType::Complex64 => 64,
        DataType::Complex128 => 128,
    };
    Some(elements.checked_mul(bits)?.div_ceil(8)).filter(|&bytes| bytes <= isize::MAX as usize)
}

/// The elements of the one list that the type is stored in, per the comments of `TensorProto`. The lists are taken.
fn raw_from_lists(tensor: &mut TensorProto, data_type: DataType) -> Result<Bytes, String> {
    let floats = std::mem::take(&mut tensor.float_data);
    let doubles = std::mem::take(&mut tensor.double_data);
    let int32s = std::mem::take(&mut tensor.int32_data);
    let int64s = std::mem::take(&mut tensor.int64_data);
    let uint64s = std::mem::take(&mut tensor.uint64_data);
    let bytes: Vec<u8> = match data_type {
        DataType::Float | DataType::Complex64 if !floats.is_empty() => return Ok(raw(floats)),
        DataType::Double | DataType::Complex128 if !doubles.is_empty() => return Ok(raw(doubles)),
        DataType::Int64 if !int64s.is_empty() => return Ok(raw(int64s)),
        DataType::Uint64 if !uint64s.is_empty() => return Ok(raw(uint64s)),
        DataType::Uint32 if !uint64s.is_empty() => {
            narrow(&uint64s, |v| u32::try_from(v).ok().map(u32::to_le_bytes))?
        }
        _ if int32s.is_empty() => {
            return Err(format!("{data_type:?} is stored in a list of another type"));
        }
        DataType::Int32 => return Ok(raw(int32s)),
        DataType::Int16 => narrow(&int32s, |v| i16::try_from(v).ok().map(i16::to_le_bytes))?,
        // 16-bit floats are stored by their bits.
        DataType::Uint16 | DataType::Float16 | DataType::Bfloat16 => {
            narrow(&int32s, |v| u16::try_from(v).ok().map(u16::to_le_bytes))?
        }
        DataType::Int8 => narrow(&int32s, |v| i8::try_from(v).ok().map(i8::to_le_bytes))?,
        DataType::Bool => narrow(&int32s, |v| {
            u8::try_from(v).ok().filter(|&v| v < 2).map(|v| [v])
        })?,
        DataType::Uint8
        | DataType::Float8e4m3fn
        | DataType::Float8e4m3fnuz
        | DataType::Float8e5m2
        | DataType::Float8e5m2fnuz
        | DataType::Uint4
        | DataType::Int4
        | DataType::Float4e2m1 => narrow(&int32s, |v| u8::try_from(v).ok().map(|v| [v]))?,
        _ => return Err(format!("{data_type:?} is stored in a list of another type")),
    };
    Ok(bytes.into())
}

/// A list's bytes, little-endian: the list itself where the machine holds it so, because a copy of it would be a second
/// time the memory.
fn raw<T: bytemuck::Pod + Send>(mut list: Vec<T>) -> Bytes {
    struct Elements<T>(Vec<T>);
    impl<T: bytemuck::Pod> AsRef<[u8]> for Elements<T> {
        fn as_ref(&self) -> &[u8] {
            bytemuck::cast_slice(&self.0)
        }
    }
    if cfg!(target_endian = "big") {
        for element in &mut list {
            bytemuck::bytes_of_mut(element).reverse();
        }
    }
    Bytes::from_owner(Elements(list))
}

/// Elements of a list that is wider than the type; a value that does not fit is refused.
fn narrow<T: Copy + std::fmt::Display, const N: usize>(
    list: &[T],
    convert: impl Fn(T) -> Option<[u8; N]>,
) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(list.len() * N);
    for &value in list {
        let element = convert(value).ok_or_else(|| format!("{value} does not fit its type"))?;
        bytes.extend_from_slice(&element);
    }
    Ok(bytes)
}

/// What a tensor holds whose data is in another file of the bundle.
fn external(tensor: &TensorProto, name: &str, reading: &mut Reading<'_>) -> Result<Content> {
    let origin = reading.origin;
    let invalid =
        |detail: String| EngineError::invalid_model(origin, format!("tensor {name}: {detail}"));
    let entry = |key: &str| {
        let mut values = tensor.external_data.iter().filter(|entry| entry.key == key);
        values.next().map(|entry| entry.value.as_str())
    };
    let number = |key: &str| {
        let parse = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| invalid(format!("external data has the {key} {text:?}")))
        };
        entry(key).map(parse).transpose()
    };
    let location = entry("location")
        .filter(|location| !location.is_empty())
        .ok_or_else(|| invalid("external data without a location".into()))?;
    let path = inside(location);
    let found = match &path {
        Some(path) => (reading.resolve)(path)?,
        None => External::Outside,
    };
    let file = match found {
        External::Found(file) => {
            if reading.opened.insert(path.unwrap_or_default()) {
                reading.budget.add_file(file.len() as u64);
            }
            file
        }
        External::Missing => {
            return Err(EngineError::MissingFile {
                origin: origin.to_owned(),
                file: location.to_owned(),
                hint: format!("Tensor {name} stores its data there; put the file beside the model"),
            });
        }
        External::Outside => {
            return Err(EngineError::OutsideBundle {
                tensor: name.to_owned(),
                location: location.to_owned(),
            });
        }
    };
    let whole = file.len() as u64;
    let from = number("offset")?.unwrap_or(0);
    let length = number("length")?.unwrap_or(whole.saturating_sub(from));
    let to = from
        .checked_add(length)
        .filter(|&to| to <= whole)
        .ok_or_else(|| {
            invalid(format!(
                "{length} bytes from byte {from} of {location}, which has {whole}"
            ))
        })?;
    // In range: `to` is at most the length of the file, which is a `usize`.
    Ok(file.part(from as usize..to as usize).unwrap_or(file))
}
