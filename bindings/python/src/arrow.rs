//! Arrow's arrays, of any library that speaks the PyCapsule protocol
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>): texts in, vectors out.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float32Array, ListArray, StructArray, UInt32Array,
    make_array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field};
use bytes::Bytes;
use isovec::{Embeddings, SparseEmbeddings};
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::texts::{self, Text};

fn fault(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The texts of an array or a stream; `None` for what is neither.
pub(crate) fn import(texts: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Text>>> {
    let arrays = if texts.hasattr("__arrow_c_array__")? {
        vec![array(texts)?]
    } else if texts.hasattr("__arrow_c_stream__")? {
        match stream(texts) {
            // pandas asks for pyarrow here, and can be read without.
            Err(error) if error.is_instance_of::<PyImportError>(texts.py()) => return Ok(None),
            arrays => arrays?,
        }
    } else {
        return Ok(None);
    };
    let mut read = Vec::new();
    for array in arrays {
        let Some(strings) = strings(&array) else {
            let why = format!(
                "an Arrow array of {}, and one of strings is wanted",
                array.data_type()
            );
            return Err(texts::refused(texts, &why));
        };
        for text in strings {
            let Some(text) = text else {
                return Err(texts::refused_at(texts, read.len(), "null"));
            };
            read.push(Text::Copied(text.to_owned()));
        }
    }
    Ok(Some(read))
}

fn array(texts: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) =
        texts.call_method0("__arrow_c_array__")?.extract()?;
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?;
    let array = array.pointer_checked(Some(c"arrow_array"))?;
    // SAFETY: capsules of these names hold such structures, which live as long as the capsules do. The array is moved out,
    // and the capsule's end then finds that it is released.
    let data = unsafe {
        let array = FFI_ArrowArray::from_raw(array.cast().as_ptr());
        from_ffi(array, schema.cast::<FFI_ArrowSchema>().as_ref())
    };
    let data = data.map_err(|error| fault(&error))?;
    // Another library may have made it wrong: offsets past the end, bytes that are no UTF-8.
    data.validate_full().map_err(|error| fault(&error))?;
    Ok(make_array(data))
}

fn stream(texts: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    let stream = texts.call_method0("__arrow_c_stream__")?;
    let stream = stream.cast::<PyCapsule>()?;
    let stream = stream.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: as above.
    let reader =
        unsafe { ArrayStreamReader::from_raw(stream.cast::<FFI_ArrowArrayStream>().as_ptr()) };
    let reader = reader.map_err(|error| fault(&error))?;
    reader
        .map(|array| {
            let array = array?;
            array.to_data().validate_full()?;
            Ok(array)
        })
        .collect::<Result<_, _>>()
        .map_err(|error| fault(&error))
}

/// The strings of an array, whichever way it holds them; `None` for an array of something else.
fn strings(array: &ArrayRef) -> Option<Vec<Option<&str>>> {
    if let Some(array) = array.as_string_opt::<i32>() {
        return Some(array.iter().collect());
    }
    if let Some(array) = array.as_string_opt::<i64>() {
        return Some(array.iter().collect());
    }
    if let Some(array) = array.as_string_view_opt() {
        return Some(array.iter().collect());
    }
    if matches!(array.data_type(), DataType::Null) {
        return Some(vec![None; array.len()]);
    }
    let dictionary = array.as_any_dictionary_opt()?;
    let values = strings(dictionary.values())?;
    let keys = dictionary.keys();
    if values.is_empty() {
        return Some(vec![None; keys.len()]);
    }
    let places = dictionary.normalized_keys().into_iter().enumerate();
    let text = |(at, place): (usize, usize)| values[place].filter(|_| keys.is_valid(at));
    Some(places.map(text).collect())
}

/// Numbers of a set, as they lie in it.
type Numbers<T> = fn(&T) -> &[u8];

/// A block of a set's numbers, which keeps the set.
struct Block<T>(Arc<T>, Numbers<T>);

impl<T> AsRef<[u8]> for Block<T> {
    fn as_ref(&self) -> &[u8] {
        let Self(set, numbers) = self;
        numbers(set)
    }
}

/// Shares a block with its set.
fn shared<T: Send + Sync + 'static>(set: &Arc<T>, numbers: Numbers<T>) -> Buffer {
    Bytes::from_owner(Block(Arc::clone(set), numbers)).into()
}

/// Vectors as capsules of a schema and an array of it: lists of a fixed size.
pub(crate) fn export<'py>(
    py: Python<'py>,
    set: &Arc<Embeddings>,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let block = shared(set, |set| bytemuck::cast_slice(set.as_slice()));
    let values = Float32Array::new(ScalarBuffer::from(block), None);
    let field = Arc::new(Field::new("item", DataType::Float32, false));
    let width = i32::try_from(set.dim())?;
    let made = FixedSizeListArray::try_new(field, width, Arc::new(values), None)
        .map_err(|error| fault(&error))?;
    capsules(py, &made)
}

/// Sparse vectors as capsules of a schema and an array of it: structs of two lists.
pub(crate) fn export_sparse<'py>(
    py: Python<'py>,
    set: &Arc<SparseEmbeddings>,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let offsets = set.offsets().iter().map(|&end| i32::try_from(end));
    let offsets: Vec<i32> = offsets.collect::<Result<_, _>>()?;
    // They ascend from 0: the set was checked when it was made.
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let ids = shared(set, |set| bytemuck::cast_slice(set.indices()));
    let weights = shared(set, |set| bytemuck::cast_slice(set.values()));
    let ids: ArrayRef = Arc::new(UInt32Array::new(ScalarBuffer::from(ids), None));
    let weights: ArrayRef = Arc::new(Float32Array::new(ScalarBuffer::from(weights), None));
    let list = |name: &str, kind, all: ArrayRef| -> Result<(Arc<Field>, ArrayRef), ArrowError> {
        let item = Arc::new(Field::new("item", kind, false));
        let list = ListArray::try_new(item, offsets.clone(), all, None)?;
        let field = Arc::new(Field::new(name, list.data_type().clone(), false));
        Ok((field, Arc::new(list)))
    };
    let lists = || -> Result<_, ArrowError> {
        let lists = vec![
            list("indices", DataType::UInt32, ids)?,
            list("values", DataType::Float32, weights)?,
        ];
        Ok(StructArray::from(lists))
    };
    capsules(py, &lists().map_err(|error| fault(&error))?)
}

/// An array as capsules of its schema and of itself.
fn capsules<'py>(
    py: Python<'py>,
    array: &dyn Array,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let (array, schema) = to_ffi(&array.to_data()).map_err(|error| fault(&error))?;
    Ok((
        PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
        PyCapsule::new_with_value(py, array, c"arrow_array")?,
    ))
}
