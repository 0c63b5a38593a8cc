//! `js/ts/config.ts`, made from the Rust configuration: what the npm package's users write is
//! checked and explained by their editor as the Rust SDK's users' is.
//!
//! The Rust types describe themselves as a JSON schema, as serde reads them
//! ([`schemars::JsonSchema`], behind the feature `schema`); this crate writes the schema as
//! TypeScript. `cargo xtask types` writes the file, and a test holds it to what the types say.

mod docs;
mod interface;

use anyhow::Result;
use isovec::EmbeddingConfig;

/// The name under which the whole configuration is exported.
const ROOT: &str = "Config";

const HEADER: &str = "// Made from the Rust configuration by `cargo xtask types`; what is to be different here is changed there.\n";

/// The file, as it has to be.
///
/// # Errors
/// When a type or a sentence of the configuration is one that this crate cannot put in TypeScript.
pub fn config() -> Result<String> {
    let schema = schemars::schema_for!(EmbeddingConfig).to_value();
    Ok(format!("{HEADER}{}", interface::module(ROOT, &schema)?))
}
