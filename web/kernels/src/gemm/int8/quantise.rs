//! From f32 to whole numbers.

/// 1.5 · 2²³: numbers of that size have no bits after the point, so that adding it rounds to the
/// nearest whole number, half to even, by the rule of addition, which is the same on every machine
/// and needs no instruction of its own.
const SHIFT: f32 = 12_582_912.0;

/// Below this a row or column counts as zeros: its inverse would not be finite.
const TINY: f32 = 1e-30;

/// How values become whole numbers: `value ≈ scale * number`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// What a whole number is multiplied by; 0 for zeros, NaN if a value was not finite, so that
    /// this is seen in the result.
    pub(super) scale: f32,
    /// What a value is multiplied by.
    inverse: f32,
}

impl Scale {
    /// For the largest of the magnitudes to become `limit`, which is at most 32767.
    #[inline(always)]
    pub(super) fn new(magnitude: f32, limit: u16) -> Self {
        let limit = f32::from(limit);
        if !magnitude.is_finite() {
            Self {
                scale: f32::NAN,
                inverse: 0.0,
            }
        } else if magnitude < TINY {
            Self {
                scale: 0.0,
                inverse: 0.0,
            }
        } else {
            Self {
                scale: magnitude / limit,
                inverse: limit / magnitude,
            }
        }
    }

    /// The nearest whole number, half to even; `value` is within the magnitude.
    #[inline(always)]
    pub(super) fn quantise(self, value: f32) -> i16 {
        // The bits of SHIFT and of numbers near it differ by whole numbers. What is not finite has
        // an inverse of 0 and gives any number.
        let bits = (value * self.inverse + SHIFT).to_bits();
        bits.wrapping_sub(SHIFT.to_bits()) as i16
    }
}

/// The largest magnitude; not finite if a value is not.
#[inline(always)]
pub(super) fn magnitude(values: &[f32]) -> f32 {
    // Without their sign, the bits of floats are in the order of the floats, NaN last.
    let bits = |value: &f32| value.to_bits() & !(1 << 31);
    let bits = values.iter().map(bits).fold(0, u32::max);
    f32::from_bits(bits)
}

/// The largest activation whose products with `k` weights of 8 bits cannot overflow a sum of 32
/// bits; 0 if even 1 could.
pub(super) fn limit(k: usize) -> u16 {
    let largest = i32::MAX as usize / 128 / k.max(1);
    largest.min(i16::MAX as usize) as u16
}
