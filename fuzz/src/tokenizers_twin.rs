//! Hugging Face's crate `tokenizers`, with Oniguruma, beside ours: made of the same bytes, because
//! scores that went through JSON differ from those in memory in the last bit.

use std::collections::BTreeMap;

use isovec_tokenize::{Encoding, Limits, TokenizeError, Tokenizer, TruncationSide};
use serde_json::Value;
use tokenizers::{
    NormalizedString, Normalizer as _, Tokenizer as Library, TruncationDirection, TruncationParams,
};

use crate::bounds::ours;
use crate::panics::caught;

/// What came of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The same ids, or no ids in both.
    Same,
    /// Ours says by name that it does not do it.
    Refused,
    /// The library stopped with a panic, or what it does is chance: that says nothing.
    LeftOut,
}

/// Both.
pub struct Twins {
    ours: Tokenizer,
    theirs: Library,
    bytes: usize,
}

impl Twins {
    /// Reads the file with both; `Err` where there is nothing to compare.
    ///
    /// # Panics
    /// Where one of them reads what the other does not, and ours does not say why by name.
    pub fn new(json: &Value) -> Result<Self, Outcome> {
        let bytes = json.to_string().into_bytes();
        let length = bytes.len();
        let theirs = caught(|| Library::from_bytes(&bytes)).ok_or(Outcome::LeftOut)?;
        let files = BTreeMap::from([("tokenizer.json".to_owned(), bytes.into())]);
        let read = ours(length, || Tokenizer::from_files(&files, "fuzz"));
        let (ours, mut theirs) = match (read, theirs) {
            (Ok(ours), Ok(theirs)) => (ours, theirs),
            (Err(_), Err(_)) => return Err(Outcome::Same),
            (
                Err(TokenizeError::UnsupportedTokenizer { .. } | TokenizeError::TooCostly { .. }),
                Ok(_),
            ) => return Err(Outcome::Refused),
            // Theirs looks for nothing everywhere, and finds it.
            (Err(error), Ok(_)) if error.to_string().contains("nothing is left of") => {
                return Err(Outcome::Refused);
            }
            (ours, theirs) => panic!(
                "ours: {:?}, theirs: {:?}, of {json}",
                ours.map(|_| ()),
                theirs.map(|_| ())
            ),
        };
        if ambiguous(json, &theirs) {
            return Err(Outcome::LeftOut);
        }
        theirs.with_padding(None);
        Ok(Self {
            ours,
            theirs,
            bytes: length,
        })
    }

    /// Compares ids and type ids of one text, or of two together.
    ///
    /// # Panics
    /// Where they differ.
    pub fn compare(&mut self, first: &str, second: Option<&str>, limits: Limits) -> Outcome {
        let parameters = limits.max_tokens.map(|max_length| TruncationParams {
            max_length,
            direction: match limits.truncation_side {
                TruncationSide::Start => TruncationDirection::Left,
                _ => TruncationDirection::Right,
            },
            ..Default::default()
        });
        if self.theirs.with_truncation(parameters).is_err() {
            return Outcome::Refused;
        }
        let theirs = caught(|| match second {
            Some(second) => self.theirs.encode((first, second), true),
            None => self.theirs.encode(first, true),
        });
        let input = self.bytes + first.len() + second.map_or(0, str::len);
        let found = ours(input, || self.encode(first, second, &limits));
        let Some(theirs) = theirs else {
            return Outcome::LeftOut;
        };
        match (found, theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert_eq!(
                    ours.ids,
                    theirs.get_ids(),
                    "ids of {first:?} {second:?} {limits:?}"
                );
                assert_eq!(
                    ours.type_ids,
                    theirs.get_type_ids(),
                    "type ids of {first:?} {second:?}"
                );
                Outcome::Same
            }
            (Err(TokenizeError::NoUnknownToken { .. }), Err(_)) => Outcome::Same,
            // Where a text is cut, theirs may not come as far as the fault.
            (Err(TokenizeError::NoUnknownToken { .. }), Ok(_)) if limits.max_tokens.is_some() => {
                Outcome::Same
            }
            (Err(TokenizeError::TooCostly { .. } | TokenizeError::Failed { .. }), _) => {
                Outcome::Refused
            }
            (ours, theirs) => panic!(
                "{first:?} {second:?}: ours {ours:?}, theirs {:?}",
                theirs.map(|encoding| encoding.get_ids().to_vec())
            ),
        }
    }

    /// Room for so many tokens of text. Where both of two texts are cut and an odd token is left,
    /// who gets it is ours to say (theirs asks which text is longer after it stopped counting), so
    /// the room is even.
    pub fn limits(&self, room: usize, side: TruncationSide) -> Limits {
        let pair = self.ours.special_tokens_count_pair();
        // Where theirs would subtract below nothing, it panics.
        let single = self.ours.special_tokens_count().saturating_sub(pair);
        let mut limits = Limits::tokens(pair + (room + single) / 2 * 2 + 2);
        limits.truncation_side = side;
        limits
    }

    fn encode(
        &self,
        first: &str,
        second: Option<&str>,
        limits: &Limits,
    ) -> isovec_tokenize::Result<Encoding> {
        match second {
            Some(second) => self.ours.encode_pair(first, second, limits),
            None => Ok(self.ours.encode(&[first], limits)?.remove(0)),
        }
    }
}

/// Whether two added tokens are the same when they are normalised: which of them the library finds
/// is the chance of its hashing. Or one that it cannot normalise, or stops with a panic at.
fn ambiguous(json: &Value, library: &Library) -> bool {
    let mut seen = Vec::new();
    for token in json["added_tokens"].as_array().into_iter().flatten() {
        let content = token["content"].as_str().unwrap_or_default();
        if !token["normalized"].as_bool().unwrap_or(true) {
            continue;
        }
        let normalised = caught(|| {
            let mut text = NormalizedString::from(content);
            let normalizer = library.get_normalizer();
            normalizer.map_or(Ok(()), |normalizer| normalizer.normalize(&mut text))?;
            tokenizers::Result::Ok(text.get().to_owned())
        });
        let Some(Ok(text)) = normalised else {
            return true;
        };
        if seen.contains(&text) {
            return true;
        }
        seen.push(text);
    }
    false
}
