//! Elementary functions of one f32, built from operations that IEEE 754 defines exactly: the same
//! bits on every target, which the platforms' own functions do not give.
//!
//! All are free of branches, so that a loop over them becomes vector code. The coefficients are
//! minimax fits (the Remez exchange algorithm) made for these ranges and rounded to f32; the
//! errors that are stated include the rounding of the evaluation, and are tested.

/// Adding and subtracting this rounds a small number to the nearest integer: 1.5 * 2^23.
const ROUND: f32 = 12_582_912.0;

/// `e^x = 2^n * e^r`: the integer `n` (still as f32, with [`ROUND`] added, so that its lowest bits
/// are the integer's) and `e^r` for `|r| <= ln(2) / 2`.
///
/// The reduction is Cody and Waite's: ln 2 in two parts, of which `n` times the first is exact.
#[inline(always)]
fn reduce(x: f32) -> (f32, f32) {
    const LN2_HIGH: f32 = 355.0 / 512.0;
    const LN2_LOW: f32 = -0.000_212_194_44;
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let r2 = r * r;
    let low = 0.166_665_2 * r + 0.499_999_94;
    let high = (0.001_381_446_7 * r2 + 0.008_368_781 * r) + 0.041_668_393;
    (shifted, (high * r2 + low) * r2 + r + 1.0)
}

/// `2^n` for the `n` of [`reduce`], at least -127 (which gives 0) and at most 127.
#[inline(always)]
fn power_of_two(shifted: f32) -> f32 {
    f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// `e^x` for `x <= 0`: within 1.5 ULP down to -87.3, and 0 where the result would be subnormal.
/// NaN stays NaN.
#[inline(always)]
pub(crate) fn exp_of_negative(x: f32) -> f32 {
    // Here `n` is -127, for which the power of two is 0.
    const ZERO: f32 = -88.0;
    let (n, e) = reduce(if x < ZERO { ZERO } else { x });
    e * power_of_two(n)
}

/// `e^x`: within 1.5 ULP where the result is normal, and within one step of the subnormal numbers
/// below. NaN stays NaN.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Far enough out to be 0 and infinity, near enough for two powers of two.
    let x = if x < -120.0 { -120.0 } else { x };
    let x = if x > 120.0 { 120.0 } else { x };
    let (n, e) = reduce(x);
    // In two steps, as 2^n itself may lie outside the range of f32.
    let half = (n.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32) >> 1;
    let half = ROUND + half as f32;
    let rest = (n - half) + ROUND;
    e * power_of_two(half) * power_of_two(rest)
}

/// Rounding may leave a value beside 1 just beyond it.
#[inline(always)]
fn within_one(y: f32) -> f32 {
    let y = if y > 1.0 { 1.0 } else { y };
    if y < -1.0 { -1.0 } else { y }
}

/// The error function: within 6 ULP. NaN stays NaN.
///
/// An odd rational function of degree 11 over 10, from whose end on the result is 1.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    const END: f32 = 3.92;
    let x = if x > END { END } else { x };
    let x = if x < -END { -END } else { x };
    let t = x * x;
    let p = 2.050_414_4e-6;
    let p = p * t + 0.000_284_831_3;
    let p = p * t + 0.003_763_533_4;
    let p = p * t + 0.052_742_388;
    let p = p * t + 0.190_358_47;
    let p = p * t + std::f32::consts::FRAC_2_SQRT_PI;
    let q = 3.809_237_4e-5;
    let q = q * t + 0.001_162_019_2;
    let q = q * t + 0.014_965_091;
    let q = q * t + 0.114_089_265;
    let q = q * t + 0.502_033_6;
    let q = q * t + 1.0;
    within_one(x * p / q)
}

/// The hyperbolic tangent: within 6 ULP. NaN stays NaN.
///
/// An odd rational function of degree 9 over 8, from whose end on the result is 1.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    const END: f32 = 9.02;
    let x = if x > END { END } else { x };
    let x = if x < -END { -END } else { x };
    let t = x * x;
    let p = 1.331_888_8e-8;
    let p = p * t + 2.058_334e-5;
    let p = p * t + 0.003_494_025_7;
    let p = p * t + 0.133_797_11;
    let p = p * t + 1.0;
    let q = 7.761_941_6e-7;
    let q = q * t + 0.000_328_307_83;
    let q = q * t + 0.025_871_038;
    let q = q * t + 0.467_130_24;
    let q = q * t + 1.0;
    within_one(x * p / q)
}

