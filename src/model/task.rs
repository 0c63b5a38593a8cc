//! A task turns a model's rows into results.

use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::{MaybeSend, MaybeSync};

use super::rows::Rows;
use super::{EmbedOptions, Form, Model, Prompt};
use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::stream::Embedded;

/// What a call says of its items, whatever is made of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlowOptions {
    pub(crate) prompt: Prompt,
    pub(crate) cancel: Option<Cancel>,
}

/// A task of a call: the end of the one way from items to rows. Whatever is before it (planning, batches, the cache, streams,
/// statistics, profiles) knows a row by its width alone. [`Item`](super::Item) is the way's start.
pub(crate) trait Task: Sized + MaybeSend + MaybeSync + 'static {
    /// What a caller may choose.
    type Options: Clone + MaybeSend + MaybeSync + 'static;
    /// What all rows of a call are together.
    type Set;
    /// What one row of a stream is.
    type Row;

    /// The task that a call asks for.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) with every option that the loaded model cannot give.
    fn of(model: &Model, options: &Self::Options) -> Result<Self>;

    /// The part of the options that concerns the items.
    fn flow(options: &Self::Options) -> FlowOptions;

    /// Makes a result of the model's own rows.
    ///
    /// # Errors
    /// An error that names the item whose row gives no result.
    fn set(&self, model: &Model, rows: Rows) -> Result<Self::Set>;

    /// The rows of a set, each with the tokens that the model saw of its item.
    fn rows(set: Self::Set) -> impl Iterator<Item = Self::Row>;

    /// Tokens that the model saw of a row's item.
    fn tokens(row: &Self::Row) -> u32;
}

/// Texts become vectors.
#[derive(Debug)]
pub(crate) struct Vectors(pub(crate) Form);

impl Task for Vectors {
    type Options = EmbedOptions;
    type Set = Embeddings;
    type Row = Embedded;

    fn of(model: &Model, options: &EmbedOptions) -> Result<Self> {
        model.form(options).map(Self)
    }

    fn flow(options: &EmbedOptions) -> FlowOptions {
        FlowOptions {
            prompt: options.prompt.clone(),
            cancel: options.cancel.clone(),
        }
    }

    fn set(&self, model: &Model, rows: Rows) -> Result<Embeddings> {
        let Rows {
            values,
            token_counts,
            truncated,
            prompt,
            ..
        } = rows;
        let own = model.own_form();
        self.0
            .apply(model.set(&own, values, token_counts, truncated, prompt)?)
    }

    fn rows(set: Embeddings) -> impl Iterator<Item = Embedded> {
        let seen: Vec<(u32, bool)> = set
            .token_counts()
            .iter()
            .zip(set.truncated())
            .map(|(&tokens, &truncated)| (tokens, truncated))
            .collect();
        let dim = set.dim();
        let values = set.into_vec();
        (0..)
            .zip(seen)
            .map(move |(row, (tokens, truncated))| Embedded {
                vector: values[row * dim..(row + 1) * dim].to_vec(),
                tokens,
                truncated,
            })
    }

    fn tokens(row: &Embedded) -> u32 {
        row.tokens
    }
}
