//! The order in which a worker takes the units.

use super::random::Random;

/// A permutation of `0..units` that takes no memory: a real run sorts by random hashes, and a thousand of those would not fit.
///
/// A number of so many bits is mixed by steps that each can be undone: a product with an odd number, and an exclusive or with its
/// own upper half. Numbers that are no units are passed over.
pub(crate) struct Order {
    units: u64,
    bits: u32,
    factors: [(u64, u64); 3],
    next: u64,
}

impl Order {
    pub(crate) fn new(units: u64, random: &mut Random) -> Self {
        Self {
            units,
            bits: (u64::BITS - units.leading_zeros()).max(2),
            factors: [(); 3].map(|()| (random.number() | 1, random.number())),
            next: 0,
        }
    }

    fn mixed(&self, number: u64) -> u64 {
        let mask = (1 << self.bits) - 1;
        self.factors.iter().fold(number, |mixed, &(factor, more)| {
            let mixed = mixed.wrapping_mul(factor).wrapping_add(more) & mask;
            mixed ^ (mixed >> (self.bits / 2))
        })
    }
}

impl Iterator for Order {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.next >> self.bits == 0 {
            let unit = self.mixed(self.next);
            self.next += 1;
            if unit < self.units {
                return u32::try_from(unit).ok();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_in_it_once_and_two_orders_have_nothing_in_common() {
        let mut random = Random::new(7);
        for units in [1, 2, 3, 4, 1000, 1024, 5000] {
            let mut seen = vec![false; units];
            for unit in Order::new(units as u64, &mut random) {
                assert!(!std::mem::replace(&mut seen[unit as usize], true));
            }
            assert!(seen.into_iter().all(|seen| seen), "{units}");
        }
        // Of two random orders of n, one unit is expected in the same place. Over 200 pairs the sum has a deviation of 14.
        let same: usize = (0..200)
            .map(|_| {
                let [one, other] = [(); 2].map(|()| Order::new(1000, &mut random));
                one.zip(other).filter(|(one, other)| one == other).count()
            })
            .sum();
        assert!((130..270).contains(&same), "{same}");
    }
}
