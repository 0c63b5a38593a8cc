//! Limits on the cost of a text, by its length: how long it may grow, how many pieces it may have, and how many steps
//! it may take.
//!
//! A tokenizer's file controls the work on a text, so a small file could ask for any amount of memory and time: forty
//! `Replace` of "a" by "aa" turn one byte into 2^40. Every bound is a multiple of the text's length plus a constant,
//! and is checked before the memory or the time is spent.
//!
//! Published tokenizers stay within these bounds on any text. The worst case is a text of U+FDFA alone, which NFKC
//! makes eleven times as long.

use crate::error::Fault;

/// A text may grow by this factor, and by [`GROWTH_CONSTANT`] bytes more.
const GROWTH: usize = 15;
const GROWTH_CONSTANT: usize = 1 << 16;

/// So many pieces there may be for a byte of text, and [`PIECES_CONSTANT`] more.
const PIECES: usize = 3;
const PIECES_CONSTANT: usize = 1 << 16;

/// So many steps there may be for a byte of text, and [`STEPS_CONSTANT`] more.
const STEPS: u64 = 2048;
const STEPS_CONSTANT: u64 = 1 << 25;

/// Steps that a component counts for each byte it looks at: the slowest takes some 50 ns a character.
const STEPS_OF_A_BYTE: u64 = 16;
/// What a component does for a piece before it looks at a byte, in bytes.
const BYTES_OF_A_PIECE: u64 = 4;

/// Steps that count for one node of a trie.
const STEPS_OF_A_NODE: u64 = 2;
/// Where no walk through a trie is longer, a text cannot exceed its steps, and nobody has to count.
pub(crate) const FREE_WALK: usize = 64;

/// What is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    Bytes,
    Pieces,
    Tokens,
    Steps,
}

/// Why a text could not be tokenised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The component's own words.
    Failed(String),
    /// More would be used than the text's length allows.
    Exceeded {
        /// Which part of the tokenizer; empty until someone knows.
        part: String,
        resource: Resource,
        limit: u64,
    },
}

impl From<String> for Stop {
    fn from(words: String) -> Self {
        Self::Failed(words)
    }
}

impl Stop {
    fn over(resource: Resource, limit: u64) -> Self {
        Self::Exceeded {
            part: String::new(),
            resource,
            limit,
        }
    }

    /// Names the part at fault, unless one inside it is named already.
    pub(crate) fn by(mut self, name: impl FnOnce() -> String) -> Self {
        if let Self::Exceeded { part, .. } = &mut self
            && part.is_empty()
        {
            *part = name();
        }
        self
    }

    /// The part and the words of an [`Stop::Exceeded`].
    pub(crate) fn excess(part: &str, resource: Resource, limit: u64) -> String {
        let part = if part.is_empty() { "a part" } else { part };
        match resource {
            Resource::Bytes => format!("{part} makes the text longer than {limit} bytes"),
            Resource::Pieces => format!("{part} cuts the text into more than {limit} pieces"),
            Resource::Tokens => format!("{part} makes more than {limit} tokens of the text"),
            Resource::Steps => format!("{part} takes more than {limit} steps"),
        }
    }

    /// The same while the file is read.
    pub(crate) fn fault(self) -> Fault {
        match self {
            Self::Failed(words) => Fault::Invalid(words),
            Self::Exceeded {
                part,
                resource,
                limit,
            } => Fault::Excess(Self::excess(&part, resource, limit)),
        }
    }
}

/// What is left for one text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    bytes: usize,
    pieces: usize,
    tokens: usize,
    all_steps: u64,
    steps: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(0)
    }
}

