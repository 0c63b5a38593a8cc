//! Fingerprints as dicts, and whether the vectors of two may be compared.

use isovec::fingerprint::{Fingerprint, PrecisionDifference};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use serde_json::json;

use crate::{error, json};

/// A fingerprint as dicts.
pub(crate) fn to_py<'py>(
    py: Python<'py>,
    fingerprint: &Fingerprint,
) -> PyResult<Bound<'py, PyAny>> {
    json::to_py(py, &json!(fingerprint))
}

/// What a set says of the fingerprint that Python gave: a dict, or the same as JSON, in a str or in bytes. The precisions of this
/// set and of the other are given back if they differ.
pub(crate) fn check(
    other: &Bound<'_, PyAny>,
    check: impl FnOnce(&Fingerprint) -> isovec::Result<Option<PrecisionDifference>>,
) -> PyResult<Option<(String, String)>> {
    let py = other.py();
    let found = check(&read(other)?).map_err(|error| error::of(py, &error))?;
    Ok(found.map(|found| (found.here.to_string(), found.there.to_string())))
}

fn read(value: &Bound<'_, PyAny>) -> PyResult<Fingerprint> {
    let none = |why: &dyn std::fmt::Display| {
        let said = format!(
            "`fingerprint` is none ({why}); it is what the property `fingerprint` of a model or of a set gives, or that as JSON"
        );
        error::with_kind(value.py(), "Config", &said)
    };
    let text = if let Ok(text) = value.cast::<PyString>() {
        text.to_string().into_bytes()
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        // As the metadata of an Arrow schema has it.
        bytes.as_bytes().to_vec()
    } else {
        json::of(value).map_err(|error| none(&error))?.into_bytes()
    };
    serde_json::from_slice(&text).map_err(|error| none(&error))
}
