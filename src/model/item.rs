//! What a caller hands in.

use std::borrow::Cow;
use std::sync::Arc;

use isovec_engine::maybe_send::{MaybeSend, MaybeSync};
use isovec_tokenize::Encoding;
use smallvec::SmallVec;

use super::Model;
use super::encoded::Encoded;
use super::reader::{TextReader, reads_no};
use crate::cache::{Key, Scope};
use crate::error::{Error, Result};

/// One thing that becomes one row: the start of the one way from items to rows. Whatever is behind it (windows, batches,
/// the cache, streams, statistics, profiles) knows an item by the length of its encoding and by its key alone.
pub(crate) trait Item: Sized {
    /// The item with its own memory, for calls that outlive the caller's.
    type Owned: OwnedItem;

    /// Items that are encoded and planned together. More bring no better plan, and what is encoded would only wait in memory.
    const WINDOW: usize;

    /// Copies it.
    fn owned(&self) -> Self::Owned;

    /// Bytes that it takes while it waits.
    fn bytes(&self) -> usize;

    /// What the cache knows its row by. Two items that `encode` gives different encodings have different keys.
    fn key(&self, scope: &Scope, prefix: &str, lowercase: bool) -> Key;

    /// What the model reads of items behind a prompt.
    ///
    /// # Errors
    /// [`Error::Tokenize`](crate::Error::Tokenize).
    fn encode(model: &Model, items: &[Self], prefix: &str) -> Result<Vec<Encoded>>;

    /// The tokens of texts behind a prompt, as that reader reads them.
    ///
    /// # Errors
    /// [`Error::Tokenize`](crate::Error::Tokenize); [`Error::Config`](crate::Error::Config) for items that are no single text.
    fn tokens(_: &TextReader, _: &[Self], _: &str) -> Result<Vec<Encoding>> {
        Err(reads_no("queries of this kind"))
    }
}

/// An item with its own memory.
pub(crate) trait OwnedItem:
    Item<Owned = Self> + Clone + MaybeSend + MaybeSync + 'static
{
}
impl<T: Item<Owned = T> + Clone + MaybeSend + MaybeSync + 'static> OwnedItem for T {}

/// The window of texts.
pub(crate) const TEXTS: usize = 4096;

impl<T: AsRef<str>> Item for T {
    type Owned = String;

    const WINDOW: usize = TEXTS;

    fn owned(&self) -> String {
        self.as_ref().to_owned()
    }

    fn bytes(&self) -> usize {
        self.as_ref().len()
    }

    fn key(&self, scope: &Scope, prefix: &str, lowercase: bool) -> Key {
        scope.key(&prepared(prefix, self.as_ref(), lowercase))
    }

    fn encode(model: &Model, items: &[Self], prefix: &str) -> Result<Vec<Encoded>> {
        let reader = model.reader.texts()?;
        let texts = Self::tokens(reader, items, prefix)?.into_iter();
        Ok(texts.map(|text| reader.encoded(text)).collect())
    }

    fn tokens(reader: &TextReader, items: &[Self], prefix: &str) -> Result<Vec<Encoding>> {
        let encode = |texts: &[&str]| Ok(reader.tokenizer.encode(texts, &reader.limits)?);
        // Most models want texts as they are; then nothing is copied.
        if prefix.is_empty() && !reader.lowercase {
            let texts: SmallVec<[&str; 64]> =
                items.iter().map(|text| strip(text.as_ref())).collect();
            return encode(&texts);
        }
        let texts: Vec<String> = items
            .iter()
            .map(|text| prepare_text(prefix, text.as_ref(), reader.lowercase))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        encode(&texts)
    }
}

/// Two texts that a model reads together, such as a question and a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    /// Shared, because a query stands before each of many documents.
    first: Arc<str>,
    second: String,
}

impl Pair {
    /// Pairs with their own memory.
    pub(crate) fn all<A: AsRef<str>, B: AsRef<str>>(
        pairs: impl IntoIterator<Item = (A, B)>,
    ) -> Vec<Self> {
        let pairs = pairs.into_iter();
        pairs
            .map(|(first, second)| Self::new(first, second))
            .collect()
    }

    /// A pair with its own memory.
    pub(crate) fn new(first: impl AsRef<str>, second: impl AsRef<str>) -> Self {
        Self {
            first: first.as_ref().into(),
            second: second.as_ref().to_owned(),
        }
    }

    /// The same text before each of others.
    pub(crate) fn with_first<T: AsRef<str>>(
        first: &str,
        seconds: impl IntoIterator<Item = T>,
    ) -> Vec<Self> {
        let first: Arc<str> = first.into();
        let seconds = seconds.into_iter();
        seconds
            .map(|second| Self {
                first: Arc::clone(&first),
                second: second.as_ref().to_owned(),
            })
            .collect()
    }

