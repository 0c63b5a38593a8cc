//! One form for tensors: ONNX stores a tensor's elements as raw bytes, as one of several typed
//! lists, or in another file. After [`normalise`] they are little-endian bytes in `raw_data`
//! (text stays a list), of exactly the length that type and shape ask for.

use bytes::Bytes;

use super::proto::{DATA_LOCATION_EXTERNAL, DataType, TensorProto};
use super::read::{External, Resolve};
use crate::bundle::WEIGHT_MIN_BYTES;
use crate::content::Content;
use crate::error::{EngineError, Result};

/// Brings a tensor to its one form. Where it `may_stay` and its bytes are kept elsewhere, they are
/// returned instead of being copied.
///
/// # Errors
/// [`EngineError::InvalidModel`], [`EngineError::OutsideBundle`] or [`EngineError::MissingFile`],
/// naming the tensor.
pub(super) fn normalise(
    tensor: &mut TensorProto,
    name: &str,
    origin: &str,
    resolve: Resolve<'_>,
    may_stay: bool,
) -> Result<Option<Content>> {
    let invalid =
        |detail: String| EngineError::invalid_model(origin, format!("tensor {name}: {detail}"));
    let data_type = data_type(tensor).ok_or_else(|| {
        invalid(format!(
            "{} is not an element type of ONNX",
            tensor.data_type
        ))
    })?;
    let elements = elements(&tensor.dims)
        .ok_or_else(|| invalid(format!("no memory holds the shape {:?}", tensor.dims)))?;

    let mut stays = None;
    if tensor.data_location == DATA_LOCATION_EXTERNAL {
        if data_type == DataType::String {
            return Err(invalid("text cannot be external data".into()));
        }
        let content = external(tensor, name, origin, resolve)?;
        if may_stay && !content.in_memory() && content.len() >= WEIGHT_MIN_BYTES {
            tensor.raw_data = Bytes::new();
            stays = Some(content);
        } else {
            let unread = |error| EngineError::io(format!("{origin}: tensor {name}"), error);
            tensor.raw_data = content.bytes().map_err(unread)?;
        }
        tensor.data_location = 0;
        tensor.external_data.clear();
    } else if tensor.data_location != 0 {
        return Err(invalid(format!(
            "unknown data location {}",
            tensor.data_location
        )));
    }

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
        return Err(invalid("its elements are stored more than once".into()));
    }
    if data_type == DataType::String {
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
        tensor.int32_data = Vec::new();
        tensor.int64_data = Vec::new();
        tensor.double_data = Vec::new();
        tensor.uint64_data = Vec::new();
        tensor.float_data = Vec::new();
        raw_bytes = tensor.raw_data.len();
    }
    let expected = byte_len(data_type, elements)
        .ok_or_else(|| invalid(format!("no memory holds the shape {:?}", tensor.dims)))?;
    if raw_bytes != expected {
        return Err(invalid(format!(
            "{data_type:?} {:?} takes {expected} bytes, not {raw_bytes}",
            tensor.dims
        )));
    }
    Ok(stays)
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

/// The elements of the one list that the type is stored in, per the comments of `TensorProto`.
fn raw_from_lists(tensor: &TensorProto, data_type: DataType) -> Result<Bytes, String> {
    let bytes: Vec<u8> = match data_type {
        DataType::Float | DataType::Complex64 if !tensor.float_data.is_empty() => tensor
            .float_data
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect(),
        DataType::Double | DataType::Complex128 if !tensor.double_data.is_empty() => tensor
            .double_data
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect(),
        DataType::Int64 if !tensor.int64_data.is_empty() => tensor
            .int64_data
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect(),
        DataType::Uint64 if !tensor.uint64_data.is_empty() => tensor
            .uint64_data
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect(),
        DataType::Uint32 if !tensor.uint64_data.is_empty() => narrow(&tensor.uint64_data, |v| {
            u32::try_from(v).ok().map(u32::to_le_bytes)
        })?,
        _ if tensor.int32_data.is_empty() => {
            return Err(format!("{data_type:?} is stored in a list of another type"));
        }
        DataType::Int32 => tensor
            .int32_data
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect(),
        DataType::Int16 => narrow(&tensor.int32_data, |v| {
            i16::try_from(v).ok().map(i16::to_le_bytes)
        })?,
        // 16-bit floats are stored by their bits.
        DataType::Uint16 | DataType::Float16 | DataType::Bfloat16 => {
            narrow(&tensor.int32_data, |v| {
                u16::try_from(v).ok().map(u16::to_le_bytes)
            })?
        }
        DataType::Int8 => narrow(&tensor.int32_data, |v| {
            i8::try_from(v).ok().map(i8::to_le_bytes)
        })?,
        DataType::Bool => narrow(&tensor.int32_data, |v| {
            u8::try_from(v).ok().filter(|&v| v < 2).map(|v| [v])
        })?,
        DataType::Uint8
        | DataType::Float8e4m3fn
        | DataType::Float8e4m3fnuz
        | DataType::Float8e5m2
        | DataType::Float8e5m2fnuz
        | DataType::Uint4
        | DataType::Int4
        | DataType::Float4e2m1 => {
            narrow(&tensor.int32_data, |v| u8::try_from(v).ok().map(|v| [v]))?
        }
        _ => return Err(format!("{data_type:?} is stored in a list of another type")),
    };
    Ok(bytes.into())
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
fn external(
    tensor: &TensorProto,
    name: &str,
    origin: &str,
    resolve: Resolve<'_>,
) -> Result<Content> {
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
    let file = match resolve(location)? {
        External::Found(file) => file,
        External::Missing => {
            return Err(EngineError::MissingFile {
                origin: origin.to_owned(),
                file: location.to_owned(),
                hint: format!("Tensor {name} keeps its data there; put the file beside the model"),
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
