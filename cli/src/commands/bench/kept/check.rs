//! Checks a saved benchmark beyond its types. A comparison repeats its options and points, so a file with impossible
//! ones is refused first.

use std::collections::BTreeSet;

use super::super::curves;
use super::super::figure::Part;
use super::{Benchmark, KeptError};

/// # Errors
/// [`KeptError::Damaged`] with the first fault.
pub(super) fn check(found: &Benchmark) -> Result<(), KeptError> {
    let fault = found
        .options
        .fault()
        .or_else(|| figures(found))
        .or_else(|| points(found))
        .or_else(|| texts(found));
    fault.map_or(Ok(()), |fault| Err(KeptError::Damaged(fault)))
}

fn figures(found: &Benchmark) -> Option<String> {
    if found.figures.is_empty() {
        return Some("it has no figure".into());
    }
    let keys: BTreeSet<_> = found.figures.iter().map(|figure| &figure.key).collect();
    if keys.len() != found.figures.len() {
        return Some("a figure occurs twice".into());
    }
    let rounds = found.options.rounds;
    found.figures.iter().find_map(|figure| {
        let (key, turns, texts) = (&figure.key, figure.seconds.values().len(), figure.texts);
        (turns != rounds || texts == 0)
            .then(|| format!("{key} has {turns} turns of {texts} texts out of {rounds} turns"))
    })
}

fn points(found: &Benchmark) -> Option<String> {
    let mut of_curves = found
        .figures
        .iter()
        .filter(|figure| figure.key.part == Part::Curves);
    of_curves.find_map(|figure| match figure.cell() {
        None => Some(format!(
            "{}, a point of the curves, has no tokens or no calls",
            figure.key
        )),
        Some(cell) if !curves::could_be(&figure.key.name, cell) => Some(format!(
            "{} has {} calls of {} texts of {} tokens, which is not a point of the curves",
            figure.key, cell.calls, cell.texts, cell.tokens
        )),
        Some(_) => None,
    })
}

fn texts(found: &Benchmark) -> Option<String> {
    let (a_turn, count) = (found.texts.a_turn, found.texts.count);
    (a_turn == 0 || a_turn > count).then(|| format!("a turn takes {a_turn} of {count} texts"))
}
