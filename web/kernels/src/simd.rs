//! One body, compiled for several widths of vector registers.
//!
//! The bodies are plain Rust that the compiler vectorises. On x86-64 they are compiled once more
//! for AVX2 and for AVX-512, and the processor decides which runs; elsewhere the target's own
//! features are all there is. No body lets products and sums fuse by itself (Rust never does), so
//! the versions differ in speed and not in bits.

/// What the processor has.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What every x86-64 has.
    Sse2,
    /// AVX2 and fused multiply-add.
    Avx2,
    /// AVX-512 (F, VL, BW and DQ).
    Avx512,
}

/// Asks the processor; the answer is kept by the standard library.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn level() -> Level {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let level = if avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
    {
        Level::Avx512
    } else if avx2 {
        Level::Avx2
    } else {
        Level::Sse2
    };
    #[cfg(test)]
    let level = level.min(tests::LIMIT.get());
    level
}

/// Defines a function whose body is compiled for every level of the target.
///
/// What the body calls must be `#[inline(always)]`, or it is compiled for the lowest level.
macro_rules! multiversion {
    ($(#[$attribute:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$attribute])*
        $vis fn $name($($arg: $type),*) {
            #[inline(always)]
            fn body($($arg: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
                fn avx512($($arg: $type),*) {
                    body($($arg),*);
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $type),*) {
                    body($($arg),*);
                }
                match $crate::simd::level() {
                    // SAFETY: the processor has these features, it was asked.
                    $crate::simd::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: the processor has these features, it was asked.
                    $crate::simd::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::simd::Level::Sse2 => {}
                }
            }
            body($($arg),*);
        }
    };
}
pub(crate) use multiversion;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{
        Activation, Arithmetic, Attention, AttentionRun, Columns, Norm, NormKind, Scratch, Table,
        TableValues, l2_normalize, softmax, sum_rows,
    };

    thread_local! {
        /// The highest level that this thread's tests use.
        pub(super) static LIMIT: Cell<Level> = const { Cell::new(Level::Avx512) };
    }

    /// Odd extents, so that every loop has a rest.
    const WIDTH: usize = 117;
    const ROWS: usize = 21;

    fn everything(arithmetic: Arithmetic) -> Vec<f32> {
        let mut x: Vec<f32> = (0..ROWS * WIDTH)
            .map(|n| ((n * 7919 % 1000) as f32 - 500.0) / 100.0)
            .collect();
        let gamma = x[..WIDTH].to_vec();
        let norm = Norm::new(NormKind::Layer, &gamma, Some(&gamma), 1e-5);
        let attention = Attention {
            heads: 3,
            kv_heads: 3,
            head_size: 13,
            scale: 0.3,
            bias: None,
            relative: None,
            reach: Some(9),
            causal: false,
            arithmetic,
        };
        let part = |number: usize| Columns::new(&x, WIDTH, number * 39, 39);
        let mut out = vec![0.0; ROWS * 39];
        AttentionRun::new(
            attention,
            part(0),
            part(1),
            part(2),
            &[0, 4, ROWS],
            &mut out,
        )
        .expect("there is no bias")
        .run(&mut Scratch::default());
        for activation in [Activation::Gelu, Activation::Silu, Activation::Tanh] {
            activation.apply(&mut x);
            norm.apply(&mut x);
            out.extend(&x);
        }
        let table = Table::new(TableValues::F32(&x), WIDTH);
        let mut sum = vec![0.0; WIDTH];
        sum_rows(
            table,
            &[3, 20, 3, 0],
            Some(&[0.3, -1.7, 1e-3, 9.0]),
            &mut sum,
        )
        .expect("ids of the table");
        out.extend(sum);
        softmax(&mut x, WIDTH);
        l2_normalize(&mut x, WIDTH, 1e-12);
        out.extend(x);
        out
    }

    fn bits(level: Level, arithmetic: Arithmetic) -> Vec<u32> {
        LIMIT.set(level);
        everything(arithmetic).iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let lowest = bits(Level::Sse2, Arithmetic::Deterministic);
        for level in [Level::Avx2, Level::Avx512] {
            assert_eq!(bits(level, Arithmetic::Deterministic), lowest, "{level:?}");
        }
    }

    #[test]
    fn levels_that_fuse_give_the_same_bits() {
        let fused = bits(Level::Avx2, Arithmetic::Fast);
        assert_eq!(bits(Level::Avx512, Arithmetic::Fast), fused);
    }
}
