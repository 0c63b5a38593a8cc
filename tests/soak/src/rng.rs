//! Numbers that a seed repeats.

/// Steele, Lea and Flood's SplitMix64.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The numbers of one action: the same whichever thread takes it, and whenever.
    pub fn of(seed: u64, action: u64) -> Self {
        let mut rng = Self(seed ^ action.wrapping_mul(0xd6e8_feb8_6659_fd93));
        rng.number();
        rng
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        // The limits here are so small that the remainder's favour for low numbers does not matter.
        (self.number() % limit.max(1) as u64) as usize
    }

    /// Once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Mostly small, now and then up to `2^bits`: of every size as often as of any other.
    pub fn spread(&mut self, bits: usize) -> usize {
        let size = self.below(bits + 1);
        self.below(1 << size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_actions_differ() {
        let of = |seed, action| {
            let mut rng = Rng::of(seed, action);
            [rng.number(), rng.number()]
        };
        assert_eq!(of(1, 2), of(1, 2));
        assert_ne!(of(1, 2), of(1, 3));
        assert_ne!(of(1, 2), of(2, 2));
    }

    #[test]
    fn small_and_large_numbers_come() {
        let mut rng = Rng::of(7, 7);
        let numbers: Vec<usize> = (0..1000).map(|_| rng.spread(10)).collect();
        assert!(numbers.iter().all(|&n| n < 1 << 10));
        assert!(
            numbers.iter().any(|&n| n > 700) && numbers.iter().filter(|&&n| n < 4).count() > 200
        );
    }
}
