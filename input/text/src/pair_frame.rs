//! How a decoder is asked about two texts: words around both, and the ids of the whole.
//!
//! The words and the texts are tokenised as one text, because a token may reach from the words into a text: the space before a word
//! is part of it. Where the result is too long, the places of the texts in it are found by counting the tokens of its beginnings, and
//! only the texts are cut.

use crate::encoding::{self, Encoding, Limits};
use crate::error::Result;
use crate::template::{Item, Template};
use crate::tokenizer::Tokenizer;

/// Words with places for two texts, and for an instruction where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairFrame {
    /// Without an instruction.
    pub(crate) plain: Vec<Part>,
    /// With an instruction; none where there is no place for one.
    pub(crate) instructed: Option<Vec<Part>>,
}

/// A part of a frame.
#[cfg_attr(
    not(feature = "chat"),
    expect(dead_code, reason = "only templates make frames")
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Words, the same for all texts.
    Words(String),
    /// The instruction.
    Instruction,
    /// The first text.
    First,
    /// The second text.
    Second,
}

impl PairFrame {
    /// Whether there is a place for an instruction.
    pub fn takes_instruction(&self) -> bool {
        self.instructed.is_some()
    }

    /// A text that differs between frames that give different ids.
    pub fn identity(&self) -> String {
        let written = |parts: &[Part]| {
            let part = |part: &Part| match part {
                Part::Words(words) => format!("{words:?}"),
                Part::Instruction => "instruction".into(),
                Part::First => "first".into(),
                Part::Second => "second".into(),
            };
            parts.iter().map(part).collect::<Vec<_>>().join(" ")
        };
        let instructed = self.instructed.as_deref();
        match instructed.map(written) {
            Some(instructed) => {
                format!("{}; with an instruction {instructed}", written(&self.plain))
            }
            None => written(&self.plain),
        }
    }

    /// The parts of a pair. An empty instruction is none, and one without a place is left out.
    fn parts(&self, instruction: &str) -> &[Part] {
        match &self.instructed {
            Some(parts) if !instruction.is_empty() => parts,
            _ => &self.plain,
        }
    }
}

impl Tokenizer {
    /// Encodes two texts in a frame. The special tokens are those of the frame's words; the tokenizer's own are left out. Where the
    /// result is too long, the longer text is cut first, and the words and the instruction stay.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`]; [`LimitTooSmall`](crate::TokenizeError::LimitTooSmall) counts the words and the instruction as
    /// special tokens.
    pub fn encode_framed(
        &self,
        frame: &PairFrame,
        instruction: &str,
        [first, second]: [&str; 2],
        limits: &Limits,
    ) -> Result<Encoding> {
        let parts = frame.parts(instruction);
        let mut whole = String::new();
        let mut ends = Vec::with_capacity(parts.len());
        for part in parts {
            whole.push_str(match part {
                Part::Words(words) => words,
                Part::Instruction => instruction,
                Part::First => first,
                Part::Second => second,
            });
            ends.push(whole.len());
        }
        let ids = self.ids(&whole)?;
        if limits.max_tokens.is_none_or(|most| ids.len() <= most) {
            return Ok(Encoding {
                type_ids: vec![0; ids.len()],
                truncated: false,
                tokens_before_truncation: ids.len(),
                ids,
            });
        }
        let mut row = Vec::with_capacity(ids.len());
        let (mut texts, mut from) = ([&[][..]; 2], 0);
        for (part, end) in parts.iter().zip(ends) {
            let to = match end == whole.len() {
                true => ids.len(),
                false => self.ids(&whole[..end])?.len().clamp(from, ids.len()),
            };
            let own = &ids[from..to];
            match part {
                Part::First => {
                    texts[0] = own;
                    row.push(Item::First { type_id: 0 });
                }
                Part::Second => {
                    texts[1] = own;
                    row.push(Item::Second { type_id: 0 });
                }
                Part::Words(_) | Part::Instruction => {
                    row.extend(own.iter().map(|&id| Item::Special { id, type_id: 0 }));
                }
            }
            from = to;
        }
        let template = Template {
            single: Vec::new(),
            pair: row,
        };
        encoding::pair(&template, texts[0], texts[1], *limits)
    }
}
