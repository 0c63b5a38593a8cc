//! The tiles that a machine supports, and the choice between them.

use super::simd::{Scalar, Simd};
#[cfg(target_arch = "x86_64")]
use super::tile::edge;
use super::tile::{Operands, compute};
use crate::Arithmetic;

/// The most rows of a tile, of any kernel.
pub(super) const MAX_ROWS: usize = 12;
/// The most columns of a panel, of any kernel.
pub(super) const MAX_PANEL: usize = 32;

/// Computes `rows` × (`panels` · panel width) values of C; what it asks of its caller stands at the
/// `compute` that it is made of.
pub(super) type Tile<O> = unsafe fn(&O);

/// The tiles for one count of rows, by what they work on.
pub(super) struct Strip<O> {
    /// One panel at a time.
    pub(super) single: Tile<O>,
    /// Several panels at a time, and how many: with few rows, one panel has too few sums to hide
    /// how long an addition takes.
    pub(super) several: Option<(Tile<O>, usize)>,
}

impl<O> Strip<O> {
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
    strips: &'static [Strip<Operands>],
    /// Tiles for a panel that has not all its columns, by rows, from one; none where they are not worth their code.
    edges: &'static [Tile<Operands>],
    /// Whether its tiles do what an epilogue without a function asks for.
    finishes: bool,
}

