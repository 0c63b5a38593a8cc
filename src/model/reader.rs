//! What turns a caller's items into what a model reads.

use isovec_engine::bundle::ModelBundle;
use isovec_model::convert::{Half, filled};
use isovec_model::pictures::{self, PictureInput};
use isovec_tokenize::{Encoding, Limits, PairFrame, Tokenizer};

use super::encoded::{Encoded, Late};
use super::frame::{self, Frame};
use crate::error::{Error, Result};
#[cfg(feature = "image")]
use crate::pictures::PictureReader;
use crate::sentence_transformers::StaticTable;

/// What a caller is going to hand in.
#[derive(Debug, Clone, Default)]
pub(crate) enum Input {
    /// Texts.
    #[default]
    Texts,
    /// The values of pictures.
    Values(Preprocessing),
    /// Pictures, read in this way.
    #[cfg(feature = "image")]
    Pictures(isovec_image::ReadOptions),
}

impl Input {
    /// The half of a model with two that reads it.
    pub(crate) fn half(&self) -> Half {
        match self {
            Self::Texts => Half::Texts,
            Self::Values(_) => Half::Pictures,
            #[cfg(feature = "image")]
            Self::Pictures(_) => Half::Pictures,
        }
    }
}

/// How the values of pictures were made.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct Preprocessing {
    /// What has to be equal of two ways that make the same values.
    pub identity: String,
    /// Height and width, in pixels.
    pub size: (usize, usize),
}

/// Reads items.
#[derive(Debug)]
pub(crate) enum Reader {
    /// Texts become token ids.
    Texts(Box<TextReader>),
    /// Values of pictures become the model's input.
    Values(Frame),
    /// Pictures become values, and those become the model's input.
    #[cfg(feature = "image")]
    Pictures(Box<PictureReader>),
}

/// Reads texts.
#[derive(Debug)]
pub(crate) struct TextReader {
    pub(crate) tokenizer: Tokenizer,
    pub(crate) limits: Limits,
    /// Texts are lower-cased before the tokenizer sees them.
    pub(crate) lowercase: bool,
    /// Shorter texts are filled up to so many tokens: the model was trained to see padding.
    pub(crate) filled: Option<usize>,
    /// How a decoder is asked about two texts, where its files say so.
    pub(crate) frame: Option<PairFrame>,
    /// Ids without weight, in ascending order, where tokens are weighed one by one.
    pub(crate) unweighed: Option<Vec<u32>>,
}

impl TextReader {
    /// What the model reads of a tokenised text.
    pub(crate) fn encoded(&self, mut text: Encoding) -> Encoded {
        if let Some(filled) = self.filled.filter(|&filled| filled > text.ids.len()) {
            text.ids.resize(filled, self.tokenizer.pad_id());
            text.type_ids.resize(filled, self.tokenizer.pad_type_id());
        }
        let Some(unweighed) = &self.unweighed else {
            return Encoded::Text(text);
        };
        let weighed = (0..).zip(&text.ids);
        let weighed = weighed.filter(|(_, id)| unweighed.binary_search(id).is_err());
        Encoded::Late(Box::new(Late {
            kept: Some(weighed.map(|(place, _)| place).collect()),
            seen: text.ids.len(),
            text,
        }))
    }
}

impl Reader {
    /// The reader that a model's files define. A graph that leaves the size of pictures open is made one of theirs.
    ///
    /// # Errors
    /// [`EngineError::UnsupportedModel`](isovec_engine::EngineError::UnsupportedModel) for a model that reads something else;
    /// those of the tokenizer, and of a picture's configuration.
    pub(crate) fn read(
        bundle: &mut ModelBundle,
        input: &Input,
        lowercase: bool,
        table: Option<&StaticTable>,
    ) -> Result<Self> {
        match input {
            Input::Texts if PictureInput::of(&bundle.graph).is_some() => Err(unsupported(
                bundle,
                "it reads pictures, and no texts",
                "Load it with `ImageEmbedder` or `ImageClassifier`, which Rust's feature `image` has",
            )),
            Input::Texts => {
                let (files, origin) = (&bundle.files, &bundle.origin);
                let tokenizer = match table {
                    None => Tokenizer::from_files(files, origin)?,
                    Some(StaticTable { folder, tokens }) => {
                        Tokenizer::from_folder(files, folder, origin)?.with_tokens(*tokens)
                    }
                };
                tracing::debug!(target: "isovec", "{} is tokenised by {}", bundle.origin, tokenizer.tokenized_by());
                let filled = filled(&bundle.graph);
                Ok(Self::Texts(Box::new(TextReader {
                    tokenizer,
                    limits: Limits::default(),
                    // SigLIP 2 was trained so and its tokenizer.json does not do it; transformers' `Siglip2Tokenizer` does.
                    lowercase: lowercase || filled.is_some(),
                    filled,
                    frame: None,
                    unweighed: None,
                })))
            }
            Input::Values(Preprocessing { identity, size }) => {
                // Who made them compares the sizes, and names the file that asks for another.
                let size = frame::input(bundle)?.size().unwrap_or(*size);
                pictures::fix_extents(bundle, size)?;
                let frame = Frame::new(bundle, size, identity.clone())?;
                Ok(Self::Values(frame))
            }
            #[cfg(feature = "image")]
            Input::Pictures(pixels) => {
                let reader = PictureReader::read(bundle, pixels)?;
                Ok(Self::Pictures(Box::new(reader)))
            }
        }
    }

    /// What reads texts.
    ///
    /// # Errors
    /// [`Error::Config`] where the model reads pictures.
    pub(crate) fn texts(&self) -> Result<&TextReader> {
        match self {
            Self::Texts(reader) => Ok(reader),
            _ => Err(reads_no("texts")),
        }
    }

    /// What reads pictures.
    ///
    /// # Errors
    /// [`Error::Config`] where the model reads texts, or values alone.
    #[cfg(feature = "image")]
    pub(crate) fn pictures(&self) -> Result<&PictureReader> {
        match self {
            Self::Pictures(reader) => Ok(reader),
            _ => Err(reads_no("pictures")),
        }
    }

    /// What makes the model's input of the values of pictures.
    ///
    /// # Errors
    /// [`Error::Config`] where the model reads texts.
    pub(crate) fn frame(&self) -> Result<&Frame> {
        match self {
            Self::Texts(_) => Err(reads_no("pictures")),
            Self::Values(frame) => Ok(frame),
            #[cfg(feature = "image")]
            Self::Pictures(reader) => Ok(&reader.frame),
        }
    }

    /// Whether texts are lower-cased.
    pub(crate) fn lowercase(&self) -> bool {
        self.texts().is_ok_and(|reader| reader.lowercase)
    }

    /// The ids of padding, and of its type.
    pub(crate) fn padding(&self) -> (u32, u32) {
        self.texts().map_or((0, 0), |reader| {
            (reader.tokenizer.pad_id(), reader.tokenizer.pad_type_id())
        })
    }
}

pub(crate) fn reads_no(what: &str) -> Error {
    Error::Config(vec![format!("the model reads no {what}")])
}

pub(crate) fn unsupported(bundle: &ModelBundle, reason: &str, hint: &str) -> Error {
    isovec_engine::EngineError::UnsupportedModel {
        origin: bundle.origin.clone(),
        reason: reason.into(),
        hint: hint.into(),
    }
    .into()
}
