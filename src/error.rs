//! The one error type of the SDK: what was wrong, where, and what to do.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use isovec_engine::counters::Ended;
use isovec_engine::fingerprint::Difference;
use isovec_engine::profile::AlreadyProfiled;

pub use isovec_engine::EngineError;
pub use isovec_optimize::OptimizeError;
pub use isovec_tokenize::TokenizeError;

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong between a text and its vector.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Loading or running the model failed.
    #[error(transparent)]
    Engine(#[from] EngineError),

    /// The tokenizer is missing, broken, or could not read a text.
    #[error(transparent)]
    Tokenize(#[from] TokenizeError),

    /// A model cannot be optimised as asked.
    #[error(transparent)]
    Optimize(#[from] OptimizeError),

    /// Values in the configuration that cannot work, all of them.
    #[error("the configuration is not usable: {}", .0.join("; "))]
    Config(Vec<String>),

    /// Two sets of vectors that are not in the same space.
    #[error(
        "these vectors were not made the same way and cannot be compared ({}); embed one side again with the other's model and settings",
        list(.differences)
    )]
    IncompatibleIndex {
        /// Every entry of the two identities that differs.
        differences: Vec<Difference>,
    },

    /// Saved embeddings that cannot be read, or parts that do not form a set.
    #[error("{origin} does not hold embeddings: {detail}")]
    InvalidEmbeddings {
        /// The file, or another source.
        origin: String,
        /// The fault.
        detail: String,
    },

    /// A search for one query was given a set of none, or of several.
    #[error(
        "the set of queries has {queries} vectors, and search_one takes exactly one; search takes any number"
    )]
    NotOneQuery {
        /// The vectors of the set.
        queries: usize,
    },

    /// The tokenizer makes no token of this text, and there is nothing to pool.
    #[error(
        "text {text} has no tokens; this model's tokenizer adds none of its own, so leave such texts out"
    )]
    NoTokens {
        /// The text's place in the list.
        text: usize,
    },

    /// A picture that cannot be read.
    #[cfg(feature = "image")]
    #[error("picture {picture}: {source}")]
    Picture {
        /// The picture's place in the list.
        picture: usize,
        /// The cause.
        source: Box<isovec_image::ImageError>,
    },

    /// A picture whose text cannot be read.
    #[cfg(feature = "ocr")]
    #[error("picture {picture}: {source}")]
    Reading {
        /// The picture's place in the list.
        picture: usize,
        /// The cause.
        source: Box<isovec_ocr::OcrError>,
    },

    /// A `preprocessor_config.json` that cannot be followed, or that does not make what the model reads.
    #[cfg(feature = "image")]
    #[error("{origin}: {source}")]
    Preprocessor {
        /// The model.
        origin: String,
        /// The cause.
        source: Box<isovec_image::ImageError>,
    },

    /// The model gave a vector with NaN or an infinity in it; it is refused.
    #[error(
        "the vector of text {text} holds a value that is not finite; the model's weights or its precision are broken"
    )]
    NotFinite {
        /// The text's place in the list.
        text: usize,
    },

    /// A vector that should be of unit length is not; it is refused.
    #[error(
        "the vector of text {text} has length {norm} instead of 1; the model's output is broken"
    )]
    NotNormalized {
        /// The text's place in the list.
        text: usize,
        /// Its L2 norm.
        norm: f64,
    },

    /// What is left of a text's vector cannot be scaled to unit length: the vectors of its chunks
    /// cancel each other out, or have nothing above zero to take the maximum of, or all the
    /// components that a call's `dimension` keeps are 0.
    #[error(
        "the vector of text {text} is zero and has no direction; keep more components, combine the vectors of chunks differently, or embed the chunks one by one"
    )]
    NoDirection {
        /// The text's place in the list.
        text: usize,
    },

    /// The engine's output does not have the expected shape.
    #[error("the engine returned {got} instead of {wanted}; the engine or the model is at fault")]
    InvalidOutput {
        /// The expected shape.
        wanted: String,
        /// The actual shape.
        got: String,
    },

    /// A batcher's queue is full; nothing of the call was taken.
    #[error(
        "the queue is full: {waiting} of {limit} {unit} wait; try again in about {retry_after:?}, or raise the limit (batching.max_queue, batching.max_queue_tokens)"
    )]
    Overloaded {
        /// The waiting texts or tokens.
        waiting: usize,
        /// The limit.
        limit: usize,
        /// The unit: texts or tokens.
        unit: &'static str,
        /// The expected time until the waiting texts have run, from measured speed.
        retry_after: Duration,
    },

    /// The batcher was shut down.
    #[error("the batcher was shut down; make a new one")]
    ShutDown,

    /// A profile of this model was requested while another one is running.
    #[error(transparent)]
    AlreadyProfiled(#[from] AlreadyProfiled),

    /// Work on one of isovec's own threads panicked; the caller is unharmed.
    #[error("isovec panicked while {doing}: {detail}; please report it")]
    Panicked {
        /// The work that panicked.
        doing: &'static str,
        /// The panic's message.
        detail: String,
    },

    /// The operating system refused access to a file.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: Arc<std::io::Error>,
    },
}

