//! Documents in the order of their relevance to a query, as three protocols ask for it: text-embeddings-inference with
//! `texts` on `/rerank`, Jina (<https://api.jina.ai/redoc#tag/rerank>) with `documents` on `/v1/rerank` and `/rerank`, and
//! Cohere (<https://docs.cohere.com/reference/rerank>) with `documents` on `/v2/rerank`.
//!
//! Scores are probabilities, as the three have them. The numbers of the model itself are `raw_scores` of
//! text-embeddings-inference.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use isovec::{ModelTask, Prompt, RankOptions, Ranked, Scores};
use isovec_http::Dialect;
use isovec_http::openai::Usage;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::floats::answer;
use super::openai;
use super::tei::{self, Reading};
use crate::app::App;
use crate::call::Call;
use crate::documents::Documents;
use crate::failure::{Failure, Kind};
use crate::route::Route;
use crate::schema::{
    self, boolean, given, list, model, needed, number, object, one_of, optional, some, text, whole,
    word,
};
use crate::served::Served;
use crate::texts::Texts;

pub(super) fn routes() -> Vec<Route> {
    let documents = || some(schema::either([given(), object([needed("text", given())])]));
    let prompt = || {
        [
            optional("prompt_name", word("A prompt of the model's, by its name.")),
            optional(
                "instruction",
                word("The instruction of a model that takes one; before the query of another."),
            ),
        ]
    };
    let of_documents = || {
        let [prompt, instruction] = prompt();
        object([
            model(),
            needed("query", given()),
            prompt,
            instruction,
            needed("documents", documents()),
            optional(
                "top_n",
                whole(1, "How many documents are given back; all without it."),
            ),
            optional(
                "return_documents",
                boolean("Whether the texts are given back."),
            ),
            optional(
                "max_tokens_per_doc",
                whole(
                    1,
                    "At least the length that the model sees: documents are not cut one by one.",
                ),
            ),
        ])
    };
    let [prompt_name, instruction] = prompt();
    let of_texts = object([
        model(),
        needed("query", given()),
        prompt_name,
        instruction,
        needed("texts", some(given())),
        optional(
            "raw_scores",
            boolean("Whether scores are the model's own numbers."),
        ),
        optional("return_text", boolean("Whether the texts are given back.")),
        optional(
            "truncate",
            boolean("Whether texts that are too long are cut, or refused."),
        ),
        optional("truncation_direction", one_of(&["Left", "Right"])),
    ]);
    let result = object([
        needed("index", whole(0, "The document's place.")),
        needed("relevance_score", number()),
        optional("document", object([needed("text", text())])),
    ]);
    let results = object([
        needed("object", one_of(&["list"])),
        needed("model", text()),
        needed("results", list(result)),
        needed("usage", openai::usage()),
        needed(
            "meta",
            object([needed(
                "tokens",
                object([needed(
                    "input_tokens",
                    whole(0, "Tokens that the model saw."),
                )]),
            )]),
        ),
        needed("fingerprint", text()),
        needed("truncated", openai::truncated()),
    ]);
    let ranks = list(object([
        needed("index", whole(0, "The text's place.")),
        needed("score", number()),
        optional("text", text()),
    ]));
    let example = json!({"query": "which animal", "documents": ["a dog", "a bank"], "top_n": 1});
    vec![
        Route::post(
            "/rerank",
            either,
            "Texts, or documents, by their relevance to a query, the best first.",
        )
        .takes(
            schema::either([of_texts, of_documents()]),
            json!({"query": "which animal", "texts": ["a dog", "a bank"]}),
        )
        .gives(schema::either([ranks, results.clone()])),
        Route::post(
            "/v1/rerank",
            jina,
            "Documents by their relevance to a query, the best first, as Jina has it.",
        )
        .takes(of_documents(), example.clone())
        .gives(results.clone()),
        Route::post(
            "/v2/rerank",
            cohere,
            "Documents by their relevance to a query, the best first, as Cohere has it.",
        )
        .takes(of_documents(), example)
        .gives(results),
    ]
}

