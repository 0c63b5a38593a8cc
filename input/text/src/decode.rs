//! Token ids back to text, as the `decoder` of a `tokenizer.json` says.
//!
//! A twin of `tokenizers`' decoders (`tokenizers/src/decoders`); `tests/decoding.rs` compares them with it. Nothing of
//! this is needed for vectors, so a decoder that is not known is an error of whoever asks for text, and of nobody else.

use serde::Deserialize;
use serde_json::Value;

use crate::split::byte_of;

/// Bytes that all steps together may make of a byte of the pieces, beside [`FREE`].
const GROWTH: usize = 64;
const FREE: usize = 1 << 16;

/// Steps of a decoder, at most.
const MOST_STEPS: usize = 64;

/// One step, from a list of pieces to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Pieces that continue a word lose their mark, others get a space before them.
    WordPiece {
        prefix: String,
        cleanup: bool,
    },
    /// The mark of a word's start becomes a space.
    Metaspace {
        mark: char,
        first_has_one: bool,
    },
    /// The characters of GPT-2's alphabet become bytes again.
    ByteLevel,
    /// The mark of a word's end becomes a space.
    Bpe {
        suffix: String,
    },
    Replace {
        from: String,
        to: String,
    },
    /// Pieces such as `<0xC3>` become bytes again.
    ByteFallback,
    /// All pieces become one.
    Fuse,
    /// A piece loses this character at its ends, so many times at most.
    Strip {
        what: char,
        start: usize,
        stop: usize,
    },
}

/// The steps from pieces to text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decoder {
    /// A file without a decoder: pieces with spaces between them.
    Spaced,
    Steps(Vec<Step>),
    /// What the file asks for and this crate lacks.
    Unknown(String),
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Described {
    Sequence {
        decoders: Vec<Value>,
    },
    WordPiece {
        prefix: String,
        cleanup: bool,
    },
    Metaspace {
        replacement: char,
        #[serde(default)]
        prepend_scheme: Option<String>,
        #[serde(default)]
        add_prefix_space: Option<bool>,
    },
    ByteLevel,
    #[serde(rename = "BPEDecoder")]
    Bpe {
        suffix: String,
    },
    Replace {
        pattern: Pattern,
        content: String,
    },
    ByteFallback,
    Fuse,
    Strip {
        content: char,
        start: usize,
        stop: usize,
    },
}

#[derive(Deserialize)]
enum Pattern {
    String(String),
}

impl Decoder {
    /// Reads the decoder of a file.
    pub(crate) fn read(value: Option<&Value>) -> Self {
        let Some(value) = value else {
            return Self::Spaced;
        };
        let mut steps = Vec::new();
        match add(value, &mut steps) {
            Ok(()) if steps.len() <= MOST_STEPS => Self::Steps(steps),
            Ok(()) => Self::Unknown(format!("of more than {MOST_STEPS} steps")),
            Err(kind) => Self::Unknown(kind),
        }
    }

    /// The text of these pieces.
    ///
    /// # Errors
    /// Words for what is not known, or too costly.
    pub(crate) fn decode(&self, mut pieces: Vec<String>) -> Result<String, String> {
        let steps = match self {
            Self::Spaced => return Ok(pieces.join(" ")),
            Self::Unknown(kind) => {
                return Err(format!("its decoder {kind} is not supported"));
            }
            Self::Steps(steps) => steps,
        };
        let bytes: usize = pieces.iter().map(String::len).sum();
        let most = FREE + bytes.saturating_mul(GROWTH);
        for step in steps {
            if step.bytes(&pieces) > most {
                return Err(format!(
                    "its decoder makes more than {most} bytes of the tokens"
                ));
            }
            pieces = step.apply(pieces);
        }
        Ok(pieces.concat())
    }
}

/// Adds the steps of a decoder, those of a sequence one after the other.
///
/// # Errors
/// The kind that is not known.
fn add(value: &Value, steps: &mut Vec<Step>) -> Result<(), String> {
    let unknown = || {
        let kind = value.get("type").unwrap_or(value);
        kind.to_string().chars().take(100).collect::<String>()
    };
    let described = Described::deserialize(value).map_err(|_| unknown())?;
    steps.push(match described {
        Described::Sequence { decoders } => {
            // Values are not nested deeper than their reader goes.
            return decoders.iter().try_for_each(|decoder| add(decoder, steps));
        }
        Described::WordPiece { prefix, cleanup } => Step::WordPiece { prefix, cleanup },
        Described::Metaspace {
            replacement,
            prepend_scheme,
            add_prefix_space,
        } => Step::Metaspace {
            mark: replacement,
            first_has_one: match prepend_scheme {
                Some(scheme) => scheme != "never",
                None => add_prefix_space.unwrap_or(true),
            },
        },
        Described::ByteLevel => Step::ByteLevel,
        Described::Bpe { suffix } if !suffix.is_empty() => Step::Bpe { suffix },
        Described::Replace {
            pattern: Pattern::String(from),
            content,
        } if !from.is_empty() => Step::Replace { from, to: content },
        Described::Bpe { .. } | Described::Replace { .. } => return Err(unknown()),
        Described::ByteFallback => Step::ByteFallback,
        Described::Fuse => Step::Fuse,
        Described::Strip {
            content,
            start,
            stop,
        } => Step::Strip {
            what: content,
            start,
            stop,
        },
    });
    Ok(())
}

