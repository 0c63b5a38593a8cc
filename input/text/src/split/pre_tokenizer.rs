//! Pre-tokenisers: how a normalised text falls into pieces. Twins of those of `tokenizers`
//! (`pre_tokenizers/`).

use serde_json::Value;

use crate::budget::Stop;
use crate::error::Fault;
use crate::split::byte_level;
use crate::split::pattern::{Behavior, Pattern, Patterns, find_characters};
use crate::split::pieces::{Cuts, Piece, Pieces, narrow};
use crate::split::settings::Settings;
use crate::unicode::{SENTENCEPIECE_SCRIPTS, is_punctuation, is_word};

/// See the module's words.
#[derive(Debug)]
pub(crate) enum PreTokenizer {
    Bert,
    ByteLevel {
        add_prefix_space: bool,
        /// Where words are split; `None` where they are not.
        words: Option<&'static Pattern>,
    },
    Delimiter(char),
    Metaspace {
        replacement: char,
        prepend: Prepend,
        split: bool,
    },
    Whitespace,
    WhitespaceSplit,
    Sequence(Vec<PreTokenizer>),
    Split {
        pattern: Pattern,
        behavior: Behavior,
        invert: bool,
    },
    Punctuation(Behavior),
    Digits {
        individual: bool,
    },
    UnicodeScripts,
    FixedLength(usize),
}

/// Which pieces `Metaspace` puts its mark before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prepend {
    /// The one that starts where the text does.
    First,
    Never,
    Always,
}

impl PreTokenizer {
    /// Reads a pre-tokeniser.
    ///
    /// # Errors
    /// [`Fault::Invalid`] where a setting is missing or wrong, [`Fault::Unsupported`] for a kind
    /// that is not known.
    pub(crate) fn read(value: &Value, patterns: &Patterns) -> Result<Self, Fault> {
        let settings = Settings::new("pre_tokenizer", value);
        Ok(match settings.kind() {
            "BertPreTokenizer" => Self::Bert,
            "ByteLevel" => Self::ByteLevel {
                add_prefix_space: settings.required("add_prefix_space")?,
                words: match settings.switch("use_regex")?.unwrap_or(true) {
                    true => Some(byte_level::words()?),
                    false => None,
                },
            },
            "CharDelimiterSplit" => Self::Delimiter(settings.character("delimiter")?),
            "Metaspace" => Self::metaspace(settings)?,
            "Whitespace" => Self::Whitespace,
            "WhitespaceSplit" => Self::WhitespaceSplit,
            "Sequence" => {
                let all = settings.list("pretokenizers")?.iter();
                Self::Sequence(
                    all.map(|one| Self::read(one, patterns))
                        .collect::<Result<_, _>>()?,
                )
            }
            "Split" => Self::Split {
                pattern: patterns.read(settings)?,
                behavior: behavior(settings)?.ok_or_else(|| settings.wrong("behavior"))?,
                invert: settings.required("invert")?,
            },
            "Punctuation" => Self::Punctuation(behavior(settings)?.unwrap_or(Behavior::Isolated)),
            "Digits" => Self::Digits {
                individual: settings.required("individual_digits")?,
            },
            "UnicodeScripts" => Self::UnicodeScripts,
            "FixedLength" => {
                let length = match settings.get("length") {
                    None => Some(5),
                    Some(length) => length.as_u64().and_then(|n| usize::try_from(n).ok()),
                };
                let length = length.filter(|&length| length > 0);
                Self::FixedLength(length.ok_or_else(|| settings.wrong("length"))?)
            }
            _ => return Err(settings.unsupported()),
        })
    }

    fn metaspace(settings: Settings<'_>) -> Result<Self, Fault> {
        let declared = match settings.get("prepend_scheme").map(|scheme| scheme.as_str()) {
            None | Some(Some("always")) => Prepend::Always,
            Some(Some("first")) => Prepend::First,
            Some(Some("never")) => Prepend::Never,
            Some(_) => return Err(settings.wrong("prepend_scheme")),
        };
        if settings.switch("add_prefix_space")? == Some(false) && declared != Prepend::Never {
            return Err(Fault::Invalid(
                "the add_prefix_space of its pre_tokenizer \"Metaspace\" contradicts its prepend_scheme"
                    .to_owned(),
            ));
        }
        Ok(Self::Metaspace {
            replacement: settings.character("replacement")?,
            prepend: declared,
            split: settings.switch("split")?.unwrap_or(true),
        })
    }

    /// Splits the pieces of a text further.
    ///
    /// # Errors
    /// Words saying which component could not, and why.
    pub(crate) fn split(&self, pieces: &mut Pieces) -> Result<(), Stop> {
        self.apply(pieces)
            .map_err(|stop| stop.by(|| format!("its pre_tokenizer {:?}", self.name())))
    }

