//! Attention.

use isovec_graph::plan::{Attention, HeadColumns, NodeId};

use super::{Grid, Kernel, Made, Reads, functions, prelude};
use crate::constants::Constants;
use crate::plan::Merged;

/// Queries of a group of threads.
const THREADS: u32 = 64;

/// The kernel of an attention.
pub(crate) fn kernel(
    merged: &Merged,
    id: NodeId,
    op: &Attention,
    constants: &mut Constants,
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
    let mut source = prelude(merged.items(id), unit, &items);
    let mut set = |name: &str, value: usize| {
        source += &format!("const {name}: u32 = {value}u;\n");
    };
    set("THREADS", THREADS as usize);
    set("HEADS", op.heads);
    set("SIZE", op.size / unit);
    for (name, columns) in ["Q", "K", "V"].iter().zip(&sources) {
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
        "const HAS_BIAS: bool = {};\nconst HAS_REACH: bool = {};\nconst SCALE: f32 = {scale};\n\
         fn total(x: V) -> f32 {{ return {total}; }}\n",
        op.bias.is_some(),
        op.reach.is_some(),
    );
    for (name, items) in ["Q", "K", "V"].iter().zip(items) {
        source += &format!("alias {name}_ITEMS = {};\n", items.of(unit));
    }
    source += include_str!("../wgsl/attention.wgsl");
    Made {
        name: "attention",
        kernels: vec![(
            0,
            Kernel {
                source,
                grid: Grid::Heads {
                    rows: THREADS,
                    heads: op.heads as u32,
                },
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
