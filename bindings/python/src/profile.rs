//! The class `ProfileSession`.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use isovec::profile;
use pyo3::prelude::*;

use crate::fork::Owned;

/// A profile that is being recorded, or was. As the value of a `with` statement it ends with the block.
#[pyclass(frozen, module = "isovec")]
pub(crate) struct ProfileSession(Owned<Mutex<State>>);

struct State {
    recording: Option<profile::ProfileSession>,
    /// As a Chrome trace; empty before the end.
    trace: String,
}

impl From<profile::ProfileSession> for ProfileSession {
    fn from(session: profile::ProfileSession) -> Self {
        Self(Owned::new(Mutex::new(State {
            recording: Some(session),
            trace: String::new(),
        })))
    }
}

impl ProfileSession {
    fn trace(&self) -> String {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = state.recording.take() {
            state.trace = session.finish().to_chrome_trace();
        }
        state.trace.clone()
    }
}

#[pymethods]
impl ProfileSession {
    /// Ends the recording, and gives it as a Chrome trace, which Perfetto, Chrome and `isovec trace` read.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        self.0.get(py)?;
        Ok(py.detach(|| self.trace()))
    }

    /// Ends the recording, and writes it into a file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let trace = self.finish(py)?;
        py.detach(|| std::fs::write(path, trace))?;
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.finish(py).map(drop)
    }
}
