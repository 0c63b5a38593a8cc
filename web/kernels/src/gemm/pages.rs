//! Memory in large pages, for the weights of a model: they are more than a processor knows the addresses of in pages of 4 KB, and
//! products of few rows wait for addresses then.

#[cfg(all(target_os = "linux", not(miri)))]
#[path = "pages/linux.rs"]
mod system;
#[cfg(not(all(target_os = "linux", not(miri))))]
#[path = "pages/elsewhere.rs"]
mod system;

pub(super) use system::Part;

/// Room for the matrices of a model, one after another.
#[derive(Debug, Default)]
pub struct Pages {
    room: Option<system::Room>,
}

impl Pages {
    /// Room for so many values. Memory is used where a matrix is. There is no room except on Linux, for less than a large page, and
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
