//! OpenAI's protocol: `/v1/embeddings` and `/v1/models`, as
//! <https://platform.openai.com/docs/api-reference/embeddings> describes them.
//!
//! Answers have two fields more, which OpenAI's clients pass through: `fingerprint`, and `truncated` with the places of
//! the texts that the model saw only a part of.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use isovec::{EmbedOptions, Embedder, Embeddings, ModelTask};
use isovec_http::apart;
use isovec_http::openai::Answer;
use isovec_http::{Dialect, small};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::floats::{self, Format, Vector};
use crate::app::App;
use crate::call::Call;
use crate::failure::{self, Failure, Kind};
use crate::options::MOST_TOKENS;
use crate::route::Route;
use crate::schema::{
    either, filled, list, model as model_field, needed, number, object, one_of, optional, some,
    text, texts, whole, word,
};
use crate::served::{Served, TASKS};
use crate::tokens::{Input, Items};

pub(super) fn routes() -> Vec<Route> {
    let row = object([
        needed("object", one_of(&["embedding"])),
        needed("index", whole(0, "The text's place.")),
        needed(
            "embedding",
            either([
                list(number()),
                word("Bytes of little-endian 32-bit floats in base64."),
            ]),
        ),
    ]);
    let described = object([
        needed("id", word("The name.")),
        needed("object", one_of(&["model"])),
        needed(
            "created",
            whole(0, "When it was loaded, in seconds since 1970."),
        ),
        needed("owned_by", text()),
        needed("task", one_of(&TASKS)),
    ]);
    vec![
        Route::post(
            "/v1/embeddings",
            embeddings,
            "Vectors of texts or pictures.",
        )
        .takes(
            object([
                model_field(),
                needed("input", input()),
                optional("dimensions", whole(1, "Components to keep.")),
                optional("encoding_format", one_of(&["float", "base64"])),
            ]),
            json!({"input": ["a text", "another"]}),
        )
        .gives(object([
            needed("object", one_of(&["list"])),
            needed("data", list(row)),
            needed("model", text()),
            needed("usage", usage()),
            needed(
                "fingerprint",
                word("Vectors of equal fingerprints may be compared."),
            ),
            needed("truncated", truncated()),
        ])),
        Route::get("/v1/models", models, "The models that are served.").gives(object([
            needed("object", one_of(&["list"])),
            needed("data", list(described.clone())),
        ])),
        Route::get("/v1/models/{*model}", model, "A model that is served.").gives(described),
    ]
}

/// The schema of what is embedded.
fn input() -> Value {
    let ids = || filled(whole(0, "The id of a token of the text."));
    let image = || {
        let coded = word("A picture's file in base64, or a URL data:image/png;base64,... with it.");
        object([needed("image", coded)])
    };
    either([texts(), ids(), some(ids()), image(), some(image())])
}

/// The schema of the tokens that the model saw.
pub(super) fn usage() -> Value {
    object([
        needed("prompt_tokens", whole(0, "Tokens that the model saw.")),
        needed("total_tokens", whole(0, "The same.")),
    ])
}

/// The schema of the places of texts that were cut.
pub(super) fn truncated() -> Value {
    list(whole(
        0,
        "The place of a text that the model saw only a part of.",
    ))
}

/// The schema of a failure.
pub(super) fn error_schema() -> Value {
    let nullable = || json!({"type": ["string", "null"]});
    object([needed(
        "error",
        object([
            needed("message", text()),
            needed("type", text()),
            needed("param", nullable()),
            needed("code", nullable()),
        ]),
    )])
}

/// What a client asks for. `user` and fields that are not known are passed over.
#[derive(Debug, Deserialize)]
struct Asked {
    input: Input,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    dimensions: Option<usize>,
    #[serde(default)]
    encoding_format: Option<Format>,
}

async fn embeddings(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = embed(&mut call, request).await;
    call.end(Dialect::OpenAi, result)
}