impl Step {
    /// Bytes that it makes, at most, where that may be many times what it is given.
    fn bytes(&self, pieces: &[String]) -> usize {
        match self {
            Self::Replace { from, to } => pieces
                .iter()
                .map(|piece| piece.len() + piece.matches(from.as_str()).count() * to.len())
                .sum(),
            _ => 0,
        }
    }

    fn apply(&self, pieces: Vec<String>) -> Vec<String> {
        let last = pieces.len().saturating_sub(1);
        let each = |change: &dyn Fn(usize, &str) -> String| {
            let numbered = pieces.iter().enumerate();
            numbered.map(|(at, piece)| change(at, piece)).collect()
        };
        match self {
            Self::WordPiece { prefix, cleanup } => each(&|at, piece| {
                let joined = match piece.strip_prefix(prefix.as_str()) {
                    _ if at == 0 => piece.to_owned(),
                    Some(rest) => rest.to_owned(),
                    None => format!(" {piece}"),
                };
                match cleanup {
                    true => cleaned(joined),
                    false => joined,
                }
            }),
            Self::Metaspace {
                mark,
                first_has_one,
            } => each(&|at, piece| match at == 0 && *first_has_one {
                true => piece.replace(*mark, ""),
                false => piece.replace(*mark, " "),
            }),
            Self::ByteLevel => {
                let mut bytes = Vec::new();
                for piece in &pieces {
                    match piece.chars().map(byte_of).collect::<Option<Vec<u8>>>() {
                        Some(spelled) => bytes.extend(spelled),
                        // An added token, which is spelled as it is.
                        None => bytes.extend(piece.bytes()),
                    }
                }
                vec![String::from_utf8_lossy(&bytes).into_owned()]
            }
            Self::Bpe { suffix } => each(&|at, piece| {
                let space = if at == last { "" } else { " " };
                piece.replace(suffix.as_str(), space)
            }),
            Self::Replace { from, to } => each(&|_, piece| piece.replace(from.as_str(), to)),
            Self::ByteFallback => joined_bytes(pieces),
            Self::Fuse => vec![pieces.concat()],
            Self::Strip { what, start, stop } => each(&|_, piece| {
                let ours = |c: &char| c == what;
                let head = piece.chars().take(*start).take_while(ours).count();
                let rest = piece.chars().count() - head;
                let tail = piece.chars().rev().take(rest.min(*stop)).take_while(ours);
                let tail = tail.count();
                piece.chars().skip(head).take(rest - tail).collect()
            }),
        }
    }
}

/// What stands apart in tokens and together in English.
fn cleaned(text: String) -> String {
    const TOGETHER: [(&str, &str); 11] = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" do not", " don't"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    let mut text = text;
    for (apart, together) in TOGETHER {
        if text.contains(apart) {
            text = text.replace(apart, together);
        }
    }
    text
}

/// Runs of pieces that are bytes become a piece of text; what is no UTF-8 becomes a piece for each byte, which is a
/// replacement character.
fn joined_bytes(pieces: Vec<String>) -> Vec<String> {
    let mut joined = Vec::with_capacity(pieces.len());
    let mut bytes = Vec::new();
    let flush = |bytes: &mut Vec<u8>, joined: &mut Vec<String>| {
        if !bytes.is_empty() {
            let count = bytes.len();
            match String::from_utf8(std::mem::take(bytes)) {
                Ok(text) => joined.push(text),
                Err(_) => joined.extend(std::iter::repeat_n("\u{fffd}".to_owned(), count)),
            }
        }
    };
    for piece in pieces {
        match named_byte(&piece) {
            Some(byte) => bytes.push(byte),
            None => {
                flush(&mut bytes, &mut joined);
                joined.push(piece);
            }
        }
    }
    flush(&mut bytes, &mut joined);
    joined
}

/// The byte of a piece such as `<0xC3>`.
fn named_byte(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let hex = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}
