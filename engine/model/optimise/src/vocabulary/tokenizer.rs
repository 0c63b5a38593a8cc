//! A `tokenizer.json` with fewer pieces, which cuts the texts that it was made for as the original does.
//!
//! Why the ids of such texts stay the same, piece by piece:
//!
//! - **WordPiece** takes the longest piece that fits. The pieces of these texts are all kept, and none is new, so the
//!   longest that fits is the one it was. (A word that becomes the unknown token may find pieces where a longer first piece
//!   is gone.)
//! - **Unigram** takes the path with the highest sum of scores. The best path is kept, and what competed with it can only
//!   have become fewer. An unknown character costs the lowest score less a constant, so the piece with the lowest score is
//!   kept as well.
//! - **BPE** merges the pair of the lowest rank first. All merges that can make a kept piece are kept, with the pieces that
//!   they join. Every merge that the original applies to such a text is among them, and no other is new, so that the lowest
//!   at each step is the same.
//!
//! Other texts are cut into smaller pieces: the characters of all kept pieces stay pieces of their own where they were, as
//! do the bytes of a model that falls back on them, and the alphabet of byte-level models.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use isovec_tokenize::{TOKENIZER_FILE, Tokenizer};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::affix::Affixes;
use crate::error::{OptimizeError, Result};

/// Members of an object, with their values as they are written.
type Members = BTreeMap<String, Box<RawValue>>;

/// One past the characters that GPT-2's alphabet of bytes takes (U+0021 to U+0143).
const BYTE_ALPHABET: u32 = 0x144;

/// A tokenizer with fewer pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimmedTokenizer {
    /// The new `tokenizer.json`.
    pub json: Vec<u8>,
    /// The old id of each new id.
    pub rows: Vec<u32>,
    /// Number of tokens before.
    pub before: usize,
}

impl TrimmedTokenizer {
    /// The new ids by the old ones.
    pub fn ids(&self) -> HashMap<u32, u32> {
        let new = self.rows.iter().zip(0u32..);
        new.map(|(&old, new)| (old, new)).collect()
    }
}

