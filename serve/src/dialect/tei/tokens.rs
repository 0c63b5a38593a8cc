//! Texts as tokens, and token ids as texts: what a model's tokenizer does, without the model.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use isovec::{ModelTask, Token};
use isovec_http::Dialect;
use isovec_http::apart;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::floats::answer;
use crate::app::App;
use crate::call::Call;
use crate::failure::{self, Failure};
use crate::route::Route;
use crate::schema::{
    boolean, either, filled, list, model, needed, object, optional, some, text, texts, whole, word,
};
use crate::texts::Texts;
use crate::tokens::{Input, Items};

pub(super) fn routes() -> [Route; 2] {
    let id = || whole(0, "The token's id.");
    let token = object([
        needed("id", id()),
        needed(
            "text",
            word("How the vocabulary spells it, marks of words included."),
        ),
        needed("special", boolean("Whether it is no part of the text.")),
    ]);
    let special = boolean("Whether special tokens are put around each text (true).");
    let skipped = boolean("Whether special tokens are left out (true).");
    [
        Route::post("/tokenize", tokenize, "The tokens of texts, none left out.")
            .takes(
                object([
                    model(),
                    needed("inputs", texts()),
                    optional("add_special_tokens", special),
                    optional("prompt_name", word("The prompt to put before each text.")),
                ]),
                json!({"inputs": ["a text", "another"]}),
            )
            .gives(list(list(token))),
        Route::post("/decode", decode, "The texts of token ids.")
            .takes(
                object([
                    model(),
                    needed("ids", either([filled(id()), some(filled(id()))])),
                    optional("skip_special_tokens", skipped),
                ]),
                json!({"ids": [[2, 3], [4]]}),
            )
            .gives(list(text())),
    ]
}

#[derive(Debug, Deserialize)]
struct Tokenize {
    #[serde(default)]
    model: Option<String>,
    inputs: Texts,
    #[serde(default)]
    add_special_tokens: Option<bool>,
    #[serde(default)]
    prompt_name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Decode {
    #[serde(default)]
    model: Option<String>,
    ids: Input,
    #[serde(default)]
    skip_special_tokens: Option<bool>,
}

/// A token, as it is written.
#[derive(Serialize)]
struct Row {
    id: u32,
    text: String,
    special: bool,
}

async fn tokenize(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = tokenized(&mut call, request).await;
    call.end(Dialect::Tei, result)
}

async fn tokenized(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: Tokenize = call.read(request).await?;
    let name = asked.model.as_deref();
    let served = call.app.models.choose(name, ModelTask::Embed)?;
    let texts = asked.inputs.checked("inputs")?;
    let special = asked.add_special_tokens.unwrap_or(true);
    let work = move || served.tokenize(&texts, asked.prompt_name, special);
    let texts = apart(work).await?.map_err(failure::of)?;
    let row = |Token {
                   id, text, special, ..
               }| Row { id, text, special };
    let rows = texts.into_iter();
    let rows = rows.map(|tokens| tokens.into_iter().map(row).collect());
    written(rows.collect::<Vec<Vec<Row>>>()).await
}

async fn decode(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = decoded(&mut call, request).await;
    call.end(Dialect::Tei, result)
}

async fn decoded(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: Decode = call.read(request).await?;
    let name = asked.model.as_deref();
    let served = call.app.models.choose(name, ModelTask::Embed)?;
    let Items::Tokens(texts) = asked.ids.checked("ids")? else {
        return Err(Failure::field("ids", "ids holds no token ids"));
    };
    let special = !asked.skip_special_tokens.unwrap_or(true);
    let texts = apart(move || served.decode(&texts, special)).await?;
    let texts = texts.map_err(failure::of)?;
    written(texts).await
}

/// An answer that may be large.
async fn written(value: impl Serialize + Send + 'static) -> Result<Response, Failure> {
    answer(HeaderMap::new(), usize::MAX, move || {
        serde_json::to_vec(&value)
    })
    .await
}
