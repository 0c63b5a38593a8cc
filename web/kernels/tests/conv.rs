//! Convolutions and pools against their definitions in double precision, pixel by pixel.
#![cfg(not(target_arch = "wasm32"))] // In the browser only what compares bits runs.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use common::{assert_close, bits, values};
use isovec_kernels::Arithmetic;
use isovec_kernels::conv::{
    Average, Depthwise, Map, Window, Windows, average_pool, depthwise, limit, max_pool,
    mean_of_pixels, scale_and_shift, scale_channels, to_pixels, to_planes,
};

/// Windows of all sorts over a map: odd extents, even kernels, pads on one side alone, strides, gaps, and channels that fill
/// no register, one, some, and some and a half.
fn cases() -> Vec<Windows> {
    let shapes = [
        // kernel, stride, dilation, before, places
        ([3, 3], [1, 1], [1, 1], [1, 1], [9, 21]),
        ([3, 3], [2, 2], [1, 1], [1, 1], [5, 11]),
        ([5, 5], [1, 1], [1, 1], [2, 2], [9, 21]),
        ([5, 5], [2, 2], [1, 1], [1, 2], [5, 11]),
        ([7, 7], [1, 1], [1, 1], [3, 3], [9, 21]),
        ([2, 4], [1, 2], [1, 1], [0, 3], [8, 11]),
        ([3, 3], [1, 1], [2, 3], [2, 3], [9, 21]),
        ([1, 1], [2, 2], [1, 1], [0, 0], [5, 11]),
    ];
    let mut all = Vec::new();
    for (kernel, stride, dilation, before, places) in shapes {
        for channels in [1, 3, 8, 16, 20, 48, 71] {
            let map = Map {
                height: 9,
                width: 21,
                channels,
            };
            let window = Window {
                kernel,
                stride,
                dilation,
                before,
            };
            all.push(Windows {
                map,
                window,
                places,
            });
        }
    }
    all
}

/// The coordinates in the map of a tap; `None` where it lies outside.
fn seen(windows: &Windows, place: [usize; 2], tap: [usize; 2]) -> Option<usize> {
    let Windows { map, window, .. } = windows;
    let at = |axis: usize, extent: usize| {
        let at = place[axis] * window.stride[axis] + tap[axis] * window.dilation[axis];
        at.checked_sub(window.before[axis])
            .filter(|&at| at < extent)
    };
    Some(at(0, map.height)? * map.width + at(1, map.width)?)
}

/// What `fold` makes of the values that each place and channel sees: (tap, value) for those inside.
fn by_definition(
    windows: &Windows,
    x: &[f32],
    fold: impl Fn(usize, &[(usize, f64)]) -> f64,
) -> Vec<f64> {
    let (channels, [rows, columns]) = (windows.map.channels, windows.places);
    let mut all = Vec::new();
    for place in 0..rows * columns {
        for channel in 0..channels {
            let taps = (0..windows.window.taps()).filter_map(|tap| {
                let width = windows.window.kernel[1];
                let pixel = seen(
                    windows,
                    [place / columns, place % columns],
                    [tap / width, tap % width],
                )?;
                Some((tap, f64::from(x[pixel * channels + channel])))
            });
            all.push(fold(channel, &taps.collect::<Vec<_>>()));
        }
    }
    all
}

/// A result computed in two parts of rows.
fn in_parts(windows: &Windows, compute: impl Fn(std::ops::Range<usize>, &mut [f32])) -> Vec<f32> {
    let [rows, columns] = windows.places;
    let row = columns * windows.map.channels;
    let mut out = vec![f32::NAN; rows * row];
    let (first, second) = out.split_at_mut(rows / 2 * row);
    compute(0..rows / 2, first);
    compute(rows / 2..rows, second);
    out
}

#[test]
fn depthwise_convolutions_are_what_they_are() {
    for windows in cases() {
        let channels = windows.map.channels;
        let x = values(1, windows.map.len());
        let weights = values(2, windows.window.taps() * channels);
        let bias = values(3, channels);
        let exact = by_definition(&windows, &x, |channel, taps| {
            let products = taps
                .iter()
                .map(|&(tap, x)| x * f64::from(weights[tap * channels + channel]));
            products.sum::<f64>() + f64::from(bias[channel])
        });
        let of = Depthwise {
            windows,
            weights: &weights,
            bias: &bias,
            limits: None,
        };
        let limited: Vec<f64> = exact.iter().map(|x| x.clamp(-0.25, 0.5)).collect();
        let within = Depthwise {
            limits: Some((-0.25, 0.5)),
            ..of
        };
        for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
            // The sums are up to five times as large before they are limited.
            for (of, exact, bound) in [(&of, &exact, 1e-6), (&within, &limited, 5e-6)] {
                let got = in_parts(&windows, |rows, out| {
                    depthwise(of, arithmetic, &x, rows, out)
                });
                assert_close(&got, exact, bound);
            }
        }
    }
}

