//! Working memory.

/// The working memory of one thread; it grows to the longest text and is reused.
#[derive(Debug, Default)]
pub struct Scratch {
    values: Vec<f32>,
}

/// The length of a cache line and of the widest register, in elements.
const LINE: usize = 16;

impl Scratch {
    /// Parts of the lengths asked for, each at the beginning of a cache line. They hold anything.
    pub(super) fn parts<const N: usize>(&mut self, lengths: [usize; N]) -> [&mut [f32]; N] {
        let total: usize = lengths
            .iter()
            .map(|length| length.next_multiple_of(LINE))
            .sum();
        if self.values.len() < total + LINE {
            self.values.resize(total + LINE, 0.0);
        }
        let begin = self.values.as_ptr().align_offset(LINE * size_of::<f32>());
        // Alignment is for speed, so that where none is to be had the beginning will do.
        let mut rest = &mut self.values[if begin < LINE { begin } else { 0 }..];
        lengths.map(|length| {
            let lines = length.next_multiple_of(LINE);
            let (part, others) = std::mem::take(&mut rest).split_at_mut(lines);
            rest = others;
            &mut part[..length]
        })
    }
}
