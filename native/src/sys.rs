//! Owning handles over ONNX Runtime's C interface.
//!
//! `ort` has safe handles, but its sessions need its `Environment`, and a process can build only one. If isovec built
//! it, another crate on `ort` could not, and the other way round. ONNX Runtime itself counts references to its
//! environment, so these handles use it directly, through the function table that `ort` loads.

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use bytes::Bytes;
use isovec_engine::tensor::DType;
use ort::sys::{
    ONNXTensorElementDataType, OrtAllocatorType, OrtEnv, OrtLoggingLevel, OrtMemType,
    OrtMemoryInfo, OrtStatusPtr, OrtValue,
};
use smallvec::SmallVec;

mod edit;
pub(crate) mod end;
mod lent;
mod options;
mod providers;
mod run_options;
mod session;

pub(crate) use edit::Weight;
pub(crate) use options::SessionOptions;
pub(crate) use providers::available_providers;
pub(crate) use run_options::RunOptions;
pub(crate) use session::{Names, Session};

pub(crate) type Result<T> = std::result::Result<T, ort::Error>;

fn check(status: OrtStatusPtr) -> Result<()> {
    // SAFETY: every caller passes the status that a call of the C interface has just returned,
    // and passes it once.
    unsafe { ort::Error::result_from_status(status) }
}

/// The pointer that a successful call has written.
fn written<T>(pointer: *mut T) -> Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(|| ort::Error::new("ONNX Runtime returned a null pointer"))
}

/// A reference to the process's environment: its logger.
#[derive(Debug)]
pub(crate) struct Env {
    env: NonNull<OrtEnv>,
    cpu: NonNull<OrtMemoryInfo>,
}

// SAFETY: ONNX Runtime's environment and memory descriptions may be used from any thread; the
// first is guarded inside, the second never changes.
unsafe impl Send for Env {}
// SAFETY: as above.
unsafe impl Sync for Env {}

impl Env {
    /// Takes a reference, making the environment when nobody has. The library must be loaded.
    pub(crate) fn new() -> Result<Self> {
        let mut cpu = ptr::null_mut();
        // SAFETY: `cpu` is written on success.
        check(unsafe {
            (ort::api().CreateCpuMemoryInfo)(
                OrtAllocatorType::OrtDeviceAllocator,
                OrtMemType::OrtMemTypeDefault,
                &mut cpu,
            )
        })?;
        let cpu = written(cpu)?;
        let mut env = ptr::null_mut();
        // SAFETY: the logger is a plain function without state, so it outlives the environment;
        // the name is copied.
        let made = check(unsafe {
            (ort::api().CreateEnvWithCustomLogger)(
                log,
                ptr::null_mut(),
                OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING,
                c"isovec".as_ptr(),
                &mut env,
            )
        })
        .and_then(|()| written(env));
        match made {
            Ok(env) => {
                // Vendors' builds report usage on some platforms. A library must not.
                // SAFETY: the environment is alive.
                check(unsafe { (ort::api().DisableTelemetryEvents)(env.as_ptr()) })?;
                Ok(Self { env, cpu })
            }
            Err(error) => {
                // SAFETY: made above and not used since.
                unsafe { (ort::api().ReleaseMemoryInfo)(cpu.as_ptr()) };
                Err(error)
            }
        }
    }
}

impl Drop for Env {
    fn drop(&mut self) {
        // SAFETY: both were made by `new` and nothing borrows them any more.
        unsafe {
            (ort::api().ReleaseMemoryInfo)(self.cpu.as_ptr());
            (ort::api().ReleaseEnv)(self.env.as_ptr());
        }
    }
}

