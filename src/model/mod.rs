//! A loaded model: from texts to vectors.

mod choose;
mod feed;
mod head;
mod load;
mod origin;
mod precision;
mod prompts;
pub(crate) mod rows;
mod vocabulary;

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use isovec_engine::cancel::{Cancel, CancelGuard};
use isovec_engine::engine::{Engine, RunOutput};
use isovec_engine::fingerprint::Fingerprint;
use isovec_tokenize::{Encoding, Limits, Tokenizer};

pub use load::{LoadOptions, OnProgress, Progress};
pub(crate) use load::{load, prepare, resolve};
pub(crate) use origin::Fetched;
pub use prompts::Prompt;
pub(crate) use prompts::Prompts;

use crate::backend;
use crate::effective::EffectiveConfig;
use crate::embeddings::{Embeddings, Parts};
use crate::error::Result;
use crate::plan::{Budget, Plan};
use crate::similarity::Similarity;
use feed::Feed;
use rows::Rows;

/// Texts that are tokenised and planned together. More bring no better plan, and their token ids
/// would only wait in memory.
pub(crate) const WINDOW: usize = 4096;

/// How texts are embedded, where it differs from the model's settings.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EmbedOptions {
    /// What is put before every text.
    pub prompt: Prompt,
    /// Stops the work when cancelled, as dropping the future does.
    pub cancel: Option<Cancel>,
}

impl EmbedOptions {
    /// Chooses what is put before every text.
    #[must_use]
    pub fn with_prompt(mut self, prompt: Prompt) -> Self {
        self.prompt = prompt;
        self
    }

    /// Stops the work when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }
}

/// Everything that turns texts into vectors, shared by all handles.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) name: String,
    pub(crate) dim: usize,
    pub(crate) max_length: usize,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) similarity: Similarity,
    pub(crate) effective: EffectiveConfig,
    pub(crate) prompts: Prompts,
    tokenizer: Tokenizer,
    limits: Limits,
    lowercase: bool,
    pub(crate) normalized: bool,
    budget: Budget,
    pub(crate) feed: Feed,
}

impl Model {
    /// Embeds, waiting without blocking. The future may be dropped at any time.
    pub(crate) async fn embed(
        self: Arc<Self>,
        texts: Vec<String>,
        options: EmbedOptions,
    ) -> Result<Embeddings> {
        let (prefix, prompt) = self.prompts.resolve(&options.prompt)?;
        let cancel = OwnCancel::linked(options.cancel.as_ref());
        let mut rows = Rows::new(texts.len(), self.dim, self.normalized)?;
        let mut texts = texts.into_iter();
        let mut start = 0;
        loop {
            let window: Vec<String> = texts.by_ref().take(WINDOW).collect();
            if window.is_empty() {
                break;
            }
            let (model, prefix) = (Arc::clone(&self), prefix.clone());
            let encode = move |texts: &[String]| model.encode(texts, &prefix);
            let encodings =
                backend::in_slices("tokenising", window, cancel.0.clone(), encode).await?;
            rows.note(start, &encodings)?;
            self.run(start, &encodings, &cancel.0, &mut rows).await?;
            start += encodings.len();
        }
        self.finish(rows, prompt)
    }

    /// Tokens that `embed` would see if there were no limit.
    pub(crate) fn count_tokens(&self, text: &str) -> Result<usize> {
        let (prefix, _) = self.prompts.resolve(&Prompt::Default)?;
        Ok(self
            .tokenizer
            .count_tokens(&prepare_text(&prefix, text, self.lowercase))?)
    }

    async fn run(
        &self,
        start: usize,
        encodings: &[Encoding],
        cancel: &Cancel,
        rows: &mut Rows,
    ) -> Result<()> {
        let plan = self.plan(encodings);
        // One more than the engine works on, so that it never waits for us to ask.
        let at_once = self.engine.capabilities().concurrent_runs.saturating_add(1);
        let mut next = 0;
        let mut runs = FuturesUnordered::new();
        loop {
            while runs.len() < at_once
                && let Some(places) = plan.batch(next)
            {
                runs.push(self.run_batch(encodings, places, cancel));
                next += 1;
            }
            let Some(done) = runs.next().await else {
                return Ok(());
            };
            let (places, output) = done?;
            rows.place(start, places, output)?;
        }
    }

    async fn run_batch<'p>(
        &self,
        encodings: &[Encoding],
        places: &'p [usize],
        cancel: &Cancel,
    ) -> Result<(&'p [usize], RunOutput)> {
        let batch = self.feed.batch(&*self.engine, encodings, places)?;
        Ok((places, self.engine.run(batch, cancel).await?))
    }

    pub(crate) fn plan(&self, encodings: &[Encoding]) -> Plan {
        let lengths: Vec<usize> = encodings
            .iter()
            .map(|encoding| self.feed.padded(encoding.ids.len()))
            .collect();
        Plan::new(&lengths, self.budget)
    }

    pub(crate) fn encode(&self, texts: &[String], prefix: &str) -> Result<Vec<Encoding>> {
        let texts: Vec<String> = texts
            .iter()
            .map(|text| prepare_text(prefix, text, self.lowercase))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Ok(self.tokenizer.encode(&texts, &self.limits)?)
    }

    pub(crate) fn finish(&self, rows: Rows, prompt: Option<String>) -> Result<Embeddings> {
        let Rows {
            values,
            token_counts,
            truncated,
            ..
        } = rows;
        Embeddings::from_parts(
            "the model's output",
            Parts {
                dim: self.dim,
                values,
                token_counts,
                truncated,
                labels: None,
                fingerprint: self.fingerprint.clone(),
                similarity: self.similarity,
                prompt,
                model: self.name.clone(),
            },
        )
    }
}

/// What sentence-transformers does to a text before tokenising: prompt in front, white space off
/// both ends (as Python's `str.strip` sees it), lower case where the model asks for it.
fn prepare_text(prefix: &str, text: &str, lowercase: bool) -> String {
    let whole = format!("{prefix}{text}");
    let white = |c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c);
    let stripped = whole.trim_matches(white);
    if lowercase {
        stripped.to_lowercase()
    } else {
        stripped.to_owned()
    }
}

/// A call's own token: cancelled with the caller's, and when the call is dropped.
pub(crate) struct OwnCancel(pub(crate) Cancel, #[allow(dead_code)] Option<CancelGuard>);

impl OwnCancel {
    pub(crate) fn linked(caller: Option<&Cancel>) -> Self {
        let own = Cancel::new();
        let link = own.clone();
        Self(
            own,
            caller.map(|caller| caller.on_cancel(move || link.cancel())),
        )
    }
}

impl Drop for OwnCancel {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests;
