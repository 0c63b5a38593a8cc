//! How many bits each matrix takes.

/// The fewest bits of a value.
pub(super) const FEWEST: u8 = 3;

/// The most bits of a value.
pub(super) const MOST: u8 = 6;

/// The bits in which the noise of a matrix is measured.
pub(super) const MEASURED: u8 = 4;

/// A matrix that takes bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Taker {
    /// Its values.
    pub(super) values: usize,
    /// Its noise in 4 bits: as a share of its power, or as what it does to vectors.
    pub(super) noise: f64,
}

/// The bits of each matrix: at most `average` on average, which is 3 to 6, and the least sum of their noise.
///
/// A bit more is a quarter of the noise (a step half as wide, and noise of a twelfth of its square: B. Widrow, "A study of rough
/// amplitude quantization by means of Nyquist sampling theory", 1956). All start with 3 bits. The next bit goes to the matrix whose
/// noise it lowers most for its bytes (marginal analysis: Y. Shoham and A. Gersho, "Efficient bit allocation for an arbitrary set of
/// quantizers", 1988), to the first of equal ones, and what no longer fits is passed over. So a large matrix has fewer bits than a
/// small one: its bits cost more, and the model passes through both.
pub(super) fn allocate(takers: &[Taker], average: f64) -> Vec<u8> {
    let mut bits = vec![FEWEST; takers.len()];
    let all: usize = takers.iter().map(|taker| taker.values).sum();
    let mut left = (all as f64 * (average - f64::from(FEWEST))).floor() as usize;
    loop {
        let gain = |at: usize| {
            let quarters = f64::from(bits[at]) - f64::from(MEASURED);
            takers[at].noise * 4f64.powf(-quarters) * 0.75 / takers[at].values.max(1) as f64
        };
        let open = (0..takers.len()).filter(|&at| bits[at] < MOST && takers[at].values <= left);
        // Of equal ones `max_by` takes the last.
        let Some(next) = open.rev().max_by(|&a, &b| gain(a).total_cmp(&gain(b))) else {
            return bits;
        };
        bits[next] += 1;
        left -= takers[next].values;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takers<const N: usize>(all: [(usize, f64); N]) -> [Taker; N] {
        all.map(|(values, noise)| Taker { values, noise })
    }

    #[test]
    fn a_large_matrix_has_fewer_bits_and_the_average_is_kept() {
        assert_eq!(allocate(&takers([(100, 0.01); 3]), 4.0), [4, 4, 4]);
        // 200 bits: the small ones take 10 each until 6, and what is left is too little for the large one.
        let found = allocate(&takers([(1000, 0.01), (10, 0.01), (10, 0.01)]), 4.0);
        assert_eq!(found, [3, 6, 6]);
        let found = allocate(&takers([(160, 0.01), (40, 0.01), (10, 0.01)]), 4.0);
        assert_eq!(found, [3, 6, 6]);
        assert_eq!(allocate(&takers([(100, 0.01); 3]), 3.0), [3; 3]);
        assert_eq!(allocate(&takers([(100, 0.01); 3]), 6.0), [6; 3]);
        // 100 bits: the first of equal ones.
        assert_eq!(allocate(&takers([(100, 0.01); 3]), 3.5), [4, 3, 3]);
        assert!(allocate(&[], 4.0).is_empty());
    }

    #[test]
    fn no_other_bits_have_less_noise() {
        let takers = takers([(40, 0.02), (10, 0.01), (20, 0.005), (10, 0.04)]);
        let noise = |bits: &[u8]| {
            let each = takers.iter().zip(bits);
            let each = each.map(|(taker, &bits)| taker.noise * 4f64.powi(4 - i32::from(bits)));
            each.sum::<f64>()
        };
        let size = |bits: &[u8]| -> usize {
            let each = takers.iter().zip(bits);
            each.map(|(taker, &bits)| taker.values * usize::from(bits))
                .sum()
        };
        let found = allocate(&takers, 4.0);
        let mut least = f64::INFINITY;
        for code in 0..256u32 {
            let bits = [0, 2, 4, 6].map(|shift| 3 + (code >> shift & 3) as u8);
            if size(&bits) <= 4 * 80 {
                least = least.min(noise(&bits));
            }
        }
        assert_eq!(noise(&found), least, "{found:?}");
        assert!(size(&found) <= 4 * 80);
    }
}
