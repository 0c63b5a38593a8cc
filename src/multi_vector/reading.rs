//! How a text becomes the tokens that are compared.

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_tokenize::{Limits, Tokenizer};

use crate::error::Result;
use crate::model::encoded::{Encoded, Late};
use crate::model::prepared;
use crate::model::reader::TextReader;
use crate::sentence_transformers::LateFiles;

/// Tokens of a query of a model whose files say no number of positions: more than any has, and few enough for memory.
const LONGEST: usize = 1 << 16;

/// Reads queries and passages, each in its own way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LateReader {
    query: Side,
    passage: Side,
    expansion: Option<Filling>,
    /// Ids of passages that are read and not compared, in ascending order.
    skipped: Vec<u32>,
    /// Whether the first token of every text is read and not compared.
    skips_first: bool,
    /// Whether white space is taken off both ends of a text.
    strips: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Side {
    /// The id behind the first.
    marker: Option<u32>,
    /// The most tokens, the marker among them.
    most: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Filling {
    id: u32,
    length: usize,
    is_seen: bool,
}

impl LateReader {
    /// What the files say, in ids. Passages have at most `max_length` tokens, and the model takes `positions`.
    ///
    /// # Errors
    /// [`EngineError::UnsupportedModel`] for a token that the tokenizer lacks, and for queries that the model cannot take or that
    /// would have tokens that see none.
    pub(crate) fn new(
        bundle: &ModelBundle,
        files: &LateFiles,
        tokenizer: &Tokenizer,
        max_length: usize,
        positions: Option<usize>,
    ) -> Result<Self> {
        let unsupported = |reason: String, hint: &str| EngineError::UnsupportedModel {
            origin: bundle.origin.clone(),
            reason,
            hint: hint.into(),
        };
        let marker = |token: &Option<String>| -> Result<_> {
            let Some(token) = token else { return Ok(None) };
            let id = tokenizer.token_to_id(token).ok_or_else(|| {
                unsupported(
                    format!(
                        "{} names the marker {token:?}, which its tokenizer lacks",
                        files.from
                    ),
                    "Take the tokenizer that was saved with the model",
                )
            })?;
            Ok(Some(id))
        };
        let expansion = match &files.expansion {
            None => None,
            Some(expansion) => {
                let mut ids = expansion.tokens.iter();
                let id = ids.find_map(|token| tokenizer.token_to_id(token));
                let id = id.ok_or_else(|| {
                    unsupported(
                        format!("its queries are filled up with {:?}, and its tokenizer has none of them", expansion.tokens),
                        "Take the tokenizer that was saved with the model",
                    )
                })?;
                Some(Filling {
                    id,
                    length: expansion.length,
                    is_seen: expansion.is_seen,
                })
            }
        };
        let query_length = files.query_length.or(positions).unwrap_or(max_length);
        let longest = expansion
            .map_or(0, |filling| filling.length)
            .max(query_length);
        let positions = positions.unwrap_or(LONGEST);
        if positions < longest {
            let reason =
                format!("its queries have {longest} tokens, and it has positions for {positions}");
            return Err(unsupported(reason, "Correct the length of queries in its files").into());
        }
        let hidden = expansion.filter(|filling| !filling.is_seen);
        if let (Some(filling), Some(reach)) = (hidden, reach(bundle))
            && filling.length > reach
        {
            let reason = format!(
                "its queries are filled up to {} tokens that are not seen, and its layers see {reach} tokens to each side",
                filling.length
            );
            return Err(unsupported(
                reason,
                "Turn the expansion of queries off in its files, or shorten queries",
            )
            .into());
        }
        let mut skipped: Vec<u32> = files
            .skipped
            .iter()
            .filter_map(|token| tokenizer.token_to_id(token))
            .collect();
        skipped.sort_unstable();
        skipped.dedup();
        Ok(Self {
            query: Side {
                marker: marker(&files.query_marker)?,
                most: query_length,
            },
            passage: Side {
                marker: marker(&files.passage_marker)?,
                most: max_length,
            },
            expansion,
            skipped,
            skips_first: files.skips_first,
            strips: files.strips,
        })
    }

    /// Everything that decides a text's vectors.
    pub(crate) fn identity(&self) -> String {
        let side = |Side { marker, most }: Side| {
            let marker = marker.map_or_else(|| "none".into(), |id| id.to_string());
            format!("{most} tokens, marker {marker}")
        };
        let filled = self.expansion.map_or_else(
            || "none".into(),
            |Filling {
                 id,
                 length,
                 is_seen,
             }| {
                let seen = if is_seen { "seen" } else { "not seen" };
                format!("{length} of {id}, {seen}")
            },
        );
        let skipped: Vec<String> = self.skipped.iter().map(u32::to_string).collect();
        format!(
            "query: {}; filled: {filled}; passage: {}; skipped: {}; {}{}",
            side(self.query),
            side(self.passage),
            skipped.join(" "),
            if self.strips { "strip" } else { "as they are" },
            if self.skips_first {
                "; without the first"
            } else {
                ""
            }
        )
    }

    /// What the model reads of a text behind a prompt.
    ///
    /// # Errors
    /// [`Error::Tokenize`](crate::Error::Tokenize).
    pub(crate) fn encoded(
        &self,
        reader: &TextReader,
        prefix: &str,
        text: &str,
        is_query: bool,
    ) -> Result<Encoded> {
        let Side { marker, most } = if is_query { self.query } else { self.passage };
        let limits = Limits {
            max_tokens: Some(most - usize::from(marker.is_some()).min(most)),
            ..reader.limits
        };
        let text = match self.strips {
            true => prepared(prefix, text, reader.lowercase),
            false if reader.lowercase => format!("{prefix}{text}").to_lowercase().into(),
            false => format!("{prefix}{text}").into(),
        };
        let mut encodings = reader.tokenizer.encode(&[&*text], &limits)?;
        let mut text = encodings.pop().unwrap_or_default();
        if let Some(marker) = marker {
            // Behind the token that begins every text.
            let place = text.ids.len().min(1);
            text.ids.insert(place, marker);
            text.type_ids.insert(place, 0);
        }
        let own = text.ids.len();
        let mut seen = own;
        let filling = self.expansion.filter(|filling| filling.length > own);
        if let Some(filling) = filling.filter(|_| is_query) {
            text.ids.resize(filling.length, filling.id);
            text.type_ids.resize(filling.length, 0);
            if filling.is_seen {
                seen = filling.length;
            }
        }
        let first = u32::from(self.skips_first);
        let is_skipped = |id| !is_query && self.skipped.binary_search(id).is_ok();
        let compared = (0..).zip(&text.ids);
        let compared = compared.filter(|&(place, id)| place >= first && !is_skipped(id));
        let compared: Box<[u32]> = compared.map(|(place, _)| place).collect();
        let kept = Some(compared).filter(|compared| compared.len() < text.ids.len());
        Ok(Encoded::Late(Box::new(Late { text, seen, kept })))
    }
}

/// How far the layers of a model with windows see to each side.
fn reach(bundle: &ModelBundle) -> Option<usize> {
    let config = bundle.files.get("config.json")?;
    let config: serde_json::Value = serde_json::from_slice(config).ok()?;
    // Of ModernBERT, both sides together.
    let window = config.get("local_attention")?.as_u64()?;
    usize::try_from(window / 2).ok()
}