/// `1 / (1 + e^-x)`: within 3 ULP down to -87.3, and 0 below. NaN stays NaN.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    let e = exp_of_negative(-x.abs());
    let above = if x < 0.0 { e } else { 1.0 };
    above / (1.0 + e)
}

/// `x / (1 + e^-z)` for a `z` of the sign of `x`: `max(x, 0)` less what is missing, so that a
/// large `x` is rounded once.
#[inline(always)]
fn times_sigmoid(x: f32, z: f32) -> f32 {
    // Infinity times an exponential of 0 would be NaN.
    const LARGE: f32 = 1e30;
    let e = exp_of_negative(-z.abs());
    let size = x.abs();
    let size = if size > LARGE { LARGE } else { size };
    let most = if x > 0.0 { x } else { 0.0 };
    most - size * e / (1.0 + e)
}

/// `x * sigmoid(x)` (<https://arxiv.org/abs/1702.03118>).
#[inline(always)]
pub(crate) fn silu(x: f32) -> f32 {
    times_sigmoid(x, x)
}

/// `x * min(max(x / 6 + 1/2, 0), 1)` (<https://arxiv.org/abs/1905.02244>).
#[inline(always)]
pub(crate) fn hard_swish(x: f32) -> f32 {
    let gate = x * (1.0 / 6.0) + 0.5;
    let gate = if gate < 0.0 { 0.0 } else { gate };
    let gate = if gate > 1.0 { 1.0 } else { gate };
    x * gate
}

