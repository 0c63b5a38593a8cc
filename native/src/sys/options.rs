//! The options of a session.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{self, NonNull};

use ort::sys::{GraphOptimizationLevel, OrtLoggingLevel, OrtSessionOptions, OrtStatusPtr, os_char};

use super::{Result, check, written};

/// The settings of a session. Setters fail only where ONNX Runtime refuses a value.
#[derive(Debug)]
pub(crate) struct SessionOptions {
    pub(super) options: NonNull<OrtSessionOptions>,
}

// SAFETY: options are plain data. All setters but `cancel_load` take `&mut self`, and that one
// sets an atomic flag, which the interface documents as callable while a session is being made.
unsafe impl Send for SessionOptions {}
// SAFETY: as above.
unsafe impl Sync for SessionOptions {}

impl SessionOptions {
    /// ONNX Runtime's own defaults.
    pub(crate) fn new() -> Result<Self> {
        let mut options = ptr::null_mut();
        // SAFETY: `options` is written on success.
        check(unsafe { (ort::api().CreateSessionOptions)(&mut options) })?;
        Ok(Self {
            options: written(options)?,
        })
    }

    /// Threads that work on one operator.
    pub(crate) fn threads(&mut self, intra_op: usize) -> Result<()> {
        let number = i32::try_from(intra_op).unwrap_or(i32::MAX);
        // SAFETY: the options are alive.
        self.set(|options| unsafe { (ort::api().SetIntraOpNumThreads)(options, number) })
    }

    /// 0 to 3, as the configuration counts them.
    pub(crate) fn optimization_level(&mut self, level: u8) -> Result<()> {
        let level = match level {
            0 => GraphOptimizationLevel::ORT_DISABLE_ALL,
            1 => GraphOptimizationLevel::ORT_ENABLE_BASIC,
            2 => GraphOptimizationLevel::ORT_ENABLE_EXTENDED,
            _ => GraphOptimizationLevel::ORT_ENABLE_ALL,
        };
        // SAFETY: the options are alive.
        self.set(|options| unsafe { (ort::api().SetSessionGraphOptimizationLevel)(options, level) })
    }

    /// Whether a plan of memory is kept for every shape of the inputs.
    pub(crate) fn memory_pattern(&mut self, on: bool) -> Result<()> {
        // SAFETY: the options are alive.
        self.set(|options| unsafe {
            if on {
                (ort::api().EnableMemPattern)(options)
            } else {
                (ort::api().DisableMemPattern)(options)
            }
        })
    }

    /// Whether memory for intermediate tensors is kept between runs.
    pub(crate) fn cpu_arena(&mut self, on: bool) -> Result<()> {
        // SAFETY: the options are alive.
        self.set(|options| unsafe {
            if on {
                (ort::api().EnableCpuMemArena)(options)
            } else {
                (ort::api().DisableCpuMemArena)(options)
            }
        })
    }

    /// Whether kernels with a fixed order of additions are preferred.
    pub(crate) fn deterministic(&mut self, on: bool) -> Result<()> {
        // SAFETY: the options are alive.
        self.set(|options| unsafe { (ort::api().SetDeterministicCompute)(options, on) })
    }

    /// Writes a profile to a file whose name begins like this, when the session ends.
    pub(crate) fn profile(&mut self, prefix: &Path) -> Result<()> {
        let prefix = os_path(prefix)?;
        // SAFETY: the options are alive; the path ends in a zero and is copied.
        self.set(|options| unsafe { (ort::api().EnableProfiling)(options, prefix.as_ptr()) })
    }

    /// Writes the optimised graph to a file while the session is made.
    pub(crate) fn save_optimized(&mut self, path: &Path) -> Result<()> {
        let path = os_path(path)?;
        // SAFETY: the options are alive; the path ends in a zero and is copied.
        self.set(|options| unsafe {
            (ort::api().SetOptimizedModelFilePath)(options, path.as_ptr())
        })
    }

    /// Whether the session says nothing but errors.
    pub(crate) fn errors_only(&mut self) -> Result<()> {
        let severity = OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR as i32;
        // SAFETY: the options are alive.
        self.set(|options| unsafe { (ort::api().SetSessionLogSeverityLevel)(options, severity) })
    }

    /// Sets one of the keys of `onnxruntime_session_options_config_keys.h`.
    pub(crate) fn entry(&mut self, key: &CStr, value: &CStr) -> Result<()> {
        // SAFETY: the options are alive; both texts are copied.
        self.set(|options| unsafe {
            (ort::api().AddSessionConfigEntry)(options, key.as_ptr(), value.as_ptr())
        })
    }

    /// Makes a session that is being made with these options, or is about to be, fail soon.
    pub(crate) fn cancel_load(&self) {
        // SAFETY: the options are alive. A failure to set a flag would mean the load runs on,
        // which its caller no longer waits for.
        let _ = check(unsafe {
            (ort::api().SessionOptionsSetLoadCancellationFlag)(self.options.as_ptr(), true)
        });
    }

    fn set(&mut self, set: impl FnOnce(*mut OrtSessionOptions) -> OrtStatusPtr) -> Result<()> {
        check(set(self.options.as_ptr()))
    }
}

impl Drop for SessionOptions {
    fn drop(&mut self) {
        // SAFETY: made by `new`; sessions keep their own copy.
        unsafe { (ort::api().ReleaseSessionOptions)(self.options.as_ptr()) };
    }
}

/// A path as the system's functions take it, with a zero at its end.
#[cfg(windows)]
fn os_path(path: &Path) -> Result<Vec<os_char>> {
    use std::os::windows::ffi::OsStrExt;
    Ok(path.as_os_str().encode_wide().chain([0]).collect())
}

/// A path as the system's functions take it, with a zero at its end.
#[cfg(not(windows))]
fn os_path(path: &Path) -> Result<Vec<os_char>> {
    let text = c_text(&path.to_string_lossy())?;
    Ok(text
        .as_bytes_with_nul()
        .iter()
        .map(|&b| b as os_char)
        .collect())
}

/// A text with a zero at its end.
pub(super) fn c_text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| ort::Error::new(format!("{text:?} holds a zero byte")))
}
