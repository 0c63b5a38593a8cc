//! Memory that Linux is told to keep in huge pages
//! (<https://docs.kernel.org/admin-guide/mm/transhuge.html>).

use std::sync::Arc;

use memmap2::{Advice, MmapMut, MmapRaw};

use crate::gemm::buffer::Line;

/// Bytes of a huge page.
const PAGE: usize = 2 << 20;

/// Lines, of which those from `next` on are nobody's.
#[derive(Debug)]
pub(in crate::gemm) struct Room {
    map: Arc<MmapRaw>,
    next: usize,
    end: usize,
}

impl Room {
    pub(super) fn new(values: usize) -> Option<Self> {
        let bytes = values.checked_mul(size_of::<f32>())?;
        if bytes < PAGE {
            return None;
        }
        // A huge page begins where its size divides the address. What lies before is never touched, and so takes no memory.
        let map = MmapMut::map_anon(bytes.checked_add(PAGE)?).ok()?;
        let before = map.as_ptr().align_offset(PAGE);
        // What is no whole page at the end stays in small ones. A system without huge pages says so, and has small ones throughout.
        let _ = map.advise_range(Advice::HugePage, before, bytes / PAGE * PAGE);
        Some(Self {
            map: Arc::new(map.into()),
            next: before / size_of::<Line>(),
            end: (before + bytes) / size_of::<Line>(),
        })
    }

    pub(super) fn take(&mut self, values: usize) -> Option<Part> {
        let count = values.div_ceil(Line::VALUES);
        let first = self.next;
        self.next = first.checked_add(count).filter(|next| *next <= self.end)?;
        Some(Part {
            map: Arc::clone(&self.map),
            first,
            count,
        })
    }
}

/// Some of the lines, which nobody else has.
#[derive(Debug)]
pub(in crate::gemm) struct Part {
    map: Arc<MmapRaw>,
    first: usize,
    count: usize,
}

impl Part {
    pub(in crate::gemm) fn lines(&self) -> &[Line] {
        // SAFETY: the lines lie within the map, which lives as long; they are zeros or what was written, and nobody else's.
        unsafe { std::slice::from_raw_parts(self.start(), self.count) }
    }

    pub(in crate::gemm) fn lines_mut(&mut self) -> &mut [Line] {
        // SAFETY: as for `lines`, and whoever has the part has it alone.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.count) }
    }

    fn start(&self) -> *mut Line {
        self.map
            .as_mut_ptr()
            .cast::<Line>()
            .wrapping_add(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_end_with_the_room() {
        let values = 3 * PAGE / 2 / size_of::<f32>();
        let mut room = Room::new(values).unwrap();
        let mut one = room.take(values / 2 + 1).unwrap();
        let mut two = room.take(values / 2 - 16).unwrap();
        assert!(room.take(1).is_none());
        assert_eq!(one.start() as usize % PAGE, 0);
        assert_eq!(two.start(), one.start().wrapping_add(one.count));
        let sum = |part: &Part| -> f32 { part.lines().iter().flat_map(|line| line.0).sum() };
        assert_eq!((sum(&one), sum(&two)), (0.0, 0.0));
        one.lines_mut().fill(Line([1.0; Line::VALUES]));
        two.lines_mut().fill(Line([2.0; Line::VALUES]));
        drop(room);
        assert_eq!(sum(&one), (one.count * Line::VALUES) as f32);
        drop(one);
        assert_eq!(sum(&two), (two.count * 2 * Line::VALUES) as f32);
    }

    #[test]
    fn what_is_no_page_or_more_than_memory_has_no_room() {
        for values in [0, PAGE / size_of::<f32>() - 1, usize::MAX / 4, usize::MAX] {
            assert!(Room::new(values).is_none(), "{values}");
        }
    }
}
