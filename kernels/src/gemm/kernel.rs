//! Which tiles a machine has, and which of them are used.

use super::simd::Scalar;
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "wasm32"
))]
use super::simd::Simd;
use super::tile::{Operands, Tile, compute};
use crate::Arithmetic;

/// The most rows of a tile, of any kernel.
pub(super) const MAX_ROWS: usize = 12;
/// The most columns of a panel, of any kernel.
pub(super) const MAX_PANEL: usize = 32;

/// The tiles for one count of rows.
pub(super) struct Strip {
    /// One panel at a time.
    pub(super) single: Tile,
    /// Several panels at a time, and how many: with few rows, one panel has too few sums to hide
    /// how long an addition takes.
    pub(super) several: Option<(Tile, usize)>,
}

impl Strip {
    /// The most panels at a time.
    pub(super) fn panels(&self) -> usize {
        self.several.map_or(1, |(_, panels)| panels)
    }
}

/// A way to compute products: the tiles of one instruction set in one arithmetic.
///
/// All kernels of an [`Arithmetic`] whose machines fuse alike give the same bits. A matrix is
/// packed for a width of panel ([`Packed`](super::Packed)) and can be used by every kernel of that
/// width.
pub struct Kernel {
    name: &'static str,
    arithmetic: Arithmetic,
    panel: usize,
    /// By rows, from one.
    strips: &'static [Strip],
}

impl Kernel {
    /// The kernel for this machine.
    ///
    /// In the browser the processor is not known: this is the kernel for 16 vector registers, which
    /// is also good with 32; [`Kernel::available`] has the other.
    #[must_use]
    pub fn select(arithmetic: Arithmetic) -> &'static Self {
        Self::available(arithmetic)
            .first()
            .copied()
            .unwrap_or(scalar(arithmetic))
    }

    /// Every kernel that this machine can run, the one expected to be fastest first.
    #[must_use]
    pub fn available(arithmetic: Arithmetic) -> Vec<&'static Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                all.push(match arithmetic {
                    Arithmetic::Fast => &x86::AVX512_FAST,
                    Arithmetic::Deterministic => &x86::AVX512_DETERMINISTIC,
                });
            }
            if std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("fma")
            {
                all.push(match arithmetic {
                    Arithmetic::Fast => &x86::AVX2_FAST,
                    Arithmetic::Deterministic => &x86::AVX2_DETERMINISTIC,
                });
            }
        }
        #[cfg(target_arch = "aarch64")]
        all.extend(match arithmetic {
            Arithmetic::Fast => [&neon::FAST],
            Arithmetic::Deterministic => [&neon::DETERMINISTIC],
        });
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        match arithmetic {
            Arithmetic::Fast => all.extend([&wasm::FAST, &wasm::FAST_TALL]),
            Arithmetic::Deterministic => {
                all.extend([&wasm::DETERMINISTIC, &wasm::DETERMINISTIC_TALL]);
            }
        }
        all.extend([scalar(arithmetic)]);
        all
    }

    /// Its instruction set and largest tile, such as "AVX-512 8x32".
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How it adds products.
    #[must_use]
    pub fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// Columns of a panel of a packed matrix.
    #[must_use]
    pub fn panel(&self) -> usize {
        self.panel
    }

    /// The most rows of a tile.
    pub(super) fn rows(&self) -> usize {
        self.strips.len()
    }

    /// The tiles for a count of rows, from 1 to [`Kernel::rows`].
    pub(super) fn strip(&self, rows: usize) -> &Strip {
        &self.strips[rows - 1]
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.name)
            .field("arithmetic", &self.arithmetic)
            .field("panel", &self.panel)
            .finish_non_exhaustive()
    }
}

/// A tile compiled for an instruction set: `tile!(S, FUSED, rows, panels, registers a panel)`,
/// after which stand the features that the function is compiled for.
macro_rules! tile {
    ($simd:ty, $fused:expr, $r:expr, $p:expr, $v:expr, [$($feature:literal)?]) => {{
        /// # Safety
        ///
        /// As for [`Tile`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn tile(on: &Operands) {
            // SAFETY: the caller's promise.
            unsafe { compute::<$simd, $fused, $r, $p, $v>(on) }
        }
        tile as Tile
    }};
}

/// The tiles of all counts of rows: `strips!(S, FUSED, registers a panel, features; rows: panels…)`,
/// where `panels` is how many are taken at once where there are enough.
macro_rules! strips {
    ($simd:ty, $fused:expr, $v:expr, $features:tt; $($r:literal: $p:literal),+) => {
        [$(Strip {
            single: tile!($simd, $fused, $r, 1, $v, $features),
            several: if $p > 1 {
                Some((tile!($simd, $fused, $r, $p, $v, $features), $p))
            } else {
                None
            },
        }),+]
    };
}

