//! Every level has the bytes of sums at 64 bits, whatever the sizes, channels and weights are.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::{Numbers, test_everywhere};
use isovec_pixels::{OptLevel, PixelsError, Rows, Taps, resize};

/// The largest weight.
const LARGEST: i32 = 0x7f_7f7f;

/// Weights with what they were made of.
struct Made {
    taps: Taps,
    spans: Vec<(usize, Vec<i32>)>,
    bits: u32,
}

/// Spans of up to `longest` old pixels for `new` ones, which go along all `old` ones. The weights add up to about 1, as
/// those of filters do, or are as large as is allowed.
fn weights(numbers: &mut Numbers, old: usize, new: usize, longest: usize) -> Made {
    let bits = [22, 22, 15, 1][numbers.below(4)];
    let most = [1 << bits, LARGEST, 1 << bits.min(14)][numbers.below(3)];
    let mut taps = Taps::new(bits).unwrap();
    let mut spans = Vec::new();
    for at in 0..new {
        let start = at * old / new;
        let count = 1 + numbers.below(longest.min(old - start));
        let mut left = most;
        let mut weight = || {
            let weight = numbers.below(left as usize + 1) as i32;
            left -= weight;
            match numbers.below(3) {
                0 => -weight,
                _ => weight,
            }
        };
        let span: Vec<i32> = (0..count).map(|_| weight()).collect();
        taps.push(start, &span).unwrap();
        spans.push((start, span));
    }
    Made { taps, spans, bits }
}

/// A line of bytes, each `step` bytes from the next, as the definition has it.
fn line(from: &[u8], step: usize, made: &Made) -> Vec<u8> {
    let byte = |(start, span): &(usize, Vec<i32>)| {
        let products = span
            .iter()
            .enumerate()
            .map(|(at, &weight)| i64::from(weight) * i64::from(from[(start + at) * step]));
        let sum: i64 = products.sum::<i64>() + (1 << (made.bits - 1));
        (sum >> made.bits).clamp(0, 255) as u8
    };
    made.spans.iter().map(byte).collect()
}

/// Both passes, byte by byte.
fn expected(from: Rows<'_>, columns: Option<&Made>, rows: Option<&Made>) -> Vec<u8> {
    let channels = from.channels();
    let mut wide: Vec<u8> = Vec::new();
    for y in 0..from.height() {
        let row = from.row(y);
        let Some(columns) = columns else {
            wide.extend(row);
            continue;
        };
        let lines: Vec<_> = (0..channels)
            .map(|c| line(&row[c..], channels, columns))
            .collect();
        wide.extend(
            (0..columns.spans.len() * channels).map(|at| lines[at % channels][at / channels]),
        );
    }
    let Some(rows) = rows else {
        return wide;
    };
    let width = wide.len() / from.height();
    let lines: Vec<_> = (0..width)
        .map(|at| line(&wide[at..], width, rows))
        .collect();
    (0..rows.spans.len() * width)
        .map(|at| lines[at % width][at / width])
        .collect()
}

test_everywhere! {
    fn every_level_has_the_bytes_of_the_definition() {
        let mut numbers = Numbers::new(1);
        let rounds = if cfg!(any(debug_assertions, target_arch = "wasm32")) { 300 } else { 2000 };
        for round in 0..rounds {
            let channels = 1 + round % 4;
            // A few are larger than blocks of rows and parts of a row.
            let most = [(12, 12), (90, 150), (2500, 9), (7, 300)][numbers.below(4)];
            let (width, height) = (1 + numbers.below(most.0), 1 + numbers.below(most.1));
            let stride = width * channels + numbers.below(9);
            let data = numbers.bytes(stride * (height - 1) + width * channels);
            let from = Rows::new(&data, width, height, channels, stride).unwrap();
            let mut side = |old: usize| (numbers.below(5) > 0).then(|| {
                let new = 1 + numbers.below(2 * old.min(60));
                let longest = [1, 2, 4, 7, 40, 200][numbers.below(6)];
                weights(&mut numbers, old, new, longest)
            });
            let (columns, rows) = (side(width), side(height));
            let expected = expected(from, columns.as_ref(), rows.as_ref());
            for level in OptLevel::ALL {
                let mut to = vec![7; expected.len()];
                let (columns, rows) = (columns.as_ref(), rows.as_ref());
                let (columns, rows) = (columns.map(|made| &made.taps), rows.map(|made| &made.taps));
                resize(from, columns, rows, &mut to, level).unwrap();
                let differs = to.iter().zip(&expected).position(|(a, b)| a != b);
                assert_eq!(differs, None, "{round}: {width} x {height} x {channels}, {level:?}");
            }
        }
    }
}

