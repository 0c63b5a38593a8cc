//! The instruction sets of the processor that kernels can use.

/// The widest set that the kernels use here.
pub fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        match crate::simd::level() {
            crate::simd::Level::Avx512 => "avx512",
            crate::simd::Level::Avx2 => "avx2",
            crate::simd::Level::Sse2 => "sse2",
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        "neon"
    }
    #[cfg(target_arch = "wasm32")]
    {
        match (
            cfg!(target_feature = "relaxed-simd"),
            cfg!(target_feature = "simd128"),
        ) {
            (true, _) => "relaxed-simd",
            (false, true) => "simd128",
            (false, false) => "scalar",
        }
    }
    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "wasm32"
    )))]
    {
        "scalar"
    }
}

/// The sets that this processor and its system have, of those that matter to arithmetic, by the names that Rust gives
/// them. In a WebAssembly module, those that it was compiled for.
pub fn instruction_sets() -> Vec<&'static str> {
    #[allow(unused_mut, reason = "some targets add nothing")]
    let mut sets = Vec::new();
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    macro_rules! ask {
        ($detected:ident: $($name:tt)*) => {
            $(if std::arch::$detected!($name) {
                sets.push($name);
            })*
        };
    }
    #[cfg(target_arch = "x86_64")]
    ask!(is_x86_feature_detected:
        "sse2" "sse4.1" "avx" "f16c" "fma" "avx2" "avxvnni" "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vnni"
        "avx512bf16" "avx512fp16");
    #[cfg(target_arch = "aarch64")]
    ask!(is_aarch64_feature_detected: "neon" "fp16" "dotprod" "bf16" "i8mm" "sve" "sve2");
    #[cfg(target_arch = "wasm32")]
    for (name, there) in [
        ("simd128", cfg!(target_feature = "simd128")),
        ("relaxed-simd", cfg!(target_feature = "relaxed-simd")),
        ("atomics", cfg!(target_feature = "atomics")),
    ] {
        if there {
            sets.push(name);
        }
    }
    sets
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernels_use_is_among_what_there_is() {
        let sets = instruction_sets();
        let used = instruction_set();
        let named = sets.iter().any(|set| set.starts_with(used));
        assert!(named, "{used} is not in {sets:?}");
        assert!(sets.contains(&"sse2"), "every x86-64 has it: {sets:?}");
    }
}
