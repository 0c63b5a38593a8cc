//! The offsets of texts in a batch whose tokens are stored one after another.

use std::ops::Range;

use crate::error::KernelError;

/// Every token of a range with its position in its text.
///
/// # Panics
/// When the range reaches past the batch.
pub(crate) fn positions(
    offsets: &[usize],
    tokens: Range<usize>,
) -> impl Iterator<Item = usize> + '_ {
    let within = |end: &usize| tokens.end <= *end;
    assert!(
        tokens.is_empty() || offsets.first() == Some(&0) && offsets.last().is_some_and(within),
        "tokens {tokens:?} of a batch that ends at {:?}",
        offsets.last()
    );
    // The text before the first that begins after the token.
    let mut text = offsets.partition_point(|&begin| begin <= tokens.start);
    tokens.map(move |token| {
        while offsets[text] <= token {
            text += 1;
        }
        token - offsets[text - 1]
    })
}

/// Refuses a batch in which a text is longer than there are positions.
pub(crate) fn check_lengths(offsets: &[usize], positions: usize) -> Result<(), KernelError> {
    let longest = offsets.windows(2).map(|text| text[1] - text[0]).max();
    match longest {
        Some(tokens) if tokens > positions => Err(KernelError::TooLong { tokens, positions }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_begin_again_with_every_text() {
        let offsets = [0, 0, 3, 3, 4, 6, 6];
        let all: Vec<usize> = positions(&offsets, 0..6).collect();
        assert_eq!(all, [0, 1, 2, 0, 0, 1]);
        for start in 0..6 {
            let part: Vec<usize> = positions(&offsets, start..6).collect();
            assert_eq!(part, all[start..]);
        }
        assert_eq!(positions(&[0], 0..0).count(), 0);
    }

    #[test]
    fn the_longest_text_is_compared() {
        assert_eq!(check_lengths(&[0, 3, 4], 3), Ok(()));
        assert_eq!(
            check_lengths(&[0, 1, 4], 2),
            Err(KernelError::TooLong {
                tokens: 3,
                positions: 2
            })
        );
    }
}
