//! Rounding to whole numbers.

/// 1.5 · 2^23. A sum with it has no room for a fraction, so that f32's own rounding takes the nearest whole number, and of two that are
/// as near the even one.
const NO_FRACTION: f32 = 12_582_912.0;

/// The whole number next to a value and between `low` and `high`, which are whole and at most 2^22 from zero. What is no number stays
/// none.
///
/// It is `round_ties_even` without its call: x86-64 as such has no instruction for that, and a call for each value keeps a loop from
/// being vectorised.
pub(super) fn whole_within(value: f32, low: f32, high: f32) -> f32 {
    (value.clamp(low, high) + NO_FRACTION) - NO_FRACTION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_nearest_whole_number_and_the_even_one_of_two() {
        for (low, high) in [(0.0, 15.0), (0.0, 255.0), (-127.0, 127.0)] {
            // Every eighth, and so every half, from below the range to above it; and what is just beside a half.
            for eighth in -1100..=2100 {
                let value = eighth as f32 / 8.0;
                for value in [value, value.next_up(), value.next_down()] {
                    let wanted = value.round_ties_even().clamp(low, high);
                    assert_eq!(whole_within(value, low, high), wanted, "{value}");
                }
            }
            assert_eq!(whole_within(f32::INFINITY, low, high), high);
            assert_eq!(whole_within(f32::NEG_INFINITY, low, high), low);
            assert!(whole_within(f32::NAN, low, high).is_nan());
        }
    }
}
