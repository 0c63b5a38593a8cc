//! Fingerprints as dicts, and whether the vectors of two may be compared.

use isovec::fingerprint::{Fingerprint, PrecisionDifference};
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::json;

use crate::{error, json};

/// A fingerprint as dicts.
pub(crate) fn to_py<'py>(
    py: Python<'py>,
    fingerprint: &Fingerprint,
) -> PyResult<Bound<'py, PyAny>> {
    json::to_py(py, &json!(fingerprint))
}

/// What a set says of the fingerprint that Python gave: a dict, or a dict as JSON. The precisions of this set and of the other are
/// given back if they differ.
pub(crate) fn check(
    other: &Bound<'_, PyAny>,
    check: impl FnOnce(&Fingerprint) -> isovec::Result<Option<PrecisionDifference>>,
) -> PyResult<Option<(String, String)>> {
    let py = other.py();
    let found = check(&read(other)?).map_err(|error| error::of(py, &error))?;
    Ok(found.map(|found| (found.here.to_string(), found.there.to_string())))
}

fn read(value: &Bound<'_, PyAny>) -> PyResult<Fingerprint> {
    let text = match value.cast::<PyString>() {
        Ok(text) => text.to_string(),
        Err(_) => json::of(value)?,
    };
    serde_json::from_str(&text).map_err(|error| {
        let said = format!(
            "`fingerprint` is none ({error}); it is what the property `fingerprint` of a model or of a set gives, or that as JSON"
        );
        error::with_kind(value.py(), "Config", &said)
    })
}
