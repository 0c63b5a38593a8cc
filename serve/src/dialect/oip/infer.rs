//! Vectors over `infer`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use isovec::{EmbedOptions, Embeddings};
use isovec_http::{Dialect, apart, header};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::floats::written;
use super::tensor::{Input, Tensor};
use super::{OUTPUT, VERSION, extent, inputs, named, priority};
use crate::app::App;
use crate::body::{self, check_is_json};
use crate::call::Call;
use crate::failure::Failure;
use crate::object::Object;
use crate::route::Route;
use crate::schema::{boolean, list, needed, number, object, one_of, optional, text, whole, word};

/// Bytes of JSON, where tensors are behind it.
const JSON_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// A body with bytes behind its JSON.
const BINARY: &str = "application/octet-stream";

pub(super) fn routes() -> [Route; 2] {
    let parameters = object([
        optional(
            "priority",
            whole(
                0,
                "1 is normal, more is low; 0 is what x-request-priority says.",
            ),
        ),
        optional(
            "timeout",
            whole(
                0,
                "Microseconds that the request has; 0 is as many as the server gives.",
            ),
        ),
        optional(
            "binary_data_output",
            boolean("Whether vectors are bytes behind the JSON."),
        ),
    ]);
    let input = object([
        needed("name", one_of(&inputs())),
        needed("datatype", one_of(&["BYTES"])),
        needed("shape", list(extent())),
        optional("data", list(word("A text, or a picture's file in base64."))),
        optional(
            "parameters",
            object([optional(
                "binary_data_size",
                whole(0, "Bytes of the tensor behind the JSON."),
            )]),
        ),
    ]);
    let wanted = object([
        needed("name", one_of(&[OUTPUT])),
        optional(
            "parameters",
            object([optional(
                "binary_data",
                boolean("Whether it is bytes behind the JSON."),
            )]),
        ),
    ]);
    let output = object([
        needed("name", one_of(&[OUTPUT])),
        needed("datatype", one_of(&["FP32"])),
        needed("shape", list(extent())),
        optional("data", list(number())),
    ]);
    let asked = object([
        optional("id", word("Given back in the answer.")),
        optional("parameters", parameters),
        needed("inputs", list(input)),
        optional("outputs", list(wanted)),
    ]);
    let given = object([
        needed("model_name", text()),
        needed("model_version", text()),
        optional("id", text()),
        needed("outputs", list(output)),
    ]);
    let example = json!({
        "inputs": [{"name": Input::Texts.name(), "datatype": "BYTES", "shape": [2], "data": ["a text", "another"]}],
    });
    let summary = "Vectors of texts or pictures.";
    [
        Route::post("/v2/models/{model}/infer", of_model, summary)
            .takes(asked.clone(), example.clone())
            .gives(given.clone()),
        Route::post(
            "/v2/models/{model}/versions/{version}/infer",
            of_version,
            summary,
        )
        .takes(asked, example)
        .gives(given),
    ]
}

#[derive(Debug, Deserialize)]
struct Asked {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parameters: Option<Object<Parameters>>,
    inputs: Vec<Object<Tensor>>,
    #[serde(default)]
    outputs: Option<Vec<Object<Wanted>>>,
}

#[derive(Debug, Default, Deserialize)]
struct Parameters {
    #[serde(default)]
    priority: Option<u64>,
    /// In microseconds.
    #[serde(default)]
    timeout: Option<u64>,
    #[serde(default)]
    binary_data_output: Option<bool>,
}

/// An output that is asked for.
#[derive(Debug, Deserialize)]
struct Wanted {
    name: String,
    #[serde(default)]
    parameters: Option<Object<WantedParameters>>,
}

#[derive(Debug, Default, Deserialize)]
struct WantedParameters {
    #[serde(default)]
    binary_data: Option<bool>,
}

#[derive(Serialize)]
struct Answer<'a> {
    model_name: &'a str,
    model_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    outputs: [Output<'a>; 1],
}