    fn apply(&self, pieces: &mut Pieces) -> Result<(), Stop> {
        match self {
            Self::Bert => {
                let spaces = Behavior::Removed;
                cut_characters(pieces, char::is_whitespace, spaces)?;
                cut_characters(pieces, is_punctuation, Behavior::Isolated)
            }
            Self::ByteLevel {
                add_prefix_space,
                words,
            } => {
                let space = |piece: &mut Piece| {
                    if *add_prefix_space && !piece.text().starts_with(' ') {
                        return piece.prepend(" ");
                    }
                    Ok(())
                };
                match words {
                    Some(words) => pieces.step(&mut { space }, &mut |text, cuts| {
                        let steps = words.find(text, &mut cuts.matches)?;
                        cuts.took(steps);
                        Behavior::Isolated.cut(cuts);
                        Ok(())
                    })?,
                    None => pieces.normalize(&mut { space })?,
                }
                pieces.normalize(&mut byte_level::spell)
            }
            Self::Delimiter(delimiter) => {
                cut_characters(pieces, |c| c == *delimiter, Behavior::Removed)
            }
            Self::Metaspace {
                replacement,
                prepend,
                split,
            } => mark_spaces(pieces, *replacement, *prepend, *split),
            Self::Whitespace => pieces.cut(&mut |text, cuts| {
                words_and_signs(text, cuts);
                Ok(())
            }),
            Self::WhitespaceSplit => cut_characters(pieces, char::is_whitespace, Behavior::Removed),
            // One without members takes its step too.
            Self::Sequence(all) => {
                pieces.budget().look(0, 1)?;
                all.iter().try_for_each(|one| one.split(pieces))
            }
            Self::Split {
                pattern,
                behavior,
                invert,
            } => pieces.cut(&mut |text, cuts| {
                let steps = pattern.find(text, &mut cuts.matches)?;
                cuts.took(steps);
                if *invert {
                    for (_, is_match) in &mut cuts.matches {
                        *is_match = !*is_match;
                    }
                }
                behavior.cut(cuts);
                Ok(())
            }),
            Self::Punctuation(behavior) => cut_characters(pieces, is_punctuation, *behavior),
            Self::Digits { individual } => {
                let behavior = match individual {
                    true => Behavior::Isolated,
                    false => Behavior::Contiguous,
                };
                cut_characters(pieces, char::is_numeric, behavior)
            }
            Self::UnicodeScripts => pieces.cut(&mut |text, cuts| {
                scripts(text, cuts);
                Ok(())
            }),
            Self::FixedLength(length) => pieces.cut(&mut |text, cuts| {
                let mut start = 0;
                while start < text.len() {
                    let rest = &text[start..];
                    let end = rest.char_indices().nth(*length);
                    let end = end.map_or(text.len(), |(index, _)| start + index);
                    cuts.keep(narrow(start..end));
                    start = end;
                }
                Ok(())
            }),
        }
    }
}

impl PreTokenizer {
    /// The kind, as files name it.
    fn name(&self) -> &'static str {
        match self {
            Self::Bert => "BertPreTokenizer",
            Self::ByteLevel { .. } => "ByteLevel",
            Self::Delimiter(_) => "CharDelimiterSplit",
            Self::Metaspace { .. } => "Metaspace",
            Self::Whitespace => "Whitespace",
            Self::WhitespaceSplit => "WhitespaceSplit",
            Self::Sequence(_) => "Sequence",
            Self::Split { .. } => "Split",
            Self::Punctuation(_) => "Punctuation",
            Self::Digits { .. } => "Digits",
            Self::UnicodeScripts => "UnicodeScripts",
            Self::FixedLength(_) => "FixedLength",
        }
    }
}

fn behavior(settings: Settings<'_>) -> Result<Option<Behavior>, Fault> {
    settings.get("behavior").map(Behavior::read).transpose()
}

fn cut_characters(
    pieces: &mut Pieces,
    wanted: impl Fn(char) -> bool,
    behavior: Behavior,
) -> Result<(), Stop> {
    pieces.cut(&mut |text, cuts| {
        find_characters(text, &wanted, &mut cuts.matches);
        behavior.cut(cuts);
        Ok(())
    })
}

/// `Metaspace`: a mark for every space, perhaps one before the piece, and a split before each.
fn mark_spaces(pieces: &mut Pieces, mark: char, prepend: Prepend, split: bool) -> Result<(), Stop> {
    let written = mark.to_string();
    let mut matches = Vec::new();
    let mut normalize = |piece: &mut Piece| {
        find_characters(piece.text(), |c| c == ' ', &mut matches);
        piece.replace(&matches, &written)?;
        let wanted = match prepend {
            Prepend::Always => true,
            Prepend::First => piece.is_first(),
            Prepend::Never => false,
        };
        if wanted && !piece.text().starts_with(mark) {
            return piece.prepend(&written);
        }
        Ok(())
    };
    if !split {
        return pieces.normalize(&mut normalize);
    }
    pieces.step(&mut normalize, &mut |text, cuts| {
        find_characters(text, |c| c == mark, &mut cuts.matches);
        Behavior::MergedWithNext.cut(cuts);
        Ok(())
    })
}

/// `Whitespace`, `\w+|[^\w\s]+`: runs of characters of words, and of what is neither those nor
/// white space.
fn words_and_signs(text: &str, cuts: &mut Cuts) {
    let kind = |c: char| match (is_word(c), c.is_whitespace()) {
        (true, _) => Some(true),
        (false, true) => None,
        (false, false) => Some(false),
    };
    let mut start = 0;
    let mut open = None;
    for (at, c) in text.char_indices() {
        let now = kind(c);
        if now != open {
            if open.is_some() {
                cuts.keep(narrow(start..at));
            }
            (start, open) = (at, now);
        }
    }
    if open.is_some() {
        cuts.keep(narrow(start..text.len()));
    }
}

/// `UnicodeScripts`: a cut where one script follows another. What is before the first cut that
/// the original makes, at the first character that has a script, is lost there and here.
fn scripts(text: &str, cuts: &mut Cuts) {
    let mut last = None;
    let mut start = None;
    for (at, c) in text.char_indices() {
        let script = SENTENCEPIECE_SCRIPTS.get(c);
        if script == 0 {
            continue;
        }
        if last != Some(script)
            && let Some(start) = start.replace(at)
        {
            cuts.keep(narrow(start..at));
        }
        last = Some(script);
    }
    if let Some(start) = start {
        cuts.keep(narrow(start..text.len()));
    }
}
