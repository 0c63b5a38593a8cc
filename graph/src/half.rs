//! Half precision.

/// The f32 of an IEEE 754 binary16, exactly.
pub(crate) fn f16(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let exponent = u32::from(bits >> 10 & 0x1f);
    let fraction = u32::from(bits & 0x3ff);
    let magnitude = match exponent {
        // A fraction of 2^-14 in steps of 2^-24: exact in f32.
        0 => (fraction as f32 * f32::from_bits(0x3380_0000)).to_bits(),
        0x1f => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use super::f16;

    #[test]
    fn known_values() {
        assert_eq!(f16(0x3c00), 1.0);
        assert_eq!(f16(0xc000), -2.0);
        assert_eq!(f16(0x7bff), 65504.0);
        assert_eq!(f16(0x0001), 2f32.powi(-24));
        assert_eq!(f16(0x8400), -(2f32.powi(-14)));
        assert_eq!(f16(0xfc00), f32::NEG_INFINITY);
        assert!(f16(0x7e00).is_nan());
    }
}
