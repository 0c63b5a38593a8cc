//! The kernels: WGSL from the files in `wgsl/`, with a header of the model's constants.

pub(crate) mod attention;
mod column;
mod fold;
mod functions;
pub(crate) mod linear;
pub(crate) mod row;
mod source;

use isovec_encoder::program::NodeId;
use source::wgsl;

/// Where the first text's first token stands among a batch's words.
pub(crate) const HEAD: usize = 8;

/// WGSL, and how many groups of threads run it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) source: String,
    pub(crate) grid: Grid,
    /// What a message says of it: "products are computed …".
    pub(crate) how: String,
}

/// Groups of threads for a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Grid {
    /// One for each row of the result.
    #[default]
    Row,
    /// `across` for each `rows` rows.
    Tile { rows: u32, across: u32 },
    /// `heads` for each `rows` rows.
    Heads { rows: u32, heads: u32 },
}

/// A kernel, and what it reads.
#[derive(Debug)]
pub(crate) struct Made {
    /// In profiles.
    pub(crate) name: &'static str,
    /// From how many rows on which kernel is the one to run; the first is from 0 on.
    pub(crate) kernels: Vec<(usize, Kernel)>,
    pub(crate) reads: Vec<Reads>,
    /// Steps of a product's sums.
    pub(crate) inner: usize,
    /// Multiply-adds of a row.
    pub(crate) cost: u64,
}

/// The operand of a kernel, by its place in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    Node(NodeId),
    Table {
        place: usize,
        part: usize,
    },
    /// The matrix of its own product.
    Product,
    /// Nothing: something has to be bound.
    Nothing,
}

/// The numbers of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Items {
    F32,
    F16,
}

impl Items {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }

    /// In WGSL, by ones or by fours.
    fn of(self, unit: usize) -> &'static str {
        match (self, unit) {
            (Self::F32, 4) => "vec4<f32>",
            (Self::F16, 4) => "vec4<f16>",
            (Self::F32, _) => "f32",
            (Self::F16, _) => "f16",
        }
    }
}

/// Groups along the three axes, of which none may be longer than 65,535.
impl Grid {
    pub(crate) fn groups(self, rows: usize) -> [u32; 3] {
        const MOST: usize = 65_535;
        let split = |groups: usize| {
            let z = groups.div_ceil(MOST).max(1);
            [groups.div_ceil(z) as u32, z as u32]
        };
        match self {
            Self::Row => {
                let [x, y] = split(rows);
                [x, y, 1]
            }
            Self::Tile { rows: each, across } => {
                let [y, z] = split(rows.div_ceil(each as usize));
                [across, y, z]
            }
            Self::Heads { rows: each, heads } => {
                let [x, z] = split(rows.div_ceil(each as usize));
                [x, heads, z]
            }
        }
    }
}

/// What all kernels begin with that write `out` by vectors of `unit`, one or four, and read `others` as well.
fn prelude(out: Items, unit: usize, others: &[Items]) -> String {
    let (batch, math) = (wgsl!("batch.wgsl"), wgsl!("math.wgsl"));
    let enable = match out == Items::F16 || others.contains(&Items::F16) {
        true => "enable f16;\n",
        false => "",
    };
    let write = match out {
        Items::F32 => "fn kept(x: V) -> OUT { return x; }\n",
        Items::F16 => wgsl!("half.wgsl"),
    };
    format!(
        "{enable}const HEAD: u32 = {HEAD}u;\n{batch}\n{math}\nalias V = {};\nalias OUT = {};\n{write}",
        Items::F32.of(unit),
        out.of(unit)
    )
}

/// Repeats the lines that begin with `@i`, `@j` or `@ij`, with `$i` and `$j` replaced.
fn repeat(template: &str, rows: usize, columns: usize) -> String {
    let mut out = String::with_capacity(template.len() * 2);
    for line in template.lines() {
        let marked = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
        let (rows, columns, line) = match marked {
            Some(("i", line)) => (rows, 1, line),
            Some(("j", line)) => (1, columns, line),
            Some(("ij", line)) => (rows, columns, line),
            _ => (1, 1, line),
        };
        for i in 0..rows {
            for j in 0..columns {
                let line = line.replace("$i", &i.to_string());
                out.push_str(&line.replace("$j", &j.to_string()));
                out.push('\n');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_axis_of_a_grid_is_too_long() {
        assert_eq!(Grid::Row.groups(10), [10, 1, 1]);
        assert_eq!(Grid::Row.groups(65_536), [32_768, 2, 1]);
        let tile = Grid::Tile { rows: 8, across: 3 };
        assert_eq!(tile.groups(17), [3, 3, 1]);
        let [x, y, z] = tile.groups(8 * 65_535 * 3 + 1);
        assert!(x == 3 && y <= 65_535 && y * z > 65_535 * 3);
        let heads = Grid::Heads { rows: 8, heads: 12 };
        assert_eq!(heads.groups(65), [9, 12, 1]);
        assert_eq!(heads.groups(8 * 65_535), [65_535, 12, 1]);
        let [x, y, z] = heads.groups(8 * 65_535 * 3 + 1);
        assert!(y == 12 && x <= 65_535 && x * z > 65_535 * 3);
    }

    #[test]
    fn lines_are_repeated_for_rows_and_columns() {
        let text = repeat("a\n@i b$i\n@ij c$i_$j\n@j d$j", 2, 1);
        assert_eq!(text, "a\nb0\nb1\nc0_0\nc1_0\nd0\n");
    }
}
