//! Calls of queries to a batcher.

use std::time::Duration;

use futures_timer::Delay;
use isovec::BoxFuture;
use isovec::error::EngineError;
use tokio::sync::Semaphore;

use crate::distinct::Distinct;
use crate::error::Error;
use crate::texts::excerpt;

/// Calls of queries that a model works on at a time. A batcher gives one call a quarter of its queue, so these find room; more
/// would make no batch larger.
const AT_A_TIME: usize = 4;

/// The longest wait of a call that found the queue full.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Lets a few calls at a time to a model.
#[derive(Debug)]
pub(crate) struct Gate(Semaphore);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(AT_A_TIME))
    }

    /// Makes a call, and makes it again while the queue is full.
    async fn pass<T>(
        &self,
        call: impl Fn() -> BoxFuture<'static, isovec::Result<T>>,
    ) -> isovec::Result<T> {
        // Nobody closes it.
        let _place = self.0.acquire().await;
        loop {
            match call().await {
                Err(isovec::Error::Overloaded { retry_after, .. }) => {
                    Delay::new(retry_after.min(LONGEST_WAIT)).await;
                }
                result => return result,
            }
        }
    }
}

/// An item as a message has it.
pub(crate) trait Shown {
    fn shown(&self) -> String;
}

impl Shown for &str {
    fn shown(&self) -> String {
        excerpt(self)
    }
}

impl Shown for (&str, &str) {
    fn shown(&self) -> String {
        format!("{} with {}", excerpt(self.0), excerpt(self.1))
    }
}

/// Computes the items of a batch. A failure names the first row of the item that is to blame.
pub(crate) async fn compute<I: Shown, T>(
    function: &'static str,
    gate: &Gate,
    batch: &Distinct<I>,
    call: impl Fn(&[I]) -> BoxFuture<'static, isovec::Result<T>>,
) -> Result<T, Error> {
    let items = &batch.items;
    let error = match gate.pass(|| call(items)).await {
        Ok(computed) => return Ok(computed),
        Err(error) => error,
    };
    let rows = batch.of_row.len();
    let (place, source) = blamed(gate, items, &call, error).await;
    Err(
        match place.and_then(|place| Some((items.get(place)?, batch.first.get(place)?))) {
            Some((item, &row)) => Error::Row {
                function,
                row,
                rows,
                text: item.shown(),
                source: Box::new(at(source, row)),
            },
            None => Error::Batch {
                function,
                rows,
                source: Box::new(source),
            },
        },
    )
}

/// The item that is to blame for a failure, and the failure of that item alone. Halves are tried while the failure itself names
/// none.
async fn blamed<I, T>(
    gate: &Gate,
    items: &[I],
    call: impl Fn(&[I]) -> BoxFuture<'static, isovec::Result<T>>,
    failure: isovec::Error,
) -> (Option<usize>, isovec::Error) {
    let (mut start, mut end, mut last) = (0, items.len(), failure.clone());
    loop {
        if let Some(place) = place_in(&last) {
            return (Some(start + place), last);
        }
        if !may_be_one_items(&last) {
            return (None, failure);
        }
        if end - start <= 1 {
            // An engine that fails on everything blames nobody.
            let other = if start == 0 { items.len() - 1 } else { 0 };
            return match gate.pass(|| call(&items[other..=other])).await {
                Err(_) if other != start => (None, failure),
                _ => (Some(start), last),
            };
        }
        let middle = start.midpoint(end);
        if let Err(error) = gate.pass(|| call(&items[start..middle])).await {
            (end, last) = (middle, error);
        } else if let Err(error) = gate.pass(|| call(&items[middle..end])).await {
            (start, last) = (middle, error);
        } else {
            // It passed, or it was the number of them.
            return (None, failure);
        }
    }
}

/// The item that an error names.
fn place_in(error: &isovec::Error) -> Option<usize> {
    use isovec::Error::{NoDirection, NoTokens, NotFinite, NotNormalized};
    match *error {
        NoTokens { text }
        | NotFinite { text }
        | NotNormalized { text, .. }
        | NoDirection { text } => Some(text),
        _ => None,
    }
}

/// The same error of another place.
fn at(error: isovec::Error, text: usize) -> isovec::Error {
    use isovec::Error::{NoDirection, NoTokens, NotFinite, NotNormalized};
    match error {
        NoTokens { .. } => NoTokens { text },
        NotFinite { .. } => NotFinite { text },
        NotNormalized { norm, .. } => NotNormalized { text, norm },
        NoDirection { .. } => NoDirection { text },
        other => other,
    }
}

/// Whether one item may be the cause.
fn may_be_one_items(error: &isovec::Error) -> bool {
    match error {
        isovec::Error::Tokenize(_) => true,
        isovec::Error::Engine(error) => matches!(
            error,
            EngineError::InvalidInput { .. }
                | EngineError::InputTooLarge { .. }
                | EngineError::NotFinite { .. }
                | EngineError::Runtime { .. }
        ),
        _ => false,
    }
}
