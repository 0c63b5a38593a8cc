//! Products with a weight.

use isovec_encoder::program::{Linear, NodeId, Rows};

use super::source::wgsl;
use super::{Grid, Items, Kernel, Made, Reads, functions, prelude, repeat};
use crate::constants::Constants;
use crate::dispatch::{Merged, Part, Weights};
use crate::limits::Limits;

/// How a product is cut up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tiling {
    /// Each thread computes `rows` rows of four columns.
    Direct { rows: usize },
    /// Groups copy tiles; each thread computes `rows` rows of `columns` columns of four.
    Tiled { rows: usize, columns: usize },
    /// `slices` threads of a group, a power of two, share each sum; each computes its part of `rows` rows of four columns.
    Shared { rows: usize, slices: usize },
    /// Subgroups tell one another what they read; each thread computes `rows` rows of four columns.
    Told { rows: usize },
    /// A number a thread.
    Any,
}

/// From how many rows on a product is cut how. On a GPU a tile is worth its barriers when its rows are
/// mostly there; large tiles read less and leave many threads idle where there are few of them.
const DIRECT: (usize, Tiling) = (0, Tiling::Direct { rows: 4 });
const SMALL_TILES: (usize, Tiling) = (
    48,
    Tiling::Tiled {
        rows: 4,
        columns: 1,
    },
);
const LARGE_TILES: (usize, Tiling) = (
    2048,
    Tiling::Tiled {
        rows: 8,
        columns: 2,
    },
);

/// One that is taken where it was measured to be the fastest, and nowhere else.
pub(crate) const IF_MEASURED: usize = usize::MAX;

/// The kernel of a product.
pub(crate) fn kernel(
    merged: &Merged,
    id: NodeId,
    op: &Linear,
    parts: &[Part],
    weights: &dyn Weights,
    constants: &mut Constants,
    limits: &Limits,
) -> Made {
    let node = &merged.nodes[id.0];
    let (k, n) = (merged.nodes[op.x.0].width, node.width);
    let fours = k.is_multiple_of(4) && n.is_multiple_of(4);
    let bias = bias(parts, constants);
    let activation = op
        .activation
        .map_or_else(|| "x".to_owned(), |f| functions::unary(f, "x", constants));
    let unit = if fours { 4 } else { 1 };
    let rows = match node.rows {
        Rows::Tokens => "tokens()",
        Rows::Texts => "texts()",
    };
    let x = merged.items(op.x);
    // What a weight is once it is read; how it is stored; and how it is read.
    let half = weights.half(parts);
    let (w, stored, weight) = match (half, limits.half) {
        (true, true) => (Items::F16, Items::F16.of(unit), "return w[at];"),
        (true, false) if fours => (
            Items::F32,
            "vec2<u32>",
            "let v = w[at]; return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y));",
        ),
        _ => (Items::F32, Items::F32.of(unit), "return w[at];"),
    };
    let mut source = prelude(merged.items(id), unit, &[x, w]);
    source += &format!(
        "const K: u32 = {}u;\nconst N: u32 = {}u;\n\
         const HAS_BIAS: bool = {};\nconst BIAS: u32 = {}u;\nconst HAS_RESIDUAL: bool = {};\n\
         alias X_ITEMS = {};\nalias W_ITEMS = {};\nalias STORED = {stored};\n\
         fn ROW_COUNT() -> u32 {{ return {rows}; }}\n\
         fn activation(x: f32) -> f32 {{ return {activation}; }}\n\
         fn weight(at: u32) -> W_ITEMS {{ {weight} }}\n",
        k / unit,
        n / unit,
        bias.is_some(),
        bias.unwrap_or(0),
        op.residual.is_some(),
        x.of(unit),
        w.of(unit),
    );
    let mut tilings = match (fours, limits.tiles) {
        (true, true) => vec![DIRECT, SMALL_TILES, LARGE_TILES],
        (true, false) => vec![DIRECT],
        (false, _) => vec![(0, Tiling::Any)],
    };
    if fours && limits.subgroups.is_some() {
        // Where there are no tiles to fall back on, subgroups were asked for by name.
        let from = if limits.tiles { IF_MEASURED } else { 0 };
        tilings.push((from, Tiling::Told { rows: 4 }));
    }
    // Where there are few rows, a sum by one thread leaves most of a GPU idle, and waits for memory once a step. As it
    // adds in another order, only a measurement takes it.
    if let Some(shared) = Tiling::shared(limits).filter(|_| fours && limits.tiles) {
        tilings.push((IF_MEASURED, shared));
    }
    let kernels = tilings.into_iter().map(|(from, tiling)| {
        let mut source = source.clone();
        let grid = tiling.write(&mut source, n, limits);
        let how = tiling.how();
        (from, Kernel { source, grid, how })
    });
    Made {
        name: "linear",
        kernels: kernels.collect(),
        reads: vec![
            Reads::Node(op.x),
            Reads::Product,
            op.residual.map_or(Reads::Nothing, Reads::Node),
        ],
        inner: k,
        cost: (k * n) as u64,
    }
}

