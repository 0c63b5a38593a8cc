//! What the routes are, for programs (`/openapi.json`) and for people (`/docs`): written from the routes themselves.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use isovec_http::{Dialect, PRIORITY, deadline};
use serde_json::{Map, Value, json};

use crate::route::{Method, Route};
use crate::schema::{one_of, text, word};

use crate::dialect::error_schema;

/// The page loads nothing, and runs nothing.
const NOTHING_ELSE: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// What is answered on the two routes.
#[derive(Debug, Default)]
struct Written {
    document: String,
    page: String,
}

/// The routes, and the two that describe all of them.
pub(crate) fn with_docs(mut routes: Vec<Route>) -> Vec<Route> {
    let written = Arc::<OnceLock<Written>>::default();
    let (document, page) = (Arc::clone(&written), Arc::clone(&written));
    let document =
        move || async move { answer(&document, "application/json", |all| &all.document) };
    let page = move || async move { answer(&page, "text/html; charset=utf-8", |all| &all.page) };
    let summary = "These routes as an OpenAPI document.";
    routes.push(Route::get("/openapi.json", document, summary).gives(json!({"type": "object"})));
    routes.push(Route::get("/docs", page, "These routes as a page."));
    // It is set once: here.
    let _ = written.set(Written {
        document: openapi(&routes).to_string(),
        page: html(&routes),
    });
    routes
}

fn answer(
    written: &OnceLock<Written>,
    kind: &'static str,
    part: fn(&Written) -> &String,
) -> Response {
    let text = written.get().map(part).cloned().unwrap_or_default();
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(NOTHING_ELSE),
        ),
    ];
    (headers, text).into_response()
}

/// A path as OpenAPI writes it: `{*model}` of axum is `{model}`.
fn path(route: &Route) -> String {
    route.path.replace("{*", "{")
}

fn method(route: &Route) -> &'static str {
    match route.method {
        Method::Get => "get",
        Method::Post => "post",
    }
}

/// The document, by OpenAPI 3.1 (<https://spec.openapis.org/oas/v3.1.0>).
fn openapi(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let dialect = Dialect::of(route.path);
        let json = |schema: &Value| json!({"application/json": {"schema": schema}});
        let mut answer = json!({"description": "The answer."});
        if let Some(schema) = &route.gives {
            answer["content"] = json(schema);
        }
        let failed = json!({"description": "An error.", "content": json(&error_schema(dialect))});
        let mut operation = json!({
            "summary": route.summary,
            "tags": [dialect.name()],
            "responses": {"200": answer, "4XX": failed, "5XX": failed},
        });
        if let Some((schema, example)) = &route.takes {
            let content = json!({"application/json": {"schema": schema, "example": example}});
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        let path = path(route);
        let in_path = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let mut parameters: Vec<Value> = in_path
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": text()}))
            .collect();
        if route.takes.is_some() {
            let timeout = word("Seconds, or a number with its unit (250ms).");
            let low = one_of(&["low", "normal"]);
            for (name, schema) in [(deadline::HEADER, timeout), (PRIORITY, low)] {
                parameters.push(json!({"name": name, "in": "header", "schema": schema}));
            }
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        paths.insert(path, json!({method(route): operation}));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "isovec serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Vectors, rankings and labels of texts. Fields that are not named here are passed over.",
        },
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        // With or without a key: the server's options say whether one is asked for.
        "security": [{}, {"key": []}],
    })
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
pre{background:#f4f4f4;padding:.75rem;overflow:auto}h2{font-size:1.1rem;margin-top:2rem}code{font-family:ui-monospace,monospace}\
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}pre{background:#222}}";

/// The same as a page.
fn html(routes: &[Route]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>isovec serve</title>\n<style>{STYLE}</style>\n\
         <h1>isovec serve {}</h1>\n<p>The same for programs: <a href=\"/openapi.json\">/openapi.json</a>.</p>\n",
        env!("CARGO_PKG_VERSION")
    );
    for route in routes {
        let (verb, path) = (method(route).to_uppercase(), path(route));
        let summary = escaped(route.summary);
        // A String takes all that is written.
        let _ = writeln!(
            page,
            "<h2><code>{verb} {path}</code></h2>\n<p>{summary}</p>"
        );
        if let Some((schema, example)) = &route.takes {
            let example = escaped(&example.to_string());
            let _ = writeln!(
                page,
                "<pre>curl http://127.0.0.1:8080{path} -H 'content-type: application/json' -d '{example}'</pre>"
            );
            let _ = writeln!(page, "<ul>{}</ul>", fields(schema));
        }
    }
    page + "</html>\n"
}

/// The fields of a request, one a line.
fn fields(schema: &Value) -> String {
    let mut lines = String::new();
    let required = &schema["required"];
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let needed = required
            .as_array()
            .is_some_and(|names| names.contains(&json!(name)));
        let needed = if needed { ", required" } else { "" };
        // Of what may be left out the first of two, and null.
        let kind = field["type"].as_str().or(field["type"][0].as_str());
        let kind = kind.unwrap_or("several forms");
        let about = field["description"].as_str().unwrap_or_default();
        let _ = write!(
            lines,
            "<li><code>{}</code> ({kind}{needed}) {}</li>",
            escaped(name),
            escaped(about)
        );
    }
    lines
}

/// A text between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
