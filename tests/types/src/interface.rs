//! Turns a JSON schema into TypeScript. It supports the types of the configuration, and refuses what it does not
//! know: a type that came out wrong would be worse than a test that fails.

use std::collections::VecDeque;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::docs;
use crate::names;

/// What may stand in a schema, and is either read here or says nothing about the type.
const KNOWN: [&str; 18] = [
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "default",
    "description",
    "format",
    "items",
    "maximum",
    "minimum",
    "oneOf",
    "properties",
    "propertyNames",
    "title",
    "type",
    "writeOnly",
];

/// The definition of `root`, and below it those of what it names, in the order of being named.
pub(crate) fn module(root: &str, schema: &Value) -> Result<String> {
    let definitions = schema["$defs"]
        .as_object()
        .context("the schema defines no types")?;
    let mut seen = Names::default();
    let mut text = definition(root, schema, &mut seen)?;
    while let Some(name) = seen.waiting.pop_front() {
        let schema = definitions
            .get(&name)
            .with_context(|| format!("{name} is not defined"))?;
        text.push_str(&definition(&name, schema, &mut seen)?);
    }
    Ok(text)
}

/// The types that were named: those that wait for their definition, and all.
#[derive(Default)]
struct Names {
    waiting: VecDeque<String>,
    seen: Vec<String>,
}

impl Names {
    fn of(&mut self, reference: &str) -> Result<String> {
        let name = reference
            .strip_prefix("#/$defs/")
            .with_context(|| format!("{reference} is no type of ours"))?;
        if !self.seen.iter().any(|seen| seen == name) {
            self.seen.push(name.to_owned());
            self.waiting.push_back(name.to_owned());
        }
        Ok(name.to_owned())
    }
}

/// `export interface` of an object, `export type` of a choice of names.
fn definition(name: &str, schema: &Value, seen: &mut Names) -> Result<String> {
    let schema = object(name, schema)?;
    let about = names::spoken(&documentation(name, schema)?);
    if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
        return choice(name, about, variants);
    }
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .with_context(|| format!("{name} is neither an object nor a choice"))?;
    // What else it takes TypeScript would have to take as well.
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        bail!("{name} takes unknown knobs");
    }
    let mut text = format!(
        "\n{}export interface {name} {{\n",
        docs::comment(&about, "")
    );
    for (knob, schema) in properties {
        let path = format!("{name}.{knob}");
        let schema = object(&path, schema)?;
        let about = names::spoken(&documentation(&path, schema)?);
        text.push_str(&docs::comment(&about, "  "));
        let written = written(&path, schema, seen)?;
        text.push_str(&format!("  {}?: {written};\n", names::camel(knob)));
    }
    Ok(text + "}\n")
}

/// A choice of names, with what each means in the comment: editors do not show comments on a
/// union's members.
fn choice(name: &str, mut about: Vec<String>, variants: &[Value]) -> Result<String> {
    let mut written = Vec::new();
    about.push(String::new());
    for variant in variants {
        let variant = object(name, variant)?;
        let value = variant
            .get("const")
            .and_then(Value::as_str)
            .with_context(|| format!("a variant of {name} is no name"))?;
        let meaning = documentation(&format!("{name}.{value}"), variant)?;
        let mut meaning = names::spoken(&meaning).into_iter();
        about.push(format!(
            "- `{value}`: {}",
            meaning.next().unwrap_or_default()
        ));
        about.extend(meaning.map(|line| format!("  {line}")));
        written.push(format!("{value:?}"));
    }
    Ok(format!(
        "\n{}export type {name} = {};\n",
        docs::comment(&about, ""),
        written.join(" | ")
    ))
}

pub(crate) fn documentation(name: &str, schema: &Map<String, Value>) -> Result<Vec<String>> {
    let text = schema
        .get("description")
        .and_then(Value::as_str)
        .with_context(|| format!("{name} has no documentation"))?;
    docs::lines(name, text)
}

