//! Attention.

use std::fmt::Write as _;

use isovec_encoder::program::{Attention, HeadColumns, NodeId, Side};

use super::row::{ALWAYS, TooLarge};
use super::source::wgsl;
use super::{Grid, Items, Kernel, Made, Reads, functions, prelude, repeat};
use crate::constants::Constants;
use crate::dispatch::{Merged, TableStored, Weights};
use crate::limits::{Limits, Subgroups};

/// Queries of a group of threads.
const THREADS: usize = 64;

/// Threads of a group whose subgroups have a query each: as many as the largest subgroup has.
const SUBGROUP_THREADS: usize = 128;

/// Queries of all heads from which on each has a thread and not a subgroup. On an NVIDIA H200 (`cargo xtask bench gpu`)
/// both took as long for 6,144 of them, and threads less for 49,152.
const QUERIES_FOR_THREADS: usize = 10_000;

/// The kernel of an attention.
pub(crate) fn kernel(
    merged: &Merged,
    id: NodeId,
    op: &Attention,
    weights: &dyn Weights,
    constants: &mut Constants,
    limits: &Limits,
) -> Result<Made, TooLarge> {
    let sources = [op.query, op.key, op.value];
    let width = |columns: &HeadColumns| merged.nodes[columns.node.0].width;
    let items = sources.map(|columns| merged.items(columns.node));
    let fours = op.size.is_multiple_of(4)
        && sources.iter().all(|columns| {
            [columns.offset, columns.stride, width(columns)]
                .iter()
                .all(|extent| extent.is_multiple_of(4))
        });
    let (unit, total) = match fours {
        true => (4, "dot(x, vec4<f32>(1.0f, 1.0f, 1.0f, 1.0f))"),
        false => (1, "x"),
    };
    let bias = op.bias.as_deref().unwrap_or_default();
    let bias_at = constants.add(bias);
    let scale = functions::number(op.scale, constants);
    let mut reads: Vec<Reads> = sources
        .iter()
        .map(|columns| Reads::Node(columns.node))
        .collect();
    let terms = terms(op, unit, weights, constants, &mut reads)?;
    if ALWAYS + reads.len() > limits.storage_buffers {
        return Err(TooLarge::Refused(format!(
            "attention takes {} buffers; the device has {}",
            ALWAYS + reads.len(),
            limits.storage_buffers
        )));
    }
    let write = |subgroups: Option<Subgroups>| {
        // A subgroup has each of its threads write columns of its own.
        let of_values = if subgroups.is_some() { 1 } else { unit };
        let mut source = prelude(merged.items(id), of_values, &items);
        let mut set = |name: &str, value: usize| {
            source += &format!("const {name}: u32 = {value}u;\n");
        };
        let (size, mut columns) = (op.size / unit, 1);
        let (threads, queries) = match subgroups {
            Some(subgroups) => {
                let threads = SUBGROUP_THREADS.min(limits.threads);
                let queries = threads.div_ceil(subgroups.usual);
                columns = op.size.div_ceil(subgroups.least);
                set("QUERIES", queries);
                set("WIDTH", op.size);
                set("COLUMNS", columns);
                (threads, queries)
            }
            None => (THREADS, THREADS),
        };
        set("THREADS", threads);
        set("HEADS", op.heads);
        set("SIZE", size);
        let units = [unit, unit, of_values];
        for ((name, columns), unit) in ["Q", "K", "V"].iter().zip(&sources).zip(units) {
            set(&format!("{name}_STRIDE"), width(columns) / unit);
            set(&format!("{name}_OFFSET"), columns.offset / unit);
            set(&format!("{name}_HEAD"), columns.stride / unit);
        }
        set("BIAS", bias_at);
        set(
            "POSITIONS",
            (bias.len() / op.heads.max(1)).div_ceil(2).max(1),
        );
        set("REACH", op.reach.unwrap_or(0));
        source += &format!(
            "const HAS_BIAS: bool = {};\nconst HAS_REACH: bool = {};\nconst CAUSAL: bool = {};\nconst SCALE: f32 = {scale};\n\
             alias D = {};\nfn total(x: D) -> f32 {{ return {total}; }}\n",
            op.bias.is_some(),
            op.reach.is_some(),
            op.causal,
            Items::F32.of(unit),
        );
        for ((name, items), unit) in ["Q", "K", "V"].iter().zip(items).zip(units) {
            source += &format!("alias {name}_ITEMS = {};\n", items.of(unit));
        }
        source += &terms;
        source += wgsl!("attention_keys.wgsl");
        let how = match subgroups {
            Some(_) => {
                source += wgsl!("subgroups.wgsl");
                source += &repeat(wgsl!("attention_subgroups.wgsl"), size, columns);
                "attention is computed by subgroups"
            }
            None => {
                source += &repeat(wgsl!("attention.wgsl"), size, 1);
                "attention is computed by a thread for each query"
            }
        };
        Kernel {
            source,
            grid: Grid::Heads {
                rows: queries as u32,
                heads: op.heads as u32,
            },
            how: how.into(),
        }
    };
    let mut kernels = vec![(0, write(limits.subgroups))];
    if limits.subgroups.is_some() && limits.tiles {
        kernels.push((QUERIES_FOR_THREADS.div_ceil(op.heads.max(1)), write(None)));
    }
    Ok(Made {
        name: "attention",
        kernels,
        reads,
        inner: op.size,
        cost: ((2 + op.sides().count()) * op.heads * op.size) as u64,
    })
}

