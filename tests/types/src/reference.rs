//! Turns a JSON schema into the reference of the configuration: a page of tables with the path, type, default and
//! effect of every knob.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::interface::{documentation, object, part, type_of};

/// What a default begins with in a knob's documentation.
const DEFAULTS: [&str; 2] = ["Default: ", "Empty: "];

/// What stands above a group's table.
const HEAD: &str =
    "\n| knob | takes | default | what it does | change it when |\n|---|---|---|---|---|\n";

/// What the documentation of a knob does not say, because the type belongs to no engine.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Effect {
    /// What it does on ONNX Runtime, where that differs.
    onnxruntime: Option<String>,
    /// What it does on the portable engine, where that differs.
    portable: Option<String>,
    /// When to change it.
    change: String,
}

/// The effects by the paths of the knobs.
pub(crate) type Effects = BTreeMap<String, Effect>;

/// The tables: what stands beside the groups, the groups, and the choices that they name. Every knob takes its effect out of
/// `effects`, and none may be left.
pub(crate) fn tables(schema: &Value, effects: Effects) -> Result<String> {
    let root = object("the configuration", schema)?;
    let mut page = Page {
        schema,
        effects,
        alone: HEAD.to_owned(),
        groups: String::new(),
        choices: Vec::new(),
    };
    page.knobs("", root)?;
    if let Some(path) = page.effects.keys().next() {
        bail!("effects.toml describes {path}, which is no knob");
    }
    let mut text = format!("\n## Beside the groups\n{}{}", page.alone, page.groups);
    text.push_str("\n## Choices\n");
    // A choice's meaning may name no other, so none is added while they are written.
    for name in &page.choices {
        text.push_str(&choice(schema, name)?);
    }
    Ok(text)
}

struct Page<'a> {
    schema: &'a Value,
    /// Those of the knobs that have no row yet.
    effects: Effects,
    alone: String,
    groups: String,
    /// Those that were named, each once.
    choices: Vec<String>,
}

impl<'a> Page<'a> {
    /// The knobs of a group, `prefix` being its path with a dot behind; groups inside it follow in
    /// the same table.
    fn knobs(&mut self, prefix: &str, group: &Map<String, Value>) -> Result<()> {
        let knobs = group
            .get("properties")
            .and_then(Value::as_object)
            .with_context(|| format!("{prefix} has no knobs"))?;
        for (name, knob) in knobs {
            let path = format!("{prefix}{name}");
            let knob = object(&path, knob)?;
            let named = named(self.schema, &path, knob)?;
            match named.filter(|(_, named)| named.contains_key("properties")) {
                Some((_, inner)) if prefix.is_empty() => {
                    let about = sentence(&documentation(&path, inner)?);
                    self.groups
                        .push_str(&format!("\n## `{path}`\n\n{about}\n{HEAD}"));
                    self.knobs(&format!("{path}."), inner)?;
                }
                Some((_, inner)) => self.knobs(&format!("{path}."), inner)?,
                None => {
                    let row = self.row(&path, knob)?;
                    let table = if prefix.is_empty() {
                        &mut self.alone
                    } else {
                        &mut self.groups
                    };
                    table.push_str(&row);
                }
            }
        }
        Ok(())
    }

    fn row(&mut self, path: &str, knob: &Map<String, Value>) -> Result<String> {
        let about = sentence(&documentation(path, knob)?);
        let (about, default) = apart(path, &about)?;
        let takes = self.takes(path, knob)?;
        let effect = self
            .effects
            .remove(path)
            .with_context(|| format!("effects.toml does not say when to change {path}"))?;
        let about = with_engines(&about, &effect);
        let cells = [format!("`{path}`"), takes, default, about, effect.change];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        Ok(format!("| {} |\n", cells.join(" | ")))
    }

    /// What may be written, in words that TOML, JSON and Rust have in common.
    fn takes(&mut self, path: &str, knob: &Map<String, Value>) -> Result<String> {
        if let Some((name, _)) = named(self.schema, path, knob)? {
            if !self.choices.iter().any(|choice| choice == name) {
                self.choices.push(name.to_owned());
            }
            return Ok(format!("[`{name}`](#{})", name.to_lowercase()));
        }
        Ok(match type_of(path, knob)? {
            "boolean" => "true or false".to_owned(),
            "integer" => "whole number".to_owned(),
            "number" => "number".to_owned(),
            "string" => "text".to_owned(),
            "array" => format!("list of {}", self.takes(path, part(path, knob, "items")?)?),
            "object" => {
                let value = self.takes(path, part(path, knob, "additionalProperties")?)?;
                match knob.get("propertyNames") {
                    Some(key) => {
                        format!(
                            "for each {}: {value}",
                            self.takes(path, object(path, key)?)?
                        )
                    }
                    None => format!("names, each with {value}"),
                }
            }
            other => bail!("{path} is of the type {other}"),
        })
    }
}

/// What a knob does, and below it what it does on each engine where that differs.
fn with_engines(about: &str, effect: &Effect) -> String {
    let mut text = about.to_owned();
    for (engine, does) in [
        ("ONNX Runtime", &effect.onnxruntime),
        ("Portable", &effect.portable),
    ] {
        if let Some(does) = does {
            text.push_str(&format!("<br>*{engine}*: {does}"));
        }
    }
    text
}

