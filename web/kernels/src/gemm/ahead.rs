//! Memory that will be read soon.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Cache lines that are asked for while a tile is computed, to be in the second cache when the next tiles want them. With few rows,
/// weights are read faster than they would come by themselves.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    /// The first of them. Nothing is read, so it may point anywhere.
    from: *const u8,
    /// How many in a turn.
    lines: usize,
}

impl Ahead {
    /// Nothing.
    pub(super) const NONE: Self = Self {
        from: std::ptr::null(),
        lines: 0,
    };

    /// The part of `values` that tile `number` of `count` asks for, in so many turns.
    pub(super) fn part<T>(values: &[T], turns: usize, number: usize, count: usize) -> Self {
        let turns = turns.max(1);
        let all = size_of_val(values).div_ceil(LINE);
        let lines = all.div_ceil(turns * count.max(1));
        let done = number * turns * lines;
        if done >= all {
            return Self::NONE;
        }
        let from = values.as_ptr().cast::<u8>().wrapping_add(done * LINE);
        Self { from, lines }
    }

    /// Asks for the lines of a turn. Only on x86-64, where there is a stable instruction for it.
    #[inline(always)]
    pub(super) fn ask(&mut self) {
        #[cfg(target_arch = "x86_64")]
        for _ in 0..self.lines {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            // SAFETY: every processor of this target has the instruction, which does nothing where no memory is.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(self.from.cast()) };
            self.from = self.from.wrapping_add(LINE);
        }
    }

    /// What is left after some turns.
    pub(super) fn after(self, turns: usize) -> Self {
        let from = self.from.wrapping_add(turns * self.lines * LINE);
        Self { from, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_all_tiles_are_all_lines_once() {
        for (values, turns, count) in [
            (12_288, 96, 23),
            (12_288, 96, 2),
            (100, 1, 1),
            (17, 0, 3),
            (0, 4, 2),
        ] {
            let values = vec![0.0_f32; values];
            let start = values.as_ptr() as usize;
            let mut next = start;
            for number in 0..count {
                let part = Ahead::part(&values, turns, number, count);
                if part.lines > 0 {
                    assert_eq!(part.from as usize, next);
                    next = part.after(turns.max(1)).from as usize;
                }
            }
            let asked = next - start;
            assert!(asked >= size_of_val(&values[..]), "{asked} bytes");
            // A tile asks for whole turns.
            assert!(asked < size_of_val(&values[..]) + (turns.max(1) + 1) * LINE);
        }
    }
}
