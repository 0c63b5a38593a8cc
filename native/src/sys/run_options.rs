//! The options of a run, through which it is also stopped.

use std::ffi::CStr;
use std::ptr::{self, NonNull};

use ort::sys::OrtRunOptions;

use super::{Result, check, written};

/// The settings of a run.
#[derive(Debug)]
pub(crate) struct RunOptions {
    options: NonNull<OrtRunOptions>,
}

// SAFETY: plain data without ties to a thread.
unsafe impl Send for RunOptions {}
// SAFETY: what takes `&self` sets or clears the flag to stop, which the interface documents as
// callable from another thread while a run goes on.
unsafe impl Sync for RunOptions {}

impl RunOptions {
    pub(crate) fn new() -> Result<Self> {
        let mut options = ptr::null_mut();
        // SAFETY: `options` is written on success.
        check(unsafe { (ort::api().CreateRunOptions)(&mut options) })?;
        Ok(Self {
            options: written(options)?,
        })
    }

    /// Sets one of the keys of `onnxruntime_run_options_config_keys.h`.
    pub(crate) fn entry(&mut self, key: &CStr, value: &CStr) -> Result<()> {
        // SAFETY: the options are alive and no run uses them; both texts are copied.
        check(unsafe {
            (ort::api().AddRunConfigEntry)(self.options.as_ptr(), key.as_ptr(), value.as_ptr())
        })
    }

    /// Has runs with these options end with an error, now and until `resume`.
    pub(crate) fn stop(&self) {
        // SAFETY: the options are alive. Setting a flag cannot fail; if it did, the run would
        // end by itself.
        let _ = check(unsafe { (ort::api().RunOptionsSetTerminate)(self.options.as_ptr()) });
    }

    /// Takes `stop` back.
    pub(crate) fn resume(&self) -> Result<()> {
        // SAFETY: the options are alive.
        check(unsafe { (ort::api().RunOptionsUnsetTerminate)(self.options.as_ptr()) })
    }

    pub(super) fn ptr(&self) -> *const OrtRunOptions {
        self.options.as_ptr()
    }
}

impl Drop for RunOptions {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and no run uses it any more.
        unsafe { (ort::api().ReleaseRunOptions)(self.options.as_ptr()) };
    }
}
