//! Execution providers: which a library has, and adding one to a session's options.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::ptr;

use ort::sys::{
    OrtCUDAProviderOptionsV2, OrtSessionOptions, OrtStatusPtr, OrtTensorRTProviderOptionsV2,
};

use super::options::c_text;
use super::{Result, SessionOptions, check, written};
use crate::options::Provider;

/// The names of the providers that the library was built with, as ONNX Runtime writes them.
pub(crate) fn available_providers() -> Result<Vec<String>> {
    let (mut names, mut count) = (ptr::null_mut(), 0);
    // SAFETY: both are written on success.
    check(unsafe { (ort::api().GetAvailableProviders)(&mut names, &mut count) })?;
    let len = usize::try_from(count).unwrap_or(0);
    let found = (0..len)
        .map(|at| {
            // SAFETY: the library wrote `count` texts that end in a zero byte.
            let name = unsafe { CStr::from_ptr(*names.add(at)) };
            name.to_string_lossy().into_owned()
        })
        .collect();
    // SAFETY: got above, not used after.
    check(unsafe { (ort::api().ReleaseAvailableProviders)(names, count) })?;
    Ok(found)
}

/// Keys and values as the C interface takes them.
struct Options {
    keys: Vec<CString>,
    values: Vec<CString>,
}

impl Options {
    fn new(options: &BTreeMap<String, String>) -> Result<Self> {
        Ok(Self {
            keys: options
                .keys()
                .map(|key| c_text(key))
                .collect::<Result<_>>()?,
            values: options
                .values()
                .map(|value| c_text(value))
                .collect::<Result<_>>()?,
        })
    }

    fn pointers(texts: &[CString]) -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).collect()
    }
}

impl SessionOptions {
    /// Adds a provider behind those that were added before. The processor needs no adding.
    pub(crate) fn append(
        &mut self,
        provider: Provider,
        options: &BTreeMap<String, String>,
    ) -> Result<()> {
        let options = Options::new(options)?;
        match provider {
            Provider::Cpu => Ok(()),
            Provider::Cuda => self.append_made(&options, cuda()),
            Provider::TensorRt => self.append_made(&options, tensorrt()),
            Provider::Rocm => self.append_named(c"MIGraphX", &options),
            Provider::DirectMl => self.append_named(c"DML", &options),
            Provider::CoreMl => self.append_named(c"CoreML", &options),
            Provider::OpenVino => self.append_named(c"OpenVINO", &options),
            Provider::WebGpu => self.append_named(c"WebGPU", &options),
        }
    }

    fn append_named(&mut self, name: &CStr, options: &Options) -> Result<()> {
        let (keys, values) = (
            Options::pointers(&options.keys),
            Options::pointers(&options.values),
        );
        // SAFETY: the options are alive; both arrays have the length that is passed, and every
        // text is copied.
        check(unsafe {
            (ort::api().SessionOptionsAppendExecutionProvider)(
                self.options.as_ptr(),
                name.as_ptr(),
                keys.as_ptr(),
                values.as_ptr(),
                keys.len(),
            )
        })
    }

    /// Adds a provider whose options are an object of their own: made, filled, copied, released.
    fn append_made<T>(&mut self, options: &Options, calls: Calls<T>) -> Result<()> {
        let (keys, values) = (
            Options::pointers(&options.keys),
            Options::pointers(&options.values),
        );
        let mut made = ptr::null_mut();
        // SAFETY: `made` is written on success.
        check(unsafe { (calls.create)(&mut made) })?;
        let made = written(made)?;
        // SAFETY: `made` is alive; both arrays have the length that is passed; texts are copied.
        let filled = check(unsafe {
            (calls.update)(made.as_ptr(), keys.as_ptr(), values.as_ptr(), keys.len())
        });
        // SAFETY: both are alive; the settings are copied.
        let result = filled
            .and_then(|()| check(unsafe { (calls.append)(self.options.as_ptr(), made.as_ptr()) }));
        // SAFETY: made above, not used after.
        unsafe { (calls.release)(made.as_ptr()) };
        result
    }
}

/// What the C interface has for one provider's options.
struct Calls<T> {
    create: unsafe extern "system" fn(*mut *mut T) -> OrtStatusPtr,
    update: unsafe extern "system" fn(
        *mut T,
        *const *const c_char,
        *const *const c_char,
        usize,
    ) -> OrtStatusPtr,
    append: unsafe extern "system" fn(*mut OrtSessionOptions, *const T) -> OrtStatusPtr,
    release: unsafe extern "system" fn(*mut T),
}

fn cuda() -> Calls<OrtCUDAProviderOptionsV2> {
    let api = ort::api();
    Calls {
        create: api.CreateCUDAProviderOptions,
        update: api.UpdateCUDAProviderOptions,
        append: api.SessionOptionsAppendExecutionProvider_CUDA_V2,
        release: api.ReleaseCUDAProviderOptions,
    }
}

fn tensorrt() -> Calls<OrtTensorRTProviderOptionsV2> {
    let api = ort::api();
    Calls {
        create: api.CreateTensorRTProviderOptions,
        update: api.UpdateTensorRTProviderOptions,
        append: api.SessionOptionsAppendExecutionProvider_TensorRT_V2,
        release: api.ReleaseTensorRTProviderOptions,
    }
}
