//! Vectors of the same texts or pictures, before and after a change that makes others of them by design.

use isovec::Result;
use isovec::optimize::Quality;

use super::side::Side;
use super::trial::Trial;

/// Compares the rows of a candidate with those that the original made of the same items.
pub(crate) async fn compared<T>(
    before: &[f32],
    candidate: &impl Side<T>,
    items: &[T],
    trial: &Trial,
) -> Result<Quality> {
    let after = rows(candidate, items, trial).await?;
    Ok(Quality::of_values(items.len(), before, &after))
}

/// The rows of items, unless the trial is cancelled.
pub(crate) async fn rows<T>(side: &impl Side<T>, items: &[T], trial: &Trial) -> Result<Vec<f32>> {
    side.rows(items, trial.cancel.as_ref()).await
}
