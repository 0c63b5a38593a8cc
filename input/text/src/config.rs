//! `tokenizer_config.json`: what the file beside the tokenizer adds to it.

use serde::Deserialize;
use serde::de::Error as _;

use crate::encoding::TruncationSide;
use crate::json::bounded;

/// The members that are read; every other one is for other programs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TokenizerConfig {
    pub(crate) tokenizer_class: Option<String>,
    pub(crate) pad_token: Option<SpecialToken>,
    pub(crate) truncation_side: Option<String>,
    eos_token: Option<SpecialToken>,
    add_eos_token: Option<bool>,
    /// A whole number, or a float so large (1e30) that it means "no limit".
    model_max_length: Option<serde_json::Number>,
}

impl TokenizerConfig {
    /// The longest input that the model was made for, in tokens.
    pub(crate) fn max_tokens(&self) -> Option<usize> {
        let length = self.model_max_length.as_ref()?.as_u64()?;
        // Some writers put a huge whole number where transformers puts 1e30.
        usize::try_from(length)
            .ok()
            .filter(|&length| length > 0 && length < 1 << 30)
    }

    /// The token that the class puts after each text, whatever the post-processor of `tokenizer.json` is: transformers' classes of Llama
    /// and Gemma write that anew when they load (`update_post_processor`, `models/llama/tokenization_llama_fast.py`).
    pub(crate) fn end(&self) -> Option<&str> {
        let class = self.tokenizer_class.as_deref()?;
        let writes = ["LlamaTokenizer", "GemmaTokenizer"]
            .contains(&class.strip_suffix("Fast").unwrap_or(class));
        let asked = writes && self.add_eos_token == Some(true);
        self.eos_token
            .as_ref()
            .filter(|_| asked)
            .map(SpecialToken::content)
    }

    /// Which end of a text is left out.
    pub(crate) fn side(&self) -> TruncationSide {
        match self.truncation_side.as_deref() {
            Some("left") => TruncationSide::Start,
            _ => TruncationSide::End,
        }
    }
}

/// A special token, written as its text or as an object that holds it.
#[derive(Debug, Clone)]
pub(crate) struct SpecialToken(String);

impl SpecialToken {
    pub(crate) fn content(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for SpecialToken {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = bounded(deserializer)?;
        let content = value.get("content").unwrap_or(&value);
        content
            .as_str()
            .map(|content| Self(content.to_owned()))
            .ok_or_else(|| {
                D::Error::custom("a special token is neither a text nor an object with its content")
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing_a_token_and_a_length() {
        let config: TokenizerConfig = serde_json::from_str(
            r#"{"pad_token": {"content": "<p>", "special": true}, "model_max_length": 512, "truncation_side": "left"}"#,
        )
        .unwrap();
        assert_eq!(config.pad_token.as_ref().unwrap().content(), "<p>");
        assert_eq!(config.max_tokens(), Some(512));
        assert_eq!(config.side(), TruncationSide::Start);
        let config: TokenizerConfig = serde_json::from_str(
            r#"{"pad_token": "<p>", "model_max_length": 1000000000000000019884624838656}"#,
        )
        .unwrap();
        assert_eq!(config.pad_token.as_ref().unwrap().content(), "<p>");
        assert_eq!(config.max_tokens(), None);
        assert_eq!(config.side(), TruncationSide::End);
    }
}
