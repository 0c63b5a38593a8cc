//! Reproducible noise, for tests that have to detect a difference in it.

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(super) struct Noise(pub(super) u64);

impl Noise {
    /// From 0 on and below 1, each value as likely as the others.
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
