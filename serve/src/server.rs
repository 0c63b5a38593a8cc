//! A server's life: the port opens, models are loaded, requests are answered, and what was let in is finished.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use futures_util::Stream;
use futures_util::future::join_all;
use isovec_http::{Connections, LAST_WORDS, Terms, service_manager};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tower::util::MapRequest;

use crate::access;
use crate::app::App;
use crate::dialect;
use crate::error::{Error, Result};
use crate::health;
use crate::model::Model;
use crate::models::Known;
use crate::openapi;
use crate::options::ServeOptions;
use crate::reload;
use crate::route;
use crate::served::Served;
use crate::spec::ModelSpec;
use crate::status;

/// How long a server that is not ready is left alone.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// An open port, before a model is behind it.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
}

impl Server {
    /// Opens a port; 0 is any that is free.
    ///
    /// # Errors
    /// [`Error::Options`], and [`Error::Bind`] for an address that is taken or not this machine's.
    pub async fn bind(address: SocketAddr, options: ServeOptions) -> Result<Self> {
        options.check()?;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| Error::Bind { address, source })?;
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "listening");
        }
        Ok(Self {
            listener,
            app: App::new(options),
        })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests with one model until `stop` completes, then finishes those that were let in. Until `model` is
    /// loaded, requests are told so with 503.
    ///
    /// # Errors
    /// [`Error::Model`] when the model cannot be loaded, and [`Error::Cut`] when the drain took longer than
    /// [`ServeOptions::drain_timeout`].
    pub async fn run<M: Into<Model>>(
        self,
        model: impl Future<Output = isovec::Result<M>>,
        stop: impl Future<Output = ()>,
    ) -> Result<()> {
        let app = Arc::clone(&self.app);
        let name = app.options.name.clone();
        let load = async {
            let loaded = model.await.map_err(|source| Error::Model {
                name: name.clone(),
                source: Box::new(source),
            })?;
            let served = Arc::new(Served::new(loaded.into(), name));
            app.models.hold(&served);
            app.models.put(vec![Known::Given(Arc::clone(&served))]);
            served.announce();
            Ok(())
        };
        self.live(load, stop).await
    }

    /// Answers requests with the models of the last list that `wanted` gave, until `stop` completes. The server loads
    /// them itself. The models of a list take the place of those before them once all of them are loaded: a model whose
    /// spec is as before goes on or stays away, and one that is no longer wanted is freed when its last request is answered, so no
    /// request is lost. The order counts: a request that names no model gets the first that does what its route is for.
    ///
    /// # Errors
    /// [`Error::Options`], [`Error::Memory`] and [`Error::Model`] for the first list; a later one that cannot be served changes nothing, and
    /// the log has the reason. [`Error::Cut`] as [`run`](Self::run).
    pub async fn run_models(
        self,
        wanted: impl Stream<Item = Vec<ModelSpec>>,
        stop: impl Future<Output = ()>,
    ) -> Result<()> {
        let app = Arc::clone(&self.app);
        self.live(reload::follow(&app, wanted), stop).await
    }

    /// Accepts connections while `work` puts models in, and until `stop`.
    async fn live(
        self,
        work: impl Future<Output = Result<()>>,
        stop: impl Future<Output = ()>,
    ) -> Result<()> {
        let Self { listener, app } = self;
        let options = &app.options;
        let service = MapRequest::new(router(Arc::clone(&app)), dialect::fold);
        let terms = Terms::new(options.max_connections, options.read_timeout);
        #[cfg(feature = "tls")]
        let terms = terms.with_tls(options.tls.clone());
        let connections = Connections::accept(listener, service, terms);

        let ready = app.options.notify_socket.clone().map(|socket| {
            let app = Arc::clone(&app);
            tokio::spawn(async move {
                while app.ready().await.is_err() {
                    sleep(LOOK_AGAIN).await;
                }
                service_manager::tell(&socket, service_manager::READY);
            })
        });

        let result = live(&app, work, stop).await;

        if let Some(ready) = ready {
            ready.abort();
        }

        connections.end().await;
        result
    }
}

/// Puts models in until it is time to stop, and drains.
async fn live(
    app: &App,
    work: impl Future<Output = Result<()>>,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let mut stop = pin!(stop);
    let stopped = tokio::select! {
        done = work => {
            done?;
            false
        }
        () = &mut stop => true,
    };
    if !stopped {
        stop.await;
    }
    app.gate.close();
    if let Some(socket) = &app.options.notify_socket {
        service_manager::tell(socket, service_manager::STOPPING);
    }
    let inside = app.gate.in_work().requests;
    tracing::info!(
        requests = inside,
        "stopping: requests that were let in are finished"
    );
    let drained = timeout(app.options.drain_timeout, app.gate.empty()).await;
    let left = app.gate.in_work().requests;
    if drained.is_err() && left > 0 {
        // They are told so, with an error. What an engine runs that is stuck does not end.
        let models = app.models.held();
        let _ = timeout(
            LAST_WORDS,
            join_all(models.iter().map(|model| model.shut_down())),
        )
        .await;
        return Err(Error::Cut { requests: left });
    }
    Ok(())
}

fn router(app: Arc<App>) -> Router {
    let mut routes = dialect::routes();
    routes.extend(health::routes());
    routes.extend(status::routes());
    route::router(openapi::with_docs(routes))
        .merge(dialect::grpc_router())
        .fallback(access::no_route)
        .method_not_allowed_fallback(access::no_method)
        .layer(from_fn_with_state(Arc::clone(&app), access::around))
        .with_state(app)
}