/// The type of what `schema` says, `null` apart: it means the same as leaving a knob out.
fn written(path: &str, schema: &Map<String, Value>, seen: &mut Names) -> Result<String> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return seen.of(reference);
    }
    if let Some(either) = schema.get("anyOf").and_then(Value::as_array) {
        let [one, null] = &either[..] else {
            bail!("{path} is one of several types")
        };
        if null["type"] != "null" {
            bail!("{path} is one of two types");
        }
        return written(path, object(path, one)?, seen);
    }
    Ok(match type_of(path, schema)? {
        "boolean" => "boolean".to_owned(),
        "integer" | "number" => "number".to_owned(),
        "string" => "string".to_owned(),
        "array" => format!(
            "readonly {}[]",
            written(path, part(path, schema, "items")?, seen)?
        ),
        "object" => {
            let value = written(path, part(path, schema, "additionalProperties")?, seen)?;
            match schema.get("propertyNames") {
                Some(key) => format!(
                    "Partial<Record<{}, {value}>>",
                    written(path, object(path, key)?, seen)?
                ),
                None => format!("Record<string, {value}>"),
            }
        }
        other => bail!("{path} is of the type {other}"),
    })
}

/// The one type besides `null`.
pub(crate) fn type_of<'a>(path: &str, schema: &'a Map<String, Value>) -> Result<&'a str> {
    match schema.get("type") {
        Some(Value::String(one)) => Ok(one),
        Some(Value::Array(all)) => match all[..] {
            [Value::String(ref one), Value::String(ref null)] if null == "null" => Ok(one),
            _ => bail!("{path} is one of the types {all:?}"),
        },
        _ => bail!("{path} has no type"),
    }
}

/// A schema, of which every word is known.
pub(crate) fn object<'a>(path: &str, schema: &'a Value) -> Result<&'a Map<String, Value>> {
    let schema = schema
        .as_object()
        .with_context(|| format!("{path} is no schema: {schema}"))?;
    match schema.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        Some(key) => bail!("{path} says {key:?}, which is not known here"),
        None => Ok(schema),
    }
}

/// The schema that another holds under `key`.
pub(crate) fn part<'a>(
    path: &str,
    schema: &'a Map<String, Value>,
    key: &str,
) -> Result<&'a Map<String, Value>> {
    object(
        path,
        schema
            .get(key)
            .with_context(|| format!("{path} says nothing of its {key}"))?,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn schema(knob: Value) -> Value {
        json!({
            "description": "All.", "type": "object", "additionalProperties": false,
            "properties": {"a_knob": knob}, "$defs": {"Kind": {
                "description": "Which.",
                "oneOf": [{"const": "a", "description": "One."}, {"const": "b", "description": "Another,\nlonger."}],
            }},
        })
    }

    #[test]
    fn every_kind_of_knob_is_written() {
        for (mut knob, written) in [
            (json!({"type": ["boolean", "null"]}), "boolean"),
            (
                json!({"type": ["integer", "null"], "format": "uint", "minimum": 0}),
                "number",
            ),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                "readonly string[]",
            ),
            (
                json!({"anyOf": [{"$ref": "#/$defs/Kind"}, {"type": "null"}]}),
                "Kind",
            ),
            (
                json!({"type": "object", "propertyNames": {"$ref": "#/$defs/Kind"}, "additionalProperties": {"type": "string"}}),
                "Partial<Record<Kind, string>>",
            ),
        ] {
            knob["description"] = "Does.".into();
            let text = module("Config", &schema(knob)).unwrap();
            let start = format!(
                "\n/** All. */\nexport interface Config {{\n  /** Does. */\n  aKnob?: {written};\n}}\n"
            );
            assert!(text.starts_with(&start), "{text}");
        }
    }

    #[test]
    fn a_choice_says_what_each_of_its_names_means() {
        let text = module(
            "Config",
            &schema(json!({"description": "Does.", "$ref": "#/$defs/Kind"})),
        )
        .unwrap();
        let end = "\n/**\n * Which.\n *\n * - `a`: One.\n * - `b`: Another,\n *   longer.\n */\nexport type Kind = \"a\" | \"b\";\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for knob in [
            json!({"type": "string"}),
            json!({"description": "Does.", "type": "string", "pattern": "a+"}),
            json!({"description": "Does.", "type": "string", "enum": ["a", "b"]}),
            json!({"description": "Does.", "type": ["string", "integer"]}),
            json!({"description": "Does.", "anyOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({"description": "Does.", "$ref": "#/$defs/Other"}),
            json!({"description": "Does.", "type": "object"}),
        ] {
            assert!(module("Config", &schema(knob.clone())).is_err(), "{knob}");
        }
        let mut needed = schema(json!({"description": "Does.", "type": "string"}));
        needed["required"] = json!(["knob"]);
        assert!(module("Config", &needed).is_err());
        let mut open = schema(json!({"description": "Does.", "type": "string"}));
        open["additionalProperties"] = true.into();
        assert!(
            module("Config", &open)
                .unwrap_err()
                .to_string()
                .contains("unknown knobs")
        );
    }
}
