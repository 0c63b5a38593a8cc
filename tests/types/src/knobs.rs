//! From a JSON schema to the names that the npm package translates.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::interface::object;
use crate::names::camel;

/// What is found on the way through the groups.
#[derive(Default)]
struct Found {
    /// Paths that JavaScript writes otherwise.
    paths: BTreeSet<String>,
    /// Knobs whose members somebody else named.
    free: BTreeSet<String>,
}

/// Two lists: the paths of knobs that JavaScript writes otherwise than Rust, and the knobs whose
/// members somebody else named.
pub(crate) fn lists(schema: &Value) -> Result<String> {
    let mut found = Found::default();
    found.group("", schema, schema)?;
    // A path that another one begins with comes after it, for who looks for the first that fits.
    let mut paths: Vec<&String> = found.paths.iter().collect();
    paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
    let mut text = String::from(
        "\n/** The paths of knobs that JavaScript writes otherwise than Rust, as Rust writes them, the longest first. */\nexport const KNOBS: readonly string[] = [\n",
    );
    for path in paths {
        writeln!(text, "  {path:?},")?;
    }
    text.push_str("];\n\n/** Knobs whose members have names that somebody else gave them. */\n");
    let free: Vec<String> = found.free.iter().map(|name| format!("{name:?}")).collect();
    writeln!(
        text,
        "export const FREE: readonly string[] = [{}];",
        free.join(", ")
    )?;
    Ok(text)
}

impl Found {
    fn group(&mut self, prefix: &str, group: &Value, root: &Value) -> Result<()> {
        let knobs = object(prefix, group)?
            .get("properties")
            .and_then(Value::as_object)
            .with_context(|| format!("{prefix} has no knobs"))?;
        for (name, knob) in knobs {
            let path = format!("{prefix}{name}");
            if back(&camel(name)) != *name {
                bail!(
                    "{path} cannot be told from its name in JavaScript, {}",
                    camel(name)
                );
            }
            if path.contains('_') {
                self.paths.insert(path.clone());
            }
            let knob = object(&path, knob)?;
            if let Some(inner) = definition(knob, root)
                && inner.get("properties").is_some()
            {
                self.group(&format!("{path}."), inner, root)?;
            } else if knob.contains_key("additionalProperties") {
                self.free.insert(name.clone());
            }
        }
        Ok(())
    }
}

/// What a knob refers to, if it is of a type of ours.
fn definition<'a>(knob: &Map<String, Value>, root: &'a Value) -> Option<&'a Value> {
    let either = knob.get("anyOf").and_then(Value::as_array);
    let reference = match either {
        Some(either) => either.iter().find_map(|one| one.get("$ref")),
        None => knob.get("$ref"),
    };
    root.pointer(reference?.as_str()?.strip_prefix('#')?)
}

/// `maxBatchSize` as `max_batch_size`, as the npm package does it.
fn back(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_found_in_groups_within_groups() {
        let text = lists(&json!({
            "properties": {
                "plain": {"type": "string"},
                "outer": {"anyOf": [{"$ref": "#/$defs/Outer"}, {"type": "null"}]},
                "names": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "$defs": {
                "Outer": {"properties": {"inner": {"$ref": "#/$defs/Inner"}, "a_b": {"type": "string"}}},
                "Inner": {"properties": {"a_knob": {"type": "string"}}},
            },
        }))
        .unwrap();
        let paths = "= [\n  \"outer.inner.a_knob\",\n  \"outer.a_b\",\n];";
        assert!(text.contains(paths), "{text}");
        assert!(text.ends_with("= [\"names\"];\n"), "{text}");
    }

    #[test]
    fn a_name_that_does_not_come_back_is_an_error() {
        let error = lists(&json!({"properties": {"level_3": {"type": "string"}}})).unwrap_err();
        assert!(error.to_string().contains("level_3"), "{error}");
    }
}
