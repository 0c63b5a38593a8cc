//! The document of the routes says what they are.

use isovec_serve::ServeOptions;
use serde_json::{Value, json};

use crate::models::{Changing, classifier, embedder, multi_vector, reranker, sparse};

/// Whether a value is what a schema says, as far as the document uses schemas.
pub(crate) fn fits(value: &Value, schema: &Value) -> Result<(), String> {
    if let Some(schemas) = schema["anyOf"].as_array() {
        let tried: Vec<_> = schemas.iter().map(|one| fits(value, one)).collect();
        return match tried.iter().any(Result::is_ok) {
            true => Ok(()),
            false => Err(format!("{value} is none of these: {tried:?}")),
        };
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let is = |kind: &Value| match kind.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => {
            let least = schema["minimum"].as_i64().unwrap_or(i64::MIN);
            value.is_u64() || value.as_i64().is_some_and(|whole| whole >= least)
        }
        "null" => value.is_null(),
        other => panic!("the document has another type: {other}"),
    };
    if !kinds.iter().any(is) {
        return Err(format!("{value} is no {kinds:?}"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{value} is none of {words:?}"));
    }
    for item in value.as_array().into_iter().flatten() {
        fits(item, &schema["items"])?;
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("a name");
        if value.get(name).is_none() {
            return Err(format!("{value} has no {name}"));
        }
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            fits(value, schema).map_err(|why| format!("{name}: {why}"))?;
        }
    }
    Ok(())
}

pub(crate) fn schema_of<'a>(operation: &'a Value, answer: &str) -> &'a Value {
    &operation["responses"][answer]["content"]["application/json"]["schema"]
}

/// A server that answers on every route.
pub(crate) async fn of_every_task(mut options: ServeOptions) -> Changing {
    let models = vec![
        embedder("embeds"),
        reranker(),
        classifier(),
        sparse(),
        multi_vector(),
    ];
    options.model_control = true;
    Changing::with(models, options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_takes_and_gives_what_the_document_says() {
    let server = of_every_task(ServeOptions::default()).await;
    let document = server.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let book = include_str!("../../../docs/serving.md");
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 25, "{}", paths.len());
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().unwrap() {
            let in_the_book = path.replace("{model}", "NAME").replace("{version}", "1");
            let row = format!("`{} {in_the_book}`", method.to_uppercase());
            assert!(book.contains(&row), "docs/serving.md has no {row}");
            let path = &path.replace("{model}", "embeds").replace("{version}", "1");
            let answer = if method == "post" {
                let body = &operation["requestBody"]["content"]["application/json"];
                let example = &body["example"];
                fits(example, &body["schema"]).unwrap();
                // A request without anything, or of another form, is an error in the route's form.
                let needs_nothing = body["schema"]["required"] == json!([]);
                let wrong = if needs_nothing { json!([]) } else { json!({}) };
                let refused = server.post(path, &wrong).await;
                assert!((400..500).contains(&refused.status), "{path}");
                fits(&refused.json(), schema_of(operation, "4XX")).unwrap();
                server.post(path, example).await
            } else {
                server.get(path).await
            };
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            let schema = schema_of(operation, "200");
            if schema.is_null() {
                assert_ne!(
                    answer.header("content-type"),
                    Some("application/json"),
                    "{path}"
                );
            } else {
                fits(&answer.json(), schema).unwrap_or_else(|why| panic!("{path}: {why}"));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_every_route_and_loads_nothing() {
    let server = Changing::start(vec![embedder("embeds")]).await;
    let document = server.get("/openapi.json").await.json();
    let page = server.get("/docs").await;
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let head = format!("<code>{} {path}</code>", method.to_uppercase());
            assert!(page.text().contains(&head), "{head}");
        }
    }
    for word in ["<script", "src=", "@import", "url(", "https://"] {
        assert!(!page.text().contains(word), "{word}");
    }
}

#[test]
fn a_value_that_a_schema_does_not_allow_does_not_fit() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "b": {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": ["null", "boolean"]}]},
    }});
    for (value, fit) in [
        (json!({"a": []}), true),
        (json!({"a": [1], "b": "x"}), true),
        (json!({"a": [1], "b": null}), true),
        (json!({"a": [-1]}), false),
        (json!({"a": 1}), false),
        (json!({"b": "x"}), false),
        (json!({"a": [], "b": "y"}), false),
        (json!([]), false),
    ] {
        assert_eq!(fits(&value, &schema).is_ok(), fit, "{value}");
    }
}