/// The scalar kernel in an arithmetic; nothing is ever fused there.
fn scalar(arithmetic: Arithmetic) -> &'static Kernel {
    static STRIPS: [Strip; 3] = strips!(Scalar, false, 8, []; 1: 1, 2: 1, 3: 1);
    static FAST: Kernel = Kernel {
        name: "scalar 3x8",
        arithmetic: Arithmetic::Fast,
        panel: 8,
        strips: &STRIPS,
    };
    static DETERMINISTIC: Kernel = Kernel {
        name: "scalar 3x8",
        arithmetic: Arithmetic::Deterministic,
        panel: 8,
        strips: &STRIPS,
    };
    match arithmetic {
        Arithmetic::Fast => &FAST,
        Arithmetic::Deterministic => &DETERMINISTIC,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::simd::{Avx2, Avx512};
    use super::*;

    /// 32 registers: 8 × 32 are 16 sums, 2 of B and a splat, and A's rows are few enough to be
    /// read in place.
    macro_rules! avx512 {
        ($fused:expr) => {
            strips!(Avx512, $fused, 2, ["avx512f"];
                1: 4, 2: 4, 3: 2, 4: 2, 5: 2, 6: 2, 7: 1, 8: 1)
        };
    }
    /// 16 registers: 6 × 16 are 12 sums, 2 of B and a splat.
    macro_rules! avx2 {
        ($fused:expr) => {
            strips!(Avx2, $fused, 2, ["avx2,fma"]; 1: 4, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1)
        };
    }

    pub(super) static AVX512_FAST: Kernel = Kernel {
        name: "AVX-512 8x32",
        arithmetic: Arithmetic::Fast,
        panel: 2 * Avx512::LANES,
        strips: &avx512!(true),
    };
    pub(super) static AVX512_DETERMINISTIC: Kernel = Kernel {
        name: "AVX-512 8x32",
        arithmetic: Arithmetic::Deterministic,
        panel: 2 * Avx512::LANES,
        strips: &avx512!(false),
    };
    pub(super) static AVX2_FAST: Kernel = Kernel {
        name: "AVX2 6x16",
        arithmetic: Arithmetic::Fast,
        panel: 2 * Avx2::LANES,
        strips: &avx2!(true),
    };
    pub(super) static AVX2_DETERMINISTIC: Kernel = Kernel {
        name: "AVX2 6x16",
        arithmetic: Arithmetic::Deterministic,
        panel: 2 * Avx2::LANES,
        strips: &avx2!(false),
    };
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::super::simd::Neon;
    use super::*;

    /// 32 registers: 8 × 12 are 24 sums, 3 of B and splats.
    macro_rules! neon {
        ($fused:expr) => {
            strips!(Neon, $fused, 3, []; 1: 2, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1)
        };
    }

    pub(super) static FAST: Kernel = Kernel {
        name: "NEON 8x12",
        arithmetic: Arithmetic::Fast,
        panel: 3 * Neon::LANES,
        strips: &neon!(true),
    };
    pub(super) static DETERMINISTIC: Kernel = Kernel {
        name: "NEON 8x12",
        arithmetic: Arithmetic::Deterministic,
        panel: 3 * Neon::LANES,
        strips: &neon!(false),
    };
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm {
    use super::super::simd::Wasm;
    use super::*;

    /// 16 registers, of which V8 keeps one: 3 × 12 are 9 sums, 3 of B and 3 splats, which all fit
    /// in whatever order the compilers put the loads. With 32 registers the same holds for 6 × 12.
    macro_rules! wasm {
        ($fused:expr) => {
            strips!(Wasm, $fused, 3, []; 1: 2, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1)
        };
    }
    static FUSED: [Strip; 6] = wasm!(true);
    static SPLIT: [Strip; 6] = wasm!(false);

    pub(super) static FAST: Kernel = Kernel {
        name: "wasm 3x12",
        arithmetic: Arithmetic::Fast,
        panel: 3 * Wasm::LANES,
        strips: FUSED.split_at(3).0,
    };
    pub(super) static FAST_TALL: Kernel = Kernel {
        name: "wasm 6x12",
        arithmetic: Arithmetic::Fast,
        panel: 3 * Wasm::LANES,
        strips: &FUSED,
    };
    pub(super) static DETERMINISTIC: Kernel = Kernel {
        name: "wasm 3x12",
        arithmetic: Arithmetic::Deterministic,
        panel: 3 * Wasm::LANES,
        strips: SPLIT.split_at(3).0,
    };
    pub(super) static DETERMINISTIC_TALL: Kernel = Kernel {
        name: "wasm 6x12",
        arithmetic: Arithmetic::Deterministic,
        panel: 3 * Wasm::LANES,
        strips: &SPLIT,
    };
}
