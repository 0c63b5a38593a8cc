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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    type Call = BoxFuture<'static, isovec::Result<usize>>;

    fn broken() -> isovec::Error {
        isovec::Error::Engine(EngineError::Runtime {
            engine: "test",
            doing: "running",
            detail: "it broke".into(),
        })
    }

    /// Fails on every call in which a text is "bad", without a name.
    fn silent(texts: &[&str]) -> Call {
        let result = match texts.contains(&"bad") {
            true => Err(broken()),
            false => Ok(texts.len()),
        };
        Box::pin(async move { result })
    }

    fn batch<'a>(texts: &[&'a str]) -> Distinct<&'a str> {
        Distinct::new(texts.iter().copied().map(Some))
    }

    #[tokio::test]
    async fn a_text_that_no_error_names_is_found_in_halves() {
        let gate = Gate::new();
        for bad in 0..7 {
            // Every text twice, so that rows are not places.
            let mut texts = ["a", "b", "c", "d", "e", "f", "g"];
            texts[bad] = "bad";
            let rows: Vec<&str> = texts.iter().flat_map(|text| [*text, *text]).collect();
            let error = compute("embed", &gate, &batch(&rows), silent).await;
            let Err(Error::Row {
                row, rows, text, ..
            }) = error
            else {
                panic!("{error:?}");
            };
            assert_eq!((row, rows, &*text), (2 * bad, 14, "\"bad\""));
        }
        let fine = compute("embed", &gate, &batch(&["a", "b", "a"]), silent).await;
        assert_eq!(fine.unwrap(), 2);
        let alone = compute("embed", &gate, &batch(&["bad"]), silent).await;
        assert!(matches!(alone, Err(Error::Row { row: 0, .. })), "{alone:?}");
    }

    #[tokio::test]
    async fn what_fails_on_everything_blames_no_row() {
        let gate = Gate::new();
        let dead = |_: &[&str]| -> Call { Box::pin(async { Err(broken()) }) };
        let error = compute("embed", &gate, &batch(&["a", "b", "c"]), dead).await;
        assert!(
            matches!(error, Err(Error::Batch { rows: 3, .. })),
            "{error:?}"
        );
        // Nor does a failure that no text is the cause of.
        let closed = |_: &[&str]| -> Call { Box::pin(async { Err(isovec::Error::ShutDown) }) };
        let error = compute("embed", &gate, &batch(&["a", "b"]), closed).await;
        let Err(Error::Batch { source, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(source.kind(), "ShutDown");
    }

    #[tokio::test]
    async fn a_text_that_an_error_names_is_told_by_its_row() {
        let named = |texts: &[&str]| -> Call {
            let text = texts.iter().position(|text| text.is_empty()).unwrap();
            Box::pin(async move { Err(isovec::Error::NoTokens { text }) })
        };
        let rows = batch(&["a", "a", "", "b"]);
        let error = compute("embed", &Gate::new(), &rows, named).await;
        let message = error.unwrap_err().to_string();
        assert!(
            message.contains("row 2 (from 0) of a batch of 4, \"\""),
            "{message}"
        );
        assert!(message.contains("text 2 has no tokens"), "{message}");
    }

    #[tokio::test]
    async fn a_full_queue_is_asked_again() {
        let asked = AtomicUsize::new(0);
        let full = |texts: &[&str]| -> Call {
            let result = match asked.fetch_add(1, Ordering::Relaxed) {
                0..3 => Err(isovec::Error::Overloaded {
                    waiting: 1,
                    limit: 1,
                    unit: "texts",
                    retry_after: Duration::ZERO,
                }),
                _ => Ok(texts.len()),
            };
            Box::pin(async move { result })
        };
        let computed = compute("embed", &Gate::new(), &batch(&["a"]), full).await;
        assert_eq!((computed.unwrap(), asked.into_inner()), (1, 4));
    }
}
