//! Vectors, and what compares them.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use isovec::{EmbedOptions, Embeddings, ModelTask, Prompt};
use isovec_http::Dialect;
use serde::Deserialize;
use serde_json::json;

use super::super::floats::{self, Rows};
use super::{Reading, characters, headers, reading};
use crate::app::App;
use crate::call::Call;
use crate::failure::Failure;
use crate::object::Object;
use crate::route::Route;
use crate::schema::{
    boolean, given, list, model, needed, number, object, optional, some, texts, whole, word,
};
use crate::served::Served;
use crate::texts::Texts;

pub(super) fn routes() -> Vec<Route> {
    let prompt = || optional("prompt_name", word("The prompt to put before each text."));
    let embed_route = |path| {
        let fields = [
            model(),
            needed("inputs", texts()),
            optional(
                "normalize",
                boolean("Whether vectors have unit length (true)."),
            ),
            optional("dimensions", whole(1, "Components to keep.")),
            prompt(),
        ];
        Route::post(path, embed, "Vectors of texts.")
            .takes(
                object(fields.into_iter().chain(reading())),
                json!({"inputs": ["a text", "another"]}),
            )
            .gives(list(list(number())))
    };
    let compared = object([
        needed("source_sentence", given()),
        needed("sentences", some(given())),
    ]);
    let parameters = object([prompt()].into_iter().chain(reading()));
    let similarity_route = Route::post(
        "/similarity",
        similarity,
        "The cosine of a sentence with each of others.",
    )
    .takes(
        object([
            model(),
            needed("inputs", compared),
            optional("parameters", parameters),
        ]),
        json!({"inputs": {"source_sentence": "a cat", "sentences": ["a dog", "a bank"]}}),
    )
    .gives(list(number()));
    vec![embed_route("/embed"), embed_route("/"), similarity_route]
}

#[derive(Debug, Deserialize)]
struct Embed {
    #[serde(default)]
    model: Option<String>,
    inputs: Texts,
    #[serde(default)]
    normalize: Option<bool>,
    #[serde(default)]
    dimensions: Option<usize>,
    #[serde(flatten)]
    reading: Prompted,
}

/// How texts are read, and what stands before them.
#[derive(Debug, Default, Deserialize)]
struct Prompted {
    #[serde(default)]
    prompt_name: Option<String>,
    #[serde(flatten)]
    reading: Reading,
}

#[derive(Debug, Deserialize)]
struct Compare {
    #[serde(default)]
    model: Option<String>,
    inputs: Object<Compared>,
    #[serde(default)]
    parameters: Option<Object<Prompted>>,
}

#[derive(Debug, Deserialize)]
struct Compared {
    source_sentence: String,
    sentences: Texts,
}

pub(super) async fn embed(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = embedded(&mut call, request).await;
    call.end(Dialect::Tei, result)
}

async fn embedded(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: Embed = call.read(request).await?;
    let served = choose(call, asked.model.as_deref())?;
    let texts = asked.inputs.checked("inputs")?;
    let mut options = EmbedOptions::default();
    options.dimension = asked.dimensions;
    // Unit length is what this dialect gives unless a request says otherwise.
    options.normalize = Some(asked.normalize.unwrap_or(true));
    let (set, headers) = computed(call, &served, texts, options, asked.reading).await?;
    floats::json(headers, set, |set| serde_json::to_vec(&Rows(set))).await
}

pub(super) async fn similarity(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = compared(&mut call, request).await;
    call.end(Dialect::Tei, result)
}

/// The cosines of a text and others.
async fn compared(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: Compare = call.read(request).await?;
    let served = choose(call, asked.model.as_deref())?;
    let reading = asked
        .parameters
        .map_or_else(Prompted::default, |Object(reading)| reading);
    let Object(Compared {
        source_sentence,
        sentences,
    }) = asked.inputs;
    if source_sentence.is_empty() {
        return Err(Failure::field(
            "source_sentence",
            "source_sentence is empty",
        ));
    }
    let mut texts = sentences.checked("sentences")?;
    texts.push(source_sentence);
    let options = EmbedOptions::default();
    let (set, headers) = computed(call, &served, texts, options, reading).await?;
    floats::json(headers, set, |set| serde_json::to_vec(&cosines(set))).await
}

/// The cosine of the last vector with each of the others.
fn cosines(set: &Embeddings) -> Vec<f32> {
    let Some((source, others)) = set.len().checked_sub(1).and_then(|last| {
        let source = set.get(last)?;
        Some((source, set.iter().take(last)))
    }) else {
        return Vec::new();
    };
    others
        .map(|other| isovec::similarity::cosine(source, other))
        .collect()
}

fn choose(call: &Call, name: Option<&str>) -> Result<Arc<Served>, Failure> {
    let served = call.app.models.choose(name, ModelTask::Embed)?;
    served.embedder()?;
    Ok(served)
}

/// The vectors of a request that may refuse truncation, and the head of its answer.
async fn computed(
    call: &mut Call,
    served: &Served,
    texts: Vec<String>,
    mut options: EmbedOptions,
    asked: Prompted,
) -> Result<(Embeddings, HeaderMap), Failure> {
    asked.reading.check(served)?;
    if let Some(name) = asked.prompt_name {
        options = options.with_prompt(Prompt::Named(name));
    }
    let characters = characters(&texts);
    let set = call.embed(served, texts, options).await?;
    asked.reading.check_whole(call, served)?;
    let headers = headers(call, served, set.fingerprint().id(), characters);
    Ok((set, headers))
}
