//! Which of several models no other beats.

use std::cmp::Ordering;

use super::Figures;

/// For each model, whether it is on the Pareto front: no other is at least as good in its cosine, its recall, its bytes and the
/// estimate of its time, and better in one of them. Of equal ones all are on it. What is no number is worse than any number.
pub fn front(models: &[Figures]) -> Vec<bool> {
    let beats = |one: &Figures, other: &Figures| {
        let orders = orders(one, other);
        orders.iter().all(|order| order.is_ge()) && orders.iter().any(|order| order.is_gt())
    };
    let on = models.iter();
    on.map(|model| !models.iter().any(|other| beats(other, model)))
        .collect()
}

/// How good one model is beside another, in each figure.
fn orders(one: &Figures, other: &Figures) -> [Ordering; 4] {
    let more = |a: f64, b: f64| match (a.is_nan(), b.is_nan()) {
        (false, false) => f64::total_cmp(&a, &b),
        (a, b) => b.cmp(&a),
    };
    let recall = |model: &Figures| model.recall.unwrap_or(f64::NAN);
    [
        more(one.cosine, other.cosine),
        more(recall(one), recall(other)),
        other.bytes.cmp(&one.bytes),
        more(-one.latency.estimate, -other.latency.estimate),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tests::figures;
    use super::*;

    #[test]
    fn a_model_is_on_the_front_unless_another_is_better_and_nowhere_worse() {
        let models = [
            figures(0.99, 100, 1.0),
            figures(0.95, 50, 2.0),
            // As the one before, and larger.
            figures(0.95, 60, 2.0),
            // As that one, and less like the original.
            figures(0.94, 50, 2.0),
            // Worse than any in one figure, and best in another.
            figures(0.10, 70, 3.0),
            // Slower than the second.
            figures(0.95, 50, 1.9),
        ];
        assert_eq!(front(&models), [true, true, false, false, true, false]);
        assert_eq!(front(&[]), Vec::<bool>::new());
    }

    #[test]
    fn equal_ones_are_all_on_it_and_no_number_beats_nothing() {
        let one = figures(0.9, 10, 1.0);
        assert_eq!(front(&[one, one]), [true, true]);
        assert_eq!(front(&[one, figures(f64::NAN, 10, 1.0)]), [true, false]);
        let mut recalled = one;
        recalled.recall = Some(0.5);
        let mut better = one;
        better.recall = Some(0.6);
        assert_eq!(front(&[recalled, better]), [false, true]);
    }
}
