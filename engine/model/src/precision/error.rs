//! Measures how much a weight changes when it is stored small.

/// The sum of the squares.
pub(super) fn squares(values: impl Iterator<Item = f32>) -> f64 {
    values.map(|value| f64::from(value).powi(2)).sum()
}

/// The root of a quotient of squares. Nothing lost is no error, whatever there was.
pub(super) fn ratio(error: f64, norm: f64) -> f64 {
    if error == 0.0 {
        return 0.0;
    }
    let relative = (error / norm.max(0.0)).sqrt();
    if relative.is_nan() {
        f64::INFINITY
    } else {
        relative
    }
}
