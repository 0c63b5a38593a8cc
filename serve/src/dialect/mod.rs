//! The protocols that are spoken, one file each. A dialect reads its own requests, and says vectors in its own form;
//! everything between is `call.rs`, and `isovec-http` says failures.

mod cohere;
mod floats;
mod grpc;
mod jina;
mod oip;
mod openai;
mod rerank;
mod tei;

use isovec_http::Dialect;
use serde_json::Value;

use crate::route::Route;

pub(crate) use self::grpc::router as grpc_router;
pub(crate) use self::oip::fold;

/// The routes of all dialects.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = openai::routes();
    routes.push(jina::route());
    routes.extend(rerank::routes());
    routes.extend(oip::routes());
    routes.extend(tei::routes());
    routes
}

/// The schema of a failure in a dialect.
pub(crate) fn error_schema(dialect: Dialect) -> Value {
    match dialect {
        Dialect::OpenAi => openai::error_schema(),
        Dialect::Cohere => cohere::error_schema(),
        // gRPC has no JSON, and no part of the document.
        Dialect::Oip | Dialect::Grpc => oip::error_schema(),
        Dialect::Tei => tei::error_schema(),
    }
}