async fn embed(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: Asked = call.read(request).await?;
    let name = asked.model.as_deref();
    let items = asked.input.checked("input")?;
    let task = match items {
        Items::Images(_) => ModelTask::EmbedImages,
        _ => ModelTask::Embed,
    };
    let served = call.app.models.choose(name, task)?;
    let items = match task {
        ModelTask::Embed => check_tokens(&served.embedder()?.model, items).await?,
        _ => items,
    };
    let mut options = EmbedOptions::default();
    if let Some(dimensions) = asked.dimensions {
        let most = served.dimension(task)?;
        if !(1..=most).contains(&dimensions) {
            return Err(Failure::field(
                "dimensions",
                format!("dimensions is {dimensions}; this model gives 1 to {most}"),
            ));
        }
        options = options.with_dimension(dimensions);
    }
    let format = asked.encoding_format.unwrap_or_default();
    let set = call.embed_items(&served, items, options).await?;
    let seen = Seen {
        tokens: call.tokens(),
        truncated: call.truncated().to_vec(),
    };
    let headers = call.describe_set(&served, &set);
    let name = Arc::clone(&served.name);
    floats::json(headers, set, move |set| write(set, &name, &seen, format)).await
}

/// Refuses texts of which the model would see more tokens than OpenAI takes. They are only counted where there may be so many.
async fn check_tokens(embedder: &Embedder, items: Items) -> Result<Items, Failure> {
    let longest = embedder.max_length();
    let (items, tokens) = match items {
        Items::Texts(texts) if texts.len().saturating_mul(longest) > MOST_TOKENS => {
            let embedder = embedder.clone();
            let counted = move || {
                let count = |text: &String| {
                    let tokens = embedder.count_tokens(text).map_err(failure::of)?;
                    Ok(tokens.min(longest))
                };
                let tokens: Result<usize, Failure> = texts.iter().map(count).sum();
                tokens.map(|tokens| (Items::Texts(texts), tokens))
            };
            apart(counted).await??
        }
        Items::Tokens(texts) => {
            let tokens = texts.iter().map(|ids| ids.len().min(longest)).sum();
            (Items::Tokens(texts), tokens)
        }
        others => (others, 0),
    };
    if tokens <= MOST_TOKENS {
        return Ok(items);
    }
    let message =
        format!("the texts have {tokens} tokens; a request takes at most {MOST_TOKENS} in all");
    Err(Failure::new(Kind::TooManyTokens, message).about("input"))
}

/// What the model saw of the texts.
struct Seen {
    tokens: u64,
    truncated: Vec<usize>,
}

fn write(
    set: &Embeddings,
    model: &str,
    seen: &Seen,
    format: Format,
) -> serde_json::Result<Vec<u8>> {
    let vectors = set.iter().map(|vector| Vector(vector, format));
    let fingerprint = set.fingerprint().id();
    serde_json::to_vec(&Answer::new(
        vectors,
        [model, &fingerprint],
        seen.tokens,
        &seen.truncated,
    ))
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// What OpenAI does not have: one of [`TASKS`].
    task: &'static str,
}

fn described(served: &Served) -> Model<'_> {
    Model {
        id: &served.name,
        object: "model",
        created: served.since,
        owned_by: "isovec",
        task: served.task_name(),
    }
}

async fn models(State(app): State<Arc<App>>) -> Response {
    match app.models.loaded() {
        Ok(models) => {
            let data: Vec<Model<'_>> = models.iter().map(|model| described(model)).collect();
            small(&json!({"object": "list", "data": data}))
        }
        Err(failure) => Dialect::OpenAi.failed(&failure),
    }
}

async fn model(State(app): State<Arc<App>>, Path(name): Path<String>) -> Response {
    match app.models.named(&name) {
        Ok(served) => small(&described(&served)),
        Err(failure) => Dialect::OpenAi.failed(&failure),
    }
}
