//! One body, compiled for several widths of vector registers.
//!
//! The bodies are plain Rust that the compiler vectorises. On x86-64 they are compiled once more
//! for AVX2 and for AVX-512, and the processor decides which runs; elsewhere the target's own
//! features are all there is. No body lets products and sums fuse by itself (Rust never does), so
//! the versions differ in speed and not in bits.

/// What the processor has.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    if avx2
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
    }
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
