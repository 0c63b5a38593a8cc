//! Memory in huge pages, for matrices that are multiplied one after another. In pages of 4 KB there are more of them than a processor's
//! TLB has entries, and products of few rows wait for its misses.

#[cfg(all(target_os = "linux", not(miri)))]
#[path = "pages/linux.rs"]
mod system;
#[cfg(not(all(target_os = "linux", not(miri))))]
#[path = "pages/elsewhere.rs"]
mod system;

pub(super) use system::Part;

/// Room for matrices, one after another.
#[derive(Debug, Default)]
pub struct Pages {
    room: Option<system::Room>,
}

impl Pages {
    /// Room for so many values. Memory is used where a matrix is. There is no room except on Linux, for less than a huge page, and
    /// where memory cannot be had: matrices then have memory of their own.
    #[must_use]
    pub fn reserve(values: usize) -> Self {
        Self {
            room: system::Room::new(values),
        }
    }

    /// The next so many values, all 0.
    pub(super) fn take(&mut self, values: usize) -> Option<Part> {
        self.room.as_mut()?.take(values)
    }
}