test_everywhere! {
    fn sums_are_exact_at_their_limits() {
        // On white.
        let most = LARGEST;
        for weight in [most, -(i32::MAX - (1 << 22)) / 255, most - 1, 1 << 15, -(1 << 15) - 1, 32767, 0x7f80, 0x7f7f, -32768] {
            for count in [1, 2, 3, 5000] {
                let mut span = vec![0; count];
                span[count - 1] = weight;
                let mut taps = Taps::new(22).unwrap();
                taps.push(0, &span).unwrap();
                let from = vec![255; count];
                let from = Rows::new(&from, count, 1, 1, count).unwrap();
                let sum = i64::from(weight) * 255 + (1 << 21);
                let expected = (sum >> 22).clamp(0, 255) as u8;
                for level in OptLevel::ALL {
                    let mut to = [7];
                    resize(from, Some(&taps), None, &mut to, level).unwrap();
                    assert_eq!(to, [expected], "{weight} at {count}, {level:?}");
                }
            }
        }
    }
}

test_everywhere! {
    fn a_long_span_of_small_weights_is_exact() {
        // What overflows on the way comes back: the lower parts alone add up to more than 2^32.
        let count = 1 << 14;
        let span: Vec<i32> = (0..count).map(|at| if at % 2 == 0 { 511 } else { -1 }).collect();
        let wide = [vec![1 << 16], span].concat();
        let mut taps = Taps::new(22).unwrap();
        taps.push(0, &wide).unwrap();
        let from = vec![255; wide.len()];
        let sum: i64 = wide.iter().map(|&weight| i64::from(weight) * 255).sum();
        let expected = ((sum + (1 << 21)) >> 22).clamp(0, 255) as u8;
        for (width, height) in [(wide.len(), 1), (1, wide.len())] {
            let rows = Rows::new(&from, width, height, 1, width).unwrap();
            let (columns, down) = if height == 1 { (Some(&taps), None) } else { (None, Some(&taps)) };
            for level in OptLevel::ALL {
                let mut to = [7];
                resize(rows, columns, down, &mut to, level).unwrap();
                assert_eq!(to, [expected], "{width} x {height}, {level:?}");
            }
        }
    }
}

test_everywhere! {
    fn what_does_not_fit_is_refused() {
        let data = [0; 24];
        assert!(Rows::new(&data, 4, 2, 3, 12).is_ok());
        for (width, height, channels, stride) in [
            (0, 2, 3, 12), (4, 0, 3, 12), (4, 2, 0, 12), (4, 2, 5, 20), (4, 2, 3, 11), (4, 3, 3, 12),
            (usize::MAX, 2, 3, 12), (4, 2, 3, usize::MAX), (4, usize::MAX, 3, 12),
        ] {
            let refused = Rows::new(&data, width, height, channels, stride);
            assert!(matches!(refused, Err(PixelsError::Size(_))), "{width} {height} {channels} {stride}");
        }
        let mut taps = Taps::new(22).unwrap();
        let most = LARGEST;
        assert!(taps.push(1, &[most + 1]).is_err());
        assert!(taps.push(1, &[most / 2, -(most / 2) - 60_000]).is_err());
        assert!(taps.push(1, &[i32::MIN, i32::MIN]).is_err());
        assert!(taps.push(usize::MAX, &[1]).is_err());
        taps.push(1, &[1, 2, 3]).unwrap();
        assert!(taps.push(0, &[1]).is_err());
        assert!(Taps::new(0).is_err() && Taps::new(23).is_err());
        assert_eq!((taps.len(), taps.reach()), (1, (1, 4)));

        let rows = Rows::new(&data, 4, 2, 3, 12).unwrap();
        let mut to = [0; 6];
        let level = OptLevel::Simd;
        resize(rows, Some(&taps), None, &mut to, level).unwrap();
        assert!(matches!(resize(rows, None, Some(&taps), &mut to, level), Err(PixelsError::Taps(_))));
        let short = resize(rows, Some(&taps), None, &mut to[1..], level);
        assert!(matches!(short, Err(PixelsError::Size(_))));
        let none = Taps::new(22).unwrap();
        resize(rows, Some(&none), None, &mut [], level).unwrap();
    }
}
