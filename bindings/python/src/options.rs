//! The options of a call.

use isovec::{Cancel, EmbedOptions, Prompt};
use pyo3::prelude::*;

use crate::error;

/// How a call differs from what the model was loaded with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form {
    pub(crate) prompt: Option<String>,
    pub(crate) prefix: Option<String>,
    pub(crate) dimension: Option<usize>,
    pub(crate) normalize: Option<bool>,
}

impl Form {
    /// Under no prompt, which pictures have none of.
    pub(crate) fn of(dimension: Option<usize>, normalize: Option<bool>) -> Self {
        Self {
            dimension,
            normalize,
            ..Self::default()
        }
    }

    /// Under a prompt of the model's.
    pub(crate) fn under(prompt: &str, dimension: Option<usize>, normalize: Option<bool>) -> Self {
        Self {
            prompt: Some(prompt.to_owned()),
            ..Self::of(dimension, normalize)
        }
    }

    /// The call's options, and what cancels it.
    pub(crate) fn options(self, py: Python<'_>) -> PyResult<(EmbedOptions, Cancel)> {
        let cancel = Cancel::new();
        let mut options = EmbedOptions::default().with_cancel(cancel.clone());
        options.prompt = prompt(py, self.prompt, self.prefix, "prefix")?;
        options.dimension = self.dimension;
        options.normalize = self.normalize;
        Ok((options, cancel))
    }
}

/// The prompt of a call: one of the model's by its name, or a text, whose argument has the name `word`.
pub(crate) fn prompt(
    py: Python<'_>,
    prompt: Option<String>,
    text: Option<String>,
    word: &str,
) -> PyResult<Prompt> {
    Ok(match (prompt, text) {
        (None, None) => Prompt::Default,
        (None, Some(text)) => Prompt::Text(text),
        (Some(_), Some(_)) => {
            let why = format!(
                "`prompt` names a prompt of the model and `{word}` is a text; give one of them"
            );
            return Err(error::with_kind(py, "Config", &why));
        }
        (Some(name), None) => match name.as_str() {
            "none" => Prompt::None,
            "query" => Prompt::Query,
            "passage" => Prompt::Passage,
            _ => Prompt::Named(name),
        },
    })
}