/// The type of ours that a knob is of, if it is of one: its name and its definition.
fn named<'a>(
    schema: &'a Value,
    path: &str,
    knob: &'a Map<String, Value>,
) -> Result<Option<(&'a str, &'a Map<String, Value>)>> {
    // A knob that may be left out is written as either its type or `null`.
    let either = knob.get("anyOf").and_then(Value::as_array);
    let reference = match either.map(Vec::as_slice) {
        Some([one, _null]) => one.get("$ref"),
        Some(all) => bail!("{path} is one of {} types", all.len()),
        None => knob.get("$ref"),
    };
    let Some(reference) = reference.and_then(Value::as_str) else {
        return Ok(None);
    };
    let name = reference
        .strip_prefix("#/$defs/")
        .with_context(|| format!("{reference} is no type of ours"))?;
    Ok(Some((name, object(name, &schema["$defs"][name])?)))
}

/// What each name of a choice means.
fn choice(schema: &Value, name: &str) -> Result<String> {
    let definition = object(name, &schema["$defs"][name])?;
    let variants = definition
        .get("oneOf")
        .and_then(Value::as_array)
        .with_context(|| format!("{name} is neither a group nor a choice"))?;
    let about = sentence(&documentation(name, definition)?);
    let mut text = format!("\n### {name}\n\n{about}\n\n");
    for variant in variants {
        let variant = object(name, variant)?;
        let value = variant
            .get("const")
            .and_then(Value::as_str)
            .with_context(|| format!("a variant of {name} is no name"))?;
        let meaning = sentence(&documentation(name, variant)?);
        text.push_str(&format!("- `{value}`: {meaning}\n"));
    }
    Ok(text)
}

/// Lines as one, because a cell of a table has no others.
fn sentence(lines: &[String]) -> String {
    let words: Vec<&str> = lines
        .iter()
        .flat_map(|line| line.split_whitespace())
        .collect();
    words.join(" ")
}

/// The documentation without the sentence that says the default, and what that says.
fn apart(path: &str, about: &str) -> Result<(String, String)> {
    let Some((start, mark)) = DEFAULTS
        .iter()
        .find_map(|mark| Some((about.find(mark)?, *mark)))
    else {
        bail!(
            "the documentation of {path} says no default: begin a sentence with \"`None`:\" (or \"Empty:\" for a list): {about}"
        );
    };
    let said = &about[start + mark.len()..];
    let end = said
        .match_indices(". ")
        .map(|(at, _)| at)
        .find(|at| said[at + 2..].starts_with(char::is_uppercase))
        .unwrap_or_else(|| said.trim_end_matches('.').len());
    let default = said[..end].to_owned();
    let rest = said[end..].trim_start_matches('.').trim();
    let about = [about[..start].trim(), rest]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    Ok((about, default))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn schema(about: &str) -> Value {
        let group = |properties: Value| {
            json!({
                "description": "A group.", "type": "object", "additionalProperties": false,
                "properties": properties,
            })
        };
        json!({
            "description": "All.", "type": "object", "additionalProperties": false,
            "properties": {
                "engine": {"description": "Which. Default: `a`.", "$ref": "#/$defs/Kind"},
                "outer": {"description": "Outer.", "$ref": "#/$defs/Outer"},
            },
            "$defs": {
                "Kind": {"description": "Kinds.", "oneOf": [{"const": "a", "description": "One."}]},
                "Outer": group(json!({"inner": {"description": "Inner.", "$ref": "#/$defs/Inner"}})),
                "Inner": group(json!({"knob": {
                    "description": about, "type": ["integer", "null"], "format": "uint", "minimum": 0,
                }})),
            },
        })
    }

    fn effects(more: &str) -> Effects {
        let some = "[engine]\nchange = \"never\"\n";
        toml::from_str(&format!("{some}{more}")).unwrap()
    }

    const INNER: &str = "[\"outer.inner.knob\"]\nportable = \"nothing\"\nchange = \"idle\"\n";

    #[test]
    fn knobs_stand_under_their_paths_with_their_defaults() {
        let schema = schema("Does\nthis | that. `None`: 5, e.g. 5. More.");
        let page = tables(&schema, effects(INNER)).unwrap();
        for line in [
            "| `engine` | [`Kind`](#kind) | `a` | Which. | never |",
            "## `outer`",
            "| `outer.inner.knob` | whole number | 5, e.g. 5 | Does this \\| that. More.<br>*Portable*: nothing | idle |",
            "### Kind",
            "- `a`: One.",
        ] {
            assert!(page.lines().any(|own| own == line), "{line}\n{page}");
        }
    }

    #[test]
    fn a_knob_that_says_no_default_is_an_error() {
        let error = tables(&schema("Does this."), effects(INNER)).unwrap_err();
        assert!(error.to_string().contains("outer.inner.knob"), "{error}");
    }

    #[test]
    fn every_knob_has_an_effect_and_every_effect_a_knob() {
        let schema = schema("Does this. `None`: 5.");
        let error = tables(&schema, effects("")).unwrap_err();
        assert!(error.to_string().contains("outer.inner.knob"), "{error}");
        let strange = format!("{INNER}[gone]\nchange = \"never\"\n");
        let error = tables(&schema, effects(&strange)).unwrap_err();
        assert!(error.to_string().contains("gone"), "{error}");
    }
}