/// What a client of text-embeddings-inference asks for with `texts`, and one of Jina or Cohere with `documents`.
#[derive(Debug, Deserialize)]
struct Asked {
    #[serde(default)]
    model: Option<String>,
    query: String,
    #[serde(default)]
    prompt_name: Option<String>,
    #[serde(default)]
    instruction: Option<String>,
    #[serde(default)]
    texts: Option<Texts>,
    #[serde(default)]
    documents: Option<Documents>,
    // With `texts`.
    #[serde(default)]
    raw_scores: Option<bool>,
    #[serde(default)]
    return_text: Option<bool>,
    #[serde(flatten)]
    reading: Reading,
    // With `documents`.
    #[serde(default)]
    top_n: Option<usize>,
    #[serde(default)]
    return_documents: Option<bool>,
    #[serde(default)]
    max_tokens_per_doc: Option<usize>,
}

/// A row of text-embeddings-inference.
#[derive(Serialize)]
struct Rank<'a> {
    index: usize,
    score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

/// What Jina and Cohere answer: each client reads the fields that it knows.
#[derive(Serialize)]
struct Answer<'a> {
    object: &'static str,
    model: &'a str,
    results: Vec<Found<'a>>,
    usage: Usage,
    meta: Meta,
    fingerprint: String,
    truncated: &'a [usize],
}

#[derive(Serialize)]
struct Found<'a> {
    index: usize,
    relevance_score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<Document<'a>>,
}

#[derive(Serialize)]
struct Document<'a> {
    text: &'a str,
}

/// Tokens that the model saw, as Cohere has it.
#[derive(Serialize)]
struct Meta {
    tokens: InputTokens,
}

#[derive(Serialize)]
struct InputTokens {
    input_tokens: u64,
}

async fn either(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = by_field(&mut call, request).await;
    call.end(Dialect::Tei, result)
}

async fn jina(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = of_documents(&mut call, request).await;
    call.end(Dialect::OpenAi, result)
}

async fn cohere(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = of_documents(&mut call, request).await;
    call.end(Dialect::Cohere, result)
}

async fn by_field(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let mut asked: Asked = call.read(request).await?;
    match (asked.texts.take(), asked.documents.take()) {
        (Some(texts), None) => ranks(call, asked, texts).await,
        (None, Some(documents)) => results(call, asked, documents).await,
        (Some(_), Some(_)) => Err(Failure::field(
            "texts",
            "there are texts and documents; send texts for the answer of text-embeddings-inference, or documents for that of Jina and Cohere",
        )),
        (None, None) => Err(Failure::field(
            "texts",
            "there are neither texts nor documents to rank",
        )),
    }
}

async fn of_documents(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let mut asked: Asked = call.read(request).await?;
    match asked.documents.take() {
        Some(documents) => results(call, asked, documents).await,
        None => Err(Failure::field(
            "documents",
            "there are no documents to rank",
        )),
    }
}

/// The answer of text-embeddings-inference.
async fn ranks(call: &mut Call, asked: Asked, texts: Texts) -> Result<Response, Failure> {
    let served = choose(call, &asked)?;
    asked.reading.check(&served)?;
    let texts = texts.checked("texts")?;
    let characters = tei::characters(&texts) + asked.query.chars().count() * texts.len();
    let scores = match asked.raw_scores {
        Some(true) => Scores::Logits,
        _ => Scores::Sigmoid,
    };
    let ranked = ranked(call, &served, &asked, &texts, scores).await?;
    asked.reading.check_whole(call, &served)?;
    let headers = tei::headers(call, &served, served.fingerprint().id(), characters);
    let with_text = asked.return_text == Some(true);
    answer(headers, size(with_text, &texts), move || {
        let row = |found: &Ranked| Rank {
            index: found.index,
            score: found.score,
            text: with_text.then(|| &*texts[found.index]),
        };
        serde_json::to_vec(&ranked.iter().map(row).collect::<Vec<_>>())
    })
    .await
}

