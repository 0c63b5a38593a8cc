//! Blocks of numbers as arrays of numpy, which own them.

use isovec::Similarity;
use numpy::ndarray::Array2;
use numpy::{AllowTypeChange, IntoPyArray, PyArray1, PyArray2, PyArrayLike2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// Vectors of the caller's: an array of numpy, or what numpy makes one of.
type Rows<'py> = PyArrayLike2<'py, f32, AllowTypeChange>;

/// An array of this shape, of numbers that lie row after row.
pub(crate) fn rows(
    py: Python<'_>,
    shape: [usize; 2],
    values: Vec<f32>,
) -> PyResult<Bound<'_, PyArray2<f32>>> {
    require_numpy(py)?;
    let rows = Array2::from_shape_vec(shape, values);
    let rows = rows.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(rows.into_pyarray(py))
}

/// The vectors of a set, `[n, dimension]`.
pub(crate) fn of_set(py: Python<'_>, set: isovec::Embeddings) -> PyResult<Bound<'_, PyAny>> {
    let shape = [set.len(), set.dim()];
    Ok(rows(py, shape, set.into_vec())?.into_any())
}

/// What numpy reads an array from that cannot be written to: numbers of this kind, row after row, at this address.
pub(crate) fn interface<'py>(
    py: Python<'py>,
    kind: &str,
    shape: (usize, usize),
    address: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let read_only = true;
    let about = PyDict::new(py);
    about.set_item("version", 3)?;
    about.set_item("shape", shape)?;
    about.set_item("typestr", kind)?;
    about.set_item("data", (address, read_only))?;
    Ok(about)
}

/// One row.
pub(crate) fn row(py: Python<'_>, values: Vec<f32>) -> PyResult<Bound<'_, PyArray1<f32>>> {
    require_numpy(py)?;
    Ok(values.into_pyarray(py))
}

/// Ids of tokens.
pub(crate) fn ids(py: Python<'_>, values: Vec<u32>) -> PyResult<Bound<'_, PyArray1<u32>>> {
    require_numpy(py)?;
    Ok(values.into_pyarray(py))
}

/// The crate `numpy` panics where Python's numpy cannot be imported; this is the import's own error.
fn require_numpy(py: Python<'_>) -> PyResult<()> {
    static NUMPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    NUMPY.import(py, "numpy", "ndarray").map(drop)
}

/// The score of every pair of rows, `[n, m]`.
pub(crate) fn scores<'py>(
    py: Python<'py>,
    metric: Similarity,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    require_numpy(py)?;
    let (a, b): (Rows<'py>, Rows<'py>) = (a.extract()?, b.extract()?);
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
    rows(py, [a.nrows(), b.nrows()], values)
}
