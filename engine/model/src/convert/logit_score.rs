//! The score of a decoder's answer: how much rather it goes on with one token than with another.
//!
//! `LogitScore` of sentence-transformers (<https://sbert.net/docs/package_reference/cross_encoder/modules.html>): at the last token the
//! logit of `true_token_id`, less that of `false_token_id` where there is one. A token's logit is the product of the hidden state and the
//! token's row of the vocabulary's matrix, so the difference of two logits is the product with the difference of two rows. Nothing of the
//! vocabulary's size is computed.

use std::fmt;

use isovec_engine::error::Result;
use serde::Deserialize;

use super::classifier::declare;
use super::config::Config;
use super::decoder::ANCHOR;
use super::embeddings::LAST_HIDDEN_STATE;
use super::net::Net;
use crate::head::last_token;

/// The vocabulary's matrix beside the model, of a checkpoint where it is not the table of words.
const MATRIX: &str = "lm_head.weight";

/// The tokens whose logits are a decoder's score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct LogitScore {
    /// The id of the token that says yes.
    #[serde(rename = "true_token_id")]
    pub yes: u32,
    /// The id of the token that says no. Without one, the logit of `yes` is the score.
    #[serde(rename = "false_token_id", default)]
    pub no: Option<u32>,
}

impl fmt::Display for LogitScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.no {
            Some(no) => write!(f, "{} less {no}", self.yes),
            None => write!(f, "{}", self.yes),
        }
    }
}

/// Adds the output `logits`, f32 `[batch, 1]`, to the hidden states of a decoder. Returns what decides it and no tensor shows.
///
/// # Errors
/// [`EngineError::InvalidModel`](isovec_engine::EngineError::InvalidModel) for a token that the vocabulary lacks;
/// [`EngineError::UnsupportedModel`](isovec_engine::EngineError::UnsupportedModel) for logits that are capped;
/// [`EngineError::Weight`](isovec_engine::EngineError::Weight) for a checkpoint without the vocabulary's matrix.
pub(super) fn add(config: &Config, net: &mut Net<'_>, score: LogitScore) -> Result<String> {
    let (words, hidden) = (config.size("vocab_size")?, config.size("hidden_size")?);
    for id in [Some(score.yes), score.no].into_iter().flatten() {
        if id as usize >= words {
            let what = format!("is {words}, and LogitScore names the token {id}");
            return Err(config.wrong("vocab_size", &what));
        }
    }
    if config.value("final_logit_softcapping").is_some() {
        return Err(config.unsupported("config.json caps logits (final_logit_softcapping)"));
    }
    net.scope("logit_score");
    let last = last_token(net.builder(), LAST_HIDDEN_STATE);
    let apart = net.without_prefix(|net| net.holds(MATRIX));
    let shape = [words, hidden];
    let tied = config.flag_or("tie_word_embeddings", !apart)?;
    let (matrix, row) = match tied {
        true => (ANCHOR, net.row_less(ANCHOR, shape, score)?),
        false => (
            MATRIX,
            net.without_prefix(|net| net.row_less(MATRIX, shape, score))?,
        ),
    };
    net.node("MatMul", &[&last, &row], vec![]);
    declare(net, 1);
    Ok(format!("{score} of {matrix}"))
}