impl Budget {
    /// For a text, or all added tokens together, of so many bytes.
    pub(crate) fn of(length: usize) -> Self {
        let steps = (length as u64).saturating_mul(STEPS);
        let steps = steps.saturating_add(STEPS_CONSTANT);
        // Places in a text are kept in 32 bits, of which the last number means none.
        let most = u32::MAX as usize - 1;
        let bounded = |factor: usize, constant: usize| {
            let most_of = length.saturating_mul(factor).saturating_add(constant);
            most_of.min(most)
        };
        Self {
            bytes: bounded(GROWTH, GROWTH_CONSTANT),
            pieces: bounded(PIECES, PIECES_CONSTANT),
            tokens: bounded(GROWTH, GROWTH_CONSTANT),
            all_steps: steps,
            steps,
        }
    }

    /// The same for a text whose tokens follow so many of another one.
    pub(crate) fn after(mut self, tokens: usize) -> Self {
        self.tokens = self.tokens.saturating_add(tokens);
        self
    }

    /// Whether the whole text may be so long.
    pub(crate) fn bytes(&self, length: Option<usize>) -> Result<(), Stop> {
        match length {
            Some(length) if length <= self.bytes => Ok(()),
            _ => Err(Stop::over(Resource::Bytes, self.bytes as u64)),
        }
    }

    /// How long the whole text may be.
    pub(crate) fn most_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there may be so many pieces.
    pub(crate) fn pieces(&self, count: usize) -> Result<(), Stop> {
        match count <= self.pieces {
            true => Ok(()),
            false => Err(Stop::over(Resource::Pieces, self.pieces as u64)),
        }
    }

    /// Whether there may be so many tokens: as many as bytes.
    pub(crate) fn tokens(&self, count: usize) -> Result<(), Stop> {
        match count <= self.tokens {
            true => Ok(()),
            false => Err(Stop::over(Resource::Tokens, self.tokens as u64)),
        }
    }

    /// Counts one component's look at so many bytes in so many pieces.
    pub(crate) fn look(&mut self, bytes: usize, pieces: usize) -> Result<(), Stop> {
        let pieces = (pieces as u64).saturating_mul(BYTES_OF_A_PIECE);
        let bytes = (bytes as u64).saturating_add(pieces);
        self.steps(bytes.saturating_mul(STEPS_OF_A_BYTE))
    }

    /// Counts a walk through a trie.
    pub(crate) fn walk(&mut self, nodes: usize) -> Result<(), Stop> {
        self.steps((nodes as u64).saturating_mul(STEPS_OF_A_NODE))
    }

    /// Counts steps.
    pub(crate) fn steps(&mut self, count: u64) -> Result<(), Stop> {
        match self.steps.checked_sub(count) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(Stop::over(Resource::Steps, self.all_steps)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_a_multiple_and_a_constant_and_places_fit_32_bits() {
        let budget = Budget::of(1 << 16);
        assert_eq!((budget.bytes, budget.pieces), (1 << 20, 1 << 18));
        assert!(budget.bytes(Some(1 << 20)).is_ok());
        assert!(budget.bytes(Some((1 << 20) + 1)).is_err());
        // A sum that does not fit is too much.
        assert!(budget.bytes(None).is_err());
        for length in [1 << 30, u32::MAX as usize, usize::MAX] {
            let budget = Budget::of(length);
            assert_eq!(budget.bytes, u32::MAX as usize - 1);
            assert!(budget.bytes(Some(u32::MAX as usize)).is_err());
        }
    }

    #[test]
    fn steps_are_used_up_once() {
        let mut budget = Budget::of(0);
        let looks = STEPS_CONSTANT / (STEPS_OF_A_BYTE * (1000 + BYTES_OF_A_PIECE));
        for _ in 0..looks {
            budget.look(1000, 1).unwrap();
        }
        let stop = budget.look(1000, 1).unwrap_err();
        let stop = stop.by(|| "its normalizer".to_owned());
        let stop = stop.by(|| "what holds it".to_owned());
        let Fault::Excess(words) = stop.fault() else {
            panic!("an excess");
        };
        assert!(words.starts_with("its normalizer takes more"), "{words}");
    }
}