/// ONNX Runtime's messages, from warnings up, as `tracing` events.
extern "system" fn log(
    _state: *mut c_void,
    severity: OrtLoggingLevel,
    _category: *const c_char,
    _id: *const c_char,
    location: *const c_char,
    message: *const c_char,
) {
    let text = |pointer: *const c_char| {
        if pointer.is_null() {
            return String::new();
        }
        // SAFETY: not null, and ONNX Runtime passes strings that end in a zero byte and live
        // until this function returns.
        unsafe { CStr::from_ptr(pointer) }
            .to_string_lossy()
            .into_owned()
    };
    // A subscriber that panics must not unwind into C++.
    let _ = std::panic::catch_unwind(|| {
        let (location, message) = (text(location), text(message));
        match severity {
            OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR | OrtLoggingLevel::ORT_LOGGING_LEVEL_FATAL => {
                tracing::error!(target: "onnxruntime", location, "{message}");
            }
            OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING => {
                tracing::warn!(target: "onnxruntime", location, "{message}");
            }
            _ => tracing::debug!(target: "onnxruntime", location, "{message}"),
        }
    });
}

/// A tensor as ONNX Runtime sees it.
#[derive(Debug)]
pub(crate) struct Value<'data> {
    value: NonNull<OrtValue>,
    data: PhantomData<&'data [u8]>,
}

// SAFETY: values are reference-counted with atomics and have no ties to a thread.
unsafe impl Send for Value<'_> {}

impl<'data> Value<'data> {
    /// A view of memory that outlives the value; nothing is copied.
    pub(crate) fn view(
        env: &Env,
        dtype: DType,
        shape: &[usize],
        bytes: &'data [u8],
    ) -> Result<Self> {
        // SAFETY: `bytes` outlives the value by its lifetime; ONNX Runtime writes only to outputs,
        // which such a view is never used for.
        unsafe { Self::over(env, dtype, shape, bytes.as_ptr().cast_mut(), bytes.len()) }
    }

    /// The same for an output, which a run writes to.
    pub(crate) fn view_mut(
        env: &Env,
        dtype: DType,
        shape: &[usize],
        bytes: &'data mut [u8],
    ) -> Result<Self> {
        // SAFETY: `bytes` outlives the value by its lifetime, and is nobody else's.
        unsafe { Self::over(env, dtype, shape, bytes.as_mut_ptr(), bytes.len()) }
    }

    /// # Safety
    /// The memory outlives the value, and is written to only if it may be.
    unsafe fn over(
        env: &Env,
        dtype: DType,
        shape: &[usize],
        data: *mut u8,
        len: usize,
    ) -> Result<Self> {
        let shape = dims(shape)?;
        let mut value = ptr::null_mut();
        // SAFETY: the caller's promise; ONNX Runtime checks that the length holds the shape.
        check(unsafe {
            (ort::api().CreateTensorWithDataAsOrtValue)(
                env.cpu.as_ptr(),
                data.cast(),
                len,
                shape.as_ptr(),
                shape.len(),
                element_type(dtype),
                &mut value,
            )
        })?;
        Ok(Self {
            value: written(value)?,
            data: PhantomData,
        })
    }

    /// The element type's number, the extents and the bytes. Fails for what is not a tensor.
    pub(crate) fn read(&self) -> Result<(i32, Vec<usize>, *const u8)> {
        let api = ort::api();
        let mut info = ptr::null_mut();
        // SAFETY: the value is alive; this fails for values that are not tensors.
        check(unsafe { (api.GetTensorTypeAndShape)(self.value.as_ptr(), &mut info) })?;
        let info = written(info)?;
        let mut shape = Vec::new();
        // Read as a number: a newer library may know types that the Rust enum does not.
        let mut dtype = MaybeUninit::<i32>::zeroed();
        // SAFETY: `info` is alive until released below; `shape` has the length that is passed;
        // `dtype` has the size of the C enum and any number is valid in it.
        let described = (|| unsafe {
            check((api.GetTensorElementType)(
                info.as_ptr(),
                dtype.as_mut_ptr().cast(),
            ))?;
            let mut rank = 0;
            check((api.GetDimensionsCount)(info.as_ptr(), &mut rank))?;
            shape.resize(rank, 0i64);
            check((api.GetDimensions)(info.as_ptr(), shape.as_mut_ptr(), rank))
        })();
        // SAFETY: made above, not used after.
        unsafe { (api.ReleaseTensorTypeAndShapeInfo)(info.as_ptr()) };
        described?;
        let mut data = ptr::null_mut();
        // SAFETY: the value is a tensor, as the calls above have shown.
        check(unsafe { (api.GetTensorMutableData)(self.value.as_ptr(), &mut data) })?;
        let shape = shape
            .into_iter()
            .map(|extent| {
                usize::try_from(extent)
                    .map_err(|_| ort::Error::new(format!("a tensor has the extent {extent}")))
            })
            .collect::<Result<_>>()?;
        // SAFETY: zeroed, then written.
        Ok((
            unsafe { dtype.assume_init() },
            shape,
            data.cast_const().cast(),
        ))
    }
}

