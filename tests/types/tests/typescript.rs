//! `bindings/js/ts/config.ts`, `bindings/js/ts/knobs.ts` and `docs/knobs.md` match the Rust configuration. `cargo
//! xtask types` runs these tests with a variable that lets them write the files instead.
#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

use std::path::Path;
use std::{env, fs};

use isovec::EmbeddingConfig;
use serde_json::{Value, json};

#[test]
fn the_types_of_the_npm_package_are_those_of_the_configuration() {
    up_to_date("bindings/js/ts/config.ts", &isovec_types::config().unwrap());
}

#[test]
fn the_names_that_the_npm_package_translates_are_those_of_the_configuration() {
    up_to_date("bindings/js/ts/knobs.ts", &isovec_types::names().unwrap());
}

#[test]
fn the_reference_is_that_of_the_configuration() {
    up_to_date("docs/knobs.md", &isovec_types::reference().unwrap());
}

/// Fails where a file of the repository is not what it has to be, or writes it.
fn up_to_date(name: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name);
    if env::var_os("ISOVEC_WRITE_TYPES").is_some() {
        fs::write(&path, wanted).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    let line = written
        .lines()
        .zip(wanted.lines())
        .position(|(is, should)| is != should);
    assert!(
        written == wanted,
        "{name} differs from the Rust configuration at line {}; run `cargo xtask types`",
        line.map_or(written.lines().count().min(wanted.lines().count()), |at| at) + 1
    );
}

/// The schema says what is accepted, and serde accepts it: every knob of the schema is read, and
/// every name of a choice.
#[test]
fn what_the_types_offer_is_read() {
    let schema = schemars::schema_for!(EmbeddingConfig).to_value();
    let mut knobs = 0;
    for (group, value) in values(&schema, &schema) {
        for value in value {
            knobs += 1;
            let config = json!({ &group: value });
            let read = serde_json::from_value::<EmbeddingConfig>(config.clone());
            assert!(read.is_ok(), "{config}: {}", read.unwrap_err());
        }
    }
    assert!(knobs > 60, "{knobs} values tried");
}

/// For every property, values that its type allows.
fn values(root: &Value, schema: &Value) -> Vec<(String, Vec<Value>)> {
    let properties = schema["properties"].as_object().unwrap();
    properties
        .iter()
        .map(|(name, schema)| (name.clone(), examples(root, schema)))
        .collect()
}

fn examples(root: &Value, schema: &Value) -> Vec<Value> {
    if let Some(reference) = schema["$ref"].as_str() {
        return examples(root, root.pointer(&reference[1..]).unwrap());
    }
    if let Some(either) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return either
            .iter()
            .flat_map(|schema| examples(root, schema))
            .collect();
    }
    if let Some(value) = schema.get("const") {
        return vec![value.clone()];
    }
    if schema["properties"].is_object() {
        let knobs = values(root, schema).into_iter();
        return knobs
            .flat_map(|(name, values)| values.into_iter().map(move |value| json!({ &name: value })))
            .collect();
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    types
        .iter()
        .flat_map(|one| match one.as_str().unwrap() {
            "null" => vec![Value::Null],
            "boolean" => vec![true.into()],
            "integer" | "number" => vec![1.into()],
            // Reads as a duration as well.
            "string" => vec!["1s".into()],
            "array" => examples(root, &schema["items"])
                .into_iter()
                .map(|item| json!([item]))
                .collect(),
            "object" => {
                let value = examples(root, &schema["additionalProperties"]).remove(0);
                let keys = match schema.get("propertyNames") {
                    Some(names) => examples(root, names),
                    None => vec!["name".into()],
                };
                keys.iter()
                    .map(|key| json!({ key.as_str().unwrap(): value }))
                    .collect()
            }
            other => panic!("{other} is not known here"),
        })
        .collect()
}
