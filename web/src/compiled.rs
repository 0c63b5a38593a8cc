//! A model that is ready to run, independent of what runs it.

use std::fmt::Debug;
use std::sync::Arc;

use isovec_engine::Result;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, RunOutput};
use isovec_engine::fingerprint::Precision;
use isovec_engine::maybe_send::{MaybeSend, MaybeSync};

/// A model ready to run. Runs share nothing that changes: each has a state of its own.
pub(crate) trait Compiled: MaybeSend + MaybeSync + Debug {
    /// What it computes on.
    fn provider(&self) -> &'static str {
        crate::provider::provider()
    }

    /// Whose code computes, and its version.
    fn version(&self) -> String;

    /// Whether every row is computed at its own length.
    fn ragged(&self) -> bool {
        false
    }

    /// Whether a row's bits do not depend on the rows beside it.
    fn rows_alone(&self) -> bool {
        self.ragged()
    }

    /// The coarsest numbers that it computes with, whatever the weights are stored as.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    /// How many rows of a batch to run together where no operator may keep others waiting.
    fn rows_together(&self, batch: &Batch) -> usize {
        let _ = batch;
        usize::MAX
    }

    /// Starts a run.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`](isovec_engine::EngineError::InvalidInput) when the batch does
    /// not fit the model.
    fn start(self: Arc<Self>, batch: Batch) -> Result<Box<dyn Running>>;
}

/// A run under way.
pub(crate) trait Running: MaybeSend {
    /// Computes the next operator, or, where the work is `sliced`, some of it; `false` when there
    /// is nothing left.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`](isovec_engine::EngineError::Cancelled), `InvalidInput` for an
    /// index that points outside its table, `Runtime`.
    fn step(&mut self, cancel: &Cancel, sliced: bool) -> Result<bool>;

    /// The outputs of a run that is over.
    ///
    /// # Errors
    /// `Runtime` when an output is not a tensor that the contract carries.
    fn finish(self: Box<Self>) -> Result<RunOutput>;
}
