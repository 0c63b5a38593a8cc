//! Weights of words.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use isovec::{ModelTask, Prompt, SparseOptions, SparseRow};
use isovec_http::Dialect;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::floats::answer;
use super::{Reading, characters, headers, reading};
use crate::app::App;
use crate::call::Call;
use crate::failure::Failure;
use crate::route::Route;
use crate::schema::{list, model, needed, number, object, optional, texts, whole, word};
use crate::texts::Texts;

pub(super) fn route() -> Route {
    let fields = [
        model(),
        needed("inputs", texts()),
        optional("prompt_name", word("The prompt to put before each text.")),
    ];
    let weight = object([
        needed("index", whole(0, "The token's id.")),
        needed("value", number()),
    ]);
    let summary = "Weights of words for texts: those above 0, in the order of their tokens' ids.";
    Route::post("/embed_sparse", embed_sparse, summary)
        .takes(
            object(fields.into_iter().chain(reading())),
            json!({"inputs": ["a text", "another"]}),
        )
        .gives(list(list(weight)))
}

#[derive(Debug, Deserialize)]
struct EmbedSparse {
    #[serde(default)]
    model: Option<String>,
    inputs: Texts,
    #[serde(default)]
    prompt_name: Option<String>,
    #[serde(flatten)]
    reading: Reading,
}

/// A word's weight.
#[derive(Serialize)]
struct Weight {
    index: u32,
    value: f32,
}

async fn embed_sparse(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = embedded(&mut call, request).await;
    call.end(Dialect::Tei, result)
}

async fn embedded(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: EmbedSparse = call.read(request).await?;
    let name = asked.model.as_deref();
    let served = call.app.models.choose(name, ModelTask::Sparse)?;
    let batcher = call.queue(served.sparse()?);
    asked.reading.check(&served)?;
    let texts = asked.inputs.checked("inputs")?;
    let mut options = SparseOptions::default();
    if let Some(name) = asked.prompt_name {
        options = options.with_prompt(Prompt::Named(name));
    }
    let (characters, count) = (characters(&texts), texts.len());
    let work = || batcher.embed_with(texts, options);
    let set = call.compute(&served, count, work).await?;
    asked.reading.check_whole(call, &served)?;
    let headers = headers(call, &served, set.fingerprint().id(), characters);
    let size = 2 * set.values().len();
    answer(headers, size, move || {
        let row = |row: SparseRow<'_>| -> Vec<Weight> {
            let weights = row.iter();
            weights
                .map(|(index, value)| Weight { index, value })
                .collect()
        };
        serde_json::to_vec(&set.iter().map(row).collect::<Vec<_>>())
    })
    .await
}