/// Takes the pieces out of a `tokenizer.json` that no id in `used` needs. Ids below `fixed` keep their place.
///
/// `used` holds the ids of texts as the tokenizer makes them. Added tokens, special tokens and padding are kept in any
/// case. New ids are numbered in the order of the old ones, and everything in the file that names an id follows.
///
/// # Errors
/// [`OptimizeError::Tokenize`] for a file that is no tokenizer; [`OptimizeError::Unsuitable`] for a kind that has no pieces
/// to take out, and for ids that the file gives to two tokens.
pub fn trim_tokenizer(
    origin: &str,
    json: &[u8],
    used: &BTreeSet<u32>,
    fixed: u32,
) -> Result<TrimmedTokenizer> {
    let old = read(origin, json.to_vec())?;
    let mut file: Members = parse(origin, json)?;
    let model = file.get("model").map_or("{}", |model| model.get());
    let model = Model::read(origin, model)?;
    let added: Vec<Value> = member(origin, &file, "added_tokens")?.unwrap_or_default();
    let names: Vec<String> = added.iter().filter_map(content).collect();

    let mut wanted = used.clone();
    wanted.extend(0..fixed);
    wanted.extend(names.iter().filter_map(|name| old.token_to_id(name)));
    wanted.insert(old.pad_id());
    wanted.extend(model.unknown());
    for part in ["post_processor", "padding"] {
        let part: Option<Value> = member(origin, &file, part)?;
        each_id(&mut part.unwrap_or_default(), &mut |id| {
            wanted.insert(id);
            Some(id)
        });
    }
    let kept = model.kept(&wanted);
    let mut rows: Vec<u32> = kept.iter().map(|&at| model.pieces[at].1).collect();
    let known: BTreeSet<&str> = kept.iter().map(|&at| model.pieces[at].0.as_str()).collect();
    // Tokens that are no piece are numbered after all pieces, in their order: as `tokenizers` does.
    let mut seen = BTreeSet::new();
    for name in names.iter().filter(|name| !name.is_empty()) {
        if !known.contains(name.as_str()) && seen.insert(name) {
            rows.extend(old.token_to_id(name));
        }
    }
    let mut trimmed = TrimmedTokenizer {
        json: Vec::new(),
        rows,
        before: old.vocab_size(),
    };
    let ids = trimmed.ids();
    if ids.len() != trimmed.rows.len() {
        return Err(unsuitable(origin, "two of its tokens have one id"));
    }
    let written = model.write(origin, &kept, &ids)?;
    file.insert("model".into(), raw(origin, &written)?);
    let mut listed = Value::Array(added);
    for token in listed.as_array_mut().into_iter().flatten() {
        let id = content(token).and_then(|name| old.token_to_id(&name));
        if let Some(new) = id.and_then(|id| ids.get(&id)) {
            token["id"] = json!(new);
        }
    }
    file.insert("added_tokens".into(), raw(origin, &listed)?);
    for part in ["post_processor", "padding"] {
        if let Some(mut value) = member::<Value>(origin, &file, part)? {
            each_id(&mut value, &mut |id| ids.get(&id).copied());
            file.insert(part.into(), raw(origin, &value)?);
        }
    }
    trimmed.json = serde_json::to_vec(&file).map_err(|error| broken(origin, &error))?;

    // What is written is read as a user would read it, and has to say what was meant.
    let new = read(origin, trimmed.json.clone())?;
    let fits = new.vocab_size() == trimmed.rows.len()
        && names.iter().filter(|name| !name.is_empty()).all(|name| {
            let old = old.token_to_id(name).and_then(|id| ids.get(&id).copied());
            old == new.token_to_id(name)
        });
    match fits {
        true => Ok(trimmed),
        false => Err(unsuitable(
            origin,
            "its added tokens do not have the ids that its vocabulary gives them",
        )),
    }
}

/// The tokenizer of a file.
fn read(origin: &str, json: Vec<u8>) -> Result<Tokenizer> {
    let files = BTreeMap::from([(TOKENIZER_FILE.to_owned(), Bytes::from(json))]);
    Ok(Tokenizer::from_files(&files, origin)?)
}

/// The model's part of the file.
struct Model {
    members: Members,
    kind: Kind,
    affixes: Affixes,
    unknown: Option<String>,
    unknown_id: Option<u32>,
    /// Pieces with their ids, in the order of the ids.
    pieces: Vec<(String, u32)>,
    /// Of Unigram: the score of each, as it is written.
    scores: Vec<Box<RawValue>>,
    /// Of BPE: the pieces that a merge joins, and the merge as it is written.
    merges: Vec<(String, String, Value)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mapped,
    Scored,
    Merged,
}

impl Model {
    fn read(origin: &str, json: &str) -> Result<Self> {
        let members: Members = parse(origin, json.as_bytes())?;
        let text = |name: &str| member::<String>(origin, &members, name);
        let vocabulary = members.get("vocab").map_or("", |vocab| vocab.get()).trim();
        let scored = vocabulary.starts_with('[');
        let kind = match text("type")?.as_deref() {
            Some("Unigram") => Kind::Scored,
            Some("BPE") => Kind::Merged,
            Some("WordPiece" | "WordLevel") => Kind::Mapped,
            Some(other) => return Err(unsuitable(origin, &format!("its model is {other}"))),
            None if scored => Kind::Scored,
            None if members.contains_key("merges") => Kind::Merged,
            None => Kind::Mapped,
        };
        let (mut pieces, mut scores) = (Vec::new(), Vec::new());
        if kind == Kind::Scored {
            let listed: Vec<(String, Box<RawValue>)> = parse(origin, vocabulary.as_bytes())?;
            for ((piece, score), id) in listed.into_iter().zip(0u32..) {
                pieces.push((piece, id));
                scores.push(score);
            }
        } else {
            let mapped: BTreeMap<String, u32> = parse(origin, vocabulary.as_bytes())?;
            pieces.extend(mapped);
            pieces.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        }
        let listed: Vec<Value> = member(origin, &members, "merges")?.unwrap_or_default();
        let merges = listed.into_iter().filter_map(merge).collect();
        let usual = if kind == Kind::Mapped { "##" } else { "" };
        Ok(Self {
            kind,
            affixes: Affixes {
                prefix: text("continuing_subword_prefix")?.unwrap_or_else(|| usual.into()),
                suffix: text("end_of_word_suffix")?.unwrap_or_default(),
            },
            unknown: text("unk_token")?,
            unknown_id: member(origin, &members, "unk_id")?,
            members,
            pieces,
            scores,
            merges,
        })
    }