    /// What the model reads of the pair behind a prompt.
    ///
    /// # Errors
    /// [`Error::Tokenize`](crate::Error::Tokenize).
    pub(crate) fn encoded(&self, model: &Model, prefix: &str) -> Result<Encoded> {
        let reader = model.reader.texts()?;
        let (tokenizer, limits) = (&reader.tokenizer, &reader.limits);
        let encoding = match &reader.frame {
            None => {
                let (first, second) = self.prepared(prefix, reader.lowercase);
                tokenizer.encode_pair(&first, &second, limits)
            }
            Some(frame) if prefix.is_empty() || frame.takes_instruction() => {
                let (first, second) = self.prepared("", reader.lowercase);
                tokenizer.encode_framed(frame, prefix, [&first, &second], limits)
            }
            Some(_) => {
                return Err(Error::Config(vec![format!(
                    "the prompt {prefix:?} has no place: the model's chat template writes no message of the role \"system\""
                )]));
            }
        };
        Ok(reader.encoded(encoding?))
    }

    /// Both texts as the tokenizer is given them. A prompt stands before the first.
    fn prepared(&self, prefix: &str, lowercase: bool) -> (Cow<'_, str>, Cow<'_, str>) {
        (
            prepared(prefix, &self.first, lowercase),
            prepared("", &self.second, lowercase),
        )
    }
}

impl Item for Pair {
    type Owned = Self;

    const WINDOW: usize = TEXTS;

    fn owned(&self) -> Self {
        self.clone()
    }

    fn bytes(&self) -> usize {
        self.first.len() + self.second.len()
    }

    fn key(&self, scope: &Scope, prefix: &str, lowercase: bool) -> Key {
        // With the prompt before the first text alone, "ab" before "c" would be "a" before "bc", which a frame tells apart.
        let (first, second) = self.prepared(prefix, lowercase);
        match prefix.is_empty() {
            true => scope.key_of_pair(&first, &second),
            false => scope.prompted(prefix).key_of_pair(&first, &second),
        }
    }

    fn encode(model: &Model, items: &[Self], prefix: &str) -> Result<Vec<Encoded>> {
        items
            .iter()
            .map(|pair| pair.encoded(model, prefix))
            .collect()
    }
}

/// A text of late interaction, as a query or as a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LateText {
    pub(crate) text: String,
    pub(crate) is_query: bool,
}

impl LateText {
    /// What the model reads of the text behind a prompt.
    ///
    /// # Errors
    /// [`Error::Tokenize`](crate::Error::Tokenize).
    pub(crate) fn encoded(&self, model: &Model, prefix: &str) -> Result<Encoded> {
        let reader = model.reader.texts()?;
        let (late, text) = (model.late()?, &self.text);
        late.encoded(reader, prefix, text, self.is_query)
    }
}

impl Item for LateText {
    type Owned = Self;

    const WINDOW: usize = TEXTS;

    fn owned(&self) -> Self {
        self.clone()
    }

    fn bytes(&self) -> usize {
        self.text.len()
    }

    fn key(&self, scope: &Scope, prefix: &str, _: bool) -> Key {
        // As it is: not every model wants white space off its ends.
        let role = if self.is_query { "query" } else { "passage" };
        scope.key_of_pair(role, &format!("{prefix}{}", self.text))
    }

    fn encode(model: &Model, items: &[Self], prefix: &str) -> Result<Vec<Encoded>> {
        items
            .iter()
            .map(|item| item.encoded(model, prefix))
            .collect()
    }
}

/// A text as its own token ids, without special ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenIds(pub(crate) Vec<u32>);

impl Item for TokenIds {
    type Owned = Self;

    const WINDOW: usize = TEXTS;

    fn owned(&self) -> Self {
        self.clone()
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn key(&self, scope: &Scope, prefix: &str, lowercase: bool) -> Key {
        scope.key_of_ids(&prepared(prefix, "", lowercase), &self.0)
    }

    fn encode(model: &Model, items: &[Self], prefix: &str) -> Result<Vec<Encoded>> {
        let reader = model.reader.texts()?;
        let texts = Self::tokens(reader, items, prefix)?.into_iter();
        Ok(texts.map(|text| reader.encoded(text)).collect())
    }

    fn tokens(reader: &TextReader, items: &[Self], prefix: &str) -> Result<Vec<Encoding>> {
        // White space at the prompt's end belongs to the word behind it, which has its ids already.
        let before = prepared(prefix, "", reader.lowercase);
        let encode =
            |Self(ids): &Self| Ok(reader.tokenizer.encode_ids(&before, ids, &reader.limits)?);
        items.iter().map(encode).collect()
    }
}

/// A text as the tokenizer is given it.
pub(crate) fn prepared<'t>(prefix: &str, text: &'t str, lowercase: bool) -> Cow<'t, str> {
    match prefix.is_empty() && !lowercase {
        // Most models want texts as they are; then nothing is copied.
        true => strip(text).into(),
        false => prepare_text(prefix, text, lowercase).into(),
    }
}

/// What sentence-transformers does to a text before tokenising: prompt in front, white space off
/// both ends (as Python's `str.strip` sees it), lower case where the model asks for it.
pub(super) fn prepare_text(prefix: &str, text: &str, lowercase: bool) -> String {
    let whole = format!("{prefix}{text}");
    let stripped = strip(&whole);
    if lowercase {
        stripped.to_lowercase()
    } else {
        stripped.to_owned()
    }
}

fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c))
}
