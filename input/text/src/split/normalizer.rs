//! Normalisers: what a text becomes before it is split. Twins of those of `tokenizers`
//! (`normalizers/`), which reads their settings with or without the name of their kind.

use serde_json::Value;

use crate::budget::Stop;
use crate::error::Fault;
use crate::split::bert::{is_cjk, is_dropped};
use crate::split::byte_level;
use crate::split::charsmap::Charsmap;
use crate::split::pattern::{Pattern, Patterns};
use crate::split::pieces::{Match, Piece};
use crate::split::settings::Settings;
use crate::unicode::normal::{Edit, Kind, MOST_DECOMPOSED, compose, decompose};
use crate::unicode::{is_combining_mark, is_mark_nonspacing};

/// See the module's words.
#[derive(Debug)]
pub(crate) enum Normalizer {
    Bert {
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: bool,
        lowercase: bool,
    },
    Strip {
        left: bool,
        right: bool,
    },
    StripAccents,
    Composed(Kind),
    Decomposed(Kind),
    Sequence(Vec<Normalizer>),
    Lowercase,
    Nmt,
    Precompiled(Charsmap),
    Replace {
        pattern: Pattern,
        content: String,
    },
    Prepend(String),
    ByteLevel,
}

impl Normalizer {
    /// Reads a normaliser.
    ///
    /// # Errors
    /// [`Fault::Invalid`] where a setting is missing or wrong, [`Fault::Unsupported`] for a kind
    /// that is not known.
    pub(crate) fn read(value: &Value, patterns: &Patterns) -> Result<Self, Fault> {
        let settings = Settings::new("normalizer", value);
        Ok(match kind(settings) {
            "BertNormalizer" => {
                let lowercase = settings.required("lowercase")?;
                Self::Bert {
                    clean_text: settings.required("clean_text")?,
                    handle_chinese_chars: settings.required("handle_chinese_chars")?,
                    strip_accents: settings.switch("strip_accents")?.unwrap_or(lowercase),
                    lowercase,
                }
            }
            "Strip" => Self::Strip {
                left: settings.required("strip_left")?,
                right: settings.required("strip_right")?,
            },
            "StripAccents" => Self::StripAccents,
            "NFC" => Self::Composed(Kind::Canonical),
            "NFD" => Self::Decomposed(Kind::Canonical),
            "NFKC" => Self::Composed(Kind::Compatible),
            "NFKD" => Self::Decomposed(Kind::Compatible),
            "Sequence" => {
                let all = settings.list("normalizers")?.iter();
                Self::Sequence(
                    all.map(|one| Self::read(one, patterns))
                        .collect::<Result<_, _>>()?,
                )
            }
            "Lowercase" => Self::Lowercase,
            "Nmt" => Self::Nmt,
            "Precompiled" => {
                let rules = settings.text("precompiled_charsmap")?;
                let rules = Charsmap::read(rules).map_err(Fault::Invalid);
                Self::Precompiled(rules.map_err(|fault| settings.blame(fault))?)
            }
            "Replace" => Self::Replace {
                pattern: patterns.read(settings)?,
                content: settings.text("content")?.to_owned(),
            },
            "Prepend" => Self::Prepend(settings.text("prepend")?.to_owned()),
            "ByteLevel" => Self::ByteLevel,
            _ => return Err(settings.unsupported()),
        })
    }

    /// Normalises a piece.
    ///
    /// # Errors
    /// Words saying which component could not, and why.
    pub(crate) fn normalize(&self, piece: &mut Piece) -> Result<(), Stop> {
        self.apply(piece)
            .map_err(|stop| stop.by(|| format!("its normalizer {:?}", self.name())))
    }

    fn apply(&self, piece: &mut Piece) -> Result<(), Stop> {
        piece.look()?;
        match self {
            Self::Bert {
                clean_text,
                handle_chinese_chars,
                strip_accents,
                lowercase,
            } => {
                if *clean_text {
                    piece.filter(|c| !is_dropped(c))?;
                    piece.map(|c| if c.is_whitespace() { ' ' } else { c })?;
                }
                if *handle_chinese_chars {
                    piece.look()?;
                    set_apart(piece)?;
                }
                if *strip_accents {
                    piece.look()?;
                    decomposed(piece, Kind::Canonical)?;
                    piece.filter(|c| !is_mark_nonspacing(c))?;
                }
                if *lowercase {
                    piece.look()?;
                    lower(piece)?;
                }
                Ok(())
            }
            Self::Strip { left, right } => strip(piece, *left, *right),
            Self::StripAccents => piece.filter(|c| !is_combining_mark(c)),
            Self::Composed(kind) => composed(piece, *kind),
            Self::Decomposed(kind) => decomposed(piece, *kind),
            Self::Sequence(all) => all.iter().try_for_each(|one| one.normalize(piece)),
            Self::Lowercase => lower(piece),
            Self::Nmt => {
                piece.filter(|c| !is_nmt_control(c))?;
                piece.map(|c| if is_nmt_space(c) { ' ' } else { c })
            }
            Self::Precompiled(rules) => rules.normalize(piece),
            Self::Replace { pattern, content } => {
                let mut matches: Vec<Match> = Vec::new();
                let steps = pattern.find(piece.text(), &mut matches)?;
                piece.took(steps)?;
                piece.replace(&matches, content)
            }
            Self::Prepend(text) => piece.prepend(text),
            Self::ByteLevel => byte_level::spell(piece),
        }
    }

