//! Memory whose start lies on a cache line, so that no vector of a panel or of a pixel crosses two.

use std::collections::TryReserveError;

use super::pages::{Pages, Part};

/// A cache line of f32 values.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [f32; Line::VALUES]);

impl Line {
    pub(super) const VALUES: usize = 16;
    const ZEROS: Self = Self([0.0; Self::VALUES]);
}

/// Values on cache lines; grows, and keeps its memory for the next use.
#[derive(Debug, Default)]
pub struct Buffer {
    /// A part of memory that others have parts of, instead of lines of its own.
    part: Option<Part>,
    lines: Vec<Line>,
    len: usize,
}

impl Clone for Buffer {
    /// The same values in memory of its own.
    fn clone(&self) -> Self {
        Self {
            part: None,
            lines: self.lines().to_vec(),
            len: self.len,
        }
    }
}

impl Buffer {
    /// So many values, all 0, in these pages if they have room.
    pub(super) fn zeros(len: usize, pages: &mut Pages) -> Self {
        Self::in_pages(len, pages).unwrap_or_else(|| {
            let mut buffer = Self::default();
            buffer.reset(len);
            buffer
        })
    }

    /// The same, and nothing where they have none.
    pub(super) fn in_pages(len: usize, pages: &mut Pages) -> Option<Self> {
        Some(Self {
            part: Some(pages.take(len)?),
            lines: Vec::new(),
            len,
        })
    }

    /// Makes it `len` values, all 0.
    pub(super) fn reset(&mut self, len: usize) {
        let lines = self.own();
        lines.clear();
        lines.resize(len.div_ceil(Line::VALUES), Line::ZEROS);
        self.len = len;
    }

    /// Makes it at least `len` values, where memory can be had. What is new is 0.
    ///
    /// # Errors
    ///
    /// If memory cannot be had; it is then as it was.
    pub fn grow(&mut self, len: usize) -> Result<(), TryReserveError> {
        let all = len.div_ceil(Line::VALUES);
        let lines = self.own();
        let more = all.saturating_sub(lines.len());
        lines.try_reserve_exact(more)?;
        lines.resize(lines.len() + more, Line::ZEROS);
        self.len = self.len.max(len);
        Ok(())
    }

    /// The values.
    #[must_use]
    pub fn as_slice(&self) -> &[f32] {
        // SAFETY: lines are f32 values without gaps, and hold at least `len` of them.
        unsafe { std::slice::from_raw_parts(self.lines().as_ptr().cast(), self.len) }
    }

    /// The values, to write.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        let lines = match &mut self.part {
            Some(part) => part.lines_mut(),
            None => &mut self.lines,
        };
        // SAFETY: lines are f32 values without gaps, and hold at least `len` of them.
        unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), self.len) }
    }

    fn lines(&self) -> &[Line] {
        self.part.as_ref().map_or(&self.lines, Part::lines)
    }

    /// Lines that can grow: those of a part are copied.
    fn own(&mut self) -> &mut Vec<Line> {
        if let Some(part) = self.part.take() {
            self.lines = part.lines().to_vec();
        }
        &mut self.lines
    }
}
