//! Generates files from the Rust configuration: `bindings/js/ts/config.ts`, the types with which an editor checks and
//! explains a configuration in JavaScript; `bindings/js/ts/knobs.ts`, the names that the npm package translates; and
//! `docs/knobs.md`, the reference in the book. TypeScript has the names in camel case, configuration files have
//! Rust's names.
//!
//! The Rust types describe themselves as a JSON schema, as serde reads them ([`schemars::JsonSchema`], behind the
//! feature `schema`); this crate writes the schema as TypeScript and as Markdown. `effects.toml` adds what a knob does on each
//! engine and when to change it. `cargo xtask types` writes the files, and a test compares them with the types.

mod docs;
mod interface;
mod knobs;
mod names;
mod reference;

use anyhow::{Context, Result};
use isovec::EmbeddingConfig;

/// The name under which the whole configuration is exported.
const ROOT: &str = "Config";

const HEADER: &str = "// Generated from the Rust configuration by `cargo xtask types`; change the Rust types instead.\n";

const REFERENCE: &str = "\
<!-- Generated from the Rust configuration by `cargo xtask types`; change the Rust types instead. -->

# Every knob

All knobs of [the configuration](configuration.md), generated from the Rust types: the same names in TOML, in JSON and as
fields of `EmbeddingConfig`. JavaScript writes them in camel case: `batching.max_batch_size` is
`{ config: { batching: { maxBatchSize: 8 } } }`. [The configuration](configuration.md) has how they work together, and
measurements.

*Portable* is the engine that needs nothing installed, natively and in the browser. Where an engine is not named, it makes no
difference. Times are texts with a unit, such as `\"5ms\"`; sizes of memory are in bytes.
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
/// When a type of the configuration is one that this crate has no words for, a knob's documentation says no default, or
/// `effects.toml` lacks a knob or has one that is none.
pub fn reference() -> Result<String> {
    let schema = schemars::schema_for!(EmbeddingConfig).to_value();
    let effects = toml::from_str(include_str!("../effects.toml"))
        .context("tests/types/effects.toml cannot be read")?;
    Ok(format!(
        "{REFERENCE}{}",
        reference::tables(&schema, effects)?
    ))
}
