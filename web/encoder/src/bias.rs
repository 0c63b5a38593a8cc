//! The bias on attention scores, in the form that the kernel takes.

use crate::error::Why;
use crate::ledger::Ledger;
use crate::node::Floats;
use crate::value::Scores;

/// A score that is lowered by so much has an exponential of exactly 0 in f32.
const HIDES: f64 = -1e4;

/// A table `[heads, offsets]` and how far a token sees; both absent where nothing is added.
pub(crate) fn of(ledger: &Ledger, scores: &Scores) -> Why<(Option<Floats>, Option<usize>)> {
    let Some(bias) = &scores.bias else {
        return Ok((None, None));
    };
    let tables: usize = bias.lead.iter().product();
    if tables != 1 && tables != scores.heads {
        return Err(format!("{tables} biases for {} heads", scores.heads));
    }
    if bias.values.facts().range == Some((0.0, 0.0)) {
        return Ok((None, None));
    }
    if let Some(reach) = window(&bias.values, bias.positions) {
        return Ok((None, Some(reach)));
    }
    let (own, all) = (bias.values.len(), scores.heads.checked_mul(bias.span()));
    let all = all.ok_or("a bias for too many heads")?;
    let table = (0..all).map(|at| bias.values[at % own] as f32);
    Ok((Some(ledger.floats(table)?), None))
}

/// How far away 0 is added, where everything further away is hidden.
fn window(values: &[f64], positions: usize) -> Option<usize> {
    if values.len() != 2 * positions - 1 {
        return None;
    }
    let middle = positions - 1;
    let reach = values[middle..]
        .iter()
        .take_while(|&&value| value == 0.0)
        .count();
    let reach = reach.checked_sub(1)?;
    let fits = values.iter().enumerate().all(|(at, &value)| {
        if at.abs_diff(middle) <= reach {
            value == 0.0
        } else {
            value <= HIDES
        }
    });
    fits.then_some(reach)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_found_and_nothing_else_taken_for_one() {
        let hidden = -65504.0;
        assert_eq!(window(&[hidden, 0.0, 0.0, 0.0, hidden], 3), Some(1));
        assert_eq!(window(&[0.0; 5], 3), Some(2));
        assert_eq!(window(&[hidden, 0.0, 0.0, 0.0, 0.0], 3), None);
        assert_eq!(window(&[-3.0, 0.0, 0.0, 0.0, -3.0], 3), None);
        assert_eq!(window(&[hidden, hidden, hidden], 2), None);
    }
}