impl Kernel {
    /// The kernel for this machine.
    ///
    /// A wasm module does not know its processor and gets the kernel for 16 vector registers;
    /// a [`Choice`](super::Choice) finds out whether that for 32 is faster.
    #[must_use]
    pub fn select(arithmetic: Arithmetic) -> &'static Self {
        Self::available(arithmetic)
            .first()
            .copied()
            .unwrap_or(scalar(arithmetic))
    }

    /// Every kernel that this machine can run, the one expected to be fastest first, the scalar one
    /// last.
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
        all.extend(match arithmetic {
            Arithmetic::Fast => &wasm::FAST,
            Arithmetic::Deterministic => &wasm::DETERMINISTIC,
        });
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

    /// Whether its tiles do what an epilogue without a function asks for.
    pub(super) fn finishes(&self) -> bool {
        self.finishes
    }

    /// The tile for a count of rows of a panel that has not all its columns.
    pub(super) fn edge(&self, rows: usize) -> Option<Tile<Operands>> {
        self.edges.get(rows - 1).copied()
    }

    /// The tiles for a count of rows, from 1 to [`Kernel::rows`].
    pub(super) fn strip(&self, rows: usize) -> &Strip<Operands> {
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

/// The tiles of all counts of rows, compiled for an instruction set:
/// `strips!([parameters of compute], registers a panel, [features]; rows: panels…)`, where `panels`
/// is how many are taken at once where there are enough. `compute` and `Operands` are those in
/// scope.
macro_rules! strips {
    ($with:tt, $v:expr, $features:tt; $($r:literal: $p:literal),+) => {
        [$($crate::gemm::kernel::Strip {
            single: $crate::gemm::kernel::tile!($with, $r, 1, $v, $features),
            several: if $p > 1 {
                Some(($crate::gemm::kernel::tile!($with, $r, $p, $v, $features), $p))
            } else {
                None
            },
        }),+]
    };
}

/// One tile: `tile!([parameters], rows, panels, registers a panel, [features])`.
macro_rules! tile {
    ([$($with:tt)+], $r:expr, $p:expr, $v:expr, [$($feature:literal)?]) => {{
        /// # Safety
        ///
        /// As for `compute`.
        $(#[target_feature(enable = $feature)])?
        unsafe fn tile(on: &Operands) {
            // SAFETY: the caller's promise.
            unsafe { compute::<$($with)+, $r, $p, $v>(on) }
        }
        tile as $crate::gemm::kernel::Tile<Operands>
    }};
}

/// Tiles for a panel that has not all its columns: `edges!([parameters of edge], registers a panel, [features]; rows…)`.
#[cfg(target_arch = "x86_64")]
macro_rules! edges {
    ($with:tt, $v:expr, $features:tt; $($r:literal),+) => {
        [$(edges!(@ $with, $r, $v, $features)),+]
    };
    (@ [$($with:tt)+], $r:expr, $v:expr, [$($feature:literal)?]) => {{
        /// # Safety
        ///
        /// As for `edge`.
        $(#[target_feature(enable = $feature)])?
        unsafe fn edge_tile(on: &Operands) {
            // SAFETY: the caller's promise.
            unsafe { edge::<$($with)+, $r, $v>(on) }
        }
        edge_tile as Tile<Operands>
    }};
}

pub(super) use {strips, tile};

/// The scalar kernel in an arithmetic; nothing is ever fused there.
fn scalar(arithmetic: Arithmetic) -> &'static Kernel {
    static STRIPS: [Strip<Operands>; 3] = strips!([Scalar, false], 8, []; 1: 1, 2: 1, 3: 1);
    static FAST: Kernel = Kernel {
        name: "scalar 3x8",
        arithmetic: Arithmetic::Fast,
        panel: 8 * Scalar::LANES,
        strips: &STRIPS,
        edges: &[],
        finishes: false,
    };
    static DETERMINISTIC: Kernel = Kernel {
        name: "scalar 3x8",
        arithmetic: Arithmetic::Deterministic,
        panel: 8 * Scalar::LANES,
        strips: &STRIPS,
        edges: &[],
        finishes: false,
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
            strips!([Avx512, $fused], 2, ["avx512f"];
                1: 4, 2: 4, 3: 2, 4: 2, 5: 2, 6: 2, 7: 1, 8: 1)
        };
    }
    /// 16 registers: 6 × 16 are 12 sums, 2 of B and a splat.
    macro_rules! avx2 {
        ($fused:expr) => {
            strips!([Avx2, $fused], 2, ["avx2,fma"]; 1: 4, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1)
        };
    }

    macro_rules! avx512_edges {
        ($fused:expr) => {
            edges!([Avx512, $fused], 2, ["avx512f"]; 1, 2, 3, 4, 5, 6, 7, 8)
        };
    }
    macro_rules! avx2_edges {
        ($fused:expr) => {
            edges!([Avx2, $fused], 2, ["avx2,fma"]; 1, 2, 3, 4, 5, 6)
        };
    }

    pub(super) static AVX512_FAST: Kernel = Kernel {
        name: "AVX-512 8x32",
        arithmetic: Arithmetic::Fast,
        panel: 2 * Avx512::LANES,
        strips: &avx512!(true),
        edges: &avx512_edges!(true),
        finishes: true,
    };
    pub(super) static AVX512_DETERMINISTIC: Kernel = Kernel {
        name: "AVX-512 8x32",
        arithmetic: Arithmetic::Deterministic,
        panel: 2 * Avx512::LANES,
        strips: &avx512!(false),
        edges: &avx512_edges!(false),
        finishes: true,
    };
    pub(super) static AVX2_FAST: Kernel = Kernel {
        name: "AVX2 6x16",
        arithmetic: Arithmetic::Fast,
        panel: 2 * Avx2::LANES,
        strips: &avx2!(true),
        edges: &avx2_edges!(true),
        finishes: true,
    };
    pub(super) static AVX2_DETERMINISTIC: Kernel = Kernel {
        name: "AVX2 6x16",
        arithmetic: Arithmetic::Deterministic,
        panel: 2 * Avx2::LANES,
        strips: &avx2!(false),
        edges: &avx2_edges!(false),
        finishes: true,
    };
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::super::simd::Neon;
    use super::*;

    /// 32 registers: 8 × 12 are 24 sums, 3 of B and splats.
    macro_rules! neon {
        ($fused:expr) => {
            strips!([Neon, $fused], 3, []; 1: 2, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1)
        };
    }

    pub(super) static FAST: Kernel = Kernel {
        name: "NEON 8x12",
        arithmetic: Arithmetic::Fast,
        panel: 3 * Neon::LANES,
        strips: &neon!(true),
        edges: &[],
        finishes: false,
    };
    pub(super) static DETERMINISTIC: Kernel = Kernel {
        name: "NEON 8x12",
        arithmetic: Arithmetic::Deterministic,
        panel: 3 * Neon::LANES,
        strips: &neon!(false),
        edges: &[],
        finishes: false,
    };
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm {
    use super::super::simd::Wasm;
    use super::*;

    // V8 keeps one of x86-64's 16 registers, and loads come in whatever order LLVM puts them, so
    // that a tile is fast where its sums, its columns of B, a splat for each row and, unfused, a
    // product all fit at once: 3 × 12 are 9 + 3 + 3, 4 × 8 unfused are 8 + 2 + 4 + 1. The tall
    // tiles fit 32 registers in the same way, and have enough sums for ARM's four units.
    #[cfg(target_feature = "relaxed-simd")]
    static FUSED: [Strip<Operands>; 6] =
        strips!([Wasm, true], 3, []; 1: 2, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1);
    static SPLIT: [Strip<Operands>; 8] =
        strips!([Wasm, false], 2, []; 1: 2, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1);

    static SPLIT_SMALL: &[Strip<Operands>] = SPLIT.split_at(4).0;

    pub(super) static DETERMINISTIC: [Kernel; 2] = [
        Kernel {
            name: "wasm 4x8",
            arithmetic: Arithmetic::Deterministic,
            panel: 2 * Wasm::LANES,
            strips: SPLIT_SMALL,
            edges: &[],
            finishes: false,
        },
        Kernel {
            name: "wasm 8x8",
            arithmetic: Arithmetic::Deterministic,
            panel: 2 * Wasm::LANES,
            strips: &SPLIT,
            edges: &[],
            finishes: false,
        },
    ];

    #[cfg(target_feature = "relaxed-simd")]
    pub(super) static FAST: [Kernel; 2] = [
        Kernel {
            name: "wasm 3x12",
            arithmetic: Arithmetic::Fast,
            panel: 3 * Wasm::LANES,
            strips: FUSED.split_at(3).0,
            edges: &[],
            finishes: false,
        },
        Kernel {
            name: "wasm 6x12",
            arithmetic: Arithmetic::Fast,
            panel: 3 * Wasm::LANES,
            strips: &FUSED,
            edges: &[],
            finishes: false,
        },
    ];
    #[cfg(not(target_feature = "relaxed-simd"))]
    pub(super) static FAST: [Kernel; 2] = [
        Kernel {
            name: "wasm 4x8",
            arithmetic: Arithmetic::Fast,
            panel: 2 * Wasm::LANES,
            strips: SPLIT_SMALL,
            edges: &[],
            finishes: false,
        },
        Kernel {
            name: "wasm 8x8",
            arithmetic: Arithmetic::Fast,
            panel: 2 * Wasm::LANES,
            strips: &SPLIT,
            edges: &[],
            finishes: false,
        },
    ];
}
