//! The service `grpc.health.v1.Health`, by which Kubernetes and balancers of gRPC ask for readiness
//! (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use futures_util::stream::unfold;
use isovec_http::{Dialect, GRPC_HEALTH, GRPC_SERVICE, deadline};
use prost::Message;
use tokio::time::{Instant, sleep, timeout_at};

use super::frame;
use super::{plain, read};
use crate::admission::stopping;
use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Kind};

/// The time between two looks of a client that watches.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The statuses, by their numbers.
const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;
const SERVICE_UNKNOWN: i32 = 3;

/// A service, or with an empty name the server.
#[derive(Clone, PartialEq, Message)]
struct Asked {
    #[prost(string, tag = "1")]
    service: String,
}

impl Asked {
    fn is_known(&self) -> bool {
        ["", GRPC_SERVICE, GRPC_HEALTH].contains(&&*self.service)
    }
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    status: i32,
}

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route(&format!("/{GRPC_HEALTH}/Check"), post(check))
        .route(&format!("/{GRPC_HEALTH}/Watch"), post(watch))
}

async fn check(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = async {
        let asked: Asked = read(&mut call, request).await?;
        if !asked.is_known() {
            let message = format!("there is no such service; ask for {GRPC_SERVICE}");
            return Err(Failure::new(Kind::NoModel, message));
        }
        let status = now(&call.app).await;
        plain(&Status { status })
    };
    let result = result.await;
    call.end(Dialect::Grpc, result)
}

async fn now(app: &App) -> i32 {
    match app.ready().await {
        Ok(()) => SERVING,
        Err(_) => NOT_SERVING,
    }
}

/// The status now, and again whenever it has changed, until the client leaves, its deadline passes, or the server stops.
async fn watch(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(Arc::clone(&app));
    let result = async {
        let time = deadline::of_grpc(request.headers())?;
        let asked: Asked = read(&mut call, request).await?;
        let watch = Watch {
            // What is further away than clocks go is no bound.
            until: time.and_then(|time| Instant::now().checked_add(time)),
            app,
            is_known: asked.is_known(),
            said: None,
        };
        Ok(frame::answers(unfold(Some(watch), Watch::next)))
    };
    let result = result.await;
    call.end(Dialect::Grpc, result)
}

/// A client that watches.
struct Watch {
    app: Arc<App>,
    is_known: bool,
    until: Option<Instant>,
    /// The status that it was told.
    said: Option<i32>,
}

impl Watch {
    /// The next message, or why there are no more.
    async fn next(this: Option<Self>) -> Option<(Result<Status, Failure>, Option<Self>)> {
        let mut this = this?;
        let changed = match this.until {
            Some(until) => timeout_at(until, this.changed()).await,
            None => Ok(this.changed().await),
        };
        let late = || Failure::new(Kind::TimedOut, "the deadline passed");
        Some(match changed.map_err(|_| late()).flatten() {
            Ok(status) => {
                this.said = Some(status);
                (Ok(Status { status }), Some(this))
            }
            Err(failure) => (Err(failure), None),
        })
    }

    /// A status that the client was not told.
    ///
    /// # Errors
    /// That the server stops, and the client was told.
    async fn changed(&self) -> Result<i32, Failure> {
        loop {
            let status = match self.is_known {
                true => now(&self.app).await,
                // It may come with another version: the call goes on.
                false => SERVICE_UNKNOWN,
            };
            if self.said != Some(status) {
                return Ok(status);
            }
            if self.app.gate.is_closed() {
                return Err(stopping());
            }
            tokio::select! {
                () = sleep(LOOK_AGAIN) => {}
                () = self.app.gate.closes() => {}
            }
        }
    }
}