    /// The kind, as files name it.
    fn name(&self) -> &'static str {
        match self {
            Self::Bert { .. } => "BertNormalizer",
            Self::Strip { .. } => "Strip",
            Self::StripAccents => "StripAccents",
            Self::Composed(Kind::Canonical) => "NFC",
            Self::Composed(Kind::Compatible) => "NFKC",
            Self::Decomposed(Kind::Canonical) => "NFD",
            Self::Decomposed(Kind::Compatible) => "NFKD",
            Self::Sequence(_) => "Sequence",
            Self::Lowercase => "Lowercase",
            Self::Nmt => "Nmt",
            Self::Precompiled(_) => "Precompiled",
            Self::Replace { .. } => "Replace",
            Self::Prepend(_) => "Prepend",
            Self::ByteLevel => "ByteLevel",
        }
    }
}

/// The kind that is named or, where none that is known is, the one whose settings are there.
fn kind(settings: Settings<'_>) -> &str {
    const KNOWN: [&str; 14] = [
        "BertNormalizer",
        "Strip",
        "StripAccents",
        "NFC",
        "NFD",
        "NFKC",
        "NFKD",
        "Sequence",
        "Lowercase",
        "Nmt",
        "Precompiled",
        "Replace",
        "Prepend",
        "ByteLevel",
    ];
    const BY_SETTING: [(&str, &str); 6] = [
        ("handle_chinese_chars", "BertNormalizer"),
        ("strip_left", "Strip"),
        ("normalizers", "Sequence"),
        ("precompiled_charsmap", "Precompiled"),
        ("pattern", "Replace"),
        ("prepend", "Prepend"),
    ];
    let named = settings.kind();
    if KNOWN.contains(&named) {
        return named;
    }
    let guess = BY_SETTING.iter().find(|(name, _)| settings.has(name));
    guess.map_or("", |(_, kind)| kind)
}

fn decomposed(piece: &mut Piece, kind: Kind) -> Result<(), Stop> {
    unless_ascii(piece, kind, decompose)
}

fn composed(piece: &mut Piece, kind: Kind) -> Result<(), Stop> {
    unless_ascii(piece, kind, compose)
}

/// Applies a form that leaves ASCII as it is.
fn unless_ascii(
    piece: &mut Piece,
    kind: Kind,
    form: impl Fn(&str, Kind) -> Vec<Edit>,
) -> Result<(), Stop> {
    if piece.is_plain() && piece.text().is_ascii() {
        return Ok(());
    }
    // What a form makes is counted before, where it could be too much.
    if piece.text().len().saturating_mul(MOST_DECOMPOSED) > piece.most_bytes() {
        piece.may_decompose(kind)?;
    }
    let edits = form(piece.text(), kind);
    piece.edit(&edits, 0)
}

/// Puts spaces around CJK ideographs.
fn set_apart(piece: &mut Piece) -> Result<(), Stop> {
    if piece.is_plain() && !piece.text().chars().any(is_cjk) {
        return Ok(());
    }
    let mut edits: Vec<Edit> = Vec::with_capacity(piece.text().len());
    for c in piece.text().chars() {
        if is_cjk(c) {
            edits.extend([(' ', 0), (c, 1), (' ', 1)]);
        } else {
            edits.push((c, 0));
        }
    }
    piece.edit(&edits, 0)
}

fn lower(piece: &mut Piece) -> Result<(), Stop> {
    let mut edits: Vec<Edit> = Vec::with_capacity(piece.text().len());
    for c in piece.text().chars() {
        let lower = c.to_lowercase().enumerate();
        edits.extend(lower.map(|(index, c)| (c, i32::from(index > 0))));
    }
    piece.edit(&edits, 0)
}

/// Takes white space off the ends.
fn strip(piece: &mut Piece, left: bool, right: bool) -> Result<(), Stop> {
    let text = piece.text();
    let rest = if left { text.trim_start() } else { text };
    let skipped = text.len() - rest.len();
    let rest = if right { rest.trim_end() } else { rest };
    if rest.len() == text.len() {
        return Ok(());
    }
    let skipped = text[..skipped].chars().count();
    let edits: Vec<Edit> = rest.chars().map(|c| (c, 0)).collect();
    piece.edit(&edits, skipped)
}

fn is_nmt_control(c: char) -> bool {
    matches!(
        u32::from(c),
        0x01..=0x08 | 0x0B | 0x0E..=0x1F | 0x7F | 0x8F | 0x9F
    )
}

fn is_nmt_space(c: char) -> bool {
    matches!(
        u32::from(c),
        0x09 | 0x0A | 0x0C | 0x0D | 0x1680 | 0x200B
            ..=0x200F | 0x2028 | 0x2029 | 0x2581 | 0xFEFF | 0xFFFD
    )
}