/// The function that gives a pair's terms by the content of one token and the distance of both.
fn terms(
    op: &Attention,
    unit: usize,
    weights: &dyn Weights,
    constants: &mut Constants,
    reads: &mut Vec<Reads>,
) -> Result<String, TooLarge> {
    let head = "fn terms(query: ptr<function, array<D, SIZE>>, key: u32, head: u32, other: u32, token: u32) -> f32";
    let Some(relative) = &op.relative else {
        return Ok(format!(
            "const HAS_TERMS: bool = false;\n{head} {{ return 0.0f; }}\n"
        ));
    };
    let columns = relative.columns;
    let by_offset: Vec<f32> = relative.by_offset.iter().map(|&at| at as f32).collect();
    let (first, middle) = (constants.add(&by_offset), by_offset.len() / 2);
    let mut source = String::from("const HAS_TERMS: bool = true;\n");
    let mut sum = String::new();
    // Offsets are those of the other token.
    let sides: [(&str, &Option<Side>, &str, &str); 2] = [
        ("query", &relative.queries, "(*query)[i]", "other - token"),
        ("key", &relative.keys, "D(keys[key + i])", "token - other"),
    ];
    let mut begins = String::new();
    for (name, side, content, offset) in sides {
        let Some(place) = side.as_ref().map(|side| side.place) else {
            continue;
        };
        let form = weights.table(place);
        if form.parts() != 1 {
            return Err(TooLarge::Refused(
                "a table of distances is larger than what the device binds at once".into(),
            ));
        }
        let (word, entry) = match form.stored {
            TableStored::F32 => ("f32", format!("{name}_table[at]")),
            TableStored::F16 => (
                "u32",
                format!("unpack2x16float({name}_table[at / 2u])[at % 2u]"),
            ),
            TableStored::I8 => {
                let scales = (form.rows * form.width).div_ceil(4);
                let entry = format!(
                    "f32(extractBits(bitcast<i32>({name}_table[at / 4u]), 8u * (at % 4u), 8u)) \
                     * bitcast<f32>({name}_table[{scales}u + at / {}u])",
                    form.width
                );
                ("u32", entry)
            }
        };
        let numbers: Vec<String> = (0..unit)
            .map(|at| format!("{name}_entry(at + {}u)", at * columns))
            .collect();
        let _ = write!(
            source,
            "@group(0) @binding({}) var<storage, read> {name}_table: array<{word}>;\n\
             fn {name}_entry(at: u32) -> f32 {{ return {entry}; }}\n\
             fn {name}_column(at: u32) -> D {{ return D({}); }}\n",
            ALWAYS + reads.len(),
            numbers.join(", ")
        );
        reads.push(Reads::Table { place, part: 0 });
        let _ = writeln!(
            begins,
            "  let {name}_at = u32(constants[{first}u + {middle}u + {offset}]);"
        );
        let _ = write!(sum, "sum += {content} * {name}_column(at + {name}_at); ");
    }
    let _ = write!(
        source,
        "{head} {{\n{begins}  var sum = D();\n  \
         for (var i = 0u; i < SIZE; i++) {{ let at = (head * SIZE + i) * {}u; {sum}}}\n  return total(sum);\n}}\n",
        unit * columns
    );
    Ok(source)
}
