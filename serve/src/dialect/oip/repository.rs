//! The model repository extension
//! (<https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_model_repository.md>): the list of models,
//! and their loading and unloading by clients.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use isovec_http::{Dialect, small};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::VERSION;
use crate::app::App;
use crate::body;
use crate::call::Call;
use crate::failure::Failure;
use crate::models::shown;
use crate::repository::{self, Change, Entry};
use crate::route::Route;
use crate::schema::{boolean, list, needed, object, one_of, optional, text};

/// The states of a model, as the extension spells them.
const READY: &str = "READY";
const UNAVAILABLE: &str = "UNAVAILABLE";

/// Whether models that depend on one are unloaded with it, of which there are none here.
const DEPENDENTS: &str = "unload_dependents";

pub(super) fn routes() -> [Route; 3] {
    let indexed = object([
        needed("name", text()),
        needed("version", text()),
        needed("state", one_of(&[READY, UNAVAILABLE])),
        needed("reason", text()),
    ]);
    let control = || {
        let parameters = json!({"type": "object", "description": "Only unload_dependents, which changes nothing."});
        object([optional("parameters", parameters)])
    };
    [
        Route::post(
            "/v2/repository/index",
            index,
            "All models, each with its state.",
        )
        .takes(
            object([optional(
                "ready",
                boolean("Only the models that are ready."),
            )]),
            json!({"ready": true}),
        )
        .gives(list(indexed)),
        Route::post(
            "/v2/repository/models/{model}/load",
            load,
            "Loads a model, where the operator lets clients do so.",
        )
        .takes(control(), json!({}))
        .gives(object([])),
        Route::post(
            "/v2/repository/models/{model}/unload",
            unload,
            "Unloads a model once its requests are answered, where the operator lets clients do so.",
        )
        .takes(control(), json!({"parameters": {DEPENDENTS: false}}))
        .gives(object([])),
    ]
}

/// The state of a model, and why it is not ready.
pub(in crate::dialect) fn state(entry: &Entry) -> (&'static str, &str) {
    match &entry.unready {
        None => (READY, ""),
        Some(reason) => (UNAVAILABLE, reason),
    }
}

/// Changes a model for a client. The change goes on if the client leaves, since whoever comes next sees it. Of parameters the names
/// are given.
///
/// # Errors
/// Those of the change, a parameter that is not taken, and a deadline that passed before the change was there.
pub(in crate::dialect) async fn change<'a>(
    call: &Call,
    name: String,
    parameters: impl IntoIterator<Item = &'a String>,
    change: Change,
) -> Result<(), Failure> {
    check(parameters)?;
    let app = Arc::clone(&call.app);
    let changing = tokio::spawn(async move { repository::change(&app, &name, change).await });
    let changed = call.in_time(changing).await?;
    changed.map_err(|_| Failure::panicked())?
}

/// Refuses parameters of a load that would change what is loaded: the server was told how.
///
/// # Errors
/// Names that are not known here.
fn check<'a>(parameters: impl IntoIterator<Item = &'a String>) -> Result<(), Failure> {
    let mut names = parameters.into_iter();
    match names.find(|name| *name != DEPENDENTS) {
        None => Ok(()),
        Some(name) => {
            let message = format!(
                "the parameter {:?} is not taken: a model is loaded as the server's operator wrote",
                shown(name)
            );
            Err(Failure::field("parameters", message))
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Index {
    ready: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Control {
    parameters: Option<Map<String, Value>>,
}

/// Reads a request whose body may be empty, as Triton's clients send it.
async fn read<T>(call: &mut Call, request: Request) -> Result<T, Failure>
where
    T: Default + for<'de> Deserialize<'de> + Send + 'static,
{
    let body = call.body(request).await?;
    match body.trim_ascii().is_empty() {
        true => Ok(T::default()),
        false => body::parse(body).await,
    }
}

async fn index(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = indexed(&mut call, request).await;
    call.end(Dialect::Oip, result)
}

async fn indexed(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: Index = read(call, request).await?;
    let all = repository::index(&call.app, asked.ready == Some(true)).await?;
    let rows = all.iter().map(|entry| {
        let (state, reason) = state(entry);
        json!({"name": entry.name, "version": VERSION, "state": state, "reason": reason})
    });
    Ok(small(&rows.collect::<Vec<Value>>()))
}

async fn load(State(app): State<Arc<App>>, Path(name): Path<String>, request: Request) -> Response {
    changed(app, name, request, Change::Load).await
}

async fn unload(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    changed(app, name, request, Change::Unload).await
}

async fn changed(app: Arc<App>, name: String, request: Request, how: Change) -> Response {
    let mut call = Call::new(app);
    let result = async {
        let asked: Control = read(&mut call, request).await?;
        let parameters = asked.parameters.unwrap_or_default();
        change(&call, name, parameters.keys(), how).await?;
        Ok(small(&json!({})))
    };
    let result = result.await;
    call.end(Dialect::Oip, result)
}
