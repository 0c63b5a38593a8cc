//! Attention.

use isovec_encoder::program::{Attention, HeadColumns, NodeId};

use super::source::wgsl;
use super::{Grid, Items, Kernel, Made, Reads, functions, prelude};
use crate::constants::Constants;
use crate::dispatch::Merged;
use crate::limits::Limits;

/// Queries of a group of threads.
const THREADS: usize = 64;

/// Threads of a group whose subgroups have a query each: as many as the largest subgroup has.
const SUBGROUP_THREADS: usize = 128;

/// The kernel of an attention.
pub(crate) fn kernel(
    merged: &Merged,
    id: NodeId,
    op: &Attention,
    constants: &mut Constants,
    limits: &Limits,
) -> Made {
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
    // A subgroup has each of its threads write columns of its own.
    let of_values = if limits.subgroups.is_some() { 1 } else { unit };
    let mut source = prelude(merged.items(id), of_values, &items);
    let mut set = |name: &str, value: usize| {
        source += &format!("const {name}: u32 = {value}u;\n");
    };
    let (threads, queries) = match limits.subgroups {
        Some(subgroups) => {
            let threads = SUBGROUP_THREADS.min(limits.threads);
            let queries = threads.div_ceil(subgroups.usual);
            set("QUERIES", queries);
            set("WIDTH", op.size);
            set("COLUMNS", op.size.div_ceil(subgroups.least));
            (threads, queries)
        }
        None => (THREADS, THREADS),
    };
    set("THREADS", threads);
    set("HEADS", op.heads);
    set("SIZE", op.size / unit);
    let units = [unit, unit, of_values];
    for ((name, columns), unit) in ["Q", "K", "V"].iter().zip(&sources).zip(units) {
        set(&format!("{name}_STRIDE"), width(columns) / unit);
        set(&format!("{name}_OFFSET"), columns.offset / unit);
        set(&format!("{name}_HEAD"), columns.stride / unit);
    }
    let bias = op.bias.as_deref().unwrap_or_default();
    set("BIAS", constants.add(bias));
    set(
        "POSITIONS",
        (bias.len() / op.heads.max(1)).div_ceil(2).max(1),
    );
    set("REACH", op.reach.unwrap_or(0));
    let scale = functions::number(op.scale, constants);
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
    source += wgsl!("attention_keys.wgsl");
    match limits.subgroups {
        Some(_) => {
            source += wgsl!("subgroups.wgsl");
            source += wgsl!("attention_subgroups.wgsl");
        }
        None => source += wgsl!("attention.wgsl"),
    }
    Made {
        name: "attention",
        kernels: vec![(
            0,
            Kernel {
                source,
                grid: Grid::Heads {
                    rows: queries as u32,
                    heads: op.heads as u32,
                },
                ..Kernel::default()
            },
        )],
        reads: sources
            .iter()
            .map(|columns| Reads::Node(columns.node))
            .collect(),
        inner: op.size,
        cost: 2 * (op.heads * op.size) as u64,
    }
}