/// Without fused operations a sum has one value, whatever the registers.
#[test]
fn depthwise_sums_have_one_order() {
    for windows in cases() {
        let channels = windows.map.channels;
        let x = values(1, windows.map.len());
        let weights = values(2, windows.window.taps() * channels);
        let bias = values(3, channels);
        let of = Depthwise {
            windows,
            weights: &weights,
            bias: &bias,
            limits: None,
        };
        let mut want = Vec::new();
        for place in 0..windows.places[0] * windows.places[1] {
            for channel in 0..channels {
                let (columns, width) = (windows.places[1], windows.window.kernel[1]);
                let mut sum = bias[channel];
                for tap in 0..windows.window.taps() {
                    let place = [place / columns, place % columns];
                    if let Some(pixel) = seen(&windows, place, [tap / width, tap % width]) {
                        sum += x[pixel * channels + channel] * weights[tap * channels + channel];
                    }
                }
                want.push(sum);
            }
        }
        let got = in_parts(&windows, |rows, out| {
            depthwise(&of, Arithmetic::Deterministic, &x, rows, out);
        });
        assert_eq!(bits(&got), bits(&want), "{windows:?}");
    }
}

#[test]
fn pools_are_what_they_are() {
    for windows in cases() {
        let x = values(4, windows.map.len());
        let most = by_definition(&windows, &x, |_, taps| {
            taps.iter()
                .fold(f64::NEG_INFINITY, |most, &(_, x)| most.max(x))
        });
        let got = in_parts(&windows, |rows, out| max_pool(&windows, &x, rows, out));
        let got: Vec<f64> = got.into_iter().map(f64::from).collect();
        assert_eq!(got, most, "{windows:?}");
        for average in [Average::Inside, Average::All] {
            let exact = by_definition(&windows, &x, |_, taps| {
                let count = match average {
                    Average::Inside => taps.len(),
                    Average::All => windows.window.taps(),
                };
                taps.iter().map(|&(_, x)| x).sum::<f64>() / count as f64
            });
            let got = in_parts(&windows, |rows, out| {
                average_pool(&windows, average, &x, rows, out)
            });
            assert_close(&got, &exact, 1e-6);
        }
    }
}

#[test]
fn a_pool_keeps_what_is_no_number() {
    let windows = Windows {
        map: Map {
            height: 1,
            width: 3,
            channels: 1,
        },
        window: Window {
            kernel: [1, 2],
            ..Window::ONE
        },
        places: [1, 2],
    };
    let mut out = [0.0; 2];
    for x in [[f32::NAN, 1.0, 2.0], [1.0, f32::NAN, 2.0]] {
        max_pool(&windows, &x, 0..1, &mut out);
        assert!(out[0].is_nan());
    }
}

#[test]
fn gathered_rows_hold_what_the_window_sees() {
    for windows in cases() {
        let (channels, taps) = (windows.map.channels, windows.window.taps());
        let x = values(5, windows.map.len());
        for part in [0..channels, channels / 3..channels] {
            let pixels = 3..windows.places[0] * windows.places[1] - 2;
            let mut out = vec![f32::NAN; pixels.len() * taps * part.len()];
            windows.gather(&x, part.clone(), pixels.clone(), &mut out);
            let mut got = out.iter();
            for pixel in pixels {
                let place = [pixel / windows.places[1], pixel % windows.places[1]];
                for tap in 0..taps {
                    let width = windows.window.kernel[1];
                    let pixel = seen(&windows, place, [tap / width, tap % width]);
                    for channel in part.clone() {
                        let want = pixel.map_or(0.0, |pixel| x[pixel * channels + channel]);
                        assert_eq!(*got.next().unwrap(), want, "{windows:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn planes_become_pixels_and_pixels_planes() {
    let (channels, pixels) = (5, 77);
    let planes = values(6, channels * pixels);
    let mut x = vec![0.0; channels * pixels];
    let (first, second) = x.split_at_mut(40 * channels);
    to_pixels(&planes, channels, 0, first);
    to_pixels(&planes, channels, 40, second);
    assert_eq!(x[3 * channels + 2], planes[2 * pixels + 3]);
    assert_eq!(x[60 * channels + 4], planes[4 * pixels + 60]);
    let mut back = vec![0.0; channels * pixels];
    to_planes(&x, channels, &mut back);
    assert_eq!(back, planes);
}

#[test]
fn channels_are_averaged_scaled_and_shifted() {
    let (width, height) = (13, 9);
    for channels in [1, 7, 16, 40] {
        let x = values(7, width * height * channels);
        let exact: Vec<f64> = (0..channels)
            .map(|channel| {
                let own = x.iter().skip(channel).step_by(channels);
                own.map(|&x| f64::from(x)).sum::<f64>() / (width * height) as f64
            })
            .collect();
        let mut mean = vec![0.0; channels];
        mean_of_pixels(&x, width, &mut mean);
        assert_close(&mean, &exact, 1e-6);

        let (scale, shift) = (values(8, channels), values(9, channels));
        let mut scaled = x.clone();
        scale_channels(&mut scaled, &scale);
        let mut shifted = x.clone();
        scale_and_shift(&mut shifted, &scale, &shift);
        for (at, &x) in x.iter().enumerate() {
            let channel = at % channels;
            assert_eq!(scaled[at], x * scale[channel]);
            assert_eq!(shifted[at], x * scale[channel] + shift[channel]);
        }
    }
}

#[test]
fn limits_keep_what_is_no_number() {
    let mut x = [-2.0, -0.5, 0.5, 7.0, f32::NAN];
    limit(&mut x, -1.0, 6.0);
    assert_eq!(x[..4], [-1.0, -0.5, 0.5, 6.0]);
    assert!(x[4].is_nan());
}
