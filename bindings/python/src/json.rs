//! Values as Python's own dicts and lists, by way of JSON.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use serde_json::Value;

/// The value as dicts, lists, strings and numbers.
pub(crate) fn to_py<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS
        .import(py, "json", "loads")?
        .call1((value.to_string(),))
}

/// What Python's `json` writes of a value; a path is written as its text.
pub(crate) fn of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    let named = pyo3::types::PyDict::new(py);
    named.set_item("default", py.import("os")?.getattr("fspath")?)?;
    py.import("json")?
        .call_method("dumps", (value,), Some(&named))?
        .extract()
}