impl Error {
    /// Names the path that an I/O error is about.
    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source: Arc::new(source),
        }
    }

    /// A stable, machine-readable name of the kind, the same in Rust, in JSON and in JavaScript.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Engine(error) => error.kind(),
            Self::Tokenize(error) => error.kind(),
            Self::Optimize(error) => error.kind(),
            Self::Config(_) => "Config",
            Self::IncompatibleIndex { .. } => "IncompatibleIndex",
            Self::InvalidEmbeddings { .. } => "InvalidEmbeddings",
            Self::NotOneQuery { .. } => "NotOneQuery",
            Self::NoTokens { .. } => "NoTokens",
            #[cfg(feature = "image")]
            Self::Picture { .. } => "Picture",
            #[cfg(feature = "ocr")]
            Self::Reading { .. } => "Reading",
            #[cfg(feature = "image")]
            Self::Preprocessor { .. } => "Preprocessor",
            Self::NotFinite { .. } => "NotFinite",
            Self::NotNormalized { .. } => "NotNormalized",
            Self::NoDirection { .. } => "NoDirection",
            Self::InvalidOutput { .. } => "InvalidOutput",
            Self::Overloaded { .. } => "Overloaded",
            Self::ShutDown => "ShutDown",
            Self::AlreadyProfiled(_) => "AlreadyProfiled",
            Self::Panicked { .. } => "Panicked",
            Self::Io { .. } => "Io",
        }
    }

    /// Whether one text may be the cause, so that others can be embedded all the same.
    pub(crate) fn is_one_texts(&self) -> bool {
        match self {
            Self::NoTokens { .. }
            | Self::NotFinite { .. }
            | Self::NotNormalized { .. }
            | Self::NoDirection { .. }
            | Self::Tokenize(_) => true,
            #[cfg(feature = "image")]
            Self::Picture { .. } => true,
            #[cfg(feature = "ocr")]
            Self::Reading { .. } => true,
            Self::Engine(error) => matches!(
                error,
                EngineError::InvalidInput { .. }
                    | EngineError::InputTooLarge { .. }
                    | EngineError::NotFinite { .. }
                    | EngineError::Runtime { .. }
            ),
            _ => false,
        }
    }

    /// The same of a list that is part of a longer one, from place `offset` on.
    pub(crate) fn moved_by(self, offset: usize) -> Self {
        self.moved(|text| text + offset)
    }

    /// The same with the text's place in another list.
    pub(crate) fn moved(self, place: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Self::NoTokens { text } => Self::NoTokens { text: place(text) },
            #[cfg(feature = "image")]
            Self::Picture { picture, source } => Self::Picture {
                picture: place(picture),
                source,
            },
            #[cfg(feature = "ocr")]
            Self::Reading { picture, source } => Self::Reading {
                picture: place(picture),
                source,
            },
            Self::NotFinite { text } => Self::NotFinite { text: place(text) },
            Self::NotNormalized { text, norm } => Self::NotNormalized {
                text: place(text),
                norm,
            },
            Self::NoDirection { text } => Self::NoDirection { text: place(text) },
            other => other,
        }
    }

    /// How a call with this result ended.
    pub(crate) fn ended<T>(result: &Result<T>) -> Ended {
        match result {
            Ok(_) => Ended::Well,
            Err(error) if error.is_cancelled() => Ended::Cancelled,
            Err(_) => Ended::Failed,
        }
    }

    /// Whether the caller's own cancellation is the cause.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Engine(EngineError::Cancelled))
    }
}

#[cfg(feature = "ocr")]
impl From<isovec_ocr::OcrError> for Error {
    /// Of the first picture of a list.
    fn from(source: isovec_ocr::OcrError) -> Self {
        match source {
            isovec_ocr::OcrError::Image(source) => Self::Picture {
                picture: 0,
                source: Box::new(source),
            },
            source => Self::Reading {
                picture: 0,
                source: Box::new(source),
            },
        }
    }
}

fn list(differences: &[Difference]) -> String {
    let texts: Vec<String> = differences.iter().map(Difference::to_string).collect();
    texts.join("; ")
}
