//! What the router answers itself: whether it lives, whether it is ready, and how its replicas are.

use axum::http::Method;
use axum::response::Response;
use isovec_http::{Dialect, Failure, GRPC_HEALTH, GRPC_SERVICE, Kind, small};
use serde_json::{Value, json};

use crate::app::App;
use crate::replica::{Replica, State};

/// The answer to a request for the router itself; `None` for all others.
pub(crate) fn answer(app: &App, method: &Method, path: &str) -> Option<Response> {
    if method != Method::GET && method != Method::HEAD {
        return None;
    }
    Some(match path {
        "/health/live" => small(&json!({"status": "live"})),
        "/v2/health/live" => small(&json!({"live": true})),
        "/health" | "/health/ready" => ready(app, path, &json!({"status": "ready"})),
        "/v2/health/ready" => ready(app, path, &json!({"ready": true})),
        "/metrics" => app.metrics.page(),
        "/status" => small(&status(app)),
        _ => return None,
    })
}

/// Refuses what would change the models of one replica, and not those of the others, and calls without an end, whose answers the
/// router would wait for.
///
/// # Errors
/// That it would.
pub(crate) fn check(path: &str) -> Result<(), Failure> {
    let method = path.strip_prefix('/').unwrap_or_default();
    if method.strip_prefix(GRPC_HEALTH) == Some("/Watch") {
        let message = "a router gives out whole answers, and this one has no end; call Check";
        return Err(Failure::new(Kind::Method, message));
    }
    let changes = match path.strip_prefix("/v2/repository/models/") {
        Some(named) => named.ends_with("/load") || named.ends_with("/unload"),
        None => method.strip_prefix(GRPC_SERVICE).is_some_and(|method| {
            matches!(method, "/RepositoryModelLoad" | "/RepositoryModelUnload")
        }),
    };
    if changes {
        let message =
            "a router changes no models, since all replicas have the same; ask each server itself";
        return Err(Failure::new(Kind::Forbidden, message));
    }
    Ok(())
}

fn ready(app: &App, path: &str, yes: &Value) -> Response {
    match app.ready() {
        Ok(()) => small(yes),
        Err(failure) => Dialect::of(path).failed(&failure),
    }
}

fn status(app: &App) -> Value {
    let models = app.shared.models();
    let models = models.as_ref().and_then(|models| models.to_str().ok());
    let replicas: Vec<Value> = app
        .replicas
        .iter()
        .map(|replica| described(replica))
        .collect();
    json!({"models": models, "stopping": app.is_closed(), "replicas": replicas})
}

fn described(replica: &Replica) -> Value {
    use std::sync::atomic::Ordering::Relaxed;
    let (state, why) = match replica.state() {
        State::Unknown => ("unknown", None),
        State::In => ("in", None),
        State::Out(why) => ("out", Some(why)),
        State::Refused(_, why) => ("refused", Some(why)),
    };
    let counts = &replica.counts;
    json!({
        "url": &*replica.name,
        "weight": replica.target.weight(),
        "state": state,
        "why": why,
        "in_flight": replica.in_flight(),
        "requests": counts.requests.load(Relaxed),
        "failures": counts.failures.load(Relaxed),
        "retries": counts.retries.load(Relaxed),
        "ejections": replica.ejections(),
    })
}
