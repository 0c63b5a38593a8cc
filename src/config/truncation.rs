//! The truncation of texts that are too long.

use std::fmt;

use isovec_tokenize::TruncationSide;
use serde::{Deserialize, Serialize};

/// Which part of a text that is too long the model sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Truncation {
    /// The start: what nearly every model was trained with.
    KeepHead,
    /// The end, where a text's conclusion stands.
    KeepTail,
    /// The start and the end: a quarter of the room for the one and the rest for the other, after
    /// Sun et al., "How to Fine-Tune BERT for Text Classification?" (2019), section 5.3.1.
    KeepBoth,
}

impl Truncation {
    /// The part that is left out, in the tokenizer's words.
    pub(crate) fn side(self) -> TruncationSide {
        match self {
            Self::KeepHead => TruncationSide::End,
            Self::KeepTail => TruncationSide::Start,
            Self::KeepBoth => TruncationSide::Middle,
        }
    }

    /// What is kept where this part is left out.
    pub(crate) fn of(side: TruncationSide) -> Self {
        match side {
            TruncationSide::Start => Self::KeepTail,
            TruncationSide::Middle => Self::KeepBoth,
            _ => Self::KeepHead,
        }
    }
}

/// As it is written in a configuration.
impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KeepHead => "keep_head",
            Self::KeepTail => "keep_tail",
            Self::KeepBoth => "keep_both",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_as_it_is_written_and_becomes_a_side_and_back() {
        for truncation in [
            Truncation::KeepHead,
            Truncation::KeepTail,
            Truncation::KeepBoth,
        ] {
            assert_eq!(
                serde_json::to_value(truncation).unwrap(),
                truncation.to_string()
            );
            assert_eq!(Truncation::of(truncation.side()), truncation);
        }
    }
}