/// `x * Phi(x)` with the normal distribution's `Phi`, that is `x / 2 * (1 + erf(x / sqrt(2)))`
/// (<https://arxiv.org/abs/1606.08415>).
///
/// As `max(x, 0)` less `|x| * Phi(-|x|)`, which is never more than 0.17, so that its roundings
/// hardly matter. `Phi(-a)` is `0.5 / p(a)^8` with a polynomial of degree 9, the form of Abramowitz
/// and Stegun's 7.1.28: no exponential, and on wasm a quarter of the time of a formula with one.
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    // The power is infinite there, and of infinity the quotient would be NaN.
    const END: f32 = 24.0;
    let a = x.abs();
    let a = if a > END { END } else { a };
    let p = 3.654_088e-7;
    let p = p * a - 2.350_922e-6;
    let p = p * a + 1.462_611_4e-5;
    let p = p * a - 1.611_806e-6;
    let p = p * a + 0.000_292_312_9;
    let p = p * a + 0.000_787_904_66;
    let p = p * a + 0.008_706_879;
    let p = p * a + 0.044_754_2;
    let p = p * a + 0.099_736_36;
    let p = p * a + 1.0;
    let p2 = p * p;
    let p4 = p2 * p2;
    let most = if x > 0.0 { x } else { 0.0 };
    most - 0.5 * a / (p4 * p4)
}

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))` (<https://arxiv.org/abs/1606.08415>),
/// which is `x * sigmoid` of twice what `tanh` is taken of.
#[inline(always)]
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    const FIRST: f32 = 1.595_769;
    const THIRD: f32 = 0.071_354_816;
    times_sigmoid(x, x * (FIRST + THIRD * (x * x)))
}

/// `x * sigmoid(1.702 x)` (<https://arxiv.org/abs/1606.08415>).
#[inline(always)]
pub(crate) fn gelu_sigmoid(x: f32) -> f32 {
    times_sigmoid(x, 1.702 * x)
}

/// `max(x, 0)`. NaN stays NaN.
#[inline(always)]
pub(crate) fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of every sign and magnitude, and what is special.
    fn numbers() -> impl Iterator<Item = f32> {
        let special = [
            0.0,
            -0.0,
            f32::MIN_POSITIVE,
            f32::from_bits(1),
            -f32::from_bits(1),
            f32::MAX,
            f32::MIN,
            f32::INFINITY,
            f32::NEG_INFINITY,
        ];
        let dense = (-200_000..200_000).map(|n| n as f32 * 0.000_61);
        let all = (0..=u32::MAX).step_by(4099).map(f32::from_bits);
        special
            .into_iter()
            .chain(dense)
            .chain(all.filter(|x| !x.is_nan()))
    }

    /// The distance from an f32's step at `exact`, in such steps.
    fn ulps(y: f32, exact: f64) -> f64 {
        if f64::from(y) == exact || (exact.abs() > f64::from(f32::MAX) && y.is_infinite()) {
            return 0.0;
        }
        let exponent = libm::ilogb(exact).max(-126);
        (f64::from(y) - exact).abs() / libm::exp2(f64::from(exponent - 23))
    }

    /// Asserts the worst error over all numbers, and that NaN stays NaN.
    fn assert_error(
        function: impl Fn(f32) -> f32,
        exact: impl Fn(f64) -> f64,
        error: impl Fn(f32, f64) -> f64,
        at_most: f64,
    ) {
        let mut worst = (0.0, 0.0);
        for x in numbers() {
            let (y, exact) = (function(x), exact(f64::from(x)));
            assert_eq!(y.is_nan(), exact.is_nan(), "at {x:e}: {y:e}, {exact:e}");
            let error = error(y, exact);
            if error > worst.0 {
                worst = (error, x);
            }
        }
        println!("worst error {:e} at {:e}", worst.0, worst.1);
        assert!(worst.0 <= at_most, "{:e} at {:e}", worst.0, worst.1);
        assert!(function(f32::NAN).is_nan() && function(-f32::NAN).is_nan());
    }

    /// The absolute error, or none where it is less than a step.
    fn absolute_or_step(y: f32, exact: f64) -> f64 {
        if ulps(y, exact) <= 1.0 {
            return 0.0;
        }
        (f64::from(y) - exact).abs()
    }

    /// A function that vanishes at minus infinity, where its formula is infinity times 0.
    fn vanishing(function: impl Fn(f64) -> f64) -> impl Fn(f64) -> f64 {
        move |x| {
            if x == f64::NEG_INFINITY {
                0.0
            } else {
                function(x)
            }
        }
    }

    fn exact_sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + libm::exp(-x))
    }

    #[test]
    fn exp_is_within_its_bound() {
        assert_error(exp, libm::exp, ulps, 1.5);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(89.0), f32::INFINITY);
        assert_eq!(exp(-104.0), 0.0);
    }

    #[test]
    fn exp_of_negative_is_exp_without_subnormal_results() {
        for x in numbers().filter(|&x| x <= 0.0) {
            let full = exp(x);
            if full >= 1.2e-38 {
                assert_eq!(exp_of_negative(x), full, "at {x:e}");
            } else {
                assert!((0.0..=1.2e-38).contains(&exp_of_negative(x)), "at {x:e}");
            }
        }
        assert_eq!(exp_of_negative(f32::NEG_INFINITY), 0.0);
        assert!(exp_of_negative(f32::NAN).is_nan());
    }

    #[test]
    fn erf_is_within_its_bound() {
        assert_error(erf, libm::erf, ulps, 6.0);
        assert_eq!((erf(f32::MIN), erf(f32::INFINITY)), (-1.0, 1.0));
    }

    #[test]
    fn tanh_is_within_its_bound() {
        assert_error(tanh, libm::tanh, ulps, 6.0);
        assert_eq!((tanh(f32::MIN), tanh(f32::INFINITY)), (-1.0, 1.0));
    }

    #[test]
    fn sigmoid_is_within_its_bound() {
        let error = |y, exact: f64| {
            if exact < 1.7e-38 {
                f64::from(y)
            } else {
                ulps(y, exact)
            }
        };
        assert_error(sigmoid, exact_sigmoid, error, 3.0);
    }

    #[test]
    fn gelu_is_within_its_bound() {
        // With erfc, which cancels nothing.
        let exact = |x: f64| x * 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        assert_error(gelu, vanishing(exact), absolute_or_step, 2e-7);
    }

    #[test]
    fn gelu_tanh_is_within_its_bound() {
        let exact = |x: f64| {
            let z = 2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            x * exact_sigmoid(z)
        };
        assert_error(gelu_tanh, vanishing(exact), absolute_or_step, 2e-7);
    }

    #[test]
    fn gelu_sigmoid_is_within_its_bound() {
        let exact = |x: f64| x * exact_sigmoid(1.702 * x);
        assert_error(gelu_sigmoid, vanishing(exact), absolute_or_step, 2e-7);
    }

    #[test]
    fn silu_is_within_its_bound() {
        assert_error(
            silu,
            vanishing(|x| x * exact_sigmoid(x)),
            absolute_or_step,
            2e-7,
        );
    }

    #[test]
    fn hard_swish_is_within_its_bound() {
        let exact = |x: f64| match x {
            x if x <= -3.0 => x * 0.0,
            x if x >= 3.0 => x,
            x => x * (x / 6.0 + 0.5),
        };
        assert_error(hard_swish, exact, absolute_or_step, 4e-7);
    }

    #[test]
    fn relu_is_exact() {
        assert_error(relu, |x| x.max(0.0), ulps, 0.0);
    }
}
