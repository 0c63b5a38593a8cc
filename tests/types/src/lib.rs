//! What is made from the Rust configuration for those who do not read Rust: `bindings/js/ts/config.ts`, so that
//! what the npm package's users write is checked and explained by their editor as the Rust SDK's
//! users' is, `bindings/js/ts/knobs.ts`, the names that it translates, and `docs/knobs.md`, the reference in the
//! book. TypeScript has the names in camel case, the files of Rust's users as Rust has them.
//!
//! The Rust types describe themselves as a JSON schema, as serde reads them
//! ([`schemars::JsonSchema`], behind the feature `schema`); this crate writes the schema as
//! TypeScript and as Markdown. `cargo xtask types` writes the files, and a test holds them to what
//! the types say.

mod docs;
mod interface;
mod knobs;
mod names;
mod reference;

use anyhow::Result;
use isovec::EmbeddingConfig;

/// The name under which the whole configuration is exported.
const ROOT: &str = "Config";

const HEADER: &str = "// Made from the Rust configuration by `cargo xtask types`; what is to be different here is changed there.\n";

const REFERENCE: &str = "\
<!-- Made from the Rust configuration by `cargo xtask types`; what is to be different here is changed there. -->

# Every knob

All knobs of [the configuration](configuration.md), as the Rust types say them: the same names in TOML, in JSON and as
fields of `EmbeddingConfig`. JavaScript writes them in camel case: `batching.max_batch_size` is
`{ config: { batching: { maxBatchSize: 8 } } }`. What each comes to on each engine, when to change it,
and what was measured stands in [the configuration](configuration.md).

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
