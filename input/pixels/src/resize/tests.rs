//! Every set of instructions of this machine has the scalar set's bytes; `tests/resize.rs` holds the scalar set to the
//! definition.

use super::resize_with;
use crate::instructions::available;
use crate::{InstructionSet, Rows, Taps};

/// A triangle over `1 << bits`, as bilinear filters have them, with a negative border.
fn taps(old: usize, new: usize, reach: usize, bits: u32) -> Taps {
    let mut taps = Taps::new(bits).expect("a number of bits that is allowed");
    for at in 0..new {
        let start = (at * old / new).saturating_sub(reach / 2);
        let count = reach.min(old - start);
        let part = (1 << bits) / count as i32;
        let weight = |at: usize| {
            if at == 0 && count > 2 {
                -part / 3
            } else {
                part
            }
        };
        let weights: Vec<i32> = (0..count).map(weight).collect();
        taps.push(start, &weights).expect("small weights in order");
    }
    taps
}

/// Widths and heights, of which some are larger than a part and a block; an interpreter has only small ones.
const SIZES: &[(usize, usize)] = match cfg!(miri) {
    false => &[(1, 1), (3, 5), (17, 9), (33, 70), (301, 19)],
    true => &[(3, 2), (17, 9)],
};

/// New columns, the old pixels of each, and the bits of weights.
const TAPS: &[(usize, usize, u32)] = match cfg!(miri) {
    false => &[(2, 9, 22), (13, 3, 22), (400, 2, 22), (50, 6, 14)],
    true => &[(2, 9, 22), (19, 3, 14)],
};

#[test]
fn every_set_has_the_bytes_of_the_scalar_one() {
    let sets: Vec<InstructionSet> = available().collect();
    assert_eq!(sets.last(), Some(&InstructionSet::Scalar));
    let mut cases = 0;
    for channels in 1..=4 {
        for (width, height) in SIZES.iter().copied() {
            let data: Vec<u8> = (0..width * height * channels)
                .map(|at| (at * 37 % 256) as u8)
                .collect();
            let from = Rows::new(&data, width, height, channels, width * channels)
                .expect("the slice holds the picture");
            for (new, reach, bits) in TAPS.iter().copied() {
                let (columns, rows) =
                    (taps(width, new, reach, bits), taps(height, 11, reach, bits));
                let made = |set: InstructionSet, threads: usize| {
                    let mut to = vec![0; new * 11 * channels];
                    resize_with(from, Some(&columns), Some(&rows), &mut to, (set, threads))
                        .expect("weights within the picture");
                    to
                };
                let expected = made(InstructionSet::Scalar, 1);
                for &set in &sets {
                    for threads in [1, 3] {
                        let same = made(set, threads) == expected;
                        assert!(
                            same,
                            "{set} on {threads}: {width} x {height} x {channels} to {new}"
                        );
                    }
                }
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 4 * SIZES.len() * TAPS.len());
}