    /// The id of what the vocabulary lacks.
    fn unknown(&self) -> Option<u32> {
        let named = self.unknown.as_ref();
        let found = named.and_then(|name| self.pieces.iter().find(|(piece, _)| piece == name));
        self.unknown_id.or(found.map(|(_, id)| *id))
    }

    /// The places of the pieces that stay, in their order.
    fn kept(&self, wanted: &BTreeSet<u32>) -> BTreeSet<usize> {
        let places = 0..self.pieces.len();
        let mut kept: BTreeSet<usize> = places
            .clone()
            .filter(|&at| wanted.contains(&self.pieces[at].1))
            .collect();
        let written = kept.iter().flat_map(|&at| self.pieces[at].0.chars());
        let alphabet: BTreeSet<char> = written.collect();
        let smallest = |piece: &str| {
            let single = self.affixes.single(piece);
            single.is_some_and(|c| alphabet.contains(&c) || u32::from(c) < BYTE_ALPHABET)
                || is_byte(piece)
        };
        kept.extend(places.filter(|&at| smallest(&self.pieces[at].0)));
        kept.extend(self.lowest());
        self.with_parts(&mut kept);
        kept
    }

    /// The place of the lowest score, from which the cost of unknown characters is taken.
    fn lowest(&self) -> Option<usize> {
        let scores = self.scores.iter().map(|score| score.get().parse::<f64>());
        let scores = scores.map(|score| score.unwrap_or(f64::INFINITY));
        let lowest = scores.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        lowest.map(|(at, _)| at)
    }

    /// Adds what the merges join that can make a kept piece.
    fn with_parts(&self, kept: &mut BTreeSet<usize>) {
        if self.merges.is_empty() {
            return;
        }
        let places = self.pieces.iter().zip(0..);
        let places: HashMap<&str, usize> = places
            .map(|((piece, _), at)| (piece.as_str(), at))
            .collect();
        let mut makes: HashMap<usize, Vec<usize>> = HashMap::new();
        for (left, right, _) in &self.merges {
            let parts = [left, right].map(|part| places.get(part.as_str()).copied());
            if let (Some(&whole), [Some(left), Some(right)]) =
                (places.get(self.whole(left, right).as_str()), parts)
            {
                makes.entry(whole).or_default().extend([left, right]);
            }
        }
        let mut open: Vec<usize> = kept.iter().copied().collect();
        while let Some(piece) = open.pop() {
            let parts = makes.get(&piece).into_iter().flatten();
            open.extend(parts.filter(|&&part| kept.insert(part)));
        }
    }

    /// What a merge makes.
    fn whole(&self, left: &str, right: &str) -> String {
        let tail = right.strip_prefix(self.affixes.prefix.as_str());
        format!("{left}{}", tail.unwrap_or(right))
    }

