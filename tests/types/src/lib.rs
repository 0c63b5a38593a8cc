//! Generates files from the Rust configuration: `bindings/js/ts/config.ts`, the types with which an editor checks and
//! explains a configuration in JavaScript; `bindings/js/ts/knobs.ts`, the names that the npm package translates; and
//! `docs/knobs.md`, the reference in the book. TypeScript has the names in camel case, configuration files have
//! Rust's names.
//!
//! The Rust types describe themselves as a JSON schema, as serde reads them ([`schemars::JsonSchema`], behind the
//! feature `schema`); this crate writes the schema as TypeScript and as Markdown. `cargo xtask types` writes the
//! files, and a test compares them with the types.

mod docs;
mod interface;
mod knobs;
mod names;
mod reference;

use anyhow::Result;
use isovec::EmbeddingConfig;

/// The name under which the whole configuration is exported.
const ROOT: &str = "Config";

const HEADER: &str = "// Generated from the Rust configuration by `cargo xtask types`; change the Rust types instead.\n";

const REFERENCE: &str = "\
<!-- Generated from the Rust configuration by `cargo xtask types`; change the Rust types instead. -->

# Every knob

All knobs of [the configuration](configuration.md), generated from the Rust types: the same names in TOML, in JSON and as
fields of `EmbeddingConfig`. JavaScript writes them in camel case: `batching.max_batch_size` is
`{ config: { batching: { maxBatchSize: 8 } } }`. [The configuration](configuration.md)
describes the effect of each knob on each engine, when to change it, and measurements.

Times are texts with a unit, such as `\"5ms\"`; sizes of memory are in bytes.
";

/// `bindings/js/ts/config.ts`, as it has to be.
///
/// # Errors
/// When a type or a sentence of the configuration is one that this crate cannot put in TypeScript.
pub fn config() -> Result<String> {
    let schema = schemars::schema_for!(EmbeddingConfig).to_value();
    Ok(format!("{HEADER}{}", interface::module(ROOT, &schema)?))
}

/// `bindings/js/ts/knobs.ts`, as it has to be.
///
/// # Errors
/// When a knob's name does not come back from the one that JavaScript writes.
pub fn names() -> Result<String> {
    let schema = schemars::schema_for!(EmbeddingConfig).to_value();
    Ok(format!("{HEADER}{}", knobs::lists(&schema)?))
}

/// `docs/knobs.md`, as it has to be.
///
/// # Errors
/// When a type of the configuration is one that this crate has no words for, or a knob's
/// documentation says no default.
pub fn reference() -> Result<String> {
    let schema = schemars::schema_for!(EmbeddingConfig).to_value();
    Ok(format!("{REFERENCE}{}", reference::tables(&schema)?))
}
