//! Grayscale, threshold and normalising: every level has the definition's values, with gaps between rows and without.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use common::{Numbers, test_everywhere};
use isovec_pixels::{OptLevel, PixelsError, Rows, Scale, Tone, grayscale, normalise, threshold};

/// Calls a check with pixels of some sizes, the last of them large enough for threads, with and without gaps.
fn each_picture(channels: usize, check: impl Fn(Rows<'_>, OptLevel)) {
    let mut numbers = Numbers::new(channels as u64);
    for (width, height) in [(1, 1), (5, 3), (21, 2), (67, 5), (130, 3), (700, 301)] {
        for gap in [0, 7] {
            let stride = width * channels + gap;
            let data = numbers.bytes(stride * (height - 1) + width * channels);
            let rows = Rows::new(&data, width, height, channels, stride).unwrap();
            for level in OptLevel::ALL {
                check(rows, level);
            }
        }
    }
}

/// The bytes without gaps.
fn bytes(rows: Rows<'_>) -> Vec<u8> {
    (0..rows.height())
        .flat_map(|y| rows.row(y))
        .copied()
        .collect()
}

fn luma(red: u8, green: u8, blue: u8) -> u8 {
    let sum = u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471;
    u8::try_from((sum + 0x8000) >> 16).unwrap()
}

test_everywhere! {
    fn gray_is_pillows() {
        for channels in [3, 4] {
            each_picture(channels, |rows, level| {
                let mut to = vec![7; rows.width() * rows.height()];
                grayscale(rows, &mut to, level).unwrap();
                let pixels = bytes(rows);
                let pixels = pixels.chunks_exact(channels);
                let expected: Vec<u8> = pixels.map(|pixel| luma(pixel[0], pixel[1], pixel[2])).collect();
                assert!(to == expected, "{rows:?} {level:?}");
            });
        }
    }
}

test_everywhere! {
    fn every_pair_of_two_colors_has_its_gray() {
        for (channel, third) in [(0, 0), (1, 255), (2, 77)] {
            let color = |at: usize| {
                let (a, b) = ((at / 256) as u8, (at % 256) as u8);
                match channel {
                    0 => [third, a, b],
                    1 => [a, third, b],
                    _ => [a, b, third],
                }
            };
            let pixels: Vec<[u8; 3]> = (0..1 << 16).map(color).collect();
            let rows = Rows::new(pixels.as_flattened(), 1 << 16, 1, 3, 3 << 16).unwrap();
            let expected: Vec<u8> = pixels.iter().map(|&[r, g, b]| luma(r, g, b)).collect();
            let mut to = vec![7; 1 << 16];
            grayscale(rows, &mut to, OptLevel::Simd).unwrap();
            assert!(to == expected, "{channel}");
        }
    }
}

test_everywhere! {
    fn only_what_is_above_the_limit_is_white() {
        for channels in 1..=4 {
            each_picture(channels, |rows, level| {
                for limit in [0, 1, 127, 128, 254, 255] {
                    let from = bytes(rows);
                    let mut to = vec![7; from.len()];
                    threshold(rows, limit, &mut to, level).unwrap();
                    let white = |&byte: &u8| if byte > limit { 255 } else { 0 };
                    let expected: Vec<u8> = from.iter().map(white).collect();
                    assert!(to == expected, "{rows:?} {level:?} {limit}");
                }
            });
        }
    }
}

/// All kinds of steps.
fn tones() -> Vec<Tone> {
    let mut tones = Vec::new();
    for scale in [
        Scale::Double(1.0 / 255.0),
        Scale::Single(1.0 / 127.5),
        Scale::Single(1.0),
    ] {
        for offset in [0.0, 1.0] {
            for normal in [None, Some((0.485f32, 0.229f32)), Some((0.0, -3.0))] {
                for divisor in [None, Some(0.225f32)] {
                    tones.push(Tone {
                        scale,
                        offset,
                        normal,
                        divisor,
                    });
                }
            }
        }
    }
    tones
}

/// A byte's value as the definition has it.
fn value(tone: &Tone, byte: u8) -> f32 {
    let mut value = match tone.scale {
        Scale::Double(scale) => (f64::from(byte) * scale) as f32,
        Scale::Single(scale) => f32::from(byte) * scale,
    };
    value -= tone.offset;
    if let Some((mean, deviation)) = tone.normal {
        value -= mean;
        value /= deviation;
    }
    tone.divisor.map_or(value, |divisor| value / divisor)
}

test_everywhere! {
    fn every_byte_has_its_value_in_every_channel() {
        let tones = tones();
        // Every byte, once in each channel, and a rest behind whole blocks.
        let pixels: Vec<[u8; 3]> = (0..300).map(|at| [at, at + 85, at + 170].map(|at: u32| at as u8)).collect();
        let rows = Rows::new(pixels.as_flattened(), 100, 3, 3, 300).unwrap();
        for at in 0..tones.len() {
            let three = [0, 1, 2].map(|channel| tones[(at + channel) % tones.len()]);
            for level in OptLevel::ALL {
                let mut to = vec![7.0f32; 900];
                let [red, green, blue] = thirds(&mut to);
                normalise(rows, &three, [red, green, blue], level).unwrap();
                for (number, found) in to.iter().enumerate() {
                    let (channel, pixel) = (number / 300, number % 300);
                    let byte = pixels[pixel][channel];
                    let expected = value(&three[channel], byte);
                    assert_eq!(found.to_bits(), expected.to_bits(), "{:?} {byte} {level:?}", three[channel]);
                    assert_eq!(three[channel].of(f32::from(byte)).to_bits(), expected.to_bits());
                }
            }
        }
    }
}

fn thirds(all: &mut [f32]) -> [&mut [f32]; 3] {
    let third = all.len() / 3;
    let (red, rest) = all.split_at_mut(third);
    let (green, blue) = rest.split_at_mut(third);
    [red, green, blue]
}

test_everywhere! {
    fn values_are_where_their_pixels_are() {
        let tones = [2.0, 3.0, 5.0].map(|scale| Tone {
            scale: Scale::Single(scale),
            offset: 0.0,
            normal: None,
            divisor: None,
        });
        each_picture(3, |rows, level| {
            let plane = rows.width() * rows.height();
            let mut to = vec![7.0; 3 * plane];
            normalise(rows, &tones, thirds(&mut to), level).unwrap();
            let pixels = bytes(rows);
            for (at, &found) in to.iter().enumerate() {
                let byte = pixels[at % plane * 3 + at / plane];
                assert_eq!(found, value(&tones[at / plane], byte), "{at} of {rows:?} {level:?}");
            }
        });
    }
}

test_everywhere! {
    fn what_does_not_fit_is_refused() {
        let data = [0; 24];
        let rows = |channels: usize| Rows::new(&data, 24 / channels, 1, channels, 24).unwrap();
        let level = OptLevel::Simd;
        let size = |result| matches!(result, Err(PixelsError::Size(_)));
        assert!(size(grayscale(rows(2), &mut [0; 12], level)));
        assert!(size(grayscale(rows(3), &mut [0; 7], level)));
        assert!(size(threshold(rows(3), 1, &mut [0; 8], level)));
        let tone = tones()[0];
        let mut to = [0.0; 24];
        let [red, green, blue] = thirds(&mut to);
        assert!(size(normalise(rows(3), &[tone; 3], [red, &mut green[1..], blue], level)));
        let [red, green, blue] = thirds(&mut to);
        assert!(size(normalise(rows(4), &[tone; 3], [red, green, blue], level)));
    }
}
