//! How far a changed tensor is from the original.

use crate::error::{OptimizeError, Result};

/// The mean of the squared differences, summed in f64: `Σ (a[i] - b[i])² / n`. 0 for empty tensors.
///
/// # Panics
/// When the lengths differ.
pub fn mse(original: &[f32], changed: &[f32]) -> f64 {
    let (_, noise) = powers(original, changed);
    noise / original.len().max(1) as f64
}

/// The ratio of signal to quantisation noise in decibels: `10 · log10(Σ a[i]² / Σ (a[i] - b[i])²)`. Infinite where nothing
/// changed, minus infinity where an original of zeros did. About 6 dB more is one bit more.
///
/// # Panics
/// When the lengths differ.
pub fn sqnr(original: &[f32], changed: &[f32]) -> f64 {
    let (signal, noise) = powers(original, changed);
    if noise == 0.0 {
        return f64::INFINITY;
    }
    10.0 * (signal / noise).log10()
}

/// The squares of the original and of the differences.
fn powers(original: &[f32], changed: &[f32]) -> (f64, f64) {
    assert_eq!(
        original.len(),
        changed.len(),
        "tensors of different lengths cannot be compared"
    );
    let pairs = original.iter().zip(changed);
    pairs.fold((0.0, 0.0), |(signal, noise), (&a, &b)| {
        let (a, b) = (f64::from(a), f64::from(b));
        (signal + a * a, noise + (a - b) * (a - b))
    })
}

/// Refuses measured changes of vectors that are not one finite number for each part; `what` is what changed.
pub(crate) fn check_changes(changes: &[f64], parts: usize, what: &str) -> Result<()> {
    if changes.len() != parts {
        return Err(OptimizeError::Size {
            what: "the number of changes",
            asked: changes.len().to_string(),
            allowed: parts.to_string(),
        });
    }
    match changes.iter().all(|change| change.is_finite()) {
        true => Ok(()),
        false => Err(OptimizeError::NotFinite { what: what.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formulas_on_numbers_worked_by_hand() {
        let (a, b) = ([3.0, -4.0], [3.0, -3.5]);
        assert_eq!(mse(&a, &b), 0.125);
        // 25 / 0.25 is 100, which is 20 dB.
        assert!((sqnr(&a, &b) - 20.0).abs() < 1e-12);
        assert_eq!(sqnr(&a, &a), f64::INFINITY);
        assert_eq!(sqnr(&[0.0], &[1.0]), f64::NEG_INFINITY);
        assert_eq!(mse(&[], &[]), 0.0);
    }
}
