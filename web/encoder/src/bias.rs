//! The bias on attention scores, in the form that the kernel takes.

use crate::error::Why;
use crate::ledger::Ledger;
use crate::node::Floats;
use crate::value::Scores;

/// A score that is lowered by so much has an exponential of exactly 0 in f32.
const HIDES: f64 = -1e4;

/// How far a token sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Tokens further apart do not see each other.
    pub(crate) reach: Option<usize>,
    /// A token sees none after it.
    pub(crate) causal: bool,
}

/// A table `[heads, offsets]` and how far a token sees; no table where nothing is added to what is seen.
pub(crate) fn of(ledger: &Ledger, scores: &Scores) -> Why<(Option<Floats>, Sight)> {
    let Some(bias) = &scores.bias else {
        return Ok((None, Sight::default()));
    };
    let tables: usize = bias.lead.iter().product();
    if tables != 1 && tables != scores.heads {
        return Err(format!("{tables} biases for {} heads", scores.heads));
    }
    if bias.values.facts().range == Some((0.0, 0.0)) {
        return Ok((None, Sight::default()));
    }
    if let Some(sight) = sight(&bias.values, bias.positions) {
        return Ok((None, sight));
    }
    let (own, all) = (bias.values.len(), scores.heads.checked_mul(bias.span()));
    let all = all.ok_or("a bias for too many heads")?;
    let table = (0..all).map(|at| bias.values[at % own] as f32);
    Ok((Some(ledger.floats(table)?), Sight::default()))
}

/// How far a token sees, where 0 is added to what it sees and everything else is hidden.
fn sight(values: &[f64], positions: usize) -> Option<Sight> {
    if values.len() != 2 * positions - 1 {
        return None;
    }
    let middle = positions - 1;
    let zeros =
        |values: &mut dyn Iterator<Item = &f64>| values.take_while(|&&value| value == 0.0).count();
    // Itself, and those on either side.
    let after = zeros(&mut values[middle..].iter()).checked_sub(1)?;
    let before = zeros(&mut values[..middle].iter().rev());
    let hidden = values[..middle - before]
        .iter()
        .chain(&values[middle + after + 1..]);
    if hidden.into_iter().any(|&value| value > HIDES) {
        return None;
    }
    let reach = (before < middle).then_some(before);
    match after {
        _ if after == before => Some(Sight {
            reach: Some(before),
            causal: false,
        }),
        0 => Some(Sight {
            reach,
            causal: true,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_found_and_nothing_else_taken_for_one() {
        let hidden = -65504.0;
        let window = |reach| {
            Some(Sight {
                reach: Some(reach),
                causal: false,
            })
        };
        assert_eq!(sight(&[hidden, 0.0, 0.0, 0.0, hidden], 3), window(1));
        assert_eq!(sight(&[0.0; 5], 3), window(2));
        assert_eq!(sight(&[hidden, 0.0, 0.0, 0.0, 0.0], 3), None);
        assert_eq!(sight(&[-3.0, 0.0, 0.0, 0.0, -3.0], 3), None);
        assert_eq!(sight(&[hidden, hidden, hidden], 2), None);
    }

    #[test]
    fn a_token_that_sees_none_after_it_is_found_with_how_far_it_sees() {
        let hidden = -65504.0;
        let causal = |reach| {
            Some(Sight {
                reach,
                causal: true,
            })
        };
        assert_eq!(sight(&[0.0, 0.0, 0.0, hidden, hidden], 3), causal(None));
        assert_eq!(
            sight(&[hidden, 0.0, 0.0, hidden, hidden], 3),
            causal(Some(1))
        );
        assert_eq!(sight(&[0.0, 0.0, 0.0, hidden, 0.0], 3), None);
        assert_eq!(sight(&[hidden, hidden, 0.0, 0.0, 0.0], 3), None);
        assert_eq!(sight(&[0.0, 0.0, 0.0, -3.0, -3.0], 3), None);
    }
}
