//! Jina's `/v1/multi-vector`: a vector for each token, as <https://api.jina.ai/redoc#tag/multi-vector> describes it. `rerank.rs` has its
//! other route.
//!
//! As on `/v1/embeddings` answers have two fields more: `fingerprint`, and `truncated`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use isovec::{ModelTask, MultiVectorEmbeddings, MultiVectorOptions, Prompt};
use isovec_http::Dialect;
use isovec_http::openai::Usage;
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use super::floats::{Format, Vector, answer};
use super::openai;
use crate::app::App;
use crate::call::Call;
use crate::failure::Failure;
use crate::route::Route;
use crate::schema::{
    either, list, model, needed, number, object, one_of, optional, text, texts, whole, word,
};
use crate::texts::Texts;

pub(super) fn route() -> Route {
    let vector = either([
        list(number()),
        word("Bytes of little-endian 32-bit floats in base64."),
    ]);
    let row = object([
        needed("object", one_of(&["embeddings"])),
        needed("index", whole(0, "The text's place.")),
        needed("embeddings", list(vector)),
    ]);
    let asked = object([
        model(),
        needed("input", texts()),
        optional("input_type", one_of(&["document", "query"])),
        optional("embedding_type", one_of(&["float", "base64"])),
        optional(
            "dimensions",
            whole(1, "The model's own number of components."),
        ),
    ]);
    let given = object([
        needed("object", one_of(&["list"])),
        needed("data", list(row)),
        needed("model", text()),
        needed("usage", openai::usage()),
        needed("fingerprint", text()),
        needed("truncated", openai::truncated()),
    ]);
    let summary =
        "A vector for each token of texts that is compared, of a model of late interaction.";
    Route::post("/v1/multi-vector", multi_vector, summary)
        .takes(
            asked,
            json!({"input": ["a text", "another"], "input_type": "document"}),
        )
        .gives(given)
}

#[derive(Debug, Deserialize)]
struct Asked {
    #[serde(default)]
    model: Option<String>,
    input: Texts,
    #[serde(default)]
    input_type: Option<InputType>,
    #[serde(default)]
    embedding_type: Option<Format>,
    #[serde(default)]
    dimensions: Option<usize>,
}

/// What the texts are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum InputType {
    #[default]
    Document,
    Query,
}

#[derive(Serialize)]
struct Answer<'a> {
    object: &'static str,
    data: Rows<'a>,
    model: &'a str,
    usage: Usage,
    fingerprint: &'a str,
    truncated: &'a [usize],
}

/// The rows of all texts, to be written.
struct Rows<'a> {
    set: &'a MultiVectorEmbeddings,
    format: Format,
}

#[derive(Serialize)]
struct Row<'a> {
    object: &'static str,
    index: usize,
    embeddings: Vec<Vector<'a>>,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.set.len()))?;
        for index in 0..self.set.len() {
            let values = self.set.get(index).unwrap_or_default();
            // Of a loaded model, so above 0.
            let vectors = values.chunks_exact(self.set.dim().max(1));
            rows.serialize_element(&Row {
                object: "embeddings",
                index,
                embeddings: vectors.map(|vector| Vector(vector, self.format)).collect(),
            })?;
        }
        rows.end()
    }
}

async fn multi_vector(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = embedded(&mut call, request).await;
    call.end(Dialect::OpenAi, result)
}

async fn embedded(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: Asked = call.read(request).await?;
    let name = asked.model.as_deref();
    let served = call.app.models.choose(name, ModelTask::MultiVector)?;
    let queued = served.multi_vector()?;
    let texts = asked.input.checked("input")?;
    let own = queued.model.dimension();
    if let Some(dimensions) = asked.dimensions.filter(|&wanted| wanted != own) {
        let message = format!("dimensions is {dimensions}; the vectors of this model have {own}");
        return Err(Failure::field("dimensions", message));
    }
    let prompt = match asked.input_type.unwrap_or_default() {
        InputType::Document => Prompt::Passage,
        InputType::Query => Prompt::Query,
    };
    let options = MultiVectorOptions::default().with_prompt(prompt);
    let format = asked.embedding_type.unwrap_or_default();
    let count = texts.len();
    let batcher = call.queue(queued);
    let work = || batcher.embed_with(texts, options);
    let set = call.compute(&served, count, work).await?;
    let tokens = call.tokens();
    let truncated = call.truncated().to_vec();
    let fingerprint = set.fingerprint().id();
    let headers = call.describe(&served, fingerprint.clone());
    let name = Arc::clone(&served.name);
    let size = set.offsets().last().copied().unwrap_or_default() * set.dim();
    answer(headers, size, move || {
        serde_json::to_vec(&Answer {
            object: "list",
            data: Rows { set: &set, format },
            model: &name,
            usage: Usage::of(tokens),
            fingerprint: &fingerprint,
            truncated: &truncated,
        })
    })
    .await
}
