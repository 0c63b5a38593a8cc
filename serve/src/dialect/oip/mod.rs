//! The Open Inference Protocol, version 2, over HTTP, as
//! <https://github.com/open-inference/open-inference-protocol> describes it, with Triton's extension for binary tensors and its
//! parameters `priority` and `timeout`: what is under `/v2/models`, `/v2/health` and `/v2/repository`, and `/v2` itself.
//!
//! Models that give vectors have one input, `text` or `image`, and one output, `embedding`. A model has one version, which is
//! called 1.

mod infer;
mod name;
pub(super) mod repository;
pub(super) mod tensor;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use isovec_http::{Dialect, small};
use serde_json::{Value, json};

use crate::app::App;
use crate::failure::{Failure, Kind};
use crate::priority::Priority;
use crate::route::Route;
use crate::schema::{boolean, list, needed, object, one_of, text, whole, word};
use crate::served::Served;

use self::tensor::Input;

pub(crate) use self::name::fold;

/// The one version that every model has.
pub(super) const VERSION: &str = "1";

/// The one output of a model that gives vectors.
pub(super) const OUTPUT: &str = "embedding";

/// What the server does beyond the protocol's core.
pub(super) fn extensions(app: &App) -> Vec<&'static str> {
    let mut all = vec!["binary_tensor_data", "parameters"];
    if app.options.model_control {
        all.push("model_repository");
    }
    all
}

/// The priority that counts as normal; higher numbers are lower priorities.
const NORMAL: u64 = 1;

pub(super) fn routes() -> Vec<Route> {
    let ready = || object([needed("name", text()), needed("ready", boolean("True."))]);
    let server = object([
        needed("name", text()),
        needed("version", text()),
        needed("extensions", list(text())),
    ]);
    let tensor = || {
        object([
            needed("name", text()),
            needed("datatype", one_of(&["BYTES", "FP32"])),
            needed(
                "shape",
                list(json!({"type": "integer", "description": "An extent; -1 is any."})),
            ),
        ])
    };
    let model = || {
        object([
            needed("name", text()),
            needed("versions", list(text())),
            needed("platform", word("The engine.")),
            needed("inputs", list(tensor())),
            needed("outputs", list(tensor())),
        ])
    };
    let described = "The tensors of a model.";
    let whether = "Whether a request to the model would be computed.";
    let mut routes = vec![
        Route::get("/v2", server_metadata, "What the server is.").gives(server),
        Route::get("/v2/health/live", live, "Whether the process answers.")
            .gives(object([needed("live", boolean("True."))])),
        Route::get(
            "/v2/health/ready",
            server_ready,
            "Whether a request would be computed.",
        )
        .gives(object([needed("ready", boolean("True."))])),
        Route::get("/v2/models/{model}", metadata, described).gives(model()),
        Route::get(
            "/v2/models/{model}/versions/{version}",
            version_metadata,
            described,
        )
        .gives(model()),
        Route::get("/v2/models/{model}/ready", model_ready, whether).gives(ready()),
        Route::get(
            "/v2/models/{model}/versions/{version}/ready",
            version_ready,
            whether,
        )
        .gives(ready()),
    ];
    routes.extend(repository::routes());
    routes.extend(infer::routes());
    routes
}

/// The schema of a failure.
pub(super) fn error_schema() -> Value {
    object([needed("error", text())])
}

/// The names that the one input of a model may have.
fn inputs() -> [&'static str; 2] {
    [Input::Texts, Input::Images].map(Input::name)
}

/// The schema of an extent of a tensor that is there.
fn extent() -> Value {
    whole(1, "An extent.")
}

/// The model of this name and version.
///
/// # Errors
/// As [`Models::named`](crate::models::Models::named), and another version than the one that there is.
pub(super) fn named(app: &App, name: &str, version: Option<&str>) -> Result<Arc<Served>, Failure> {
    let served = app.models.named(name)?;
    match version {
        None | Some(VERSION) => Ok(served),
        Some(_) => {
            let message = format!("the model {:?} has one version, {VERSION}", served.name);
            Err(Failure::new(Kind::NoModel, message).about("version"))
        }
    }
}

/// What computes, as the protocol has it: `project_format`.
pub(super) fn platform(served: &Served) -> String {
    format!("isovec_{}", served.provider().engine)
}

/// What a number of the parameter `priority` means here.
pub(super) fn priority(number: u64) -> Priority {
    if number > NORMAL {
        Priority::Low
    } else {
        Priority::Normal
    }
}

fn said(result: Result<Value, Failure>) -> Response {
    match result {
        Ok(value) => small(&value),
        Err(failure) => Dialect::Oip.failed(&failure),
    }
}

async fn server_metadata(State(app): State<Arc<App>>) -> Response {
    small(&json!({
        "name": "isovec",
        "version": env!("CARGO_PKG_VERSION"),
        "extensions": extensions(&app),
    }))
}

async fn live() -> Response {
    small(&json!({"live": true}))
}

async fn server_ready(State(app): State<Arc<App>>) -> Response {
    said(app.ready().await.map(|()| json!({"ready": true})))
}

async fn metadata(State(app): State<Arc<App>>, Path(name): Path<String>) -> Response {
    said(described(&app, &name, None))
}

async fn version_metadata(
    State(app): State<Arc<App>>,
    Path((name, version)): Path<(String, String)>,
) -> Response {
    said(described(&app, &name, Some(&version)))
}

fn described(app: &App, name: &str, version: Option<&str>) -> Result<Value, Failure> {
    let served = named(app, name, version)?;
    let input = Input::of(&served)?;
    let dimension = served.dimension(input.task())?;
    let any = [-1];
    Ok(json!({
        "name": &*served.name,
        "versions": [VERSION],
        "platform": platform(&served),
        "inputs": [{"name": input.name(), "datatype": "BYTES", "shape": any}],
        "outputs": [{"name": OUTPUT, "datatype": "FP32", "shape": [-1, dimension]}],
    }))
}

async fn model_ready(State(app): State<Arc<App>>, Path(name): Path<String>) -> Response {
    said(is_ready(&app, &name, None).await)
}

async fn version_ready(
    State(app): State<Arc<App>>,
    Path((name, version)): Path<(String, String)>,
) -> Response {
    said(is_ready(&app, &name, Some(&version)).await)
}

async fn is_ready(app: &App, name: &str, version: Option<&str>) -> Result<Value, Failure> {
    let served = named(app, name, version)?;
    app.model_ready(&served).await?;
    Ok(json!({"name": &*served.name, "ready": true}))
}