    /// The model's part with the pieces that stay.
    fn write(
        &self,
        origin: &str,
        kept: &BTreeSet<usize>,
        ids: &HashMap<u32, u32>,
    ) -> Result<Members> {
        let mut members: Members = self
            .members
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let vocabulary = match self.kind {
            Kind::Scored => {
                let listed = kept.iter();
                let listed = listed.map(|&at| (&self.pieces[at].0, &self.scores[at]));
                raw(origin, &listed.collect::<Vec<_>>())?
            }
            Kind::Mapped | Kind::Merged => {
                let mapped = kept.iter().zip(0u32..);
                let mapped = mapped.map(|(&at, id)| (&self.pieces[at].0, id));
                raw(origin, &mapped.collect::<BTreeMap<_, _>>())?
            }
        };
        members.insert("vocab".into(), vocabulary);
        if self.kind == Kind::Merged {
            let names: BTreeSet<&str> = kept.iter().map(|&at| self.pieces[at].0.as_str()).collect();
            let merges = self.merges.iter();
            let merges = merges.filter(|(left, right, _)| {
                let whole = self.whole(left, right);
                [left, right, &whole]
                    .iter()
                    .all(|part| names.contains(part.as_str()))
            });
            let merges: Vec<&Value> = merges.map(|(.., written)| written).collect();
            members.insert("merges".into(), raw(origin, &merges)?);
        }
        if let Some(new) = self.unknown_id.and_then(|id| ids.get(&id)) {
            members.insert("unk_id".into(), raw(origin, new)?);
        }
        Ok(members)
    }
}

/// The pieces that a merge joins, whichever way it is written; `None` for the line that says the version.
fn merge(written: Value) -> Option<(String, String, Value)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (left, right) = match &written {
        Value::Array(pair) => (text(pair.first()?)?, text(pair.get(1)?)?),
        Value::String(line) if line.starts_with("#version") => return None,
        Value::String(line) => {
            let (left, right) = line.split_once(' ')?;
            (left.to_owned(), right.to_owned())
        }
        _ => return None,
    };
    Some((left, right, written))
}

/// Whether a piece is one byte of unknown text: `<0x0A>`.
fn is_byte(piece: &str) -> bool {
    let digits = piece
        .strip_prefix("<0x")
        .and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && u8::from_str_radix(digits, 16).is_ok())
}

/// Replaces every id in a post-processor or in the settings of padding by what `change` makes of it.
fn each_id(value: &mut Value, change: &mut impl FnMut(u32) -> Option<u32>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("ids", Value::Array(ids)) => {
                        ids.iter_mut().for_each(|id| replace(id, change));
                    }
                    ("pad_id", id) => replace(id, change),
                    // `["</s>", 2]`
                    ("sep" | "cls", Value::Array(pair)) => {
                        pair.iter_mut().skip(1).for_each(|id| replace(id, change));
                    }
                    (_, value) => each_id(value, change),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| each_id(value, change)),
        _ => {}
    }
}

fn replace(value: &mut Value, change: &mut impl FnMut(u32) -> Option<u32>) {
    let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
    if let Some(new) = id.and_then(change) {
        *value = json!(new);
    }
}

fn content(token: &Value) -> Option<String> {
    token["content"].as_str().map(str::to_owned)
}

/// A member of an object, if it is there and not null.
fn member<T: DeserializeOwned>(origin: &str, members: &Members, name: &str) -> Result<Option<T>> {
    let value = members
        .get(name)
        .map(|value| parse(origin, value.get().as_bytes()));
    Ok(value.transpose()?.flatten())
}

fn parse<T: DeserializeOwned>(origin: &str, json: &[u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| broken(origin, &error))
}

fn raw(origin: &str, value: &impl serde::Serialize) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(value).map_err(|error| broken(origin, &error))
}

fn broken(origin: &str, error: &serde_json::Error) -> OptimizeError {
    isovec_tokenize::TokenizeError::InvalidTokenizer {
        origin: origin.to_owned(),
        file: TOKENIZER_FILE.to_owned(),
        detail: error.to_string(),
    }
    .into()
}

fn unsuitable(origin: &str, reason: &str) -> OptimizeError {
    OptimizeError::Unsuitable {
        origin: origin.to_owned(),
        reason: reason.to_owned(),
        hint: "Leave the vocabulary as it is".into(),
    }
}
