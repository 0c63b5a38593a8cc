//! What a model reads of an item.

use isovec_tokenize::Encoding;

use crate::error::{Error, Result};

/// An item as its model reads it, not padded.
#[derive(Debug, Clone)]
pub(crate) enum Encoded {
    /// A text, or a pair, as token ids.
    Text(Encoding),
    /// A text that one of the model's adapters reads. Apart, as the next.
    Adapted(Box<Adapted>),
    /// A text of whose tokens each gets a vector or a weight. Apart, so that a list of texts takes the memory of the list of their ids.
    Late(Box<Late>),
    /// A picture.
    Picture {
        /// Its part of the model's input.
        values: Vec<f32>,
        /// The positions that it counts as.
        positions: usize,
    },
    /// A picture that could not be read.
    #[cfg(feature = "image")]
    Unread(Box<isovec_image::ImageError>),
}

/// A text that one of the model's adapters reads.
#[derive(Debug, Clone)]
pub(crate) struct Adapted {
    /// Its token ids.
    pub(crate) text: Encoding,
    /// The adapter's number.
    pub(crate) adapter: u32,
}

/// A text of whose tokens each gets a vector or a weight.
#[derive(Debug, Clone)]
pub(crate) struct Late {
    /// Its token ids.
    pub(crate) text: Encoding,
    /// How many of them, from the first, the others see.
    pub(crate) seen: usize,
    /// The places of those whose vectors or weights are kept. `None`: all.
    pub(crate) kept: Option<Box<[u32]>>,
}

impl Encoded {
    /// A text of tokens that say nothing, to measure with.
    pub(crate) fn sample(length: usize) -> Self {
        let mut text = Encoding::default();
        text.ids = vec![0; length];
        text.type_ids = vec![0; length];
        Self::Text(text)
    }

    /// The token ids of a text.
    pub(crate) fn text(&self) -> Option<&Encoding> {
        match self {
            Self::Text(text) => Some(text),
            Self::Adapted(adapted) => Some(&adapted.text),
            Self::Late(late) => Some(&late.text),
            Self::Picture { .. } => None,
            #[cfg(feature = "image")]
            Self::Unread(_) => None,
        }
    }

    /// The same, read by an adapter; of texts with a vector for all of their tokens.
    pub(crate) fn adapted(self, adapter: u32) -> Self {
        match self {
            Self::Text(text) => Self::Adapted(Box::new(Adapted { text, adapter })),
            other => other,
        }
    }

    /// The adapter that reads it, if one does.
    pub(crate) fn adapter(&self) -> Option<u32> {
        match self {
            Self::Adapted(adapted) => Some(adapted.adapter),
            _ => None,
        }
    }

    /// Positions that it takes: tokens, or parts of a picture.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.ids.len(),
            Self::Adapted(adapted) => adapted.text.ids.len(),
            Self::Late(late) => late.text.ids.len(),
            Self::Picture { positions, .. } => *positions,
            #[cfg(feature = "image")]
            Self::Unread(_) => 0,
        }
    }

    /// Tokens, from the first, that the others see.
    pub(crate) fn seen(&self) -> usize {
        match self {
            Self::Late(late) => late.seen,
            encoded => encoded.len(),
        }
    }

    /// Whether the model's answer has a row for each of its tokens, and not one for all.
    pub(crate) fn is_late(&self) -> bool {
        matches!(self, Self::Late(_))
    }

    /// Values of its own in the model's answer, whose vectors have `dim` components.
    pub(crate) fn width(&self, dim: usize) -> usize {
        match self.is_late() {
            true => self.len() * dim,
            false => dim,
        }
    }

    /// Whether a part of it was left out.
    pub(crate) fn truncated(&self) -> bool {
        match self {
            Self::Text(text) => text.truncated,
            Self::Adapted(adapted) => adapted.text.truncated,
            Self::Late(late) => late.text.truncated,
            Self::Picture { .. } => false,
            #[cfg(feature = "image")]
            Self::Unread(_) => false,
        }
    }

    /// Whether a model can read it.
    ///
    /// # Errors
    /// One that names the item's place.
    pub(crate) fn check(&self, place: usize) -> Result<()> {
        match self {
            #[cfg(feature = "image")]
            Self::Unread(error) => Err(Error::Picture {
                picture: place,
                source: error.clone(),
            }),
            encoded if encoded.len() == 0 => Err(Error::NoTokens { text: place }),
            _ => Ok(()),
        }
    }
}