/// Where the parts' biases stand side by side; those without one have zeros.
fn bias(parts: &[Part], constants: &mut Constants) -> Option<usize> {
    parts.iter().any(|part| part.bias.is_some()).then(|| {
        let all: Vec<f32> = parts
            .iter()
            .flat_map(|part| match &part.bias {
                Some(bias) => bias.to_vec(),
                None => vec![0.0; part.width],
            })
            .collect();
        constants.add(&all)
    })
}

/// Threads side by side, of four columns each, of a group that shares sums.
const SHARED_COLUMNS: usize = 8;

impl Tiling {
    /// What messages say of it.
    fn how(self) -> String {
        match self {
            Self::Direct { .. } => "products are computed without tiles".into(),
            Self::Tiled { rows, .. } => {
                format!("products are computed by tiles of {rows} rows a thread")
            }
            Self::Shared { .. } => "products are computed by threads that share a sum".into(),
            Self::Told { .. } => "products are computed by subgroups".into(),
            Self::Any => "products are computed number by number".into(),
        }
    }

    /// Sums by as many threads as are worth it, and as a group of a device within `limits` has, with the memory for them.
    fn shared(limits: &Limits) -> Option<Self> {
        const ROWS: usize = 4;
        let in_memory = limits.shared_floats / (SHARED_COLUMNS * ROWS * 4);
        let slices = 32.min(limits.threads / SHARED_COLUMNS).min(in_memory);
        // They are added up by halves.
        (slices > 1).then(|| Self::Shared {
            rows: ROWS,
            slices: 1 << slices.ilog2(),
        })
    }

    /// Writes the kernel for `n` columns.
    fn write(self, source: &mut String, n: usize, limits: &Limits) -> Grid {
        let threads = |columns: usize, rows: usize| {
            format!("const COLUMN_THREADS: u32 = {columns}u;\nconst ROW_THREADS: u32 = {rows}u;\n")
        };
        let across = |columns: usize| n.div_ceil(columns) as u32;
        if self != Self::Any {
            *source += wgsl!("matmul_shared.wgsl");
        }
        match self {
            Self::Direct { rows } => {
                let (column_threads, row_threads) = (32.min(limits.threads), 2);
                *source += &threads(column_threads, row_threads);
                *source += &format!("const ROWS: u32 = {rows}u;\n");
                *source += &repeat(wgsl!("matmul.wgsl"), rows, 1);
                Grid::Tile {
                    rows: (rows * row_threads) as u32,
                    across: across(4 * column_threads),
                }
            }
            Self::Tiled { rows, columns } => {
                const DEPTH: usize = 4;
                let side = 16.min(limits.threads / 16).max(1);
                *source += &threads(16, side);
                *source += &format!(
                    "const ROWS: u32 = {rows}u;\nconst COLUMNS: u32 = {columns}u;\n\
                     const DEPTH: u32 = {DEPTH}u;\n"
                );
                *source += &repeat(wgsl!("matmul_tiled.wgsl"), rows, columns);
                Grid::Tile {
                    rows: (rows * side) as u32,
                    across: across(4 * 16 * columns),
                }
            }
            Self::Shared { rows, slices } => {
                *source += &threads(SHARED_COLUMNS, 1);
                *source += &format!("const ROWS: u32 = {rows}u;\nconst SLICES: u32 = {slices}u;\n");
                *source += &repeat(wgsl!("matmul_slices.wgsl"), rows, 1);
                Grid::Tile {
                    rows: rows as u32,
                    across: across(4 * SHARED_COLUMNS),
                }
            }
            Self::Told { rows } => {
                let column_threads = 64.min(limits.threads);
                *source += &threads(column_threads, 1);
                *source += &format!("const ROWS: u32 = {rows}u;\n");
                *source += wgsl!("subgroups.wgsl");
                *source += &repeat(wgsl!("matmul_subgroups.wgsl"), rows, 1);
                Grid::Tile {
                    rows: rows as u32,
                    across: across(4 * column_threads),
                }
            }
            Self::Any => {
                *source += &threads(32, 2);
                *source += wgsl!("matmul_any.wgsl");
                Grid::Tile {
                    rows: 2,
                    across: across(32),
                }
            }
        }
    }
}