/// The bytes of the texts that are given back.
fn size(given_back: bool, texts: &[String]) -> usize {
    let bytes = texts.iter().map(String::len);
    if given_back { bytes.sum() } else { 0 }
}

/// The answer of Jina and Cohere.
async fn results(call: &mut Call, asked: Asked, documents: Documents) -> Result<Response, Failure> {
    let served = choose(call, &asked)?;
    let documents = documents.checked("documents")?;
    if asked.top_n == Some(0) {
        return Err(Failure::field(
            "top_n",
            "top_n is 0, which leaves no document; leave it out for all",
        ));
    }
    let most = served.max_length();
    if asked.max_tokens_per_doc.is_some_and(|tokens| tokens < most) {
        return Err(Failure::field(
            "max_tokens_per_doc",
            format!(
                "documents are not cut one by one: the model sees {most} tokens of a query and a document together; leave max_tokens_per_doc out"
            ),
        ));
    }
    let ranked = ranked(call, &served, &asked, &documents, Scores::Sigmoid).await?;
    let tokens = call.tokens();
    let truncated = call.truncated().to_vec();
    let fingerprint = served.fingerprint().id();
    let headers = call.describe(&served, fingerprint.clone());
    let with_text = asked.return_documents == Some(true);
    let top_n = asked.top_n.unwrap_or(usize::MAX);
    answer(headers, size(with_text, &documents), move || {
        let result = |found: &Ranked| Found {
            index: found.index,
            relevance_score: found.score,
            document: with_text.then(|| Document {
                text: &documents[found.index],
            }),
        };
        serde_json::to_vec(&Answer {
            object: "list",
            model: &served.name,
            results: ranked.iter().take(top_n).map(result).collect(),
            usage: Usage::of(tokens),
            meta: Meta {
                tokens: InputTokens {
                    input_tokens: tokens,
                },
            },
            truncated: &truncated,
            fingerprint,
        })
    })
    .await
}

fn choose(call: &Call, asked: &Asked) -> Result<Arc<Served>, Failure> {
    let name = asked.model.as_deref();
    let served = call.app.models.choose(name, ModelTask::Rerank)?;
    served.reranker()?;
    Ok(served)
}

/// All documents, the best first.
async fn ranked(
    call: &mut Call,
    served: &Served,
    asked: &Asked,
    documents: &[String],
    scores: Scores,
) -> Result<Vec<Ranked>, Failure> {
    let query = &asked.query;
    let prompt = match (&asked.prompt_name, &asked.instruction) {
        (None, None) => Prompt::Default,
        (Some(name), None) => Prompt::Named(name.clone()),
        (None, Some(text)) => Prompt::Text(text.clone()),
        (Some(_), Some(_)) => {
            return Err(Failure::field(
                "instruction",
                "prompt_name names a prompt of the model, and instruction is a text; send one of them",
            ));
        }
    };
    if query.is_empty() {
        return Err(Failure::field("query", "the query is empty"));
    }
    // The query is read with every document, so that a body makes far more text than it has.
    let most = call.app.options.max_bytes;
    let before = query.len() + asked.instruction.as_ref().map_or(0, String::len);
    if before.saturating_mul(documents.len()) > most {
        let message = format!(
            "the query stands before each of {} documents, which makes more than {most} bytes; send a shorter query or fewer documents",
            documents.len()
        );
        return Err(Failure::new(Kind::TooLarge, message).about("query"));
    }
    let batcher = call.queue(served.reranker()?);
    let options = RankOptions::default()
        .with_scores(scores)
        .with_prompt(prompt);
    let work = || batcher.rank_with(query, documents, options);
    call.compute(served, documents.len(), work).await
}
