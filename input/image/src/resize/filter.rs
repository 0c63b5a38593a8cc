//! The filters of `preprocessor_config.json`, as functions of the distance to a pixel's center.

use std::f64::consts::PI;

/// What a new pixel is made of, by the number that `resample` has in a `preprocessor_config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Filter {
    /// The pixel that it lies in. Nothing is averaged, also where the picture shrinks.
    Nearest = 0,
    /// Lanczos' window of three pixels on each side.
    Lanczos = 1,
    /// A triangle.
    Bilinear = 2,
    /// A cubic with a = -0.5 (Keys, 1981).
    Bicubic = 3,
    /// The mean.
    Box = 4,
    /// A sinc in Hamming's window.
    Hamming = 5,
}

impl Filter {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Nearest,
        Self::Lanczos,
        Self::Bilinear,
        Self::Bicubic,
        Self::Box,
        Self::Hamming,
    ];

    /// The filter of a number of `resample`, if there is one.
    #[must_use]
    pub fn of_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Beyond this distance, in pixels, every weight is 0.
    pub(super) fn support(self) -> f64 {
        match self {
            Self::Nearest => 0.0,
            Self::Box => 0.5,
            Self::Bilinear | Self::Hamming => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    /// The weight at a distance. Sines come from `libm`, so that they are the same on every target.
    pub(super) fn weight(self, distance: f64) -> f64 {
        let x = distance.abs();
        match self {
            Self::Nearest => 0.0,
            // Half open, so that a pixel between two belongs to one.
            Self::Box => f64::from(distance > -0.5 && distance <= 0.5),
            Self::Bilinear => (1.0 - x).max(0.0),
            Self::Bicubic => cubic(x),
            Self::Lanczos if (-3.0..3.0).contains(&distance) => sinc(x) * sinc(x / 3.0),
            Self::Hamming if x == 0.0 => 1.0,
            Self::Hamming if x < 1.0 => {
                // Pillow has the constants in single precision.
                let (base, swing) = (f64::from(0.54f32), f64::from(0.46f32));
                sinc(x) * (base + swing * libm::cos(x * PI))
            }
            Self::Lanczos | Self::Hamming => 0.0,
        }
    }
}

fn cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * PI;
    libm::sin(x) / x
}
