//! What is served.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use isovec::ModelTask;
use isovec_http::{Dialect, small};
use serde_json::{Value, json};

use crate::app::App;
use crate::models::none;
use crate::options::MOST_TEXTS;
use crate::route::Route;
use crate::schema::{list, needed, object, one_of, text, whole};
use crate::served::{Served, TASKS};

pub(super) fn route() -> Route {
    let about = object([
        needed("model_id", text()),
        needed("model_dtype", text()),
        needed("model_type", json!({"type": "object"})),
        needed(
            "max_input_length",
            whole(1, "Tokens of a text that the model sees."),
        ),
        needed(
            "max_client_batch_size",
            whole(1, "Texts of a request, at most."),
        ),
        needed("task", one_of(&TASKS)),
    ]);
    let mut first = about.clone();
    first["properties"]["models"] = list(about);
    Route::get("/info", info, "The first model, and all models.").gives(first)
}

/// The first model in the form of text-embeddings-inference, which knows one, and all of them in the field `models`.
async fn info(State(app): State<Arc<App>>) -> Response {
    let models = match app.models.loaded() {
        Ok(models) => models,
        Err(failure) => return Dialect::Tei.failed(&failure),
    };
    let all: Vec<Value> = models.iter().map(|model| described(&app, model)).collect();
    let Some(mut info) = all.first().cloned() else {
        return Dialect::Tei.failed(&none());
    };
    info["models"] = all.into();
    small(&info)
}

fn described(app: &App, served: &Served) -> Value {
    let fingerprint = served.fingerprint();
    let mut info = json!({
        "model_id": &*served.name,
        "model_sha": null,
        "model_dtype": fingerprint.precision.to_string(),
        "model_type": model_type(served),
        "max_concurrent_requests": app.options.max_requests,
        "max_input_length": served.max_length(),
        "max_batch_tokens": served.counts().batch_tokens,
        "max_batch_requests": null,
        "max_client_batch_size": MOST_TEXTS,
        "auto_truncate": true,
        "version": env!("CARGO_PKG_VERSION"),
        "sha": null,
        "docker_label": null,
        // What text-embeddings-inference does not have.
        "task": served.task_name(),
        "aliases": served.aliases,
        "fingerprint": {"id": fingerprint.id(), "identity": fingerprint.identity},
        "provider": served.provider(),
    });
    if let Ok(queued) = served.multi_vector() {
        info["dimension"] = json!(queued.model.dimension());
    }
    #[cfg(feature = "image")]
    if let Ok(queued) = served.images() {
        info["dimension"] = json!(queued.model.dimension());
        info["similarity"] = json!(queued.model.metric());
    }
    if let Ok(queued) = served.embedder() {
        info["dimension"] = json!(queued.model.dimension());
        info["similarity"] = json!(queued.model.metric());
    }
    info
}

fn model_type(served: &Served) -> Value {
    let labels = |names: &[String]| {
        let numbered = || names.iter().enumerate();
        let id2label: BTreeMap<String, &String> = numbered()
            .map(|(at, name)| (at.to_string(), name))
            .collect();
        let label2id: BTreeMap<&String, usize> = numbered().map(|(at, name)| (name, at)).collect();
        json!({"id2label": id2label, "label2id": label2id})
    };
    match (served.task(), served.classifier()) {
        (ModelTask::Rerank, _) => json!({"reranker": labels(&["relevance".to_owned()])}),
        (_, Ok(queued)) => json!({"classifier": labels(queued.model.labels())}),
        (ModelTask::Sparse, _) => json!({"embedding": {"pooling": "splade"}}),
        _ => json!({"embedding": {"pooling": served.fingerprint().identity.get("pooling")}}),
    }
}
