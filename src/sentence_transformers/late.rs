//! What a model's files say of late interaction, in three formats.
//!
//! PyLate (<https://github.com/lightonai/pylate>, `models/colbert.py`) writes `modules.json` with a Transformer and Dense steps, and its
//! settings into `config_sentence_transformers.json`. Stanford's ColBERT
//! (<https://github.com/stanford-futuredata/ColBERT>, `infra/config/settings.py`) names the class `HF_ColBERT` in `config.json` and writes
//! its settings into `artifact.metadata`. The `MultiVectorEncoder` of sentence-transformers 6 has the step `MultiVectorMask`, and its
//! lengths in `sentence_bert_config.json`.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_model::head::Dense;
use isovec_model::tokens::COLBERT;
use serde::Deserialize;
use serde_json::Value;

use super::{Folder, Module, Result, SentenceBertConfig};

/// Python's `string.punctuation`, a token each.
const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// Tokens of a query in all formats, where nothing else is said.
const QUERY_LENGTH: usize = 32;

/// The class of the step that says which tokens are compared.
const MASK: &str = "MultiVectorMask";

/// How texts are read and compared token by token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LateFiles {
    /// The layers behind the transformer; none where the graph has its own.
    pub(crate) dense: Vec<Dense>,
    /// The token that is put behind the first of a query.
    pub(crate) query_marker: Option<String>,
    /// The same of a passage.
    pub(crate) passage_marker: Option<String>,
    /// The most tokens of a query.
    pub(crate) query_length: Option<usize>,
    /// The most tokens of a passage.
    pub(crate) passage_length: Option<usize>,
    /// What a query is filled up with.
    pub(crate) expansion: Option<Expansion>,
    /// Tokens of passages that are read and not compared.
    pub(crate) skipped: Vec<String>,
    /// Whether the first token of every text is read and not compared.
    pub(crate) skips_first: bool,
    /// Whether white space is taken off both ends of a text.
    pub(crate) strips: bool,
    /// The file that says so.
    pub(crate) from: &'static str,
}

/// What a short query is filled up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expansion {
    /// The token; of the candidates, the first that the tokenizer has.
    pub(crate) tokens: Vec<String>,
    /// How many tokens the query has then.
    pub(crate) length: usize,
    /// Whether the query's own tokens see it.
    pub(crate) is_seen: bool,
}

impl LateFiles {
    /// How many tokens a passage may have, and which file says so.
    pub(super) fn passage_length(&self, positions: Option<usize>) -> Option<(usize, &'static str)> {
        match (self.passage_length, positions) {
            (Some(length), Some(positions)) if positions < length => {
                Some((positions, "config.json"))
            }
            (Some(length), _) => Some((length, self.from)),
            (None, positions) => Some((positions?, "config.json")),
        }
    }
}

/// What PyLate writes beside what sentence-transformers does.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    model_type: Option<String>,
    query_prefix: Option<String>,
    document_prefix: Option<String>,
    query_length: Option<usize>,
    document_length: Option<usize>,
    do_query_expansion: Option<bool>,
    attend_to_expansion_tokens: Option<bool>,
    skiplist_words: Option<Vec<String>>,
}

/// `query_expansion` of sentence-transformers 6.
#[derive(Deserialize)]
pub(super) struct QueryExpansion {
    strategy: String,
    #[serde(default)]
    attend: bool,
    token: Option<String>,
    length: usize,
}

/// `artifact.metadata` of Stanford's ColBERT.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    query_token_id: Option<String>,
    doc_token_id: Option<String>,
    query_maxlen: Option<usize>,
    doc_maxlen: Option<usize>,
    attend_to_mask_tokens: bool,
    mask_punctuation: Option<bool>,
    similarity: Option<String>,
    interaction: Option<String>,
}

/// The step's own settings.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Mask {
    skiplist_words: Vec<String>,
    skiplist_tasks: Option<Vec<String>>,
    keep_only_token_ids: Option<Vec<u32>>,
}

/// The format of a model of late interaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    PyLate,
    Stanford,
    SentenceTransformers6,
}

