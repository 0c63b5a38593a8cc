//! The integer tiles that a machine supports.

use super::super::kernel::{Strip, strips};
use super::form::{ActivationBits, Form, Layout};
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
    pub fn select(bits: ActivationBits) -> &'static Self {
        let first = Self::available(bits).first().copied();
        first.unwrap_or(SCALAR.of(bits))
    }

    /// Every kernel that this machine can run, the one expected to be fastest first, the scalar one
    /// last.
    #[must_use]
    pub fn available(bits: ActivationBits) -> Vec<&'static Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512bw")
                && std::arch::is_x86_feature_detected!("avx512vnni")
            {
                all.push(x86::AVX512_VNNI.of(bits));
            }
            if std::arch::is_x86_feature_detected!("avxvnni") {
                all.push(x86::AVX_VNNI.of(bits));
            }
            #[cfg(test)]
            if std::arch::is_x86_feature_detected!("avx512vnni")
                && std::arch::is_x86_feature_detected!("avx512vl")
            {
                all.push(x86::AVX512_VNNI_256.of(bits));
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                all.push(x86::AVX2.of(bits));
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            if std::arch::is_aarch64_feature_detected!("dotprod") {
                all.push(neon::DOT.of(bits));
            }
            all.push(neon::NEON.of(bits));
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        all.extend(wasm::ALL.iter().map(|kernels| kernels.of(bits)));
        all.extend([SCALAR.of(bits)]);
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

/// The kernels of one instruction set.
struct ByBits {
    wide: Int8Kernel,
    eight: Int8Kernel,
}

impl ByBits {
    fn of(&'static self, bits: ActivationBits) -> &'static Int8Kernel {
        match bits {
            ActivationBits::Wide => &self.wide,
            ActivationBits::Eight => &self.eight,
        }
    }

    /// Tiles that multiply pairs of 16 bits, which activations of eight bits are widened to.
    const fn pairs(name: &'static str, panel: usize, strips: &'static [Strip<Operands>]) -> Self {
        const fn form(bits: ActivationBits) -> Form {
            let layout = Layout::Pairs;
            Form { bits, layout }
        }
        Self {
            wide: Int8Kernel {
                name,
                panel,
                form: form(ActivationBits::Wide),
                strips,
            },
            eight: Int8Kernel {
                name,
                panel,
                form: form(ActivationBits::Eight),
                strips,
            },
        }
    }
}

static SCALAR: ByBits = ByBits::pairs(
    "scalar 2x4",
    4 * Scalar::LANES,
    const { &strips!([Scalar], 4, []; 1: 1, 2: 1) },
);

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[cfg(test)]
    use super::super::simd::Avx512Vnni256;
    use super::super::simd::{Avx2, Avx512Vnni, AvxVnni, Dots, Eight, Wide};
    use super::*;

    const fn unsigned(bits: ActivationBits) -> Form {
        let layout = Layout::UnsignedBytes;
        Form { bits, layout }
    }

    /// 32 registers: a sum of wide activations takes two, so that 6 × 32 are 24, 2 of B and 2
    /// splats; 12 × 32 of one byte are as many.
    pub(super) static AVX512_VNNI: ByBits = ByBits {
        wide: Int8Kernel {
            name: "AVX-512 VNNI 6x32",
            panel: 2 * Avx512Vnni::LANES,
            form: unsigned(ActivationBits::Wide),
            strips: &strips!([Wide<Avx512Vnni>], 2, ["avx512bw,avx512vnni"];
                1: 4, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1),
        },
        eight: Int8Kernel {
            name: "AVX-512 VNNI 8x32",
            panel: 2 * Avx512Vnni::LANES,
            form: unsigned(ActivationBits::Eight),
            strips: &strips!([Eight<Avx512Vnni>], 2, ["avx512bw,avx512vnni"];
                1: 4, 2: 4, 3: 2, 4: 2, 5: 2, 6: 2, 7: 1, 8: 1),
        },
    };

    /// 16 registers: 3 × 16 are 12 sums, 2 of B and 2 splats; 6 × 16 of one byte are as many.
    macro_rules! vnni_256 {
        ($dots:ty, $wide:literal, $eight:literal, $features:literal) => {
            ByBits {
                wide: Int8Kernel {
                    name: $wide,
                    panel: 2 * <$dots>::LANES,
                    form: unsigned(ActivationBits::Wide),
                    strips: &strips!([Wide<$dots>], 2, [$features]; 1: 2, 2: 1, 3: 1),
                },
                eight: Int8Kernel {
                    name: $eight,
                    panel: 2 * <$dots>::LANES,
                    form: unsigned(ActivationBits::Eight),
                    strips: &strips!([Eight<$dots>], 2, [$features];
                        1: 4, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1),
                },
            }
        };
    }
    pub(super) static AVX_VNNI: ByBits =
        vnni_256!(AvxVnni, "AVX-VNNI 3x16", "AVX-VNNI 6x16", "avx2,avxvnni");
    #[cfg(test)]
    pub(super) static AVX512_VNNI_256: ByBits = vnni_256!(
        Avx512Vnni256,
        "AVX-512 VNNI 3x16",
        "AVX-512 VNNI 6x16",
        "avx512vl,avx512vnni"
    );

    pub(super) static AVX2: ByBits = ByBits::pairs(
        "AVX2 6x16",
        2 * Avx2::LANES,
        const { &strips!([Avx2], 2, ["avx2"]; 1: 4, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1) },
    );
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::super::simd::{Dots, Eight, Neon, NeonDot, Wide};
    use super::*;

    /// As the next, with two splats for each row; 12 × 8 of one byte are as many sums.
    pub(super) static DOT: ByBits = ByBits {
        wide: Int8Kernel {
            name: "NEON dot 6x8",
            panel: 2 * NeonDot::LANES,
            form: Form {
                bits: ActivationBits::Wide,
                layout: Layout::SignedBytes,
            },
            strips: &strips!([Wide<NeonDot>], 2, ["dotprod"]; 1: 4, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1),
        },
        eight: Int8Kernel {
            name: "NEON dot 12x8",
            panel: 2 * NeonDot::LANES,
            form: Form {
                bits: ActivationBits::Eight,
                layout: Layout::SignedBytes,
            },
            strips: &strips!([Eight<NeonDot>], 2, ["dotprod"];
                1: 4, 2: 4, 3: 2, 4: 2, 5: 2, 6: 2, 7: 1, 8: 1, 9: 1, 10: 1, 11: 1, 12: 1),
        },
    };
    /// A sum takes two of the 32 registers: 6 × 8 are 24, 2 of B and a splat for each row or two.
    pub(super) static NEON: ByBits = ByBits::pairs(
        "NEON 6x8",
        2 * Neon::LANES,
        const { &strips!([Neon], 2, []; 1: 2, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1) },
    );
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm {
    use super::super::simd::Wasm;
    use super::*;

    static STRIPS: [Strip<Operands>; 8] =
        strips!([Wasm], 2, []; 1: 2, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1);

    /// For 15 registers and for 32, as with f32 unfused.
    pub(super) static ALL: [ByBits; 2] = [
        ByBits::pairs("wasm 4x8", 2 * Wasm::LANES, STRIPS.split_at(4).0),
        ByBits::pairs("wasm 8x8", 2 * Wasm::LANES, &STRIPS),
    ];
}
