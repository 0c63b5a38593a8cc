//! Which instructions compute.

use std::fmt;

/// A set of instructions that this crate has code for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstructionSet {
    /// Plain Rust for the target's lowest common processor.
    Scalar,
    /// The 256-bit registers of x86-64.
    Avx2,
    /// The 512-bit registers of x86-64, with F, BW and VNNI.
    Avx512,
    /// The 128-bit registers of 64-bit ARM.
    Neon,
    /// The 128-bit registers of WebAssembly, where the module was compiled for them.
    Simd128,
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
            Self::Neon => "NEON",
            Self::Simd128 => "simd128",
        })
    }
}

/// The set that is used on this machine: the widest that its processor and this build have.
#[must_use]
pub fn detect_features() -> InstructionSet {
    let first = available().next();
    first.unwrap_or(InstructionSet::Scalar)
}

/// Every set that this machine can run, the fastest first, the scalar one last.
pub(crate) fn available() -> impl Iterator<Item = InstructionSet> {
    use InstructionSet::{Avx2, Avx512, Neon, Scalar, Simd128};
    let all = [Avx512, Avx2, Neon, Simd128, Scalar];
    all.into_iter().filter(|set| set.is_here())
}

impl InstructionSet {
    /// Asks the processor; the standard library keeps the answer.
    fn is_here(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vnni")
            }
            // Every 64-bit ARM that Rust has a target for with a system.
            Self::Neon => cfg!(target_arch = "aarch64"),
            Self::Simd128 => cfg!(all(target_arch = "wasm32", target_feature = "simd128")),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_the_first_that_is_here() {
        let all: Vec<_> = available().collect();
        assert_eq!(all[0], detect_features());
        assert_eq!(all.last(), Some(&InstructionSet::Scalar));
        #[cfg(target_arch = "x86_64")]
        assert_eq!(
            all.contains(&InstructionSet::Avx2),
            is_x86_feature_detected!("avx2")
        );
        #[cfg(target_arch = "aarch64")]
        assert_eq!(all[0].to_string(), "NEON");
    }
}
