//! Blocks of numbers as arrays of numpy, which own them.

use isovec::Similarity;
use numpy::{AllowTypeChange, IntoPyArray, PyArray1, PyArray2, PyArrayLike2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Vectors of the caller's: an array of numpy, or what numpy makes one of.
pub(crate) type Rows<'py> = PyArrayLike2<'py, f32, AllowTypeChange>;

/// `[n, width]`, of numbers that lie row after row.
pub(crate) fn rows(
    py: Python<'_>,
    width: usize,
    values: Vec<f32>,
) -> PyResult<Bound<'_, PyArray2<f32>>> {
    let count = values.len().checked_div(width).unwrap_or(0);
    row(py, values)?.reshape([count, width])
}

/// One row.
pub(crate) fn row(py: Python<'_>, values: Vec<f32>) -> PyResult<Bound<'_, PyArray1<f32>>> {
    require_numpy(py)?;
    Ok(values.into_pyarray(py))
}

/// The crate `numpy` panics where Python's numpy cannot be imported; this is the import's own error.
pub(crate) fn require_numpy(py: Python<'_>) -> PyResult<()> {
    static NUMPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    NUMPY.import(py, "numpy", "ndarray").map(drop)
}

/// The score of every pair of rows, `[n, m]`.
pub(crate) fn scores<'py>(
    py: Python<'py>,
    metric: Similarity,
    a: &Rows<'py>,
    b: &Rows<'py>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let (a, b) = (a.as_array(), b.as_array());
    if a.ncols() != b.ncols() {
        return Err(PyValueError::new_err(format!(
            "the vectors have {} and {} components, and have no similarity",
            a.ncols(),
            b.ncols()
        )));
    }
    // Rows that lie otherwise, as those of a transposed array, are copied once.
    let (a, b) = (a.as_standard_layout(), b.as_standard_layout());
    let values = py.detach(|| {
        let rows = a.rows().into_iter().filter_map(|row| row.to_slice());
        let score = |a| {
            let others = b.rows().into_iter().filter_map(|row| row.to_slice());
            others.map(move |b| metric.score(a, b))
        };
        rows.flat_map(score).collect()
    });
    rows(py, b.nrows(), values)
}
