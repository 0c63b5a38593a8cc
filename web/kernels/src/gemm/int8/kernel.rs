//! The integer tiles that a machine supports.

use super::super::kernel::{Strip, strips};
use super::form::Form;
use super::simd::{Int8Simd, Scalar};
use super::tile::{Operands, compute};

/// A way to compute products with weights of 8 bits. All give the same bits; a matrix is packed for
/// a width of panel and can be used by every kernel of that width.
pub struct Int8Kernel {
    name: &'static str,
    panel: usize,
    form: Form,
    /// By rows, from one.
    strips: &'static [Strip<Operands>],
}

impl Int8Kernel {
    /// The kernel for this machine; see [`Kernel::select`](crate::gemm::Kernel::select) for wasm.
    #[must_use]
    pub fn select() -> &'static Self {
        Self::available().first().copied().unwrap_or(&SCALAR)
    }

    /// Every kernel that this machine can run, the one expected to be fastest first, the scalar one
    /// last.
    #[must_use]
    pub fn available() -> Vec<&'static Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512bw")
                && std::arch::is_x86_feature_detected!("avx512vnni")
            {
                all.extend([&x86::AVX512_BYTES, &x86::AVX512]);
            }
            if std::arch::is_x86_feature_detected!("avxvnni") {
                all.push(&x86::AVX_VNNI);
            }
            #[cfg(test)]
            if std::arch::is_x86_feature_detected!("avx512vnni")
                && std::arch::is_x86_feature_detected!("avx512vl")
            {
                all.push(&x86::AVX512_VNNI_256);
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                all.push(&x86::AVX2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            if std::arch::is_aarch64_feature_detected!("dotprod") {
                all.push(&neon::DOT);
            }
            all.push(&neon::NEON);
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        all.extend(&wasm::ALL);
        all.extend([&SCALAR]);
        all
    }

    /// Its instruction set and largest tile, such as "AVX2 6x16".
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Columns of a panel of a packed matrix.
    #[must_use]
    pub fn panel(&self) -> usize {
        self.panel
    }

    /// How it takes its operands.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Whether a matrix that was packed for one can be used by the other.
    pub(in crate::gemm) fn shares_packing(&self, other: &Self) -> bool {
        (self.panel, self.form) == (other.panel, other.form)
    }

    /// The most rows of a tile.
    pub(super) fn rows(&self) -> usize {
        self.strips.len()
    }

    /// The tiles for a count of rows, from 1 to [`Int8Kernel::rows`].
    pub(super) fn strip(&self, rows: usize) -> &Strip<Operands> {
        &self.strips[rows - 1]
    }
}

impl std::fmt::Debug for Int8Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Int8Kernel")
            .field("name", &self.name)
            .field("panel", &self.panel)
            .finish_non_exhaustive()
    }
}

static SCALAR: Int8Kernel = Int8Kernel {
    name: "scalar 2x4",
    panel: 4 * Scalar::LANES,
    form: Form::Pairs,
    strips: &strips!([Scalar], 4, []; 1: 1, 2: 1),
};

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[cfg(test)]
    use super::super::simd::Avx512Vnni256;
    use super::super::simd::{Avx2, Avx512, Avx512Bytes, AvxVnni};
    use super::*;

    /// 32 registers: a sum takes two, so that 6 × 32 are 24, 2 of B and 2 splats.
    pub(super) static AVX512_BYTES: Int8Kernel = Int8Kernel {
        name: "AVX-512 VNNI 6x32",
        panel: 2 * Avx512Bytes::LANES,
        form: Form::UnsignedBytes,
        strips: &strips!([Avx512Bytes], 2, ["avx512bw,avx512vnni"];
            1: 4, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1),
    };
    pub(super) static AVX512: Int8Kernel = Int8Kernel {
        name: "AVX-512 VNNI pairs 8x32",
        panel: 2 * Avx512::LANES,
        form: Form::Pairs,
        strips: &strips!([Avx512], 2, ["avx512bw,avx512vnni"];
            1: 4, 2: 4, 3: 2, 4: 2, 5: 2, 6: 2, 7: 1, 8: 1),
    };
    /// 16 registers: 3 × 16 are 12 sums, 2 of B and 2 splats.
    pub(super) static AVX_VNNI: Int8Kernel = Int8Kernel {
        name: "AVX-VNNI 3x16",
        panel: 2 * AvxVnni::LANES,
        form: Form::UnsignedBytes,
        strips: &strips!([AvxVnni], 2, ["avx2,avxvnni"]; 1: 2, 2: 1, 3: 1),
    };
    #[cfg(test)]
    pub(super) static AVX512_VNNI_256: Int8Kernel = Int8Kernel {
        name: "AVX-512 VNNI 3x16",
        panel: 2 * Avx512Vnni256::LANES,
        form: Form::UnsignedBytes,
        strips: &strips!([Avx512Vnni256], 2, ["avx512vl,avx512vnni"]; 1: 2, 2: 1, 3: 1),
    };
    pub(super) static AVX2: Int8Kernel = Int8Kernel {
        name: "AVX2 6x16",
        panel: 2 * Avx2::LANES,
        form: Form::Pairs,
        strips: &strips!([Avx2], 2, ["avx2"]; 1: 4, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1),
    };
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::super::simd::{Neon, NeonDot};
    use super::*;

    /// As the next, with two splats for each row.
    pub(super) static DOT: Int8Kernel = Int8Kernel {
        name: "NEON dot 6x8",
        panel: 2 * NeonDot::LANES,
        form: Form::SignedBytes,
        strips: &strips!([NeonDot], 2, ["dotprod"]; 1: 4, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1),
    };
    /// A sum takes two of the 32 registers: 6 × 8 are 24, 2 of B and a splat for each row or two.
    pub(super) static NEON: Int8Kernel = Int8Kernel {
        name: "NEON 6x8",
        panel: 2 * Neon::LANES,
        form: Form::Pairs,
        strips: &strips!([Neon], 2, []; 1: 2, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1),
    };
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm {
    use super::super::simd::Wasm;
    use super::*;

    static STRIPS: [Strip<Operands>; 8] =
        strips!([Wasm], 2, []; 1: 2, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1);

    /// For 15 registers and for 32, as with f32 unfused.
    pub(super) static ALL: [Int8Kernel; 2] = [
        Int8Kernel {
            name: "wasm 4x8",
            panel: 2 * Wasm::LANES,
            form: Form::Pairs,
            strips: STRIPS.split_at(4).0,
        },
        Int8Kernel {
            name: "wasm 8x8",
            panel: 2 * Wasm::LANES,
            form: Form::Pairs,
            strips: &STRIPS,
        },
    ];
}
