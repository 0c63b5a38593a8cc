//! The messages of `inference.GRPCInferenceService`, as the Open Inference Protocol numbers their fields
//! (<https://github.com/open-inference/open-inference-protocol/blob/main/specification/protocol/inference_grpc.md>). Fields that
//! this server neither reads nor writes are left out; protobuf passes them over.

use std::collections::HashMap;

use bytes::Bytes;
use prost::{Message, Oneof};

/// A request that says nothing.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Nothing {}

/// The answer to `ServerLive`, `ServerReady` and `ModelReady`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Whether {
    #[prost(bool, tag = "1")]
    pub(super) is: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ServerMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) extensions: Vec<String>,
}

/// The request of `ModelReady` and `ModelMetadata`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelVersion {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) versions: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) platform: String,
    #[prost(message, repeated, tag = "4")]
    pub(super) inputs: Vec<TensorMetadata>,
    #[prost(message, repeated, tag = "5")]
    pub(super) outputs: Vec<TensorMetadata>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub(super) shape: Vec<i64>,
}

/// The request of `RepositoryIndex`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Index {
    #[prost(bool, tag = "2")]
    pub(super) ready: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Indexed {
    #[prost(message, repeated, tag = "1")]
    pub(super) models: Vec<ModelState>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelState {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
    #[prost(string, tag = "3")]
    pub(super) state: String,
    #[prost(string, tag = "4")]
    pub(super) reason: String,
}

/// The request of `RepositoryModelLoad` and `RepositoryModelUnload`. Of parameters only the names matter: none that has an effect
/// is taken.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Control {
    #[prost(string, tag = "2")]
    pub(super) model_name: String,
    #[prost(map = "string, message", tag = "3")]
    pub(super) parameters: HashMap<String, Nothing>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Infer {
    #[prost(string, tag = "1")]
    pub(super) model_name: String,
    #[prost(string, tag = "2")]
    pub(super) model_version: String,
    #[prost(string, tag = "3")]
    pub(super) id: String,
    #[prost(map = "string, message", tag = "4")]
    pub(super) parameters: HashMap<String, Parameter>,
    #[prost(message, repeated, tag = "5")]
    pub(super) inputs: Vec<InputTensor>,
    #[prost(message, repeated, tag = "6")]
    pub(super) outputs: Vec<WantedTensor>,
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub(super) raw_input_contents: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Parameter {
    #[prost(oneof = "Value", tags = "2, 5")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(int64, tag = "2")]
    Int64(i64),
    #[prost(uint64, tag = "5")]
    Uint64(u64),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InputTensor {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub(super) shape: Vec<i64>,
    #[prost(message, optional, tag = "5")]
    pub(super) contents: Option<Contents>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Contents {
    #[prost(bytes = "bytes", repeated, tag = "8")]
    pub(super) bytes: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WantedTensor {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Inferred {
    #[prost(string, tag = "1")]
    pub(super) model_name: String,
    #[prost(string, tag = "2")]
    pub(super) model_version: String,
    #[prost(string, tag = "3")]
    pub(super) id: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) outputs: Vec<TensorMetadata>,
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub(super) raw_output_contents: Vec<Bytes>,
}
