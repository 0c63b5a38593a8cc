//! Attention within each text (<https://arxiv.org/abs/1706.03762>, section 3.2), without ever
//! holding the scores of a whole head.

mod head;
mod relative;
mod scratch;
mod tile;
mod transpose;

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use self::scratch::Scratch;
use crate::Arithmetic;
use crate::columns::Columns;
use crate::error::KernelError;
use crate::ragged;

/// How queries meet keys.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// The number of query heads.
    pub heads: usize,
    /// The number of key and value heads: `heads`, or a divisor of it where several query heads
    /// share one (<https://arxiv.org/abs/2305.13245>).
    pub kv_heads: usize,
    /// The number of elements of a head.
    pub head_size: usize,
    /// The factor of the queries, usually `1 / sqrt(head_size)`.
    pub scale: f32,
    /// The bias on the scores.
    pub bias: Option<OffsetBias<'a>>,
    /// Terms of the scores by one token's content and the distance of both.
    pub relative: Option<Relative<'a>>,
    /// Positions further apart than this do not see each other.
    pub reach: Option<usize>,
    /// Whether a position sees none after it.
    pub causal: bool,
    /// How products are added.
    pub arithmetic: Arithmetic,
}

/// A bias by head and by the offset between positions alone
/// (<https://arxiv.org/abs/1910.10683>, section 2.1).
#[derive(Debug, Clone, Copy)]
pub struct OffsetBias<'a> {
    /// `[heads, 2 * positions - 1]`: for every offset (key position minus query position), the
    /// most negative first.
    pub values: &'a [f32],
    /// The number of positions of the longest text.
    pub positions: usize,
}

/// Terms of scores that depend on the content of one token of a pair and on the offset between both
/// (<https://arxiv.org/abs/2006.03654>, section 3.1): a column of a table for each offset, times the query or the key.
#[derive(Debug, Clone, Copy)]
pub struct Relative<'a> {
    /// `[heads, head_size, columns]`: the product of a column with the scaled query.
    pub queries: Option<&'a [f32]>,
    /// `[heads, head_size, columns]`: the product of a column with the key, as it is.
    pub keys: Option<&'a [f32]>,
    /// The number of columns.
    pub columns: usize,
    /// The column of every offset, the position of the other token minus that of the one that is multiplied, the most negative
    /// first: an odd number of them, which is twice the positions of the longest text less one.
    pub by_offset: &'a [u32],
}

/// The attention of one batch, shared by the threads that compute it.
///
/// There is a job for each head of each text. A thread takes one after another until none is left. The result of a
/// job depends only on its own text and head.
#[derive(Debug)]
pub struct AttentionRun<'a> {
    attention: Attention<'a>,
    queries: Columns<'a>,
    keys: Columns<'a>,
    values: Columns<'a>,
    offsets: &'a [usize],
    /// The tokens of each text that are seen, where some are not.
    seen: Option<&'a [usize]>,
    /// `[tokens, heads * head_size]`.
    out: *mut f32,
    borrowed: PhantomData<&'a mut [f32]>,
    next: AtomicUsize,
}

// SAFETY: `out` is borrowed mutably for the run's lifetime and stands for a `&mut [f32]`, which
// may be sent.
unsafe impl Send for AttentionRun<'_> {}

// SAFETY: a shared run writes to `out` only in `run_next`, in the elements of a job that nobody
// else is given.
unsafe impl Sync for AttentionRun<'_> {}

impl<'a> AttentionRun<'a> {
    /// Attention from `[tokens, heads * head_size]` queries to `[tokens, kv_heads * head_size]`
    /// keys and values, into `out`, `[tokens, heads * head_size]`.
    ///
    /// `offsets` says where each text of the batch begins and, at the end, how many tokens there
    /// are.
    ///
    /// # Errors
    /// [`KernelError::TooLong`] when a text has more tokens than the bias has positions.
    ///
    /// # Panics
    /// When the extents do not fit one another.
    pub fn new(
        attention: Attention<'a>,
        queries: Columns<'a>,
        keys: Columns<'a>,
        values: Columns<'a>,
        offsets: &'a [usize],
        out: &'a mut [f32],
    ) -> Result<Self, KernelError> {
        let Attention {
            heads,
            kv_heads,
            head_size,
            ..
        } = attention;
        assert!(
            kv_heads > 0 && heads.is_multiple_of(kv_heads) && head_size > 0,
            "{heads} heads of {head_size} on {kv_heads} key and value heads"
        );
        assert!(
            queries.width() == heads * head_size
                && keys.width() == kv_heads * head_size
                && values.width() == kv_heads * head_size,
            "{heads} heads of {head_size} on {kv_heads}, queries of {}, keys of {}, values of {}",
            queries.width(),
            keys.width(),
            values.width()
        );
        let tokens = offsets.last().copied().unwrap_or(0);
        assert!(
            offsets.is_sorted()
                && queries.rows() >= tokens
                && keys.rows() >= tokens
                && values.rows() >= tokens
                && out.len() == tokens * heads * head_size,
            "{tokens} tokens, {} queries, {} keys, {} values to {} elements",
            queries.rows(),
            keys.rows(),
            values.rows(),
            out.len()
        );
        if let Some(bias) = attention.bias {
            assert!(
                bias.values.len() == heads * (2 * bias.positions).saturating_sub(1),
                "{} biases of {heads} heads and {} positions",
                bias.values.len(),
                bias.positions
            );
            ragged::check_lengths(offsets, bias.positions)?;
        }
        if let Some(relative) = attention.relative {
            let all = heads * head_size * relative.columns;
            let tables = [relative.queries, relative.keys];
            assert!(
                kv_heads == heads
                    && tables.iter().flatten().all(|table| table.len() == all)
                    && relative.by_offset.len() % 2 == 1
                    && relative
                        .by_offset
                        .iter()
                        .all(|&column| (column as usize) < relative.columns),
                "{} columns for {} offsets of {heads} heads of {head_size}",
                relative.columns,
                relative.by_offset.len()
            );
            ragged::check_lengths(offsets, relative.by_offset.len().div_ceil(2))?;
        }
        Ok(Self {
            attention,
            queries,
            keys,
            values,
            offsets,
            seen: None,
            out: out.as_mut_ptr(),
            borrowed: PhantomData,
            next: AtomicUsize::new(0),
        })
    }

