//! How much memory isovec may take for an input: a fixed part, and a multiple of the input.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What any input may take, in bytes.
pub const FIXED: usize = 64 << 20;
/// What each byte of the input may take besides.
pub const PER_BYTE: usize = 32;

/// Bytes that are allocated now, in all threads.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The most that were at once since the last [`ours`] began.
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs what is isovec's of a target, and holds the memory that it takes at once to [`FIXED`] and
/// [`PER_BYTE`] of the `input` bytes. One at a time: other threads' allocations count as its own.
///
/// # Panics
/// Where more was taken.
pub fn ours<T>(input: usize, run: impl FnOnce() -> T) -> T {
    let (made, taken) = measured(run);
    let bound = FIXED + PER_BYTE * input;
    assert!(
        taken <= bound,
        "{taken} bytes were taken at once for an input of {input}, more than {bound}"
    );
    made
}

/// What `run` gives, and the most bytes that were allocated at once meanwhile.
pub fn measured<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let made = run();
    let taken = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    (made, taken)
}

/// The system's allocator, counted.
struct Counting;

// SAFETY: every call goes to the system's allocator as it came, and what that gives is given back.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are handed on.
        let pointer = unsafe { System.alloc(layout) };
        taken(pointer, layout.size());
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are handed on.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        taken(pointer, layout.size());
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are handed on.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        if !moved.is_null() {
            LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        }
        taken(moved, size);
        moved
    }
}

fn taken(pointer: *mut u8, size: usize) {
    if !pointer.is_null() {
        let live = LIVE.fetch_add(size, Ordering::Relaxed) + size;
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
}
