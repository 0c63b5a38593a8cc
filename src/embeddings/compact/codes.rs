//! The arithmetic of compact vectors: rows as whole numbers or as signs, and their scores against a query in f32.
//!
//! Scores are sums of f64 in the order of [`crate::similarity`], so they are the same number on every target.

use crate::similarity::{sum_of, total};

/// The largest whole number of a code. −128 is not used, so that a code and its negative are both there.
const LARGEST: f32 = 127.0;

/// A row as 8-bit whole numbers, appended to `codes`: each component divided by the row's largest magnitude over 127, rounded to
/// the nearest, halves away from zero. Returns that divisor, with which the codes are multiplied to get the row back.
pub(crate) fn int8(row: &[f32], codes: &mut Vec<u8>) -> f32 {
    let largest = row.iter().fold(0f32, |most, value| most.max(value.abs()));
    let scale = largest / LARGEST;
    // A row of zeros, or of numbers so small that the divisor is none.
    if scale == 0.0 {
        codes.extend(row.iter().map(|_| 0u8));
        return 0.0;
    }
    let code = |value: &f32| (value / scale).round().clamp(-LARGEST, LARGEST) as i8;
    codes.extend(row.iter().map(|value| code(value) as u8));
    scale
}

/// A row's signs, appended to `codes`: a bit for each component, 1 where it is above 0, the first component in the highest bit of
/// the first byte, as numpy's `packbits` has them. What is left of the last byte is 0.
pub(crate) fn signs(row: &[f32], codes: &mut Vec<u8>) {
    codes.extend(row.chunks(8).map(|eight| {
        let bits = eight.iter().enumerate();
        bits.fold(0u8, |byte, (at, &value)| {
            byte | (u8::from(value > 0.0) << (7 - at))
        })
    }));
}

/// The inner product of a query with codes of [`int8`], before their scale.
pub(super) fn product_of_int8(query: &[f32], codes: &[u8]) -> f64 {
    sum_of(query, codes, |x, code| f64::from(x) * f64::from(code as i8))
}

/// The length of codes of [`int8`], before their scale.
pub(super) fn norm_of_int8(codes: &[u8]) -> f64 {
    let squares = codes.iter().map(|&code| i64::from(code as i8).pow(2));
    (squares.sum::<i64>() as f64).sqrt()
}

/// The eight signs of every byte as ±1: a table is read several times as fast as its bits are tested.
pub(crate) const SIGNS: [[f32; 8]; 256] = {
    let mut signs = [[-1.0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut at = 0;
        while at < 8 {
            if byte >> (7 - at) & 1 == 1 {
                signs[byte][at] = 1.0;
            }
            at += 1;
        }
        byte += 1;
    }
    signs
};

/// The inner product of a query with the signs as ±1.
pub(super) fn product_of_signs(query: &[f32], codes: &[u8]) -> f64 {
    // Eight components a byte, for a sum in the order of all others.
    let mut lanes = [0f64; 8];
    for (eight, &byte) in query.chunks(8).zip(codes) {
        let signs = &SIGNS[usize::from(byte)];
        for ((lane, &value), &sign) in lanes.iter_mut().zip(eight).zip(signs) {
            *lane += f64::from(value * sign);
        }
    }
    total(lanes)
}

/// The number of bits that differ (the Hamming distance).
pub(super) fn distance(a: &[u8], b: &[u8]) -> u32 {
    let (words, rest) = a.as_chunks::<8>();
    let (others, other_rest) = b.as_chunks::<8>();
    let words = words.iter().zip(others);
    let of_words =
        words.map(|(a, b)| (u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)).count_ones());
    let rest = rest.iter().zip(other_rest);
    of_words.sum::<u32>() + rest.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_are_what_they_are_called() {
        let mut codes = Vec::new();
        let scale = int8(&[0.5, -1.0, 0.0, 0.25], &mut codes);
        assert_eq!(scale, 1.0 / 127.0);
        let signed: Vec<i8> = codes.iter().map(|&code| code as i8).collect();
        // 63.5 is rounded away from zero, 31.75 to the nearest.
        assert_eq!(signed, [64, -127, 0, 32]);
        codes.clear();
        assert_eq!(int8(&[0.0, -0.0], &mut codes), 0.0);
        assert_eq!(codes, [0, 0]);
        // The divisor of these would be 0.
        codes.clear();
        assert_eq!(int8(&[f32::from_bits(1)], &mut codes), 0.0);
        assert_eq!(codes, [0]);

        codes.clear();
        signs(
            &[0.1, -0.1, 0.0, 2.0, 1.0, -1.0, -1.0, 1.0, 1.0],
            &mut codes,
        );
        assert_eq!(codes, [0b1001_1001, 0b1000_0000]);
    }

    #[test]
    fn what_is_left_of_the_last_byte_counts_for_nothing() {
        let mut codes = Vec::new();
        signs(&[1.0; 9], &mut codes);
        assert_eq!(product_of_signs(&[1.0; 9], &codes), 9.0);
        assert_eq!(product_of_signs(&[-1.0; 9], &codes), -9.0);
        assert_eq!(distance(&codes, &[0, 0]), 9);
    }

    proptest! {
        #[test]
        fn products_are_those_of_the_numbers_that_codes_stand_for(row in prop::collection::vec((-1f32..1.0, -1f32..1.0), 1..70)) {
            let (row, query): (Vec<f32>, Vec<f32>) = row.into_iter().unzip();
            let mut codes = Vec::new();
            let scale = int8(&row, &mut codes);
            let mut plain = 0.0;
            for ((value, &code), &x) in row.iter().zip(&codes).zip(&query) {
                let back = f64::from(code as i8) * f64::from(scale);
                // Half a step, and what a division in f32 loses.
                prop_assert!((back - f64::from(*value)).abs() <= 0.5001 * f64::from(scale));
                plain += back * f64::from(x);
            }
            prop_assert!((product_of_int8(&query, &codes) * f64::from(scale) - plain).abs() < 1e-9);

            let mut bits = Vec::new();
            signs(&row, &mut bits);
            let plain: f64 = row.iter().zip(&query).map(|(v, &x)| if *v > 0.0 { f64::from(x) } else { -f64::from(x) }).sum();
            prop_assert!((product_of_signs(&query, &bits) - plain).abs() < 1e-9);
            let mut others = Vec::new();
            signs(&query, &mut others);
            let differ = row.iter().zip(&query).filter(|(a, b)| (**a > 0.0) != (**b > 0.0)).count();
            prop_assert_eq!(distance(&bits, &others) as usize, differ);
        }
    }
}
