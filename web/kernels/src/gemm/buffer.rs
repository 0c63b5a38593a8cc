//! Memory whose start lies on a cache line, so that no vector of a panel crosses two.

/// A cache line of f32 values.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; Line::VALUES]);

impl Line {
    const VALUES: usize = 16;
}

/// Values on cache lines; grows, and keeps its memory for the next use.
#[derive(Clone, Default)]
pub(super) struct Buffer {
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

    /// The values.
    pub(super) fn as_slice(&self) -> &[f32] {
        // SAFETY: lines are f32 values without gaps, and hold at least `len` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    /// The values, to write.
    pub(super) fn as_mut_slice(&mut self) -> &mut [f32] {
        // SAFETY: lines are f32 values without gaps, and hold at least `len` of them.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
