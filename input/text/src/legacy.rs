//! BERT models from before `tokenizer.json`: `vocab.txt`, one piece a line, and
//! `tokenizer_config.json`.
//!
//! Reads them as `transformers`' `BertTokenizer` does
//! (<https://github.com/huggingface/transformers>, `models/bert/tokenization_bert.py`).

use serde::Deserialize;
use serde_json::json;

use crate::config::{SpecialToken, TokenizerConfig};
use crate::definition::{AddedTokenDefinition, Definition, ModelDefinition, Vocabulary};
use crate::trie::Pieces;

/// The classes of `tokenizer_config.json` whose `vocab.txt` is WordPiece after BERT's splitting.
const BERT_CLASSES: &[&str] = &[
    "BertTokenizer",
    "DistilBertTokenizer",
    "ElectraTokenizer",
    "MobileBertTokenizer",
    "SqueezeBertTokenizer",
];

/// What `BertTokenizer` reads from its settings, with its defaults.
#[derive(Deserialize)]
#[serde(default)]
pub(crate) struct BertSettings {
    do_lower_case: bool,
    do_basic_tokenize: bool,
    tokenize_chinese_chars: bool,
    strip_accents: Option<bool>,
    unk_token: Option<SpecialToken>,
    sep_token: Option<SpecialToken>,
    pad_token: Option<SpecialToken>,
    cls_token: Option<SpecialToken>,
    mask_token: Option<SpecialToken>,
}

impl Default for BertSettings {
    fn default() -> Self {
        Self {
            do_lower_case: true,
            do_basic_tokenize: true,
            tokenize_chinese_chars: true,
            strip_accents: None,
            unk_token: None,
            sep_token: None,
            pad_token: None,
            cls_token: None,
            mask_token: None,
        }
    }
}

/// Builds what a `tokenizer.json` of the same model would say.
///
/// # Errors
/// Words saying why not.
pub(crate) fn definition(
    vocabulary: &[u8],
    config: &TokenizerConfig,
    settings: &BertSettings,
) -> Result<Definition, String> {
    if let Some(class) = &config.tokenizer_class {
        let class = class.strip_suffix("Fast").unwrap_or(class);
        if !BERT_CLASSES.contains(&class) {
            return Err(format!(
                "tokenizer_config.json names the class {class}, whose vocabulary files are not read"
            ));
        }
    }
    if !settings.do_basic_tokenize {
        return Err("do_basic_tokenize is false, which has no tokenizer.json form".to_owned());
    }
    let text = std::str::from_utf8(vocabulary).map_err(|error| format!("not UTF-8: {error}"))?;
    let mut pieces = Pieces::default();
    let mut ids = Vec::new();
    for (id, line) in text.lines().enumerate() {
        let id = u32::try_from(id).map_err(|_| "too many lines".to_owned())?;
        if !pieces.push(line.trim_end()) {
            return Err("more than 4 GiB".to_owned());
        }
        ids.push(id);
    }
    let name = |token: &Option<SpecialToken>, usual: &str| {
        token
            .as_ref()
            .map_or(usual, SpecialToken::content)
            .to_owned()
    };
    let unknown = name(&settings.unk_token, "[UNK]");
    let separator = name(&settings.sep_token, "[SEP]");
    let padding = name(&settings.pad_token, "[PAD]");
    let class = name(&settings.cls_token, "[CLS]");
    let mask = name(&settings.mask_token, "[MASK]");
    let id_of = |content: &str| {
        pieces
            .iter()
            .zip(&ids)
            .filter(|(piece, _)| *piece == content)
            .map(|(_, &id)| id)
            .last()
    };
    let required = |token: &str| {
        id_of(token).ok_or_else(|| format!("no line holds the special token {token}"))
    };
    let (cls, sep) = (required(&class)?, required(&separator)?);
    required(&unknown)?;

    let added_tokens = [&padding, &unknown, &class, &separator, &mask]
        .into_iter()
        .filter_map(|token| {
            Some(AddedTokenDefinition {
                id: id_of(token)?,
                content: token.clone(),
                single_word: false,
                lstrip: false,
                rstrip: false,
                normalized: false,
                special: true,
            })
        })
        .collect();

    Ok(Definition {
        added_tokens,
        normalizer: Some(json!({
            "type": "BertNormalizer",
            "clean_text": true,
            "handle_chinese_chars": settings.tokenize_chinese_chars,
            "strip_accents": settings.strip_accents,
            "lowercase": settings.do_lower_case,
        })),
        pre_tokenizer: Some(json!({"type": "BertPreTokenizer"})),
        post_processor: Some(json!({
            "type": "BertProcessing",
            "sep": [separator, sep],
            "cls": [class, cls],
        })),
        padding: None,
        truncation: None,
        decoder: Some(json!({"type": "WordPiece", "prefix": "##", "cleanup": true})),
        model: ModelDefinition {
            kind: Some("WordPiece".to_owned()),
            vocabulary: Some(Vocabulary::Mapped { pieces, ids }),
            unk_token: Some(unknown),
            continuing_subword_prefix: Some("##".to_owned()),
            max_input_chars_per_word: Some(100),
            repeats: true,
            ..ModelDefinition::default()
        },
    })
}