impl Value<'static> {
    /// Takes over what ONNX Runtime has made.
    fn owned(value: NonNull<OrtValue>) -> Self {
        Self {
            value,
            data: PhantomData,
        }
    }

    /// A tensor in ONNX Runtime's own memory with a copy of `bytes` in it.
    pub(crate) fn copy_of(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Self> {
        let shape = dims(shape)?;
        let mut allocator = ptr::null_mut();
        // SAFETY: the default allocator is static and not released.
        check(unsafe { (ort::api().GetAllocatorWithDefaultOptions)(&mut allocator) })?;
        let mut value = ptr::null_mut();
        // SAFETY: `value` is written on success.
        check(unsafe {
            (ort::api().CreateTensorAsOrtValue)(
                allocator,
                shape.as_ptr(),
                shape.len(),
                element_type(dtype),
                &mut value,
            )
        })?;
        let value = Self::owned(written(value)?);
        let mut data = ptr::null_mut();
        // SAFETY: the value is a tensor.
        check(unsafe { (ort::api().GetTensorMutableData)(value.value.as_ptr(), &mut data) })?;
        // SAFETY: made for this type and shape, which `bytes` is the content of.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast::<u8>(), bytes.len()) };
        Ok(value)
    }

    /// A tensor that keeps `bytes` alive until ONNX Runtime has dropped its last reference.
    /// Nothing is copied.
    pub(crate) fn lend(dtype: DType, shape: &[usize], bytes: Bytes) -> Result<Self> {
        let shape = dims(shape)?;
        let allocator = lent::allocator()?;
        let (data, len) = (bytes.as_ptr(), bytes.len());
        let loan = lent::lend(bytes);
        let mut value = ptr::null_mut();
        // SAFETY: the memory stays where it is until the allocator's `Free` is called with its
        // address; the allocator lives for ever. ONNX Runtime only reads constants.
        check(unsafe {
            (ort::api().CreateTensorWithDataAndDeleterAsOrtValue)(
                allocator,
                data.cast_mut().cast(),
                len,
                shape.as_ptr(),
                shape.len(),
                element_type(dtype),
                &mut value,
            )
        })?;
        let value = Self::owned(written(value)?);
        loan.keep();
        Ok(value)
    }
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        // SAFETY: made by this module, released once.
        unsafe { (ort::api().ReleaseValue)(self.value.as_ptr()) };
    }
}

fn dims(shape: &[usize]) -> Result<SmallVec<[i64; 4]>> {
    shape
        .iter()
        .map(|&extent| {
            i64::try_from(extent)
                .map_err(|_| ort::Error::new(format!("extent {extent} is past ONNX's limit")))
        })
        .collect()
}

/// ONNX Runtime's name of an element type.
pub(crate) fn element_type(dtype: DType) -> ONNXTensorElementDataType {
    match dtype {
        DType::F32 => ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        DType::F16 => ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        DType::BF16 => ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
        DType::I64 => ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        DType::I32 => ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
        DType::U8 => ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        DType::I8 => ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
    }
}
