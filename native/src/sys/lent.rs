//! Memory that is lent to ONNX Runtime until it frees it.
//!
//! ONNX Runtime frees a tensor's memory through an allocator of the caller's. This allocator finds the owner of an
//! address in a table and drops it. A weight that a session repacks is therefore freed at once, instead of living as
//! long as the session.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use ort::sys::{OrtAllocator, OrtAllocatorType, OrtMemType, OrtMemoryInfo};

use super::{Result, check, written};

/// Owners by address; several where the same memory was lent more than once (one mapped file,
/// two engines).
static LENT: LazyLock<Mutex<HashMap<usize, Vec<Bytes>>>> = LazyLock::new(Mutex::default);

/// Takes a loan back unless it is kept.
pub(super) struct Loan(Option<usize>);

impl Loan {
    /// ONNX Runtime has it and will give it back.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(address) = self.0 {
            give_back(address);
        }
    }
}

/// Keeps the bytes alive until they are given back.
pub(super) fn lend(bytes: Bytes) -> Loan {
    let address = bytes.as_ptr() as usize;
    let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
    lent.entry(address).or_default().push(bytes);
    Loan(Some(address))
}

fn give_back(address: usize) {
    let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
    let owner = lent.get_mut(&address).and_then(Vec::pop);
    if lent.get(&address).is_some_and(Vec::is_empty) {
        lent.remove(&address);
    }
    drop(lent);
    // Unmapping or freeing takes time; other threads need not wait for it.
    drop(owner);
}

#[repr(C)]
struct Allocator {
    base: OrtAllocator,
    info: NonNull<OrtMemoryInfo>,
}

// SAFETY: written once, before it is shared, and only read afterwards.
unsafe impl Send for Allocator {}
// SAFETY: as above.
unsafe impl Sync for Allocator {}

/// The one allocator that gives loans back. It lives as long as the process.
pub(super) fn allocator() -> Result<*mut OrtAllocator> {
    static ALLOCATOR: OnceLock<Allocator> = OnceLock::new();
    if let Some(allocator) = ALLOCATOR.get() {
        return Ok(ptr::from_ref(allocator).cast_mut().cast());
    }
    let mut info = ptr::null_mut();
    // SAFETY: `info` is written on success.
    check(unsafe {
        (ort::api().CreateCpuMemoryInfo)(
            OrtAllocatorType::OrtDeviceAllocator,
            OrtMemType::OrtMemTypeDefault,
            &mut info,
        )
    })?;
    let info = written(info)?;
    // SAFETY: fills in the version and leaves every function out.
    let mut base = unsafe { OrtAllocator::default() };
    base.Alloc = Some(refuse);
    base.Free = Some(free);
    base.Info = Some(describe);
    let allocator = ALLOCATOR.get_or_init(|| Allocator { base, info });
    if allocator.info != info {
        // Another thread was first.
        // SAFETY: made above and given to nobody.
        unsafe { (ort::api().ReleaseMemoryInfo)(info.as_ptr()) };
    }
    Ok(ptr::from_ref(allocator).cast_mut().cast())
}

/// This allocator only frees.
unsafe extern "system" fn refuse(_this: *mut OrtAllocator, _size: usize) -> *mut c_void {
    ptr::null_mut()
}

unsafe extern "system" fn free(_this: *mut OrtAllocator, memory: *mut c_void) {
    give_back(memory as usize);
}

unsafe extern "system" fn describe(this: *const OrtAllocator) -> *const OrtMemoryInfo {
    // SAFETY: the only allocator with this function is `ALLOCATOR`, whose first field `this` is.
    unsafe { (*this.cast::<Allocator>()).info.as_ptr() }
}