/// Whether these files describe late interaction. The load says what is wrong with those that cannot be read.
pub(crate) fn is_late(files: &BTreeMap<String, Bytes>) -> bool {
    let folder = Folder { origin: "", files };
    let modules: Option<Vec<Module>> = folder.json("modules.json").unwrap_or_default();
    matches!(folder.format(modules.as_deref()), Ok(Some(_)))
}

impl Folder<'_> {
    fn format(&self, modules: Option<&[Module]>) -> Result<Option<Format>> {
        let Some(modules) = modules else {
            let config: Value = self.json("config.json")?.unwrap_or_default();
            let mut classes = config["architectures"].as_array().into_iter().flatten();
            let named = classes.any(|class| class.as_str() == Some(COLBERT));
            return Ok(named.then_some(Format::Stanford));
        };
        let own = self.settings()?;
        let model_type = own.model_type.as_deref().unwrap_or_default();
        let has = |what: &dyn Fn(&Module) -> bool| modules.iter().any(what);
        Ok(
            if has(&|module| class(module) == MASK) || model_type == "MultiVectorEncoder" {
                Some(Format::SentenceTransformers6)
            } else if has(&|module| module.r#type.starts_with("pylate."))
                || model_type == "ColBERT"
                || own.query_prefix.is_some()
            {
                Some(Format::PyLate)
            } else {
                None
            },
        )
    }

    fn settings(&self) -> Result<Settings> {
        let settings = self.json("config_sentence_transformers.json")?;
        Ok(settings.unwrap_or_default())
    }

    /// What the files say of late interaction, if they do.
    pub(super) fn late(
        &self,
        modules: Option<&[Module]>,
        transformer: &str,
        bert: &SentenceBertConfig,
    ) -> Result<Option<LateFiles>> {
        let format = self.format(modules)?;
        let modules = modules.unwrap_or_default();
        Ok(match format {
            None => None,
            Some(Format::Stanford) => Some(self.stanford()?),
            Some(Format::SentenceTransformers6) => {
                Some(self.sentence_transformers_6(modules, transformer, bert)?)
            }
            Some(Format::PyLate) => Some(self.pylate(modules, transformer)?),
        })
    }

    fn pylate(&self, modules: &[Module], transformer: &str) -> Result<LateFiles> {
        let own = self.settings()?;
        let dense = self.layers(modules, false)?;
        if dense.is_empty() {
            return Err(self.unsupported(
                "its modules.json has no Dense step, which makes the vectors that are compared"
                    .into(),
                "Save the model with PyLate, which writes one",
            ));
        }
        let marker = |set: &Option<String>, usual: &str| {
            Some(set.clone().unwrap_or_else(|| usual.into())).filter(|marker| !marker.is_empty())
        };
        let query_length = own.query_length.unwrap_or(QUERY_LENGTH);
        let expansion = own
            .do_query_expansion
            .unwrap_or(true)
            .then(|| -> Result<_> {
                Ok(Expansion {
                    tokens: self.fillers(transformer)?,
                    length: query_length,
                    is_seen: own.attend_to_expansion_tokens.unwrap_or(false),
                })
            });
        Ok(LateFiles {
            dense,
            query_marker: marker(&own.query_prefix, "[Q] "),
            passage_marker: marker(&own.document_prefix, "[D] "),
            query_length: Some(query_length),
            passage_length: Some(own.document_length.unwrap_or(180)),
            expansion: expansion.transpose()?,
            skipped: own.skiplist_words.clone().unwrap_or_else(punctuation),
            skips_first: false,
            strips: true,
            from: "config_sentence_transformers.json",
        })
    }

    fn stanford(&self) -> Result<LateFiles> {
        let own: Metadata = self.json("artifact.metadata")?.unwrap_or_default();
        for (key, value, known) in [
            ("similarity", &own.similarity, "cosine"),
            ("interaction", &own.interaction, "colbert"),
        ] {
            if let Some(value) = value.as_deref().filter(|value| *value != known) {
                let reason = format!("artifact.metadata names the {key} {value:?}");
                return Err(self.unsupported(
                    reason,
                    "isovec has the cosine, summed over a query's tokens",
                ));
            }
        }
        Ok(LateFiles {
            dense: Vec::new(),
            query_marker: Some(own.query_token_id.unwrap_or_else(|| "[unused0]".into())),
            passage_marker: Some(own.doc_token_id.unwrap_or_else(|| "[unused1]".into())),
            query_length: Some(own.query_maxlen.unwrap_or(QUERY_LENGTH)),
            passage_length: Some(own.doc_maxlen.unwrap_or(220)),
            expansion: Some(Expansion {
                tokens: self.fillers("")?,
                length: own.query_maxlen.unwrap_or(QUERY_LENGTH),
                is_seen: own.attend_to_mask_tokens,
            }),
            skipped: match own.mask_punctuation {
                Some(false) => Vec::new(),
                _ => punctuation(),
            },
            skips_first: false,
            strips: false,
            from: "artifact.metadata",
        })
    }

    fn sentence_transformers_6(
        &self,
        modules: &[Module],
        transformer: &str,
        bert: &SentenceBertConfig,
    ) -> Result<LateFiles> {
        let dense = self.layers(modules, true)?;
        let mut skipped = Vec::new();
        for module in modules.iter().filter(|module| class(module) == MASK) {
            let mask: Mask = self
                .json_in(&module.path, "config.json")?
                .unwrap_or_default();
            let tasks = mask.skiplist_tasks.as_deref();
            if mask.keep_only_token_ids.is_some()
                || tasks.is_some_and(|tasks| tasks != ["document"])
            {
                return Err(self.unsupported(
                    format!("its step {MASK} skips tokens of other texts than documents, or keeps only some ids"),
                    "isovec skips the words of a list in documents",
                ));
            }
            skipped = mask.skiplist_words;
        }
        let mut query_length = bert.query_length;
        let expansion = match &bert.query_expansion {
            None => None,
            Some(expansion) => {
                match expansion.strategy.as_str() {
                    "fixed" => query_length = Some(expansion.length),
                    "min" => query_length = query_length.map(|most| most.max(expansion.length)),
                    other => {
                        let reason = format!("its query_expansion has the strategy {other:?}");
                        return Err(self.unsupported(reason, "isovec has fixed and min"));
                    }
                }
                Some(Expansion {
                    tokens: match &expansion.token {
                        Some(token) => vec![token.clone()],
                        None => self.fillers(transformer)?,
                    },
                    length: expansion.length,
                    is_seen: expansion.attend,
                })
            }
        };
        Ok(LateFiles {
            dense,
            query_marker: None,
            passage_marker: None,
            query_length,
            passage_length: bert.document_length.or(bert.max_seq_length),
            expansion,
            skipped,
            skips_first: false,
            strips: false,
            from: "sentence_bert_config.json",
        })
    }

    /// The dense steps behind the transformer. `normalised`: whether a step that normalises has to be among them; else every format
    /// does it without one.
    fn layers(&self, modules: &[Module], normalised: bool) -> Result<Vec<Dense>> {
        let mut dense = Vec::new();
        let mut is_normalised = false;
        for module in modules.iter().skip(1) {
            match class(module) {
                "Dense" if !is_normalised => dense.push(self.dense(&module.path)?),
                "Normalize" => is_normalised = true,
                MASK | "Dropout" => {}
                _ => {
                    return Err(self.unsupported(
                        format!("its step {} is unknown here or out of order", module.r#type),
                        "isovec has Transformer, Dense, MultiVectorMask and Normalize for late interaction",
                    ));
                }
            }
        }
        if normalised && !is_normalised {
            return Err(self.unsupported(
                "its modules.json has no Normalize step, so its vectors have lengths of their own"
                    .into(),
                "isovec compares tokens by the cosine",
            ));
        }
        Ok(dense)
    }

    /// The tokens that fill a query, the most wanted first: the mask's, else the end's, else the padding's.
    fn fillers(&self, transformer: &str) -> Result<Vec<String>> {
        let mut tokens = Vec::new();
        for file in ["tokenizer_config.json", "special_tokens_map.json"] {
            let names: Value = self.json_in(transformer, file)?.unwrap_or_default();
            let named = ["mask_token", "eos_token", "pad_token"].map(|kind| &names[kind]);
            // By itself, or with its settings.
            let named = named.map(|token| token.as_str().or(token["content"].as_str()));
            tokens.extend(named.into_iter().flatten().map(str::to_owned));
        }
        if tokens.is_empty() {
            tokens.push("[MASK]".into());
        }
        Ok(tokens)
    }
}

/// A step's class, whichever library it is of.
fn class(module: &Module) -> &str {
    module.r#type.rsplit('.').next().unwrap_or_default()
}

fn punctuation() -> Vec<String> {
    PUNCTUATION.chars().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(files: &[(&str, &str)]) -> LateFiles {
        let files = files
            .iter()
            .map(|(name, text)| ((*name).to_owned(), Bytes::from((*text).to_owned())));
        let files: BTreeMap<String, Bytes> = files.collect();
        assert!(is_late(&files));
        super::super::read("model", &files).unwrap().late.unwrap()
    }

    /// What `colbert-ir/colbertv2.0` states, and what it leaves to the settings' own defaults.
    #[test]
    fn settings_of_stanford_have_its_defaults() {
        let config = (
            "config.json",
            r#"{"architectures": ["HF_ColBERT"], "max_position_embeddings": 512}"#,
        );
        let own = late(&[config]);
        assert_eq!(
            (own.query_marker.as_deref(), own.passage_marker.as_deref()),
            (Some("[unused0]"), Some("[unused1]"))
        );
        assert_eq!(
            (own.query_length, own.passage_length),
            (Some(32), Some(220))
        );
        let filled = own.expansion.unwrap();
        assert_eq!(
            (filled.tokens, filled.length, filled.is_seen),
            (vec!["[MASK]".to_owned()], 32, false)
        );
        assert_eq!(own.skipped.len(), 32);
        let own = late(&[
            config,
            (
                "artifact.metadata",
                r#"{"doc_maxlen": 180, "query_maxlen": 24, "mask_punctuation": false, "attend_to_mask_tokens": true, "nbits": 1}"#,
            ),
        ]);
        assert_eq!(
            (own.query_length, own.passage_length),
            (Some(24), Some(180))
        );
        assert!(
            own.skipped.is_empty()
                && own
                    .expansion
                    .is_some_and(|filled| filled.is_seen && filled.length == 24)
        );
    }

    #[test]
    fn a_shorter_query_of_sentence_transformers_is_filled_and_a_longer_one_is_not_cut() {
        let own = late(&[
            (
                "modules.json",
                r#"[{"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
                {"path": "1_MultiVectorMask", "type": "sentence_transformers.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask"},
                {"path": "2_Normalize", "type": "sentence_transformers.base.modules.normalize.Normalize"}]"#,
            ),
            (
                "sentence_bert_config.json",
                r#"{"query_length": 8, "query_expansion": {"strategy": "min", "length": 16}}"#,
            ),
            (
                "special_tokens_map.json",
                r#"{"mask_token": {"content": "<mask>"}, "eos_token": "</s>"}"#,
            ),
        ]);
        assert_eq!((own.query_length, own.query_marker), (Some(16), None));
        assert!(own.dense.is_empty() && own.skipped.is_empty());
        assert_eq!(own.expansion.unwrap().tokens, ["<mask>", "</s>"]);
    }

    #[test]
    fn other_models_are_none_of_these() {
        for files in [
            &[("config.json", r#"{"architectures": ["BertModel"]}"#)][..],
            &[
                (
                    "modules.json",
                    r#"[{"path": "", "type": "sentence_transformers.models.Transformer"}]"#,
                ),
                ("config.json", r#"{"architectures": ["HF_ColBERT"]}"#),
            ],
            &[("modules.json", "[")],
        ] {
            let files = files
                .iter()
                .map(|(name, text)| ((*name).to_owned(), Bytes::from(*text)));
            assert!(!is_late(&files.collect()));
        }
    }
}
