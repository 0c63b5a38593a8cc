//! Errors as Python's exceptions. The classes are in `python/isovec/_errors.py`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The exception of an error, whose `kind` is the stable name that Rust gives the same failure.
pub(crate) fn of(py: Python<'_>, error: &isovec::Error) -> PyErr {
    with_kind(py, error.kind(), &error.to_string())
}

/// The exception of a kind.
pub(crate) fn with_kind(py: Python<'_>, kind: &str, message: &str) -> PyErr {
    static OF_KIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let exception = OF_KIND
        .import(py, "isovec._errors", "of_kind")
        .and_then(|of_kind| of_kind.call1((kind, message)));
    exception.map_or_else(|error| error, PyErr::from_value)
}
