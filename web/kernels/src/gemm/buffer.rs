//! Memory whose start lies on a cache line, so that no vector of a panel or of a pixel crosses two.

use std::collections::TryReserveError;

/// A cache line of f32 values.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; Line::VALUES]);

impl Line {
    const VALUES: usize = 16;
}

/// Values on cache lines; grows, and keeps its memory for the next use.
#[derive(Debug, Clone, Default)]
pub struct Buffer {
    lines: Vec<Line>,
    len: usize,
}

impl Buffer {
    /// Makes it `len` values, all 0.
    pub(super) fn reset(&mut self, len: usize) {
        self.lines.clear();
        self.lines
            .resize(len.div_ceil(Line::VALUES), Line([0.0; Line::VALUES]));
        self.len = len;
    }

    /// Makes it at least `len` values, where memory can be had. What is new is 0.
    ///
    /// # Errors
    ///
    /// If memory cannot be had; it is then as it was.
    pub fn grow(&mut self, len: usize) -> Result<(), TryReserveError> {
        let lines = len.div_ceil(Line::VALUES);
        let more = lines.saturating_sub(self.lines.len());
        self.lines.try_reserve_exact(more)?;
        self.lines
            .resize(self.lines.len() + more, Line([0.0; Line::VALUES]));
        self.len = self.len.max(len);
        Ok(())
    }

    /// The values.
    #[must_use]
    pub fn as_slice(&self) -> &[f32] {
        // SAFETY: lines are f32 values without gaps, and hold at least `len` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    /// The values, to write.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        // SAFETY: lines are f32 values without gaps, and hold at least `len` of them.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
