//! The result of tokenising, and its maximal length.

use crate::error::{Result, TokenizeError};
use crate::template::{Item, Template};

/// A text, or a pair, as a model reads it: special tokens included, not padded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Encoding {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Which text of a pair each token belongs to; as long as `ids`.
    pub type_ids: Vec<u32>,
    /// Whether tokens were left out because of the limit.
    pub truncated: bool,
    /// How many tokens there would be without a limit, special tokens included.
    pub tokens_before_truncation: usize,
}

/// How long an [`Encoding`] may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// At most this many tokens, special tokens included. `None`: as many as there are.
    pub max_tokens: Option<usize>,
    /// Which part of a text is left out.
    pub truncation_side: TruncationSide,
}

impl Limits {
    /// At most `max_tokens` tokens, special tokens included, the end of the text left out.
    pub fn tokens(max_tokens: usize) -> Self {
        Self {
            max_tokens: Some(max_tokens),
            truncation_side: TruncationSide::End,
        }
    }

    /// How many tokens of text there is room for.
    pub(crate) fn room(self, special: usize) -> Result<usize> {
        match self.max_tokens {
            None => Ok(usize::MAX),
            Some(limit) if limit > special => Ok(limit - special),
            Some(limit) => Err(TokenizeError::LimitTooSmall { limit, special }),
        }
    }
}

/// Which part of a text that is too long is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TruncationSide {
    /// The text's end, as nearly every model was trained.
    #[default]
    End,
    /// The text's start.
    Start,
    /// The text's middle: a quarter of the room is for its start, the rest for its end. Sun et al.,
    /// "How to Fine-Tune BERT for Text Classification?" (2019), section 5.3.1, kept 128 and 382 of
    /// 510 tokens so, and found both better than one end.
    Middle,
}

impl TruncationSide {
    /// How many of `kept` tokens are from the start of a text, and how many from its end.
    fn ends(self, kept: usize) -> (usize, usize) {
        let head = match self {
            Self::End => kept,
            Self::Start => 0,
            // The nearest whole number to a quarter: 128 of 510.
            Self::Middle => kept / 4 + usize::from(kept % 4 >= 2),
        };
        (head, kept - head)
    }
}

/// Puts one text into its template, cut to the limit.
pub(crate) fn single(template: &Template, ids: &[u32], limits: Limits) -> Result<Encoding> {
    let special = template.special_in_single();
    let room = limits.room(special)?;
    let kept = ids.len().min(room);
    Ok(assemble(
        &template.single,
        [(ids, kept), (&[], 0)],
        special,
        limits.truncation_side,
    ))
}

/// Puts two texts into their template, the longer one cut first.
pub(crate) fn pair(
    template: &Template,
    first: &[u32],
    second: &[u32],
    limits: Limits,
) -> Result<Encoding> {
    let special = template.special_in_pair();
    let room = limits.room(special)?;
    let (kept_first, kept_second) = longest_first(first.len(), second.len(), room);
    Ok(assemble(
        &template.pair,
        [(first, kept_first), (second, kept_second)],
        special,
        limits.truncation_side,
    ))
}

/// Divides the room between two texts by taking from the longer until they are equal and from
/// both then; an odd token goes to the longer one. This is `longest_first` of `tokenizers` and
/// `transformers`, which differ in who gets the odd token.
fn longest_first(first: usize, second: usize, room: usize) -> (usize, usize) {
    if first.saturating_add(second) <= room {
        return (first, second);
    }
    let shorter = first.min(second);
    let half = room / 2;
    let (short, long) = if shorter <= half {
        (shorter, room - shorter)
    } else {
        (half, room - half)
    };
    if first > second {
        (long, short)
    } else {
        (short, long)
    }
}