    /// Only the first `seen[i]` tokens of text `i` are keys. Those after them are queries all the same.
    ///
    /// # Panics
    /// When there is not one count for each text, between 1 and the text's tokens.
    #[must_use]
    pub fn seeing(mut self, seen: &'a [usize]) -> Self {
        let lengths = self.offsets.windows(2).map(|ends| ends[1] - ends[0]);
        assert!(
            seen.len() + 1 == self.offsets.len()
                && seen
                    .iter()
                    .zip(lengths)
                    .all(|(&seen, length)| seen <= length && (seen > 0 || length == 0)),
            "{seen:?} tokens are seen of texts at {:?}",
            self.offsets
        );
        self.seen = Some(seen);
        self
    }

    /// The number of jobs.
    pub fn jobs(&self) -> usize {
        self.offsets.len().saturating_sub(1) * self.attention.heads
    }

    /// Takes a free job and runs it; `false` if there is none.
    ///
    /// The output is complete when every job that was taken has returned and none is left.
    pub fn run_next(&self, scratch: &mut Scratch) -> bool {
        // Only the number matters: what a job reads was there before the run was shared, and
        // whoever waits for the threads sees what they wrote.
        let job = self.next.fetch_add(1, Ordering::Relaxed);
        if job >= self.jobs() {
            // So that asking for ever does not begin again at 0.
            self.next.store(self.jobs(), Ordering::Relaxed);
            return false;
        }
        let (text, head) = (job / self.attention.heads, job % self.attention.heads);
        let tokens = self.offsets[text]..self.offsets[text + 1];
        if !tokens.is_empty() {
            let seen = self.seen.map_or(tokens.len(), |seen| seen[text]);
            self.head(tokens, seen, head, scratch);
        }
        true
    }

    /// Runs jobs until none is left.
    pub fn run(&self, scratch: &mut Scratch) {
        while self.run_next(scratch) {}
    }

    /// Runs a job that this call alone was given.
    fn head(&self, tokens: Range<usize>, seen: usize, head: usize, scratch: &mut Scratch) {
        let Attention {
            heads,
            kv_heads,
            head_size,
            scale,
            bias,
            relative,
            reach,
            causal,
            arithmetic,
        } = self.attention;
        let kv_head = head / (heads / kv_heads);
        let job = head::Head {
            queries: self.queries.part(head * head_size, head_size),
            keys: self.keys.part(kv_head * head_size, head_size),
            values: self.values.part(kv_head * head_size, head_size),
            tokens: tokens.clone(),
            seen,
            scale,
            bias: bias.map(|bias| {
                let offsets = 2 * bias.positions - 1;
                let row = &bias.values[head * offsets..(head + 1) * offsets];
                // The offsets that this text has.
                &row[bias.positions - tokens.len()..bias.positions + tokens.len() - 1]
            }),
            relative: relative.map(|relative| {
                let part = head_size * relative.columns;
                let own = |table: &'a [f32]| &table[head * part..(head + 1) * part];
                let before = relative.by_offset.len() / 2 + 1 - tokens.len();
                relative::Relative {
                    queries: relative.queries.map(own),
                    keys: relative.keys.map(own),
                    columns: relative.columns,
                    by_offset: &relative.by_offset[before..before + 2 * tokens.len() - 1],
                }
            }),
            reach,
            causal,
        };
        job.run(arithmetic, scratch, &mut |query, values| {
            let begin = ((tokens.start + query) * heads + head) * head_size;
            // SAFETY: `new` saw that `out` has `heads * head_size` elements for every token up to
            // the last offset, `query` is less than the text's tokens, and the head's part of a
            // text's rows belongs to one job, which was given away once; `out` is not read or
            // written by anybody else while the run lives.
            let out = unsafe { std::slice::from_raw_parts_mut(self.out.add(begin), head_size) };
            out.copy_from_slice(values);
        });
    }
}
