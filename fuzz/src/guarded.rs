//! Slices with nothing behind them, or nothing before them: reading or writing one value too far ends the program,
//! and the memory on the other side of a slice has to stay unchanged.

use std::marker::PhantomData;
use std::slice;

use bytemuck::Pod;

/// Bytes that a slice may have.
pub const BYTES: usize = 1 << 19;
/// Bytes beside a slice that are looked at afterwards.
const BESIDE: usize = 512;
/// What these are. As f32 it is a number that no sum comes to by itself.
const CANARY: u8 = 0xa5;

/// Where a slice lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Behind a page that nobody may touch.
    First,
    /// In front of one.
    Last,
    /// In between, so many values from the beginning: nowhere near an aligned place.
    Within(usize),
}

/// A slice that lies so.
#[derive(Debug)]
pub struct Guarded<T> {
    memory: Option<memory::Memory>,
    start: usize,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Pod> Guarded<T> {
    /// A slice of these values.
    ///
    /// # Panics
    /// When there are more than [`BYTES`].
    pub fn new(place: Place, values: &[T]) -> Self {
        let memory = memory::Memory::take();
        let bytes = size_of_val(values);
        assert!(bytes <= BYTES, "{bytes} bytes");
        let start = match place {
            Place::First => 0,
            Place::Last => BYTES - bytes,
            Place::Within(values) => (values * size_of::<T>()).min(BYTES - bytes),
        };
        let mut guarded = Self {
            memory: Some(memory),
            start,
            len: values.len(),
            of: PhantomData,
        };
        for beside in guarded.beside() {
            guarded.bytes_mut()[beside].fill(CANARY);
        }
        guarded.as_mut_slice().copy_from_slice(values);
        guarded
    }

    /// The values.
    pub fn as_slice(&self) -> &[T] {
        bytemuck::cast_slice(&self.bytes()[self.start..self.start + self.len * size_of::<T>()])
    }

    /// The same, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        let range = self.start..self.start + self.len * size_of::<T>();
        bytemuck::cast_slice_mut(&mut self.bytes_mut()[range])
    }

    /// # Panics
    /// When something beside the values was written.
    pub fn check(&self, what: &str) {
        for beside in self.beside() {
            let untouched = self.bytes()[beside].iter().all(|&byte| byte == CANARY);
            assert!(untouched, "{what}: something beside the values was written");
        }
    }

    fn beside(&self) -> [std::ops::Range<usize>; 2] {
        let end = self.start + self.len * size_of::<T>();
        [
            self.start.saturating_sub(BESIDE)..self.start,
            end..BYTES.min(end + BESIDE),
        ]
    }

    fn bytes(&self) -> &[u8] {
        let memory = self.memory.as_ref().map_or(&[][..], memory::Memory::bytes);
        debug_assert_eq!(memory.len(), BYTES);
        memory
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Some(memory) => memory.bytes_mut(),
            None => &mut [],
        }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            memory.give_back();
        }
    }
}

/// Pages between two that nobody may touch.
#[cfg(unix)]
mod memory {
    use std::cell::RefCell;
    use std::ptr;

    use super::{BYTES, slice};

    /// More than a page of any machine.
    const GUARD: usize = 1 << 16;

    #[derive(Debug)]
    pub(super) struct Memory(*mut u8);

    thread_local! {
        // Asking the system for pages takes longer than most kernels do.
        static SPARE: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
    }

    impl Memory {
        pub(super) fn take() -> Self {
            SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(Self::anew)
        }

        pub(super) fn give_back(self) {
            SPARE.with_borrow_mut(|spare| spare.push(self));
        }

        fn anew() -> Self {
            // SAFETY: a mapping of its own, at an address that the system chooses.
            let whole = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    BYTES + 2 * GUARD,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANON,
                    -1,
                    0,
                )
            };
            assert!(whole != libc::MAP_FAILED, "there is no memory");
            // SAFETY: within the mapping, of whole pages, as both sizes are multiples of one.
            let (start, made) = unsafe {
                let start = whole.cast::<u8>().add(GUARD);
                let writable = libc::PROT_READ | libc::PROT_WRITE;
                (start, libc::mprotect(start.cast(), BYTES, writable))
            };
            assert_eq!(made, 0, "pages cannot be opened");
            Self(start)
        }

        pub(super) fn bytes(&self) -> &[u8] {
            // SAFETY: `BYTES` from here on are open, were zeros at first, and are this one's.
            unsafe { slice::from_raw_parts(self.0, BYTES) }
        }

        pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
            // SAFETY: as above.
            unsafe { slice::from_raw_parts_mut(self.0, BYTES) }
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: the mapping that `anew` made, which nobody else has.
            unsafe { libc::munmap(self.0.sub(GUARD).cast(), BYTES + 2 * GUARD) };
        }
    }
}

/// Plain memory, where pages cannot be closed.
#[cfg(not(unix))]
mod memory {
    use super::BYTES;

    #[derive(Debug)]
    pub(super) struct Memory(Vec<u128>);

    impl Memory {
        pub(super) fn take() -> Self {
            Self(vec![0; BYTES / 16])
        }

        pub(super) fn give_back(self) {}

        pub(super) fn bytes(&self) -> &[u8] {
            bytemuck::cast_slice(&self.0)
        }

        pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
            bytemuck::cast_slice_mut(&mut self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_lie_where_they_are_to() {
        for place in [Place::First, Place::Last, Place::Within(3)] {
            for len in [0, 1, 100] {
                let values = vec![1.5_f32; len];
                let guarded = Guarded::new(place, &values);
                assert_eq!(guarded.as_slice(), values);
                guarded.check("nobody wrote");
                let at = guarded.as_slice().as_ptr().addr();
                match place {
                    Place::First => assert_eq!(at % 4096, 0),
                    Place::Last => assert_eq!((at + 4 * len) % 4096, 0),
                    Place::Within(_) => assert_eq!(at % 4096, 12),
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "beside the values")]
    fn what_is_written_beside_is_seen() {
        let mut guarded = Guarded::new(Place::Last, &[1_u8, 2]);
        let before = guarded.start - 1;
        guarded.bytes_mut()[before] = 0;
        guarded.check("a test");
    }
}
