//! JSON schemas (<https://json-schema.org/draft/2020-12>), as the document of the routes has them.

use serde_json::{Map, Value, json};

use crate::options::MOST_TEXTS;

/// A field of an object.
pub(crate) struct Field {
    name: &'static str,
    schema: Value,
    required: bool,
}

/// A field that has to be there.
pub(crate) fn needed(name: &'static str, schema: Value) -> Field {
    Field {
        name,
        schema,
        required: true,
    }
}

/// A field that may be left out.
pub(crate) fn optional(name: &'static str, schema: Value) -> Field {
    Field {
        name,
        schema,
        required: false,
    }
}

pub(crate) fn object(fields: impl IntoIterator<Item = Field>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for Field {
        name,
        schema,
        required: is_required,
    } in fields
    {
        if is_required {
            required.push(name);
        }
        properties.insert(name.to_owned(), schema);
    }
    json!({"type": "object", "properties": properties, "required": required})
}

pub(crate) fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

pub(crate) fn either(schemas: impl IntoIterator<Item = Value>) -> Value {
    json!({"anyOf": schemas.into_iter().collect::<Vec<_>>()})
}

/// A text.
pub(crate) fn text() -> Value {
    json!({"type": "string"})
}

/// A text, and what it is.
pub(crate) fn word(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

/// A text out of a few.
pub(crate) fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

pub(crate) fn boolean(about: &str) -> Value {
    json!({"type": "boolean", "description": about})
}

pub(crate) fn number() -> Value {
    json!({"type": "number"})
}

/// A whole number of at least `least`.
pub(crate) fn whole(least: usize, about: &str) -> Value {
    json!({"type": "integer", "minimum": least, "description": about})
}

/// A text of a request: not empty.
pub(crate) fn given() -> Value {
    json!({"type": "string", "minLength": 1})
}

/// A list of what a request is about: neither empty nor too long.
pub(crate) fn some(items: Value) -> Value {
    json!({"type": "array", "items": items, "minItems": 1, "maxItems": MOST_TEXTS})
}

/// A list that is not empty.
pub(crate) fn filled(items: Value) -> Value {
    json!({"type": "array", "items": items, "minItems": 1})
}

/// One text, or a list of texts.
pub(crate) fn texts() -> Value {
    either([given(), some(given())])
}

/// The same schema where each field that may be left out may be null as well.
pub(crate) fn or_null(mut schema: Value) -> Value {
    let required = schema.get("required").cloned().unwrap_or_default();
    let required = required.as_array().map_or(&[][..], Vec::as_slice);
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, field) in fields.into_iter().flatten() {
        *field = or_null(field.take());
        if !required.iter().any(|required| required == name) {
            null_too(field);
        }
    }
    if let Some(items) = schema.get_mut("items") {
        *items = or_null(items.take());
    }
    let schemas = schema.get_mut("anyOf").and_then(Value::as_array_mut);
    for one in schemas.into_iter().flatten() {
        *one = or_null(one.take());
    }
    schema
}

fn null_too(schema: &mut Value) {
    if let Some(schemas) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        return schemas.push(json!({"type": "null"}));
    }
    schema["type"] = json!([schema["type"].take(), "null"]);
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
}

/// The field that chooses a model.
pub(crate) fn model() -> Field {
    optional(
        "model",
        word(
            "A model's name or alias; without it the first model that does what the route is for.",
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_left_out_may_be_null() {
        let inner = object([optional("c", one_of(&["x"]))]);
        let fields = [
            needed("a", text()),
            optional("b", list(inner)),
            optional("d", texts()),
        ];
        let schema = or_null(either([object(fields)]));
        let fields = &schema["anyOf"][0]["properties"];
        assert_eq!(fields["a"]["type"], "string");
        assert_eq!(fields["b"]["type"], json!(["array", "null"]));
        let inner = &fields["b"]["items"]["properties"]["c"];
        assert_eq!(
            *inner,
            json!({"type": ["string", "null"], "enum": ["x", null]})
        );
        assert_eq!(fields["d"]["anyOf"][2]["type"], "null");
    }
}
