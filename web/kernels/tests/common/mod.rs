//! What the tests share.
#![allow(dead_code, reason = "every test file uses some of it")]

/// `count` numbers between -1 and 1 that depend on the seed alone.
pub(crate) fn values(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        // Marsaglia's xorshift64, its upper bits.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Where texts of these lengths begin, and where the last one ends.
pub(crate) fn offsets(lengths: &[usize]) -> Vec<usize> {
    let ends = lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// The bits, for comparisons that tell -0 from 0 and one NaN from another.
pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// The sum in the documented order, one element after another: lane `i` of 16 takes the elements
/// `i`, `i + 16`, ...; then lanes 8 apart are added, 4, 2 and 1 apart.
pub(crate) fn sum_in_lanes(terms: impl Iterator<Item = f32>) -> f32 {
    let mut lanes = [0.0f32; 16];
    for (number, term) in terms.enumerate() {
        lanes[number % 16] += term;
    }
    let eight: [f32; 8] = std::array::from_fn(|i| lanes[i] + lanes[i + 8]);
    let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Asserts that no element is further off than `at_most`, relative to the largest of the exact
/// ones or 1.
pub(crate) fn assert_close(got: &[f32], exact: &[f64], at_most: f64) {
    assert_eq!(got.len(), exact.len());
    let size = exact.iter().fold(1.0f64, |most, x| most.max(x.abs()));
    for (index, (&got, &exact)) in got.iter().zip(exact).enumerate() {
        let error = (f64::from(got) - exact).abs() / size;
        assert!(
            error <= at_most,
            "element {index}: {got:e}, exactly {exact:e}"
        );
    }
}
