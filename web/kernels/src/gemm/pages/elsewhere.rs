//! Where no huge pages can be asked for.

use crate::gemm::buffer::Line;

/// No room.
#[derive(Debug)]
pub(in crate::gemm) struct Room;

impl Room {
    pub(super) fn new(_: usize) -> Option<Self> {
        None
    }

    pub(super) fn take(&mut self, _: usize) -> Option<Part> {
        None
    }
}

/// There is none.
#[derive(Debug)]
pub(in crate::gemm) enum Part {}

impl Part {
    pub(in crate::gemm) fn lines(&self) -> &[Line] {
        match *self {}
    }

    pub(in crate::gemm) fn lines_mut(&mut self) -> &mut [Line] {
        match *self {}
    }
}
