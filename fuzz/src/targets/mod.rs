//! The targets, by name.

pub mod embeddings;
pub mod rows;
pub mod top_k;
pub mod traces;

/// One target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of its module, its program, and its folders of inputs.
    pub name: &'static str,
    /// Tries one input; panics where the oracle says otherwise.
    pub run: fn(&[u8]),
    /// How many made-up inputs `cargo test` tries: so many that it takes a second or two.
    pub random: usize,
}

/// All of them, in the order of their names.
pub const TARGETS: &[Target] = &[
    Target {
        name: "embeddings",
        run: embeddings::run,
        random: 10_000,
    },
    Target {
        name: "rows",
        run: rows::run,
        random: 10_000,
    },
    Target {
        name: "top_k",
        run: top_k::run,
        random: 20_000,
    },
    Target {
        name: "traces",
        run: traces::run,
        random: 2_000,
    },
];
