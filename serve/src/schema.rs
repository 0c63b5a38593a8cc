//! JSON schemas (<https://json-schema.org/draft/2020-12>), as the document of the routes has them.

use serde_json::{Map, Value, json};

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

/// One text, or a list of texts.
pub(crate) fn texts() -> Value {
    either([text(), list(text())])
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
