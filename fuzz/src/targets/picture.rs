//! Pictures: files against the limits that they were given and against themselves cut short, and resizing against a plain loop in
//! whole numbers of 128 bits over weights that are computed here a second time.
//!
//! A file that is decoded has the pixels that its size says, within the limits. A part of it is refused, or has the same pixels:
//! what may be missing is behind them. Turning changes nothing but places.

use arbitrary::{Result, Unstructured};
use isovec_image::{
    Channels, DecodeOptions, Filter, Image, ImageError, Processor, Reference, Weights, Window,
    decode, resize, resize_window,
};

use crate::bounds::ours;

const OPTIONS: DecodeOptions = DecodeOptions {
    max_pixels: 1 << 16,
    max_bytes: 1 << 20,
    turn: false,
};

/// Tries one input: its first byte says what is made of the rest.
pub fn run(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    match first % 4 {
        0 | 1 => file(rest),
        2 => {
            let _ = resized(Unstructured::new(rest));
        }
        _ => config(rest),
    }
}

fn file(data: &[u8]) {
    let Ok(image) = ours(data.len(), || decode(data, &OPTIONS)) else {
        return;
    };
    let pixels = image.width() * image.height();
    assert!(pixels > 0 && pixels as u64 <= OPTIONS.max_pixels);
    assert_eq!(image.data().len(), pixels * image.channels().count());
    let turned = DecodeOptions {
        turn: true,
        ..OPTIONS
    };
    let turned = decode(data, &turned).unwrap();
    let sides = [turned.width(), turned.height()];
    let upright = sides == [image.width(), image.height()];
    assert!(upright || sides == [image.height(), image.width()]);
    let tight = DecodeOptions {
        max_pixels: pixels as u64 - 1,
        ..OPTIONS
    };
    let refused = decode(data, &tight);
    assert!(
        matches!(refused, Err(ImageError::TooManyPixels { .. })),
        "{refused:?}"
    );
    for end in [data.len() / 2, data.len().saturating_sub(1)] {
        if let Ok(part) = decode(&data[..end], &OPTIONS) {
            assert_eq!(part, image, "cut at {end} of {}", data.len());
        }
    }
}

fn resized(mut input: Unstructured<'_>) -> Result<()> {
    let (width, height) = (input.int_in_range(1..=24)?, input.int_in_range(1..=24)?);
    let to = (input.int_in_range(1..=40)?, input.int_in_range(1..=40)?);
    let kinds = [
        Channels::Gray,
        Channels::GrayAlpha,
        Channels::Rgb,
        Channels::Rgba,
    ];
    let kind = *input.choose(&kinds)?;
    let filter = *input.choose(&Filter::ALL)?;
    let channels = kind.count();
    let mut data = input.take_rest().to_vec();
    data.resize(width * height * channels, 200);
    let image = Image::new(width, height, kind, data).unwrap();
    let made = resize(image.view(), to.0, to.1, filter, Weights::Pillow).unwrap();
    let (x, y) = (to.0 / 3, to.1 / 2);
    let window = Window {
        x,
        y,
        width: to.0 - x,
        height: to.1 - y,
    };
    let part = resize_window(image.view(), to.0, to.1, window, filter, Weights::Pillow).unwrap();
    let whole = made
        .view()
        .subview(x, y, window.width, window.height)
        .unwrap();
    assert_eq!(part, whole.to_image());
    if filter != Filter::Nearest {
        let rows = along((width, to.0), (height, 1), channels, image.data(), filter);
        let expected = along((height, to.1), (to.0, to.0), channels, &rows, filter);
        assert_eq!(made.data(), expected);
    }
    Ok(())
}

/// One side from a length to another: each new value is the sum of the old ones, a step apart, times their weights. `beside` are
/// the lines beside, and the step; of a step of 1 the lines are rows.
fn along(
    (from, to): (usize, usize),
    (lines, step): (usize, usize),
    channels: usize,
    data: &[u8],
    filter: Filter,
) -> Vec<u8> {
    if from == to {
        return data.to_vec();
    }
    let mut made = vec![0; lines * to * channels];
    for new in 0..to {
        let weights = weights(from, to, new, filter);
        for line in 0..lines {
            for channel in 0..channels {
                let place = |at: usize, side: usize| match step {
                    1 => (line * side + at) * channels + channel,
                    _ => (at * step + line) * channels + channel,
                };
                let sum: i128 = (0..from)
                    .map(|old| i128::from(weights[old]) * i128::from(data[place(old, from)]))
                    .sum();
                let rounded = (sum + (1 << 21)) >> 22;
                made[place(new, to)] = rounded.clamp(0, 255) as u8;
            }
        }
    }
    made
}

/// The weights of all old values, most of them 0.
fn weights(from: usize, to: usize, new: usize, filter: Filter) -> Vec<i64> {
    let scale = from as f64 / to as f64;
    let stretch = scale.max(1.0);
    let reach = stretch
        * match filter {
            Filter::Box => 0.5,
            Filter::Bilinear | Filter::Hamming => 1.0,
            Filter::Bicubic => 2.0,
            _ => 3.0,
        };
    let center = (new as f64 + 0.5) * scale;
    let (low, high) = (center - reach + 0.5, center + reach + 0.5);
    let inside = |old: usize| old as i64 >= low.max(0.0) as i64 && (old as i64) < high as i64;
    let real: Vec<f64> = (0..from)
        .map(|old| match inside(old) {
            true => weight(filter, (old as f64 - center + 0.5) / stretch),
            false => 0.0,
        })
        .collect();
    let sum: f64 = real.iter().sum();
    let fixed = |weight: &f64| (weight / sum * f64::from(1 << 22)).round() as i64;
    real.iter().map(fixed).collect()
}

fn weight(filter: Filter, x: f64) -> f64 {
    let sinc = |x: f64| {
        if x == 0.0 {
            return 1.0;
        }
        let angle = std::f64::consts::PI * x;
        libm::sin(angle) / angle
    };
    let distance = x.abs();
    match filter {
        Filter::Box => f64::from(x > -0.5 && x <= 0.5),
        Filter::Bilinear => (1.0 - distance).max(0.0),
        Filter::Hamming if distance < 1.0 => {
            let swing = f64::from(0.46f32) * libm::cos(std::f64::consts::PI * distance);
            sinc(distance) * (f64::from(0.54f32) + swing)
        }
        Filter::Bicubic if distance < 1.0 => 1.5 * distance.powi(3) - 2.5 * distance.powi(2) + 1.0,
        Filter::Bicubic if distance < 2.0 => {
            -0.5 * distance.powi(3) + 2.5 * distance.powi(2) - 4.0 * distance + 2.0
        }
        Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
        _ => 0.0,
    }
}

/// A configuration is refused, or makes an input of every picture that it was not refused for.
fn config(data: &[u8]) {
    let json = String::from_utf8_lossy(data);
    for reference in [Reference::Pillow, Reference::Torchvision] {
        let Ok(processor) = Processor::from_json(&json, Some("clip"), reference) else {
            continue;
        };
        let image = Image::new(3, 2, Channels::Rgb, (0..18).collect()).unwrap();
        if let Ok(made) = processor.process(image.view()) {
            assert_eq!(made.data.len(), made.channels * made.height * made.width);
            assert!(!processor.identity().is_empty());
        }
    }
}
