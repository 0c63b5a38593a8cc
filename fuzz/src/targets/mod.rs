//! The targets, by name.

pub mod charsmap;
pub mod chat;
pub mod config;
pub mod embeddings;
pub mod hub;
pub mod kernels;
pub mod lowering;
pub mod networks;
pub mod normal_forms;
pub mod onnx_model;
pub mod picture;
pub mod regex;
pub mod rows;
pub mod safetensors;
pub mod tokenizer;
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
        name: "charsmap",
        run: charsmap::run,
        random: 3_000,
    },
    Target {
        name: "chat",
        run: chat::run,
        random: 20_000,
    },
    Target {
        name: "config",
        run: config::run,
        random: 10_000,
    },
    Target {
        name: "embeddings",
        run: embeddings::run,
        random: 10_000,
    },
    Target {
        name: "hub",
        run: hub::run,
        random: 20_000,
    },
    Target {
        name: "kernels",
        run: kernels::run,
        random: 500,
    },
    Target {
        name: "lowering",
        run: lowering::run,
        random: 400,
    },
    Target {
        name: "networks",
        run: networks::run,
        random: 1_000,
    },
    Target {
        name: "normal_forms",
        run: normal_forms::run,
        random: 5_000,
    },
    Target {
        name: "onnx_model",
        run: onnx_model::run,
        random: 5_000,
    },
    Target {
        name: "picture",
        run: picture::run,
        random: 3_000,
    },
    Target {
        name: "regex",
        run: regex::run,
        random: 3_000,
    },
    Target {
        name: "rows",
        run: rows::run,
        random: 10_000,
    },
    Target {
        name: "safetensors",
        run: safetensors::run,
        random: 20_000,
    },
    Target {
        name: "tokenizer",
        run: tokenizer::run,
        random: 2_000,
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
