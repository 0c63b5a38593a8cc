//! The Open Inference Protocol over gRPC: the service `inference.GRPCInferenceService`, on the port of everything else.
//!
//! A call goes the way of every request: its body is read within the server's bounds, and then it is one message. The crate
//! `tonic` would read bodies by itself, past those bounds.

mod frame;
mod health;
mod messages;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use isovec::EmbedOptions;
use isovec_http::{Dialect, GRPC_SERVICE, deadline};
use prost::Message;

use self::messages::{
    Contents, Control, Index, Indexed, Infer, Inferred, InputTensor, ModelMetadata, ModelState,
    ModelVersion, Nothing, Parameter, ServerMetadata, TensorMetadata, Value, Whether,
};
use super::floats::written;
use super::oip::repository::{change, state};
use super::oip::tensor::Input;
use super::oip::{self, OUTPUT, VERSION, extensions, named, priority};
use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Kind};
use crate::repository::{self, Change};
use crate::tokens::Items;

/// The methods; they are no routes of the OpenAPI document, which has no word for gRPC.
pub(crate) fn router() -> Router<Arc<App>> {
    let path = |method: &str| format!("/{GRPC_SERVICE}/{method}");
    Router::new()
        .route(&path("ServerLive"), post(server_live))
        .route(&path("ServerReady"), post(server_ready))
        .route(&path("ServerMetadata"), post(server_metadata))
        .route(&path("ModelReady"), post(model_ready))
        .route(&path("ModelMetadata"), post(model_metadata))
        .route(&path("ModelInfer"), post(model_infer))
        .route(&path("RepositoryIndex"), post(repository_index))
        .route(&path("RepositoryModelLoad"), post(repository_load))
        .route(&path("RepositoryModelUnload"), post(repository_unload))
        .merge(health::router())
}

/// A call's one message.
async fn read<M: Message + Default>(call: &mut Call, request: Request) -> Result<M, Failure> {
    frame::check(request.version(), request.headers())?;
    if let Some(time) = deadline::of_grpc(request.headers())? {
        call.within(time);
    }
    let coding = frame::coding(request.headers())?;
    let (is_compressed, message) = frame::message(call.body(request).await?)?;
    let message = match (is_compressed, coding) {
        (false, _) => message,
        (true, Some(coding)) => call.decoded(coding, message).await?,
        (true, None) => {
            let message = format!("a compressed message needs the header {}", frame::ENCODING);
            return Err(Failure::new(Kind::Invalid, message));
        }
    };
    frame::read(message)
}

/// Answers a call.
macro_rules! answered {
    ($app:ident, $request:ident, $given:ident: $Given:ty, $call:ident => $answer:expr) => {{
        let mut call = Call::new($app);
        let result = async {
            let $given: $Given = read(&mut call, $request).await?;
            let $call = &mut call;
            $answer
        };
        let result = result.await;
        call.end(Dialect::Grpc, result)
    }};
}

/// An answer without anything in its head.
fn plain(message: &impl Message) -> Result<Response, Failure> {
    Ok(frame::answer(HeaderMap::new(), message))
}

async fn server_live(State(app): State<Arc<App>>, request: Request) -> Response {
    answered!(app, request, _given: Nothing, _call => plain(&Whether { is: true }))
}

async fn server_ready(State(app): State<Arc<App>>, request: Request) -> Response {
    answered!(app, request, _given: Nothing, call => {
        plain(&Whether { is: call.app.ready().await.is_ok() })
    })
}

async fn server_metadata(State(app): State<Arc<App>>, request: Request) -> Response {
    answered!(app, request, _given: Nothing, call => plain(&ServerMetadata {
        name: "isovec".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        extensions: extensions(&call.app).into_iter().map(Into::into).collect(),
    }))
}

async fn model_ready(State(app): State<Arc<App>>, request: Request) -> Response {
    answered!(app, request, given: ModelVersion, call => {
        let served = named(&call.app, &given.name, version(&given.version))?;
        plain(&Whether { is: call.app.model_ready(&served).await.is_ok() })
    })
}

async fn model_metadata(State(app): State<Arc<App>>, request: Request) -> Response {
    answered!(app, request, given: ModelVersion, call => {
        let served = named(&call.app, &given.name, version(&given.version))?;
        let input = Input::of(&served)?;
        let dimension = served.dimension(input.task())? as i64;
        let tensor = |name: &str, datatype: &str, shape| TensorMetadata {
            name: name.into(),
            datatype: datatype.into(),
            shape,
        };
        plain(&ModelMetadata {
            name: served.name.to_string(),
            versions: vec![VERSION.into()],
            platform: oip::platform(&served),
            inputs: vec![tensor(input.name(), "BYTES", vec![-1])],
            outputs: vec![tensor(OUTPUT, "FP32", vec![-1, dimension])],
        })
    })
}

