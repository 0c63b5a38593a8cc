//! Texts out of what Python has: lists, other iterables of strings, and arrays of numpy.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyList, PySet, PyString, PyTuple,
};

use crate::{arrow, error};

/// A text that lies where Python has it, or a copy. Neither needs the interpreter's lock.
pub(crate) enum Text {
    Python(PyBackedStr),
    Copied(String),
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        match self {
            Self::Python(text) => text,
            Self::Copied(text) => text,
        }
    }
}

/// The error of what is no text.
const KIND: &str = "InvalidText";

/// The texts, in their order.
pub(crate) fn read(texts: &Bound<'_, PyAny>) -> PyResult<Vec<Text>> {
    let refuse = |why: &str| Err(refused(texts, why));
    if texts.is_instance_of::<PyString>() {
        return refuse("one str, and a list of them is wanted: put it in brackets");
    }
    if is_bytes(texts) {
        return refuse("bytes, and a list of str is wanted");
    }
    if texts.is_instance_of::<PyDict>() {
        return refuse("a dict, and a list of str is wanted: give its keys or its values");
    }
    if texts.is_instance_of::<PySet>() || texts.is_instance_of::<PyFrozenSet>() {
        return refuse("a set, which has no order, and vectors come in the order of their texts");
    }
    if let Ok(list) = texts.cast::<PyList>() {
        return list
            .iter()
            .enumerate()
            .map(|(at, text)| one_of(&text, at))
            .collect();
    }
    if let Some(read) = arrow::import(texts)? {
        return Ok(read);
    }
    let items = match texts.try_iter() {
        Ok(items) => items,
        Err(error) if error.is_instance_of::<PyTypeError>(texts.py()) => {
            return refuse(&format!("{}, and a list of str is wanted", named(texts)));
        }
        Err(error) => return Err(error),
    };
    items
        .enumerate()
        .map(|(at, text)| one_of(&text?, at))
        .collect()
}

/// Pairs of texts: tuples or lists of two.
pub(crate) fn pairs(pairs: &Bound<'_, PyAny>) -> PyResult<Vec<(Text, Text)>> {
    let is_text = pairs.is_instance_of::<PyString>() || is_bytes(pairs);
    let Some(items) = pairs.try_iter().ok().filter(|_| !is_text) else {
        let why = format!("`pairs` is {}, and a list of pairs is wanted", named(pairs));
        return Err(error::with_kind(pairs.py(), KIND, &why));
    };
    items
        .enumerate()
        .map(|(at, pair)| pair_of(&pair?, at))
        .collect()
}

/// A pair by its place among others.
fn pair_of(pair: &Bound<'_, PyAny>, at: usize) -> PyResult<(Text, Text)> {
    let is_pair = pair.is_instance_of::<PyTuple>() || pair.is_instance_of::<PyList>();
    if !is_pair || pair.len()? != 2 {
        let why = format!("pairs[{at}] is no tuple or list of two texts");
        return Err(error::with_kind(pair.py(), KIND, &why));
    }
    let text = |place: usize| of(&pair.get_item(place)?, || format!("pairs[{at}][{place}]"));
    Ok((text(0)?, text(1)?))
}

/// The error that says what was given in place of texts.
pub(crate) fn refused(texts: &Bound<'_, PyAny>, why: &str) -> PyErr {
    error::with_kind(texts.py(), KIND, &format!("`texts` is {why}"))
}

/// The error that says what was given in place of a text.
pub(crate) fn refused_at(texts: &Bound<'_, PyAny>, at: usize, why: &str) -> PyErr {
    let why = format!("texts[{at}] is {why}, and a str is wanted");
    error::with_kind(texts.py(), KIND, &why)
}

/// The only text of a call.
pub(crate) fn one(text: &Bound<'_, PyAny>) -> PyResult<Text> {
    of(text, || "`text`".to_owned())
}

/// A text by its place among others.
pub(crate) fn one_of(text: &Bound<'_, PyAny>, at: usize) -> PyResult<Text> {
    of(text, || format!("texts[{at}]"))
}

fn of(text: &Bound<'_, PyAny>, place: impl Fn() -> String) -> PyResult<Text> {
    let py = text.py();
    let Ok(written) = text.cast::<PyString>() else {
        let why = format!("{} is {}, and a str is wanted", place(), named(text));
        return Err(error::with_kind(py, KIND, &why));
    };
    match PyBackedStr::try_from(written.clone()) {
        Ok(text) => Ok(Text::Python(text)),
        Err(_) => {
            let why = format!(
                "{} holds half of a surrogate pair, which is no character; \
                 text.encode(errors=\"replace\").decode() replaces it",
                place()
            );
            Err(error::with_kind(py, KIND, &why))
        }
    }
}

fn is_bytes(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>()
}

/// What a value is that is no text.
fn named(value: &Bound<'_, PyAny>) -> String {
    if value.is_none() {
        return "None".into();
    }
    if is_bytes(value) {
        return "bytes, which have to be decoded first".into();
    }
    let kind = value.get_type().name();
    let kind = kind.map_or_else(|_| "an unknown type".into(), |name| name.to_string());
    match value.cast::<PyFloat>() {
        Ok(number) if number.value().is_nan() => {
            "NaN, which tables have for a value that is missing".into()
        }
        _ => format!("of type {kind}"),
    }
}