#[derive(Serialize)]
struct Output<'a> {
    name: &'static str,
    datatype: &'static str,
    shape: [usize; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a [f32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Binary>,
}

#[derive(Serialize)]
struct Binary {
    binary_data_size: usize,
}

async fn of_model(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    infer(app, &name, None, request).await
}

async fn of_version(
    State(app): State<Arc<App>>,
    Path((name, version)): Path<(String, String)>,
    request: Request,
) -> Response {
    infer(app, &name, Some(&version), request).await
}

async fn infer(app: Arc<App>, name: &str, version: Option<&str>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = inferred(&mut call, name, version, request).await;
    call.end(Dialect::Oip, result)
}

async fn inferred(
    call: &mut Call,
    name: &str,
    version: Option<&str>,
    request: Request,
) -> Result<Response, Failure> {
    let head = request.headers();
    let length = json_length(head)?;
    // Clients of this protocol name no type; a page of another site cannot leave it out.
    if length.is_none() && head.contains_key(CONTENT_TYPE) {
        check_is_json(head)?;
    }
    let mut json = call.body(request).await?;
    let served = named(&call.app, name, version)?;
    let input = Input::of(&served)?;
    let length = length.unwrap_or(json.len());
    if length > json.len() {
        let message = format!(
            "{JSON_LENGTH} is {length}, and the body has {} bytes",
            json.len()
        );
        return Err(Failure::field("inputs", message));
    }
    let behind = json.split_off(length);
    let asked: Asked = body::parse(json).await?;
    let Object(parameters) = asked.parameters.unwrap_or(Object(Parameters::default()));
    if let Some(of) = parameters.priority.filter(|&of| of > 0) {
        call.matters(priority(of));
    }
    if let Some(timeout) = parameters.timeout.filter(|&timeout| timeout > 0) {
        call.within(Duration::from_micros(timeout));
    }
    let binary = binary(asked.outputs, parameters.binary_data_output)?;
    let mut inputs = asked.inputs.into_iter();
    let (Some(Object(tensor)), None) = (inputs.next(), inputs.next()) else {
        return Err(input.is_alone());
    };
    let items = match input {
        Input::Texts => tensor.items(input, behind)?,
        // Megabytes of base64 keep nobody else waiting.
        Input::Images => apart(move || tensor.items(input, behind)).await??,
    };
    let options = EmbedOptions::default();
    let set = call.embed_items(&served, items, options).await?;
    let headers = call.describe(&served, set.fingerprint().id());
    let about = (Arc::clone(&served.name), asked.id);
    answer(headers, set, about, binary).await
}

/// The bytes of the body that are JSON, if others are behind them.
fn json_length(head: &HeaderMap) -> Result<Option<usize>, Failure> {
    let Some(value) = head.get(JSON_LENGTH) else {
        return Ok(None);
    };
    let length = value
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let wrong = || {
        Failure::field(
            "inputs",
            format!("the header {JSON_LENGTH} is no number of bytes"),
        )
    };
    length.map(Some).ok_or_else(wrong)
}

/// Whether the vectors are wanted as bytes.
fn binary(outputs: Option<Vec<Object<Wanted>>>, all: Option<bool>) -> Result<bool, Failure> {
    let all = all.unwrap_or(false);
    let mut outputs = outputs.into_iter().flatten();
    let Some(Object(wanted)) = outputs.next() else {
        return Ok(all);
    };
    if wanted.name != OUTPUT || outputs.next().is_some() {
        let message = format!("the model has one output, {OUTPUT:?}");
        return Err(Failure::field("outputs", message));
    }
    let own = wanted.parameters.and_then(|Object(own)| own.binary_data);
    Ok(own.unwrap_or(all))
}

/// An answer of JSON, and of bytes behind it if they are wanted. It names the model, and the request by its id.
async fn answer(
    mut headers: HeaderMap,
    set: Embeddings,
    (model, id): (Arc<str>, Option<String>),
    binary: bool,
) -> Result<Response, Failure> {
    let size = set.as_slice().len();
    let write = move || {
        let values = set.as_slice();
        let mut body = serde_json::to_vec(&Answer {
            model_name: &model,
            model_version: VERSION,
            id: id.as_deref(),
            outputs: [Output {
                name: OUTPUT,
                datatype: "FP32",
                shape: [set.len(), set.dim()],
                data: (!binary).then_some(values),
                parameters: binary.then(|| Binary {
                    binary_data_size: size_of_val(values),
                }),
            }],
        })?;
        let length = body.len();
        if binary {
            body.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        Ok((body, length))
    };
    let (body, length) = written(size, write).await?;
    let kind = if binary { BINARY } else { "application/json" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if binary {
        headers.insert(JSON_LENGTH, header(length.to_string()));
    }
    let mut response = Response::new(body.into());
    *response.headers_mut() = headers;
    Ok(response)
}