async fn repository_index(State(app): State<Arc<App>>, request: Request) -> Response {
    answered!(app, request, given: Index, call => {
        let all = repository::index(&call.app, given.ready).await?;
        let models = all.iter().map(|entry| {
            let (state, reason) = state(entry);
            ModelState {
                name: entry.name.clone(),
                version: VERSION.into(),
                state: state.into(),
                reason: reason.into(),
            }
        });
        plain(&Indexed { models: models.collect() })
    })
}

async fn repository_load(State(app): State<Arc<App>>, request: Request) -> Response {
    answered!(app, request, given: Control, call => {
        change(call, given.model_name, given.parameters.keys(), Change::Load).await?;
        plain(&Nothing {})
    })
}

async fn repository_unload(State(app): State<Arc<App>>, request: Request) -> Response {
    answered!(app, request, given: Control, call => {
        change(call, given.model_name, given.parameters.keys(), Change::Unload).await?;
        plain(&Nothing {})
    })
}

async fn model_infer(State(app): State<Arc<App>>, request: Request) -> Response {
    answered!(app, request, given: Infer, call => inferred(call, given).await)
}

async fn inferred(call: &mut Call, asked: Infer) -> Result<Response, Failure> {
    let served = named(&call.app, &asked.model_name, version(&asked.model_version))?;
    let input = Input::of(&served)?;
    if let Some(of) = whole(&asked, "priority")?.filter(|&of| of > 0) {
        call.matters(priority(of));
    }
    if let Some(time) = whole(&asked, "timeout")?.filter(|&time| time > 0) {
        call.within(Duration::from_micros(time));
    }
    if asked.outputs.len() > 1 || asked.outputs.iter().any(|output| output.name != OUTPUT) {
        let message = format!("the model has one output, {OUTPUT:?}");
        return Err(Failure::field("outputs", message));
    }
    let items = items(input, asked.inputs, asked.raw_input_contents)?;
    let options = EmbedOptions::default();
    let set = call.embed_items(&served, items, options).await?;
    let headers = call.describe(&served, set.fingerprint().id());
    let (model_name, id) = (served.name.to_string(), asked.id);
    let size = set.as_slice().len();
    let write = move || {
        let values = set.as_slice().iter().flat_map(|value| value.to_le_bytes());
        let shape = [set.len(), set.dim()].map(|extent| extent as i64);
        let message = Inferred {
            model_name,
            model_version: VERSION.into(),
            id,
            outputs: vec![TensorMetadata {
                name: OUTPUT.into(),
                datatype: "FP32".into(),
                shape: shape.into(),
            }],
            raw_output_contents: vec![values.collect::<Vec<u8>>().into()],
        };
        Ok(frame::answer(headers, &message))
    };
    written(size, write).await
}

/// What is to be embedded, which is in the one tensor or behind all of them.
fn items(input: Input, tensors: Vec<InputTensor>, mut raw: Vec<Bytes>) -> Result<Items, Failure> {
    let wrong = |message: &str| Failure::field("inputs", message);
    let Ok([tensor]) = <[InputTensor; 1]>::try_from(tensors) else {
        return Err(input.is_alone());
    };
    let shape = tensor.shape.iter().map(|&extent| usize::try_from(extent));
    let shape: Result<Vec<usize>, _> = shape.collect();
    let shape = shape.map_err(|_| wrong("an extent of a shape is below 0"))?;
    let count = input.check(&tensor.name, &tensor.datatype, &shape)?;
    match (tensor.contents, raw.pop(), raw.is_empty()) {
        (Some(Contents { bytes }), None, _) => input.of_bytes(bytes, count),
        (None, Some(raw), true) => input.of_raw(raw, count),
        _ => Err(wrong(
            "a tensor has either contents, or bytes in raw_input_contents",
        )),
    }
}

/// A version that is named; protobuf has no word for one that is not.
fn version(named: &str) -> Option<&str> {
    Some(named).filter(|version| !version.is_empty())
}

/// A parameter that is a number.
fn whole(asked: &Infer, name: &'static str) -> Result<Option<u64>, Failure> {
    let Some(Parameter { value }) = asked.parameters.get(name) else {
        return Ok(None);
    };
    let number = match value {
        Some(Value::Uint64(number)) => Some(*number),
        Some(Value::Int64(number)) => u64::try_from(*number).ok(),
        None => None,
    };
    let wrong = || {
        Failure::new(
            Kind::Invalid,
            format!("the parameter {name} is no whole number"),
        )
    };
    number.map(Some).ok_or_else(wrong)
}
