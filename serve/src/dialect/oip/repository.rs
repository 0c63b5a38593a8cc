//! The model repository extension
//! (<https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_model_repository.md>): the list of models,
//! and their loading and unloading by clients.

use std::future::Future;
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
use crate::failure::{Failure, Kind};
use crate::repository::{self, Entry};
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

/// Changes a model for a client. The change goes on if the client leaves, since whoever comes next sees it.
///
/// # Errors
/// Those of the change, and a deadline that passed before it was there.
pub(in crate::dialect) async fn change(
    call: &Call,
    change: impl Future<Output = Result<(), Failure>> + Send + 'static,
) -> Result<(), Failure> {
    let changed = call.in_time(tokio::spawn(change)).await?;
    changed.map_err(|_| Failure::new(Kind::Broken, "the server panicked; please report it"))?
}

/// Refuses parameters of a load that would change what is loaded: the server was told how.
///
/// # Errors
/// Names that are not known here.
pub(in crate::dialect) fn check<'a>(
    parameters: impl IntoIterator<Item = &'a String>,
) -> Result<(), Failure> {
    let mut names = parameters.into_iter();
    match names.find(|name| *name != DEPENDENTS) {
        None => Ok(()),
        Some(name) => {
            let name: String = name.chars().take(100).collect();
            let message = format!(
                "the parameter {name:?} is not taken: a model is loaded as the server's operator wrote"
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
    parameters: Map<String, Value>,
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
    let all = repository::index(&call.app).await?;
    let rows = all.iter().filter_map(|entry| {
        if asked.ready == Some(true) && entry.unready.is_some() {
            return None;
        }
        let (state, reason) = state(entry);
        Some(json!({"name": entry.name, "version": VERSION, "state": state, "reason": reason}))
    });
    Ok(small(&rows.collect::<Vec<Value>>()))
}

async fn load(State(app): State<Arc<App>>, Path(name): Path<String>, request: Request) -> Response {
    let mut call = Call::new(Arc::clone(&app));
    let result = async {
        let asked: Control = read(&mut call, request).await?;
        check(asked.parameters.keys())?;
        change(&call, async move { repository::load(&app, &name).await }).await?;
        Ok(small(&json!({})))
    };
    let result = result.await;
    call.end(Dialect::Oip, result)
}

async fn unload(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let mut call = Call::new(Arc::clone(&app));
    let result = async {
        let asked: Control = read(&mut call, request).await?;
        check(asked.parameters.keys())?;
        change(&call, async move { repository::unload(&app, &name).await }).await?;
        Ok(small(&json!({})))
    };
    let result = result.await;
    call.end(Dialect::Oip, result)
}
