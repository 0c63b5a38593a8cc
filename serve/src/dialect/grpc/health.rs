//! The service `grpc.health.v1.Health`, by which Kubernetes and balancers of gRPC ask for readiness. A call of `Watch` gets that
//! there is no such method, which tells its client to call `Check` again.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use isovec_http::{Dialect, GRPC_HEALTH, GRPC_SERVICE};
use prost::Message;

use super::{plain, read};
use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Kind};

/// The statuses, by their numbers.
const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;

/// A service, or with an empty name the server.
#[derive(Clone, PartialEq, Message)]
struct Asked {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    status: i32,
}

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route(&format!("/{GRPC_HEALTH}/Check"), post(check))
}

async fn check(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = async {
        let asked: Asked = read(&mut call, request).await?;
        if !["", GRPC_SERVICE, GRPC_HEALTH].contains(&&*asked.service) {
            let message = format!("there is no such service; ask for {GRPC_SERVICE}");
            return Err(Failure::new(Kind::NoModel, message));
        }
        let status = match call.app.ready().await {
            Ok(()) => SERVING,
            Err(_) => NOT_SERVING,
        };
        plain(&Status { status })
    };
    let result = result.await;
    call.end(Dialect::Grpc, result)
}
