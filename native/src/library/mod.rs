//! Which ONNX Runtime this process uses, and whether it can.

use std::ffi::CStr;
use std::path::PathBuf;

use isovec_engine::error::EngineError;
use ort::sys::OrtApiBase;

use crate::NAME;

#[cfg(feature = "load-dynamic")]
mod dynamic;
#[cfg(feature = "load-dynamic")]
pub use dynamic::offer;
#[cfg(feature = "load-dynamic")]
pub(crate) use dynamic::{commit, probe};

#[cfg(not(feature = "load-dynamic"))]
mod linked;
#[cfg(not(feature = "load-dynamic"))]
pub(crate) use linked::{commit, probe};

/// A library that was found to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Library {
    /// Where it is; `None` for one that is linked into the program.
    pub(crate) path: Option<PathBuf>,
    /// Its version, `1.31.1`.
    pub(crate) version: String,
}

/// Why there is no library to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) reason: String,
    pub(crate) hint: String,
}

impl Problem {
    pub(crate) fn new(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            hint: hint.into(),
        }
    }
}

impl From<Problem> for EngineError {
    fn from(problem: Problem) -> Self {
        Self::EngineUnavailable {
            engine: NAME,
            reason: problem.reason,
            hint: problem.hint,
        }
    }
}

/// The version that a library says it has, if it is new enough for this build to use.
///
/// # Safety
/// `base` is what a library's `OrtGetApiBase` has returned, and the library stays loaded.
unsafe fn version(base: *const OrtApiBase) -> Result<String, String> {
    // SAFETY: the caller's promise; the table is static within the library.
    let base = unsafe { base.as_ref() }.ok_or("it has no interface")?;
    // SAFETY: the function has no preconditions.
    let version = unsafe { (base.GetVersionString)() };
    if version.is_null() {
        return Err("it does not state its version".into());
    }
    // SAFETY: a static string that ends in a zero byte.
    let version = unsafe { CStr::from_ptr(version) }
        .to_string_lossy()
        .into_owned();
    // Asked before the interface: a library prints a complaint when asked for a newer one.
    let minor = version
        .strip_prefix("1.")
        .and_then(|rest| rest.split('.').next())
        .and_then(|minor| minor.parse::<u32>().ok())
        .ok_or_else(|| format!("its version is {version:?}, not 1.x"))?;
    if minor < ort::MINOR_VERSION {
        return Err(format!(
            "it is version {version}, and 1.{} is the oldest that works",
            ort::MINOR_VERSION
        ));
    }
    // SAFETY: the function takes any number.
    if unsafe { (base.GetApi)(ort::MINOR_VERSION) }.is_null() {
        return Err(format!(
            "it is version {version}, but lacks interface {}",
            ort::MINOR_VERSION
        ));
    }
    Ok(version)
}
