//! A vector for each token.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use isovec::{ModelTask, MultiVectorEmbeddings, MultiVectorOptions, Prompt};
use isovec_http::Dialect;
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use super::super::floats::answer;
use super::{Reading, characters, headers, reading};
use crate::app::App;
use crate::call::Call;
use crate::failure::Failure;
use crate::route::Route;
use crate::schema::{list, model, needed, number, object, optional, texts, word};
use crate::texts::Texts;

pub(super) fn route() -> Route {
    let fields = [
        model(),
        needed("inputs", texts()),
        optional(
            "prompt_name",
            word(
                "What the texts are: query, or document (without a word). Or the name of another prompt of the model.",
            ),
        ),
    ];
    let summary =
        "A vector for each token of texts that is compared, of a model of late interaction.";
    Route::post("/embed_all", embed_all, summary)
        .takes(
            object(fields.into_iter().chain(reading())),
            json!({"inputs": ["a text", "another"]}),
        )
        .gives(list(list(list(number()))))
}

#[derive(Debug, Deserialize)]
struct EmbedAll {
    #[serde(default)]
    model: Option<String>,
    inputs: Texts,
    #[serde(default)]
    prompt_name: Option<String>,
    #[serde(flatten)]
    reading: Reading,
}

/// The vectors of a text's tokens, to be written.
struct Tokens<'s> {
    set: &'s MultiVectorEmbeddings,
    text: usize,
}

impl Serialize for Tokens<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let vectors = self.set.get(self.text).unwrap_or_default();
        // Of a loaded model, so above 0.
        serializer.collect_seq(vectors.chunks_exact(self.set.dim().max(1)))
    }
}

/// The same of all texts.
struct All(MultiVectorEmbeddings);

impl Serialize for All {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for text in 0..self.0.len() {
            list.serialize_element(&Tokens { set: &self.0, text })?;
        }
        list.end()
    }
}

async fn embed_all(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = embedded(&mut call, request).await;
    call.end(Dialect::Tei, result)
}

async fn embedded(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: EmbedAll = call.read(request).await?;
    let name = asked.model.as_deref();
    let served = call.app.models.choose(name, ModelTask::MultiVector)?;
    let batcher = call.queue(served.multi_vector()?);
    asked.reading.check(&served)?;
    let texts = asked.inputs.checked("inputs")?;
    // Queries and documents are read in ways of their own, whether the model has prompts of these names or not.
    let prompt = match asked.prompt_name.as_deref() {
        None | Some("document" | "passage") => Prompt::Passage,
        Some("query") => Prompt::Query,
        Some(other) => Prompt::Named(other.to_owned()),
    };
    let options = MultiVectorOptions::default().with_prompt(prompt);
    let (characters, count) = (characters(&texts), texts.len());
    let work = || batcher.embed_with(texts, options);
    let set = call.compute(&served, count, work).await?;
    asked.reading.check_whole(call, &served)?;
    let headers = headers(call, &served, set.fingerprint().id(), characters);
    let size = set.offsets().last().copied().unwrap_or_default() * set.dim();
    answer(headers, size, move || serde_json::to_vec(&All(set))).await
}