/// Fills a template's gaps with the kept part of each text.
fn assemble(
    row: &[Item],
    texts: [(&[u32], usize); 2],
    special: usize,
    side: TruncationSide,
) -> Encoding {
    let total = texts.iter().map(|(ids, _)| ids.len()).sum::<usize>() + special;
    let kept = texts.iter().map(|(_, kept)| kept).sum::<usize>() + special;
    let mut ids = Vec::with_capacity(kept);
    let mut type_ids = Vec::with_capacity(kept);
    let mut fill = |(text, kept): (&[u32], usize), type_id| {
        let (head, tail) = side.ends(kept);
        ids.extend_from_slice(&text[..head]);
        ids.extend_from_slice(&text[text.len() - tail..]);
        type_ids.resize(ids.len(), type_id);
    };
    for item in row {
        match *item {
            Item::Special { id, type_id } => fill((&[id], 1), type_id),
            Item::First { type_id } => fill(texts[0], type_id),
            Item::Second { type_id } => fill(texts[1], type_id),
        }
    }
    Encoding {
        ids,
        type_ids,
        truncated: kept < total,
        tokens_before_truncation: total,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn template() -> Template {
        let special = |id| Item::Special { id, type_id: 0 };
        Template {
            single: vec![special(100), Item::First { type_id: 0 }, special(101)],
            pair: vec![
                special(100),
                Item::First { type_id: 0 },
                special(101),
                Item::Second { type_id: 1 },
                special(101),
            ],
        }
    }

    #[test]
    fn both_ends_stay() {
        let encoding = single(&template(), &[1, 2, 3], Limits::tokens(4)).unwrap();
        assert_eq!(encoding.ids, [100, 1, 2, 101]);
        assert_eq!(encoding.type_ids, [0; 4]);
        assert!(encoding.truncated);
        assert_eq!(encoding.tokens_before_truncation, 5);
        let start = Limits {
            max_tokens: Some(4),
            truncation_side: TruncationSide::Start,
        };
        assert_eq!(
            single(&template(), &[1, 2, 3], start).unwrap().ids,
            [100, 2, 3, 101]
        );
    }

    #[test]
    fn a_limit_without_room_is_an_error() {
        assert_eq!(
            single(&template(), &[1], Limits::tokens(2)),
            Err(TokenizeError::LimitTooSmall {
                limit: 2,
                special: 2
            })
        );
        assert!(pair(&template(), &[], &[], Limits::tokens(3)).is_err());
        assert!(single(&template(), &[], Limits::tokens(3)).is_ok());
    }

    proptest! {
        #[test]
        fn a_pair_is_cut_from_the_longer_text(
            first in 0_usize..40, second in 0_usize..40, limit in 4_usize..60,
        ) {
            let a: Vec<u32> = (0..first as u32).collect();
            let b: Vec<u32> = (1000..1000 + second as u32).collect();
            let encoding = pair(&template(), &a, &b, Limits::tokens(limit)).unwrap();
            let total = first + second + 3;
            prop_assert_eq!(encoding.ids.len(), total.min(limit));
            prop_assert_eq!(encoding.type_ids.len(), encoding.ids.len());
            prop_assert_eq!(encoding.truncated, total > limit);
            prop_assert_eq!(encoding.tokens_before_truncation, total);
            prop_assert_eq!(encoding.ids.iter().filter(|&&id| id == 101).count(), 2);
            // Cutting one token at a time from whichever text is longer ends at the same place.
            let (mut n, mut m) = (first, second);
            while n + m + 3 > limit {
                if n > m || (n == m && first > second) { n -= 1 } else { m -= 1 }
            }
            let kept_a = encoding.ids.iter().filter(|&&id| id < 100).count();
            let kept_b = encoding.ids.iter().filter(|&&id| id >= 1000).count();
            prop_assert!(kept_a.abs_diff(n) <= 1 && kept_b.abs_diff(m) <= 1);
            prop_assert_eq!(kept_a + kept_b, n + m);
        }

        #[test]
        fn what_is_kept_is_one_end_or_both(
            first in 0_u32..700, second in 0_u32..700, limit in 4_usize..600,
            side in prop::sample::select(vec![
                TruncationSide::End, TruncationSide::Start, TruncationSide::Middle,
            ]),
        ) {
            let limits = Limits { max_tokens: Some(limit), truncation_side: side };
            let a: Vec<u32> = (1000..1000 + first).collect();
            let b: Vec<u32> = (5000..5000 + second).collect();
            let alone = single(&template(), &a, limits).unwrap();
            let both = pair(&template(), &a, &b, limits).unwrap();
            let of = |encoding: &Encoding, from: u32| -> Vec<u32> {
                let ids = encoding.ids.iter().copied();
                ids.filter(|&id| (from..from + 1000).contains(&id)).collect()
            };
            prop_assert_eq!(alone.ids.len(), (a.len() + 2).min(limit));
            prop_assert_eq!(alone.truncated, a.len() + 2 > limit);
            for (text, kept) in
                [(&a, of(&alone, 1000)), (&a, of(&both, 1000)), (&b, of(&both, 5000))]
            {
                let head = match side {
                    TruncationSide::End => kept.len(),
                    TruncationSide::Start => 0,
                    TruncationSide::Middle => (kept.len() as f64 / 4.0).round() as usize,
                };
                let tail = kept.len() - head;
                prop_assert_eq!(&kept[..head], &text[..head]);
                prop_assert_eq!(&kept[head..], &text[text.len() - tail..]);
            }
        }
    }

    #[test]
    fn the_middle_is_cut_as_in_the_paper() {
        assert_eq!(TruncationSide::Middle.ends(510), (128, 382));
        assert_eq!(TruncationSide::Middle.ends(1), (0, 1));
        assert_eq!(TruncationSide::Middle.ends(2), (1, 1));
    }
}
